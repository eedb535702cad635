"""Complex numbers and Fourier transforms against NumPy; gradients against differences."""
import numpy as np
import pytest

import stoker.tf as tf

R = np.random.RandomState(0)
X = R.randn(3, 100).astype("float32")
Z = (R.randn(3, 60) + 1j * R.randn(3, 60)).astype("complex64")
z = tf.constant(Z)


def close(made, want, tolerance=2e-5):
    want = np.asarray(want)
    assert made.shape.as_list() == list(want.shape)
    assert np.iscomplexobj(want) == made.dtype.is_complex
    np.testing.assert_allclose(made.numpy(), want, rtol=tolerance, atol=tolerance * (1 + np.abs(want).max()))


@pytest.mark.parametrize("made, want", [
    (lambda: z + z, Z + Z), (lambda: z * z, Z * Z), (lambda: z / (z + 1), Z / (Z + 1)), (lambda: 2.0 * z - 1j, 2 * Z - 1j),
    (lambda: -z, -Z), (lambda: tf.abs(z), np.abs(Z)), (lambda: tf.math.angle(z), np.angle(Z)), (lambda: tf.math.conj(z), Z.conj()),
    (lambda: tf.exp(z), np.exp(Z)), (lambda: tf.sqrt(z), np.sqrt(Z)), (lambda: tf.math.log(z), np.log(Z)), (lambda: z ** 2, Z ** 2),
    (lambda: tf.reduce_sum(z, 0), Z.sum(0)), (lambda: tf.reshape(z, [60, 3]), Z.reshape(60, 3)), (lambda: z[1, ::2], Z[1, ::2]),
    (lambda: tf.matmul(z, tf.transpose(z)), Z @ Z.T), (lambda: tf.concat([z, z], 1), np.concatenate([Z, Z], 1)),
    (lambda: tf.stack([z, z]), np.stack([Z, Z])), (lambda: tf.math.real(z), Z.real), (lambda: tf.cast(z, tf.float32), Z.real),
    (lambda: tf.cast(X, tf.complex64), X.astype("complex64")), (lambda: tf.complex(X, X), X + 1j * X),
], ids=str)
def test_numbers(made, want):
    close(made(), want)


@pytest.mark.parametrize("n", [7, 64, 100, 97, 360])
def test_transforms(n):
    x = R.randn(2, 3, n).astype("float32")
    c = (x + 1j * R.randn(2, 3, n)).astype("complex64")
    close(tf.signal.fft(c), np.fft.fft(c))
    close(tf.signal.ifft(c), np.fft.ifft(c))
    close(tf.signal.fft2d(c), np.fft.fft2(c))
    close(tf.signal.ifft2d(c), np.fft.ifft2(c))
    close(tf.signal.rfft(x), np.fft.rfft(x))
    close(tf.signal.rfft(x, [n + 5]), np.fft.rfft(x, n + 5))
    close(tf.signal.irfft(np.fft.rfft(x).astype("complex64"), [n]), x)
    close(tf.signal.rfft2d(x), np.fft.rfft2(x))
    close(tf.signal.irfft2d(np.fft.rfft2(x).astype("complex64"), [3, n]), x)
    close(tf.signal.fftshift(x), np.fft.fftshift(x))
    close(tf.signal.ifftshift(c, axes=[2]), np.fft.ifftshift(c, axes=[2]))


def test_frames_there_and_back():
    x = R.randn(2, 1024).astype("float32")
    made = tf.signal.stft(x, 256, 64)
    assert made.shape == (2, 13, 129) and made.dtype == tf.complex64
    back = tf.signal.inverse_stft(made, 256, 64, window_fn=tf.signal.inverse_stft_window_fn(64))
    np.testing.assert_allclose(back.numpy()[:, 256:-256], x[:, 256:-256], atol=1e-5)


def test_gradients_go_through():
    x = tf.Variable(X[:, :20].astype("float64"))

    def loss():
        return tf.reduce_sum(tf.abs(tf.signal.rfft(x) * tf.complex(x[:, :11], x[:, 9:])))

    with tf.GradientTape() as tape:
        value = loss()
    slope = tape.gradient(value, x).numpy()
    for at in [(0, 3), (2, 10), (1, 19)]:
        step = np.zeros(x.shape.as_list())
        step[at] = 1e-6
        x.assign_add(step)
        up = loss().numpy()
        x.assign_sub(2 * step)
        down = loss().numpy()
        x.assign_add(step)
        assert abs((up - down) / 2e-6 - slope[at]) < 1e-4 * max(1, abs(slope[at]))


def test_zero_has_a_modulus_with_a_gradient():
    x = tf.Variable([0.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.abs(tf.complex(x, x * 0 + [0.0, 4.0]))
    assert y.numpy().tolist() == [0, 5]
    assert np.allclose(tape.gradient(y, x).numpy(), [0, 0.6])


def test_functions_and_datasets():
    x = R.randn(1000).astype("float32")
    f = tf.function(lambda a: tf.signal.stft(a, 255, 128))
    close(f(x), tf.signal.stft(x, 255, 128).numpy())
    assert f.why_eager() is None
    ds = tf.data.Dataset.from_tensors(x).map(lambda a: tf.abs(tf.signal.stft(a, 255, 128)))
    close(next(iter(ds)), np.abs(f(x).numpy()))


def test_values_of_matrices():
    a = R.randn(5, 5).astype("float32")
    values, vectors = tf.linalg.eig(a)
    np.testing.assert_allclose(a @ vectors.numpy(), vectors.numpy() * values.numpy(), atol=1e-4)


def test_refusals_name_the_operation():
    with pytest.raises(TypeError, match="tf.floor does not take complex numbers"):
        tf.floor(z)
    with pytest.raises(TypeError, match="float32 float64"):
        tf.complex(1.0, tf.constant(1.0, tf.float64))


def test_variables():
    v = tf.Variable([1.0, 2.0], dtype=tf.complex64, name="c")
    assert v.name == "c:0" and v.dtype == tf.complex64 and v.trainable and "complex64" in repr(v)

    @tf.function
    def turned(by):
        v.assign(v * by)
        return tf.abs(v)

    close(turned(tf.constant([1j, 2j], tf.complex64)), [1, 4])
    close(v, [1j, 4j])
    close(v.assign_add([1, 1j]).assign_sub([1j, 0]), [1, 5j])
    close(tf.where([True, False], v, tf.ones_like(v)), [1 + 0j, 1])
    assert tf.Variable([[5, 6 + 1j]]).numpy().tolist() == [[5, 6 + 1j]] and tf.Variable(["complex"]).dtype == tf.string
    assert tf.Variable(1 + 2j).dtype == tf.complex128 and tf.zeros_like(v, tf.float32).dtype == tf.float32
