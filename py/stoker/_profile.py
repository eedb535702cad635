"""stoker profile and stoker doctor of Python programs: the books of a run, by part and by line.

The extension books its own parts exactly (py/src/books.c); a thread looks a few hundred times a second at which line of the
program is being worked on. What is on no book is Python itself.
"""
import builtins
import collections
import json
import linecache
import os
import sys
import threading
import time

from stoker import _stoker

EVERY = 0.004  # seconds between two looks
_PARTS = [("import", "importing modules"), ("trace", "recording functions"), ("compile", "compiling programs"),
          ("input", "waiting for input"), ("epochs", "whole epochs in the engine"), ("program", "programs"),
          ("eager", "single operations"), ("host", "Python functions inside of programs"),
          ("read", "results read back"), ("python", "Python")]


class Books:
    """Everything that is known about one run."""

    def __init__(self):
        self.importing, self._depth, self.began = 0.0, 0, time.perf_counter()
        self.lines, self.looks = collections.Counter(), 0
        self._stop = threading.Event()
        self._main = threading.get_ident()
        self._import = builtins.__import__
        self.trainers = []

    # Imports: only the outermost counts.

    def _timed_import(self, *args, **kwargs):
        if self._depth or threading.get_ident() != self._main:
            return self._import(*args, **kwargs)
        self._depth, start = 1, time.perf_counter()
        try:
            return self._import(*args, **kwargs)
        finally:
            self._depth = 0
            self.importing += time.perf_counter() - start

    def _look(self):
        own = os.path.dirname(os.path.abspath(__file__))
        outside = (own, os.path.dirname(os.__file__), "<frozen")
        while not self._stop.wait(EVERY):
            frame = sys._current_frames().get(self._main)
            if self._depth:
                continue
            self.looks += 1
            place = None
            while frame is not None:
                file = frame.f_code.co_filename
                if not file.startswith(outside) and "site-packages" not in file:
                    place = file, frame.f_lineno
                    break
                frame = frame.f_back
            if place is not None:
                self.lines[place] += 1
            del frame

    def __enter__(self):
        builtins.__import__ = self._timed_import
        _stoker.books_switch(True)
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._stop.set()
        self._thread.join()
        builtins.__import__ = self._import
        _stoker.books_switch(False)
        self.wall = time.perf_counter() - self.began
        return False

    # What came of it.

    def result(self):
        booked = _stoker.books()
        seconds = {name: booked[name][0] for name, _ in _PARTS if name in booked}
        times = {name: booked[name][1] for name, _ in _PARTS if name in booked}
        inside = sum(seconds.values())
        seconds["import"] = self.importing
        seconds["python"] = max(0.0, self.wall - inside - self.importing)
        return {"wall": self.wall, "seconds": seconds, "times": times, "lines": self._top_lines(),
                "ways": _ways(), "eager_functions": _eager_functions()}

    def _top_lines(self, most=8):
        rows = []
        for (file, line), looks in self.lines.most_common(most):
            rows.append({"file": os.path.relpath(file) if file.startswith("/") else file, "line": line,
                         "share": looks / max(1, self.looks), "text": linecache.getline(file, line).strip()})
        return rows


def _ways():
    """How fit, evaluate and predict were run, if Keras is there."""
    whole = sys.modules.get("keras.src.backend.tensorflow._whole")
    return dict(whole.ways) if whole is not None else {}


def _eager_functions():
    function = sys.modules.get("stoker.tf._function")
    rows = []
    for f in function.runs_eagerly if function is not None else []:
        code = getattr(f._python_function, "__code__", None)
        place = f"{os.path.relpath(code.co_filename)}:{code.co_firstlineno}" if code is not None else ""
        rows.append({"name": f._name, "place": place, "why": f._why_eager})
    return rows


# Verdict: what the steady part of the run was bound by.

