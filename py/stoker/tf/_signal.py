"""tf.signal: frames and windows on the engine."""
import numpy as np

from stoker.tf._base import dims, float32, o, static, tensor


def hann_window(window_length, periodic=True, dtype=float32, name=None):
    n = int(static(window_length))
    return tensor(_window(n, periodic, 0.5, 0.5).astype("float32"), dtype)


def hamming_window(window_length, periodic=True, dtype=float32, name=None):
    return tensor(_window(int(static(window_length)), periodic, 0.54, 0.46).astype("float32"), dtype)


def _window(n, periodic, a, b):
    if n == 1:
        return np.ones(1)
    return a - b * np.cos(2 * np.pi * np.arange(n) / (n if periodic and n % 2 == 0 else n - 1))  # as TensorFlow does


def frame(signal, frame_length, frame_step, pad_end=False, pad_value=0, axis=-1, name=None):
    x = tensor(signal)
    many = len(dims(x))
    axis = int(axis) % many
    length, step = int(static(frame_length)), int(static(frame_step))
    total = dims(x)[axis]
    count = -(-total // step) if pad_end else max(0, 1 + (total - length) // step)
    if pad_end:
        extra = max(0, (count - 1) * step + length - total)
        x = o.pad(x, [[0, extra if n == axis else 0] for n in range(many)], constant_values=pad_value)
    places = np.arange(count)[:, None] * step + np.arange(length)
    return o.gather(x, tensor(places), axis=axis)


def overlap_and_add(signal, frame_step, name=None):
    x = tensor(signal)
    step = int(static(frame_step))
    *lead, frames, length = dims(x)
    total = (frames - 1) * step + length
    places = (np.arange(frames)[:, None] * step + np.arange(length)).ravel()
    flat = o.reshape(x, [-1, frames * length])
    base = tensor(np.zeros([total, dims(flat)[0]], x.dtype.as_numpy_dtype))
    made = o.tensor_scatter_nd_add(base, tensor(places[:, None]), o.transpose(flat))
    return o.reshape(o.transpose(made), lead + [total])


def linear_to_mel_weight_matrix(num_mel_bins=20, num_spectrogram_bins=129, sample_rate=8000, lower_edge_hertz=125.0,
                                upper_edge_hertz=3800.0, dtype=float32, name=None):
    def mel(f):
        return 1127.0 * np.log1p(np.asarray(f, np.float64) / 700.0)

    lines = mel(np.linspace(0, float(sample_rate) / 2, num_spectrogram_bins)[1:])[:, None]
    edges = np.linspace(mel(lower_edge_hertz), mel(upper_edge_hertz), num_mel_bins + 2)
    low, centre, high = edges[:-2][None], edges[1:-1][None], edges[2:][None]
    weights = np.maximum(0, np.minimum((lines - low) / (centre - low), (high - lines) / (high - centre)))
    return tensor(np.pad(weights, [[1, 0], [0, 0]]).astype("float32"), dtype)


def kaiser_window(window_length, beta=12.0, dtype=float32, name=None):
    return tensor(np.kaiser(int(static(window_length)), float(beta)).astype("float32"), dtype)
