"""Control flow, effects and custom gradients inside of recorded programs."""
import numpy as np
import pytest

import stoker.tf as tf


def test_branch():
    @tf.function
    def f(x):
        if tf.reduce_sum(x) > 0:
            y = x * 2
        else:
            y = x - 1
        return y

    assert f(tf.constant([1.0, 2.0])).numpy().tolist() == [2, 4]
    assert f(tf.constant([-1.0, -2.0])).numpy().tolist() == [-2, -3]
    assert f.experimental_get_tracing_count() == 1


def test_while():
    @tf.function
    def f(n):
        i, s = tf.constant(0), tf.constant(0.0)
        while i < n:
            s += tf.cast(i, tf.float32)
            i += 1
        return s

    assert f(tf.constant(5)).numpy() == 10 and f(tf.constant(7)).numpy() == 21


def test_scan_and_its_gradient():
    def plain(x):
        s = tf.zeros(2)
        for r in x:
            s = s * 0.5 + r * r
        return tf.reduce_sum(s)

    x = tf.constant(np.random.RandomState(0).randn(40, 2).astype("float32"))
    grads = []
    for f in (plain, tf.function(plain)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        grads.append(tape.gradient(y, x).numpy())
    assert np.allclose(grads[0], grads[1], atol=1e-5)

    @tf.function
    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = plain(x)
        return tape.gradient(y, x)

    assert np.allclose(inside(x).numpy(), grads[0], atol=1e-5)


def test_variables_and_effects_in_loops(capfd):
    v = tf.Variable(0.0)

    @tf.function
    def f(x):
        for i in tf.range(20):
            if i > 3:
                v.assign_add(x)
                tf.print("i", i)
            if i > 5:
                break
        return v.read_value()

    assert f(tf.constant(2.0)).numpy() == 6 and v.numpy() == 6
    assert capfd.readouterr().err == "i 4\ni 5\ni 6\n"


def test_assertions_in_programs():
    @tf.function
    def f(x):
        tf.debugging.assert_greater(x, 0.0)
        return x + 1

    assert f(tf.constant(1.0)).numpy() == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="did not hold"):
        f(tf.constant(-1.0))
    assert f(tf.constant(1.0)).numpy() == 2


def test_exceptions_of_host_functions():
    @tf.function
    def f(x):
        return tf.numpy_function(lambda a: 1 // 0 if a[0] < 0 else a + 1, [x], tf.TensorSpec([2], tf.float32))

    assert f(tf.constant([1.0, 2.0])).numpy().tolist() == [2, 3]
    with pytest.raises(Exception, match="division"):
        f(tf.constant([-1.0, 2.0]))
    assert f(tf.constant([1.0, 2.0])).numpy().tolist() == [2, 3]


@tf.custom_gradient
def double(x):
    def grad(dy):
        return dy * 100

    return x * 2, grad


def test_custom_gradient():
    x = tf.Variable(3.0)

    def step():
        with tf.GradientTape() as tape:
            y = double(double(x)) * x
        return y, tape.gradient(y, x)

    for f in (step, tf.function(step)):
        y, g = f()
        assert y.numpy() == 36 and g.numpy() == 12 + 3 * 100 * 100


def test_gradient_through_a_function_with_variables():
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    calls = tf.Variable(0)

    @tf.function
    def f(x):
        calls.assign_add(1)
        return tf.reduce_sum(tf.tanh(x @ w))

    x = tf.constant([[0.1, 0.2]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x) * 2
        z = tf.reduce_sum(tf.tanh(x @ w)) * 2
    for source in (x, w):
        assert np.allclose(tape.gradient(y, source).numpy(), tape.gradient(z, source).numpy(), atol=1e-6)
    assert calls.numpy() == 1


def test_dropout_has_one_mask_in_a_taped_function():
    @tf.function
    def f(x):
        return tf.nn.dropout(x, 0.5)

    x = tf.ones([1000])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert np.allclose(tape.gradient(y, x).numpy(), y.numpy())


def test_tape_inside_of_a_loop():
    @tf.function
    def newton(x):
        for i in tf.range(20):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x ** 3 - 2.0 * x - 5.0
            x = x - y / tape.gradient(y, x)
            if tf.abs(y) < 1e-6:
                break
        return x, i

    x, i = newton(tf.constant(2.0))
    assert abs(float(x) - 2.0945515) < 1e-5 and int(i) == 3


def test_tape_two_loops_deep_watches_a_value_from_outside():
    @tf.function
    def slopes(x):
        total = tf.zeros([])
        for _ in tf.range(2):
            for k in tf.range(3):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = x * x * tf.cast(k, tf.float32)
                total += tape.gradient(y, x)
        return total

    assert float(slopes(tf.constant(5.0))) == 2 * (0 + 10 + 20)


def test_slices_of_variables_are_assigned():
    v = tf.Variable([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    assert v[1, 1:].assign([10.0, 20.0]) is v
    v[:, 0].assign(7.0)

    @tf.function
    def change(i):
        v[i, 2].assign(99.0)
        return v[0] * 2.0

    assert change(tf.constant(0)).numpy().tolist() == [14.0, 2.0, 198.0]
    assert v.numpy().tolist() == [[7.0, 1.0, 99.0], [7.0, 10.0, 20.0]]
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        v[0].assign([1.0, 2.0])


def test_check_numerics_names_the_operation():
    @tf.function
    def log(x):
        return tf.math.log(x) + 1.0

    tf.debugging.enable_check_numerics()
    try:
        for run in (tf.math.log, log):
            with pytest.raises(tf.errors.InvalidArgumentError, match='op "Log".*NaN|NaN'):
                run(tf.constant(-1.0))
        assert float(log(tf.constant(1.0))) == 1.0
    finally:
        tf.debugging.disable_check_numerics()
    assert np.isnan(tf.math.log(-1.0).numpy())


def test_variables_of_strings():
    v = tf.Variable("first")
    before = v.value()
    v.assign("second")
    assert v.numpy() == b"second" and before.numpy() == b"first" and v.dtype == tf.string
