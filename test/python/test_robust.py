"""Many calls, threads, forks, interrupts."""
import gc
import os
import signal
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


MODEL_CALLS = {
    "fit": (150, lambda m, x, y, batches: m.fit(x, y, batch_size=8, verbose=0)),
    "fit of a dataset": (150, lambda m, x, y, batches: m.fit(batches, verbose=0)),
    "evaluate": (150, lambda m, x, y, batches: m.evaluate(x, y, verbose=0)),
    "predict": (300, lambda m, x, y, batches: m.predict(x, verbose=0)),
    "train_on_batch": (3000, lambda m, x, y, batches: m.train_on_batch(x, y)),
    "predict_on_batch": (3000, lambda m, x, y, batches: m.predict_on_batch(x)),
    "model(x)": (10000, lambda m, x, y, batches: m(x)),
    "iteration": (500, lambda m, x, y, batches: [None for _ in batches]),
    "broken iteration": (500, lambda m, x, y, batches: next(iter(batches))),
}


@pytest.mark.parametrize("what", MODEL_CALLS)
def test_calls_of_a_model_do_not_grow(what):
    """STOKER_TEST_CALLS=100000 takes that many instead; a leak of 100 bytes a call is 10 MB then."""
    keras = pytest.importorskip("keras")
    times, call = MODEL_CALLS[what]
    times = int(os.environ.get("STOKER_TEST_CALLS", times))
    m = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    m.compile("adam", "mse")
    x, y = np.zeros((64, 4), "float32"), np.zeros((64, 2), "float32")
    batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
    assert grows(lambda: call(m, x, y, batches), times, 50) < 2e6


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
    with tf.device("/CPU:0"):  # what is on another device stays with the parent (test_devices)
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

