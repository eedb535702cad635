"""Many calls, threads, forks, interrupts."""
import gc
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import stoker.tf as tf


def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def grows(call, times, warm=2000):
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("AddressSanitizer keeps what was freed")
    for _ in range(warm):
        call()
    gc.collect()
    before = rss()
    for _ in range(times):
        call()
    gc.collect()
    return rss() - before


def test_calls_of_functions_do_not_grow():
    w = tf.Variable(np.ones((8, 8), "float32"))

    @tf.function
    def f(x, scale):
        w.assign_sub(0.001 * w)
        return {"y": x @ w * scale, "z": [x]}

    x = tf.ones((4, 8))
    array = np.ones((4, 8), "float32")
    assert grows(lambda: f(x, 2.0), 100_000) < 3e6
    assert grows(lambda: f(array, 2.0), 20_000) < 3e6


def test_eager_calls_tapes_and_failures_do_not_grow():
    a, v = tf.ones((10, 10)), tf.Variable(np.ones((10, 10), "float32"))

    def work():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.tanh(a @ v) * 2.0)
        v.assign_sub(0.01 * tape.gradient(y, v))

    def wrong():
        try:
            tf.ones((2, 3)) @ tf.ones((2, 3))
        except tf.errors.InvalidArgumentError:
            pass

    assert grows(work, 10_000, 1000) < 4e6
    assert grows(wrong, 10_000, 500) < 3e6
    assert grows(lambda: (a + a).numpy(), 100_000) < 3e6


def test_taped_calls_of_functions_do_not_grow():
    w = tf.Variable(np.ones((4, 4), "float32"))

    @tf.function
    def f(x):
        return tf.reduce_sum(x @ w)

    x = tf.ones((2, 4))

    def work():
        with tf.GradientTape() as tape:
            y = f(x)
        tape.gradient(y, w)

    assert grows(work, 5_000, 500) < 4e6


def test_fit_and_predict_do_not_grow():
    keras = pytest.importorskip("keras")
    m = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    m.compile("adam", "mse")
    x, y = np.zeros((64, 4), "float32"), np.zeros((64, 2), "float32")
    assert grows(lambda: m.fit(x, y, batch_size=8, verbose=0), 150, 50) < 8e6
    assert grows(lambda: m.predict(x, verbose=0), 300, 50) < 8e6


def test_two_threads_train_two_models():
    keras = pytest.importorskip("keras")
    x = np.random.RandomState(0).randn(256, 4).astype("float32")
    y = x[:, :2] * 2

    def make():
        m = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
        m.compile(keras.optimizers.SGD(0.1), "mse")
        m.set_weights([np.zeros((4, 2)), np.zeros(2)])
        return m

    models, results, errors = [make() for _ in range(3)], {}, []

    def train(n):
        try:
            h = models[n].fit(x, y, batch_size=16, epochs=20, shuffle=False, verbose=0)
            results[n] = h.history["loss"][-1]
        except BaseException as error:
            errors.append(error)

    train(0)
    threads = [threading.Thread(target=train, args=(n,)) for n in (1, 2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and results[1] == results[0] == results[2] < 1e-3


def test_one_function_from_many_threads():
    v = tf.Variable(0.0)

    @tf.function
    def f(x):
        v.assign_add(1.0)
        return tf.reduce_sum(x @ x)

    x, bad = tf.ones((20, 20)), []
    f(x)

    def work():
        for _ in range(500):
            if f(x).numpy() != 8000:
                bad.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad and v.numpy() == 2001


def test_fork_after_import():
    a = tf.ones((300, 300))
    (a @ a).numpy()

    @tf.function
    def f(x):
        return tf.reduce_sum(tf.tanh(x @ x))

    want = f(a).numpy()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ok = f(a).numpy() == want and (a @ a).numpy()[0, 0] == 300
            os.write(write, b"1" if ok else b"0")
        finally:
            os._exit(0)
    os.close(write)
    signal.alarm(60)
    assert os.read(read, 1) == b"1"
    signal.alarm(0)
    os.waitpid(child, 0)


LONG = """
import numpy as np, tensorflow as tf
m = tf.keras.Sequential([tf.keras.layers.Input((32,)), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
m.compile("adam", "mse")
x = np.zeros((3200, 32), "float32")
print("ready", flush=True)
m.fit(x, x[:, :1], epochs=1000000, verbose=0)
"""


def test_ctrl_c_ends_fit(tmp_path):
    pytest.importorskip("keras")
    path = tmp_path / "long.py"
    path.write_text(LONG)
    p = subprocess.Popen([sys.executable, "-m", "stoker", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"
    import time

    time.sleep(1.5)
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=20)
    assert p.returncode == 130 and "KeyboardInterrupt" in err
