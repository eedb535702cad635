"""tf.function beside what the referees ask: variables that it makes, results without a program, masks."""
import numpy as np
import pytest

import stoker.tf as tf


class Late(tf.Module):
    """Its variables are made by the first call, of values that the function computes."""

    def __init__(self):
        super().__init__()
        self.made = False

    @tf.function
    def __call__(self, x):
        if not self.made:
            self.w = tf.Variable(tf.random.normal((x.shape[-1], 2)))
            self.b = tf.Variable(tf.reduce_sum(x) * tf.ones((2,)))
            self.made = True
        return x @ self.w + self.b


def test_variables_of_traced_values():
    layer = Late()
    x = tf.constant([[1.0, 2.0, 3.0]])
    first, second = layer(x), layer(x)
    assert len(layer.variables) == 2
    np.testing.assert_allclose(first, second)
    np.testing.assert_allclose(first, x.numpy() @ layer.w.numpy() + [6.0, 6.0], rtol=1e-6)
    assert type(layer).__call__.why_eager() is None  # the second call has a program


def test_variables_of_traced_values_only_once():
    @tf.function
    def f(x):
        return tf.Variable(x * 2.0) + x

    f(tf.constant(1.0))
    with pytest.raises(ValueError, match="singleton"):
        f(tf.constant([1.0]))


def test_concrete_function_of_late_variables():
    layer = Late()
    concrete = layer.__call__.get_concrete_function(tf.TensorSpec((1, 3)))
    assert concrete(tf.ones((1, 3))).shape == (1, 2)


def test_results_without_a_program_are_tensors():
    @tf.function
    def f(words):
        n = 0
        for _ in words:
            n += 1
        return n, {"half": 0.5, "name": "x", "none": None}

    n, rest = f(tf.data.Dataset.range(4))
    assert f.why_eager()
    assert isinstance(n, tf.Tensor) and n.dtype == tf.int32 and int(n) == 4
    assert rest["half"].dtype == tf.float32 and rest["name"].numpy() == b"x" and rest["none"] is None


def test_iterator_moves_on():
    walk = iter(tf.data.Dataset.range(10))

    @tf.function
    def f():
        return next(walk) * 10

    assert [int(f()) for _ in range(3)] == [0, 10, 20]


def test_function_that_calls_itself():
    @tf.function
    def down(n):
        if n > 0:
            return down(n - 1) + 1
        return tf.constant(0)

    assert int(down(4)) == 4
    with pytest.raises(RecursionError):
        down(tf.constant(4))


def test_loops_on_unknown_trips_have_gradients():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            while y < 50.0:
                y = y * x
        return y, tape.gradient(y, x)

    y, dx = f(tf.constant(3.0))
    assert float(y) == 81.0 and float(dx) == 4 * 27.0
    assert "gradient" in f.why_eager()


def test_arrays_of_truths_are_masks():
    t = tf.constant([[1, 2], [3, 4], [5, 6]])
    assert t[np.array([True, False, True])].numpy().tolist() == [[1, 2], [5, 6]]
    assert t[t.numpy() > 2].numpy().tolist() == [3, 4, 5, 6]
    with pytest.raises(TypeError):
        t[np.array([0, 2])]


def test_arrays_take_the_type_of_the_first_operand():
    x, w = tf.ones((1, 4, 4, 1)), np.ones((2, 2, 1, 1))
    assert tf.nn.conv2d(x, w, 1, "SAME").dtype == tf.float32
    assert tf.nn.conv2d_transpose(x, w, (1, 4, 4, 1), 1, "SAME").dtype == tf.float32
    assert tf.nn.bias_add(x, np.ones(1)).dtype == tf.float32
    assert tf.einsum("ij,jk->ik", tf.ones((2, 2)), np.ones((2, 2))).dtype == tf.float32
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.nn.conv2d(x, tf.constant(w), 1, "SAME")


def test_methods_of_datasets_tell_what_they_do():
    for name in dir(tf.data.Dataset):
        if not name.startswith("_"):
            assert getattr(tf.data.Dataset, name).__doc__, name


def test_signatures_hold_for_functions_without_a_program():
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([], tf.int32)])
    def rows(x, n):
        made = tf.TensorArray(tf.float32, size=n, element_shape=[2])
        for i in tf.range(n):
            made = made.write(i, tf.reduce_mean(x, 0) * tf.cast(i, tf.float32))
        return made.stack()

    for _ in range(2):
        assert rows(tf.ones((3, 2)), 2).numpy().tolist() == [[0, 0], [1, 1]]
        for wrong in ((tf.ones((3, 3)), 1), (tf.ones((3, 2)), 1.5), (tf.ones(3), 1), (tf.ones((3, 2)),)):
            with pytest.raises(TypeError, match="Binding inputs to tf.function failed"):
                rows(*wrong)
