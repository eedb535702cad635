"""tf.experimental.numpy against NumPy: values, types of results, gradients."""
import numpy as np
import pytest

import stoker.tf as tf

tnp = tf.experimental.numpy
R = np.random.RandomState(0)
A, B, I = R.rand(3, 4).astype("float32") + 0.5, R.rand(4), np.arange(12).reshape(3, 4)

CALLS = """
abs(-A) | exp(A) | log(A) | sqrt(I) | square(I) | sin(I) | log2(A) | log10(A) | floor(A) | isnan(A) | sign(A - 1) | reciprocal(A)
add(A, B) | add(A, 2) | add(I, 2.5) | subtract(I, A) | multiply(A, I) | divide(I, 3) | floor_divide(I, 5) | mod(I, 5) | power(A, 2)
maximum(A, 1) | minimum(I, 5) | equal(I, 3) | less(A, B) | logical_and(I, I > 3) | logical_not(I) | arctan2(A, B) | hypot(A, A) | clip(I, 2, 6)
where(I > 5, A, 0) | where(I > 5)[0] | sum(I) | sum(I, axis=0) | sum(I > 3) | prod(A, axis=1) | mean(I) | mean(A, axis=1, keepdims=True) | max(I, axis=0)
min(A) | std(A, axis=0) | var(I) | all(I) | any(I, axis=1) | argmax(A) | argmin(A, axis=1) | cumsum(I) | cumsum(A, axis=1) | matmul(A, B)
matmul(B, A.T) | dot(A, B) | dot(B, B) | inner(A, A) | outer(B, B) | tensordot(A, A, ([1], [1])) | einsum('ij,kj->ik', A, A)
zeros((2, 3)) | ones(4, dtype=np.int32) | full((2, 2), 7) | zeros_like(I) | ones_like(A) | eye(3) | eye(2, 4, 1) | identity(3) | arange(5)
arange(1, 2, 0.25) | linspace(0, 1, 5) | array([[1, 2], [3, 4]]) | array(1.5) | array([1, 2], ndmin=2) | asarray(A) | reshape(I, (4, 3)) | ravel(A)
transpose(A) | swapaxes(A, 0, 1) | moveaxis(A, 0, 1) | expand_dims(A, 0) | squeeze(A[None]) | concatenate([A, I]) | stack([A, A], axis=1)
vstack([B, B]) | hstack([B, B]) | hstack([A, A]) | split(I, 2, axis=1)[1] | split(B, [1, 3])[1] | broadcast_to(B, (2, 4)) | tile(B, (2, 1))
repeat(B, 2) | flip(A) | flip(A, 1) | roll(I, 2) | roll(I, 1, axis=0) | take(I, [1, 3]) | take(A, [0, 2], axis=1) | tril(A) | triu(A, 1)
sort(A, axis=0) | argsort(B)
"""


@pytest.mark.parametrize("call", [c.strip() for line in CALLS.strip().splitlines() for c in line.split("|")])
def test_as_numpy_does(call):
    names = {"A": A, "B": B, "I": I, "np": np}
    want = np.asarray(eval("np." + call, names))
    made = eval("tnp." + call, {**names, "tnp": tnp})
    assert made.dtype.as_numpy_dtype == want.dtype and made.shape.as_list() == list(want.shape)
    np.testing.assert_allclose(made.numpy(), want, rtol=2e-6, atol=1e-6)


def test_gradients_and_functions():
    x = tf.Variable(A)

    @tf.function
    def f():
        return tnp.sum(tnp.square(tnp.matmul(x, tnp.transpose(x))))

    with tf.GradientTape() as tape:
        y = f()
    np.testing.assert_allclose(y.numpy(), np.square(A @ A.T).sum(), rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), 4 * (A @ A.T) @ A, rtol=1e-4)


def test_random_and_constants():
    assert tnp.random.randn(2, 3).shape == (2, 3) and tnp.random.rand(4).dtype == tf.float64
    drawn = tnp.random.randint(3, 7, size=(100,)).numpy()
    assert drawn.min() >= 3 and drawn.max() < 7 and tnp.pi == np.pi and isinstance(tnp.ones(2), tnp.ndarray)


def test_methods_when_they_are_asked_for():
    tnp.experimental_enable_numpy_behavior()
    x = tf.constant(A)
    assert x.T.shape == (4, 3) and x.astype(np.int32).dtype == tf.int32 and x.reshape(4, 3).shape == (4, 3)
    assert float(x.sum()) == pytest.approx(float(A.sum()), rel=1e-5) and x.tolist() == A.tolist()


def test_variables_of_keras_are_operands():
    keras = pytest.importorskip("keras")
    v = keras.Variable([[1.0], [2.0]])
    made = tnp.matmul(tnp.ones((1, 2), tnp.float32), v) + 1
    assert made.dtype == tf.float32 and float(made) == 4.0