def verdict(r):
    """(name, sentence, advice)"""
    s, t = r["seconds"], r["times"]
    work = sum(s[n] for n in ("input", "epochs", "program", "eager", "host", "read", "python"))
    setup = s["import"] + s["trace"] + s["compile"]
    share = {n: s[n] / work if work else 0.0 for n in s}
    if work < 0.5 * setup:
        return ("warm-up", f"Importing, recording and compiling took {_time(setup)} of {_time(r['wall'])}; there was little "
                "else to do.", ["measure longer runs; times per step of this one mean nothing"])
    if r["eager_functions"] and share["eager"] + share["python"] > 0.5:
        f = r["eager_functions"][0]
        return ("fallback-bound", f"{f['name']} ({f['place']}) runs without a program: {f['why']}.",
                ["take what needs Python out of the function, or tell the shape of its result"])
    if share["input"] > 0.4:
        return ("input-bound", f"The program waits for its next batch in {share['input']:.0%} of the time.",
                ["map with num_parallel_calls=tf.data.AUTOTUNE, cache() what fits into memory, prefetch()"])
    if share["host"] > 0.3:
        return ("python-bound", f"Python functions inside of programs take {share['host']:.0%}.",
                ["say it with TensorFlow's operations: they are recorded, Python's are called each time"])
    if share["python"] > 0.4:
        advice = []
        if t["eager"] > 20 * max(1, t["program"]):
            advice.append(f"{t['eager']} single operations were called one by one: put the step into a @tf.function")
        if t["read"] > max(50, t["program"] // 2):
            advice.append(f"results were read back {t['read']} times: look at the loss every 100 steps, not at every one")
        for way in r["ways"].values():
            if way.startswith("step by step"):
                advice.append(f"fit went {way}; without that whole epochs run in the engine")
        advice = advice or ["use model.fit, or give the loop larger batches"]
        return ("python-bound", f"Python between the steps takes {share['python']:.0%}.", advice)
    if share["eager"] > 0.4:
        return ("overhead-bound", f"{t['eager']} single operations take {share['eager']:.0%}.",
                ["put them into a @tf.function: they become one program"])
    return ("compute-bound", "Most of the time is arithmetic.", ["smaller model, or mixed precision, or more processors"])


# Text.

def _time(seconds):
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.1f} ms"


def text(r, title):
    lines = [f"{title}: {_time(r['wall'])}", ""]
    for name, words in _PARTS:
        seconds, times = r["seconds"].get(name, 0.0), r["times"].get(name)
        if seconds < 5e-4 and not times:
            continue
        count = f"{times:>9} times" if times else ""
        lines.append(f"  {words:36} {_time(seconds):>10} {seconds / r['wall']:>6.1%}  {count}")
    if r["lines"]:
        lines += ["", "  lines that were being worked on"]
        for row in r["lines"]:
            place = f"{row['file']}:{row['line']}"
            lines.append(f"    {row['share']:>6.1%}  {place:28} {row['text'][:70]}")
    for mode, way in r["ways"].items():
        lines.append(f"  {mode}: {way}")
    for f in r["eager_functions"]:
        lines.append(f"  {f['name']} ({f['place']}) runs eagerly: {f['why']}")
    return "\n".join(lines)


def main(word, arguments, run):
    """run(arguments) runs the program. Options of ours stand before it: --json FILE."""
    out = None
    while arguments and arguments[0].startswith("--"):
        option = arguments.pop(0)
        if option == "--json" and arguments:
            out = arguments.pop(0)
        else:
            print(f"stoker {word}: unknown option {option}; there is --json FILE", file=sys.stderr)
            return 2
    if not arguments:
        print(f"stoker {word}: which program?", file=sys.stderr)
        return 2
    title, code, books = arguments[0], 0, Books()
    with books:
        try:
            run(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    r = books.result()
    r["verdict"], sentence, advice = verdict(r)
    sys.stdout.flush()
    print(f"\n{text(r, title)}", file=sys.stderr)
    if word == "doctor":
        print(f"\nVERDICT  {r['verdict']}\n         {sentence}", file=sys.stderr)
        for number, line in enumerate(advice, 1):
            print(f"     {number}. {line}", file=sys.stderr)
    if out is not None:
        with open(out, "w") as file:
            json.dump(dict(r, sentence=sentence, advice=advice), file, indent=1)
    return code
