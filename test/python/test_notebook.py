"""%load_ext stoker, and the magics that tell about a cell. A stand-in takes the place of the notebook."""
import subprocess
import sys

PROGRAM = """
import types, stoker

class Shell:
    def __init__(self):
        self.magics = {}
    def register_magic_function(self, function, kind, name):
        assert kind == "cell"
        self.magics[name] = function
    def run_cell(self, cell):
        try:
            exec(cell, globals())
        except Exception:
            return types.SimpleNamespace(success=False)
        return types.SimpleNamespace(success=True)

shell = Shell()
stoker.load_ipython_extension(shell)
import tensorflow as tf
assert tf.__version__ and "stoker" in tf.constant.__module__ + repr(tf.function(lambda: 1))
assert sorted(shell.magics) == ["stoker_doctor", "stoker_profile"]
cell = "f = tf.function(lambda x: x * 2)\\nfor i in range(200):\\n    f(tf.constant(i)).numpy()"
for name in shell.magics:
    seen = set()
    for _ in range(2):  # each cell has books of its own
        report = shell.magics[name]("", cell)
        assert "cell: " in repr(report) and "results read back" in repr(report), report
        row = next(line for line in repr(report).splitlines() if "results read back" in line)
        seen.add(row.split()[-2])
        assert report._repr_html_().startswith("<pre>")
    assert len(seen) == 1, seen
    assert ("VERDICT" in repr(report)) == (name == "stoker_doctor")
assert shell.magics["stoker_doctor"]("", "1 / 0") is None
print("done")
"""


def test_magics(monkeypatch):
    monkeypatch.setenv("STOKER_DOCTOR_SECONDS", "0.5")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.stdout == "done\n", done.stderr[-2000:]
