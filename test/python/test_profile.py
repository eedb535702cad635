"""Books of Python programs, and the doctor's verdict on planted faults."""
import json
import os
import subprocess
import sys

import pytest


def run(tmp_path, word, program, *arguments):
    path, out = tmp_path / "program.py", tmp_path / "books.json"
    path.write_text(program)
    done = subprocess.run([sys.executable, "-m", "stoker", word, "--json", str(out), str(path), *arguments],
                          capture_output=True, text=True, timeout=300, env=dict(os.environ))
    return done, json.loads(out.read_text()) if out.exists() else None


SLOW_PYTHON = """
import sys, tensorflow as tf
a = tf.ones((10, 10))
def slow():
    return sum(i * i for i in range(4000))
for _ in range(600):
    b = a + a
    slow()
assert sys.argv[1:] == ["one", "two"]
"""


def test_python_bound_with_lines(tmp_path):
    done, r = run(tmp_path, "doctor", SLOW_PYTHON, "one", "two")
    assert done.returncode == 0, done.stderr
    assert r["verdict"] == "python-bound" and "VERDICT  python-bound" in done.stderr
    assert r["times"]["eager"] >= 600 and any(row["line"] in (5, 8) for row in r["lines"][:3])
    assert abs(sum(r["seconds"].values()) - r["wall"]) < 0.05 * r["wall"]


SLOW_INPUT = """
import time, tensorflow as tf
def rows():
    for i in range(60):
        time.sleep(0.02)
        yield i
for x in tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((), tf.int32)):
    pass
"""


def test_input_bound(tmp_path):
    done, r = run(tmp_path, "doctor", SLOW_INPUT)
    assert done.returncode == 0 and r["verdict"] == "input-bound", done.stderr


FALLBACK = """
import tensorflow as tf
@tf.function
def odd(x):
    return tf.reduce_sum(tf.unique(x)[0])
for i in range(3000):
    odd(tf.constant([1, 2, 2, i % 7]))
"""


def test_functions_without_a_program_are_named(tmp_path):
    done, r = run(tmp_path, "profile", FALLBACK)
    assert done.returncode == 0, done.stderr
    assert [f["name"] for f in r["eager_functions"]] == ["odd"] and "program.py:3" in r["eager_functions"][0]["place"]
    assert "odd" in done.stderr


def test_ends_of_programs_are_kept(tmp_path):
    done, r = run(tmp_path, "profile", "import sys; sys.exit(3)")
    assert done.returncode == 3 and r is not None
    done, _ = run(tmp_path, "profile", "raise KeyError('gone')")
    assert done.returncode == 1 and "KeyError: 'gone'" in done.stderr


FIT = """
import numpy as np, tensorflow as tf
m = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
m.compile("sgd", "mse")
m.fit(np.zeros((64, 4)), np.zeros(64), epochs=2, verbose=0)
"""


def test_the_way_of_fit_is_told(tmp_path):
    pytest.importorskip("keras")
    done, r = run(tmp_path, "profile", FIT)
    assert done.returncode == 0, done.stderr
    assert r["ways"]["train"].startswith("whole epochs") and r["times"]["epochs"] >= 2
