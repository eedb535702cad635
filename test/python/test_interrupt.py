"""Ctrl-C ends whatever is going on: the program stops soon, with KeyboardInterrupt."""
import importlib.util
import os
import signal
import subprocess
import sys
import time

import pytest

HEAD = """
import time
import numpy as np, tensorflow as tf
def model(**how):
    m = tf.keras.Sequential([tf.keras.layers.Input((32,)), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
    m.compile("adam", "mse", **how)
    return m
x = np.zeros((320, 32), "float32")
def batches():
    for n in range(10**9):
        if n > 4: time.sleep(1000)
        yield x, x[:, :1]
def stuck(v):
    time.sleep(1000)
    return v
"""

LONG = {
    "fit": """
m = model()
print("ready", flush=True)
m.fit(x, x[:, :1], epochs=10**7, verbose=0)""",
    "fit by steps": """
m = model(run_eagerly=True)
print("ready", flush=True)
m.fit(x, x[:, :1], epochs=10**7, verbose=0)""",
    "fit that waits for a generator": """
m = model()
print("ready", flush=True)
m.fit(batches(), steps_per_epoch=1000, verbose=0)""",
    "predict": """
m = model()
print("ready", flush=True)
while True: m.predict(x, verbose=0, batch_size=1)""",
    "loop of a function": """
@tf.function
def f(v, n):
    i = tf.constant(0)
    while i < n:
        v = tf.tanh(v @ v)
        i += 1
    return v
f(tf.ones((5, 5)), tf.constant(3))
print("ready", flush=True)
f(tf.ones((5, 5)), tf.constant(2**31 - 1))""",
    "counted loop of a function": """
@tf.function
def f(v, w):
    for i in tf.range(w):
        v = tf.tanh(v @ v)
    return v
f(tf.ones((50, 50)), 3)
print("ready", flush=True)
f(tf.ones((50, 50)), tf.constant(2**31 - 1))""",
    "dataset": """
print("ready", flush=True)
for v in tf.data.Dataset.range(10**12).map(lambda v: v * 2).batch(32): pass""",
    "dataset that gives nothing": """
print("ready", flush=True)
for v in tf.data.Dataset.range(10**12).filter(lambda v: v < 0): pass""",
    "reduce": """
print("ready", flush=True)
tf.data.Dataset.range(10**12).reduce(np.int64(0), lambda a, b: a + b)""",
    "py_function": """
print("ready", flush=True)
tf.py_function(stuck, [1.0], tf.float32)""",
    "py_function of a function": """
f = tf.function(lambda v: tf.numpy_function(stuck, [v], tf.TensorSpec((), tf.float32)) + 1)
print("ready", flush=True)
f(tf.constant(1.0))""",
    "map_fn": """
print("ready", flush=True)
while True: tf.map_fn(lambda v: v * 2, tf.zeros((1000,)))""",
    "eager operations": """
v = tf.ones((500, 500))
print("ready", flush=True)
while True: v = tf.tanh(v @ v)""",
}


@pytest.mark.parametrize("what", LONG)
def test_ctrl_c(what, tmp_path):
    if importlib.util.find_spec("keras") is None:  # found, not imported: this process has no engine under it
        pytest.skip("Keras is not installed")
    path = tmp_path / "long.py"
    path.write_text(HEAD + LONG[what])
    p = subprocess.Popen([sys.executable, "-m", "stoker", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    try:
        assert p.stdout.readline() == "ready\n", p.stderr.read()
        time.sleep(0.7)
        assert p.poll() is None, p.stderr.read()
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=20)
    finally:
        p.kill()
    assert p.returncode == 130 and "KeyboardInterrupt" in err
    if "LD_PRELOAD" not in os.environ:
        assert "Error" not in err.replace("KeyboardInterrupt", "")
