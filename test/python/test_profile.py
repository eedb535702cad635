"""Books of Python programs, and the doctor's verdict on planted faults."""
import importlib.util
import json
import os
import subprocess
import sys

import pytest


needs_keras = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="there is no keras")


def run(tmp_path, word, program, *arguments):
    path, out = tmp_path / "program.py", tmp_path / "books.json"
    path.write_text(program)
    done = subprocess.run([sys.executable, "-m", "stoker", word, "--json", str(out), str(path), *arguments],
                          capture_output=True, text=True, timeout=300, env=dict(os.environ, STOKER_DOCTOR_SECONDS="1.5"))
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


HOST = """
import time, numpy as np, tensorflow as tf
def lookup(a):
    time.sleep(0.002)
    return a * 2
@tf.function
def step(a):
    return tf.reduce_sum(tf.numpy_function(lookup, [a], tf.TensorSpec((64, 32), tf.float32)))
for i in range(300):
    step(tf.ones((64, 32)))
"""


def test_a_host_function_is_named_with_its_line(tmp_path):
    done, r = run(tmp_path, "doctor", HOST)
    assert done.returncode == 0, done.stderr
    h = r["host_functions"][0]
    assert (h["kind"], h["name"], h["line"], h["calls"]) == ("tf.numpy_function", "lookup", 3, 300)
    assert h["file"].endswith("program.py") and h["bytes"] == 300 * 2 * 64 * 32 * 4
    assert r["verdict"] == "fallback-bound" and "program.py:3" in r["sentence"]


MAP = """
import time, numpy as np, tensorflow as tf
def augment(a):
    time.sleep(0.004)
    return a + np.float32(1)
def prepare(a):
    return tf.py_function(augment, [a], tf.float32)
for a in tf.data.Dataset.from_tensor_slices(np.zeros((200, 8), "f")).map(prepare):
    pass
"""


def test_python_in_a_map_is_named_with_its_line(tmp_path):
    done, r = run(tmp_path, "doctor", MAP)
    assert done.returncode == 0 and r["verdict"] == "fallback-bound", done.stderr
    assert "augment" in r["sentence"] and "program.py:3" in r["sentence"]
    assert {h["kind"] for h in r["host_functions"]} == {"tf.py_function", "map"}


RETRACED = """
import tensorflow as tf
@tf.function
def step(scale, x):
    for i in range(30):
        x = tf.tanh(x * scale + i)
    return tf.reduce_sum(x)
for n in range(100):
    step(tf.constant(1.0), tf.ones((4, n + 1)))
"""


def test_retracing_names_the_argument(tmp_path):
    done, r = run(tmp_path, "doctor", RETRACED)
    assert done.returncode == 0 and r["verdict"] == "retrace-bound", done.stderr
    assert r["retraced"][0]["argument"] == "x" and r["retraced"][0]["times"] == 100
    assert "argument 'x' was float32 [4, 99], then float32 [4, 100]" in r["sentence"] and "padded_batch" in r["advice"][0]
    numbers = RETRACED.replace("tf.constant(1.0)", "float(n)").replace("n + 1", "3")
    done, r = run(tmp_path, "doctor", numbers)
    assert r["retraced"][0]["argument"] == "scale" and "pass tensors" in r["advice"][0]


LOOP = """
import atexit, numpy as np, tensorflow as tf
x = np.random.rand(400, 32).astype("f"); y = np.random.rand(400, 1).astype("f")
ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(400).batch(10)
w = tf.Variable(tf.ones((32, 1)))
@tf.function
def step(a, b, rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((a @ w - b) ** 2)
    w.assign_sub(rate * tape.gradient(loss, w))
    return loss
history = []
for epoch in range(20):
    for a, b in ds:
        history.append(float(step(a, b, tf.constant(0.1))))
        sum(i * i for i in range(2000))
kept = w.numpy()
atexit.register(lambda: print("the same" if np.array_equal(kept, w.numpy()) else "changed"))
"""


def test_a_loop_is_probed_and_put_back(tmp_path):
    done, r = run(tmp_path, "doctor", LOOP)
    assert done.returncode == 0 and "the same" in done.stdout, done.stdout + done.stderr
    loop = r["loop"]
    assert loop["function"] == "step" and loop["line"] == 6 and loop["runs"] == 800
    assert {c["part"] for c in loop["ceilings"]} == {"in the engine", "one batch", "not read", "batches alone"}
    assert all(0 < c["gain"]["low"] <= c["gain"]["best"] <= c["gain"]["high"] for c in loop["ceilings"])
    assert r["verdict"] == "python-bound"


INPUT_FIT = """
import atexit, time, numpy as np, tensorflow as tf
def rows():
    for i in range(24):
        time.sleep(0.01)
        yield np.ones((16, 8), "f"), np.ones((16, 1), "f")
kind = (tf.TensorSpec((16, 8), tf.float32), tf.TensorSpec((16, 1), tf.float32))
m = tf.keras.Sequential([tf.keras.layers.Input((8,)), tf.keras.layers.Dropout(0.5), tf.keras.layers.Dense(1)])
m.compile("adam", "mse")
m.fit(tf.data.Dataset.from_generator(rows, output_signature=kind), epochs=3, verbose=0)
kept = [v.numpy() for v in m.variables + m.optimizer.variables]
same = lambda: all(np.array_equal(a, v.numpy()) for a, v in zip(kept, m.variables + m.optimizer.variables))
atexit.register(lambda: print("the same" if same() else "changed"))
"""


@needs_keras
def test_a_fit_is_examined_and_put_back(tmp_path):
    done, r = run(tmp_path, "doctor", INPUT_FIT)
    assert done.returncode == 0 and "the same" in done.stdout, done.stdout + done.stderr
    assert "not_probed" not in r, r["not_probed"]
    d = r["examined"]["doctor"]
    assert r["verdict"] == d["verdict"] == "input-bound", d
    assert "with one batch used again and again" in d["evidence"] and r["host_functions"][0]["kind"] == "from_generator"
    assert "rows (" in r["sentence"] and "program.py:3" in r["sentence"]


@needs_keras
def test_a_page(tmp_path):
    (tmp_path / "fit.py").write_text(FIT)
    done = subprocess.run([sys.executable, "-m", "stoker", "doctor", "--html", str(tmp_path / "page.html"), str(tmp_path / "fit.py")],
                          capture_output=True, text=True, timeout=300, env=dict(os.environ, STOKER_DOCTOR_SECONDS="1"))
    page = (tmp_path / "page.html").read_text()
    assert done.returncode == 0 and "importing modules" in page and "VERDICT" in page and "<svg" in page


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


@needs_keras
def test_the_way_of_fit_is_told(tmp_path):
    done, r = run(tmp_path, "profile", FIT)
    assert done.returncode == 0, done.stderr
    assert r["ways"]["train"].startswith("whole epochs") and r["times"]["epochs"] >= 2
