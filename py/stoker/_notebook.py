"""Notebooks: cells that are profiled or examined, with the report below them."""
import functools
import html

WORDS = ("profile", "doctor")


class Report:
    """A report as a notebook shows it: text for a terminal, a page for a browser."""

    def __init__(self, told, page):
        self._told, self._page = told, page

    def __repr__(self):
        return self._told

    def _repr_html_(self):
        shown = f"<pre>{html.escape(self._told)}</pre>"
        if self._page is not None:  # of the training that was examined: a document of its own, with its own styles
            shown += f'<iframe style="width:100%;height:40em;border:0" srcdoc="{html.escape(self._page)}"></iframe>'
        return shown


def run_cell(shell, word, line, cell):
    from stoker import _profile

    books = _profile.Books()
    with books:
        done = shell.run_cell(cell)
    if not done.success:
        return None  # the notebook has shown the error
    return Report(*_profile.tell(books, word == "doctor", "cell")[:2])


def register(shell):
    for word in WORDS:
        shell.register_magic_function(functools.partial(run_cell, shell, word), "cell", f"stoker_{word}")
