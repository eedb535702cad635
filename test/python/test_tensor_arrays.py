"""tf.TensorArray in loops of recorded programs: dense while the loop runs, with gradients; what cannot be known runs eagerly."""
import numpy as np
import pytest

import stoker.tf as tf


@pytest.mark.parametrize("trips", [3, 20])
@pytest.mark.parametrize("grows", [False, True])
def test_written_in_a_loop(trips, grows):
    @tf.function
    def powers(x):
        array = tf.TensorArray(tf.float32, 0 if grows else trips, dynamic_size=grows)
        y = x
        for i in tf.range(trips):
            array = array.write(i, y)
            y = y * x
        return array.stack()

    x = tf.constant([0.5, -1.25])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = powers(x)
        total = tf.reduce_sum(y)
    want = np.stack([x.numpy() ** (n + 1) for n in range(trips)])
    np.testing.assert_allclose(y, want, rtol=1e-5)
    slope = sum((n + 1) * x.numpy() ** n for n in range(trips))
    np.testing.assert_allclose(tape.gradient(total, x), slope, rtol=1e-4)
    assert powers.why_eager() is None


def test_size_decided_by_values_runs_eagerly():
    @tf.function
    def collect(x):
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        while tf.reduce_sum(x) > 1.0:
            array = array.write(array.size(), x)
            x = x / 2.0
        return array.stack()

    assert collect(tf.constant([2.0, 3.0])).shape == (3, 2)
    assert collect.why_eager() is not None


def test_loop_of_effects_only():
    seen = []

    @tf.function
    def run(n):
        for i in tf.range(n):
            tf.py_function(lambda v: seen.append(int(v)), [i], [])

    run(12)
    run(tf.constant(3))
    assert seen == list(range(12)) + [0, 1, 2]


def test_more_values_than_one_operation_takes():
    parts = [tf.fill([2], float(n)) for n in range(150)]
    with tf.GradientTape() as tape:
        tape.watch(parts[149])
        y = tf.reduce_sum(tf.stack(parts, axis=1)[:, 140:] ** 2)
    np.testing.assert_allclose(tape.gradient(y, parts[149]), [298.0, 298.0])
    assert tf.concat(parts, 0).shape == (300,)


def test_prints_in_every_call(capfd):
    @tf.function
    def told(n):
        tf.print("call", n)

    assert told(1) is None
    assert told(1) is None
    assert capfd.readouterr().err == "call 1\ncall 1\n"
