"""tf.signal: Fourier transforms. Products with cosines and sines, factor by factor of the length: they have gradients and run in programs."""
import functools

import numpy as np

from stoker.tf import _complex, _signal
from stoker.tf._base import dims, o, static, tensor

_DIRECT = 64  # lengths up to this are one product


def _factor(n):
    """A divisor near the root; 1 for primes."""
    best = 1
    for a in range(2, int(n**0.5) + 1):
        if n % a == 0:
            best = a
    return best


@functools.lru_cache(maxsize=64)
def _waves(rows, columns, n, sign):
    """cos and sin of sign * 2 pi j k / n."""
    angle = sign * 2 * np.pi / n * (np.outer(np.arange(rows), np.arange(columns)) % n)
    return np.cos(angle), np.sin(angle)


def _turn(re, im, waves, combine):
    """The complex product with given waves; im may be None for real input."""
    cos, sin = (tensor(w.astype(re.dtype.as_numpy_dtype)) for w in waves)
    if im is None:
        return combine(re, cos), combine(re, sin)
    return combine(re, cos) - combine(im, sin), combine(re, sin) + combine(im, cos)


def transform(re, im, sign):
    """Of the last axis, without a factor. im None: zeros."""
    *lead, n = dims(re)
    rows = int(np.prod(lead, dtype=np.int64))
    re = o.reshape(re, [rows, n])
    im = None if im is None else o.reshape(im, [rows, n])
    re, im = _transform_rows(re, im, rows, n, sign)
    return o.reshape(re, lead + [n]), o.reshape(im, lead + [n])


def _transform_rows(re, im, rows, n, sign):
    a = _factor(n) if n > _DIRECT else 1
    if a == 1:
        return _turn(re, im, _waves(n, n, n, sign), o.matmul)
    b = n // a

    def columns(x):  # (rows, a, b) -> (rows * b, a)
        return None if x is None else o.reshape(o.transpose(o.reshape(x, [rows, a, b]), [0, 2, 1]), [rows * b, a])

    re, im = _transform_rows(columns(re), columns(im), rows * b, a, sign)
    re, im = (o.reshape(x, [rows, b, a]) for x in (re, im))
    re, im = _turn(re, im, _waves(b, a, n, sign), o.multiply)
    re, im = (o.reshape(o.transpose(x, [0, 2, 1]), [rows * a, b]) for x in (re, im))
    re, im = _transform_rows(re, im, rows * a, b, sign)
    return tuple(o.reshape(o.transpose(o.reshape(x, [rows, a, b]), [0, 2, 1]), [rows, n]) for x in (re, im))


# ---- TensorFlow's functions --------------------------------------------------------------------------------------

def _pair(x):
    made = _complex.from_value(x)
    return _complex.pair(tensor(x)) if made is None else made


def _swapped(x):
    many = len(dims(x))
    return o.transpose(x, list(range(many - 2)) + [many - 1, many - 2])


def _fitted(x, n):
    """The last axis cut or filled up with zeros to n."""
    *lead, have = dims(x)
    if have > n:
        return x[..., :n]
    return x if have == n else o.pad(x, [[0, 0]] * len(lead) + [[0, n - have]])


def _sizes(length, x, axes):
    return dims(x)[-axes:] if length is None else [int(n) for n in np.ravel(static(length))]


def fft(input, name=None):
    x = _pair(input)
    return _complex.ComplexTensor(*transform(x._re, x._im, -1))


def ifft(input, name=None):
    x = _pair(input)
    n = dims(x)[-1]
    return _complex.ComplexTensor(*(p / n for p in transform(x._re, x._im, 1)))


def _columns(x, sign):
    """Of the last axis but one."""
    made = transform(_swapped(x._re), _swapped(x._im), sign)
    return _complex.ComplexTensor(*(_swapped(p) for p in made))


def fft2d(input, name=None):
    return _columns(fft(input), -1)


def ifft2d(input, name=None):
    return _columns(ifft(input), 1) / float(dims(_pair(input))[-2])


def rfft(input_tensor, fft_length=None, name=None):
    x = tensor(input_tensor)
    n, = _sizes(fft_length, x, 1)
    return _complex.ComplexTensor(*(p[..., :n // 2 + 1] for p in transform(_fitted(x, n), None, -1)))


def irfft(input_tensor, fft_length=None, name=None):
    x = _pair(input_tensor)
    n = 2 * (dims(x)[-1] - 1) if fft_length is None else int(np.ravel(static(fft_length))[0])
    re, im = (_fitted(p, n // 2 + 1) for p in (x._re, x._im))
    last = len(dims(re)) - 1
    mirrored = [o.reverse(p[..., 1:(n + 1) // 2], [last]) for p in (re, im)]
    re, im = o.concat([re, mirrored[0]], last), o.concat([im, -mirrored[1]], last)
    return transform(re, im, 1)[0] / float(n)


def rfft2d(input_tensor, fft_length=None, name=None):
    x = tensor(input_tensor)
    rows, columns = _sizes(fft_length, x, 2)
    return _columns(rfft(_swapped(_fitted(_swapped(x), rows)), [columns]), -1)


def irfft2d(input_tensor, fft_length=None, name=None):
    x = _pair(input_tensor)
    rows, columns = (dims(x)[-2], 2 * (dims(x)[-1] - 1)) if fft_length is None else _sizes(fft_length, x, 2)
    parts = [_swapped(_fitted(_swapped(p), rows)) for p in (x._re, x._im)]
    return irfft(_columns(_complex.ComplexTensor(*parts), 1) / float(rows), [columns])


def _shifted(x, axes, direction):
    made = _complex.from_value(x)
    x = tensor(x) if made is None else made
    axes = range(len(dims(x))) if axes is None else np.ravel(static(axes)).tolist()
    for axis in axes:
        half = direction * (dims(x)[axis] // 2)
        turn = functools.partial(o.roll, shift=[half], axis=[axis])
        x = _complex.by_parts(turn, x) if isinstance(x, _complex.ComplexTensor) else turn(x)
    return x


def fftshift(x, axes=None, name=None):
    return _shifted(x, axes, 1)


def ifftshift(x, axes=None, name=None):
    return _shifted(x, axes, -1)


def _power_of_two(n):
    return 1 << max(0, int(n) - 1).bit_length()


def stft(signals, frame_length, frame_step, fft_length=None, window_fn=_signal.hann_window, pad_end=False, name=None):
    signals = tensor(signals)
    length = int(static(frame_length))
    n = _power_of_two(length) if fft_length is None else int(static(fft_length))
    frames = _signal.frame(signals, length, frame_step, pad_end=pad_end)
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=signals.dtype)
    return rfft(frames, [n])


def inverse_stft(stfts, frame_length, frame_step, fft_length=None, window_fn=_signal.hann_window, name=None):
    length = int(static(frame_length))
    n = _power_of_two(length) if fft_length is None else int(static(fft_length))
    frames = _fitted(irfft(stfts, [n]), length)
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=frames.dtype)
    return _signal.overlap_and_add(frames, frame_step)


def inverse_stft_window_fn(frame_step, forward_window_fn=_signal.hann_window, name=None):
    """What makes windows that overlap add up to one."""
    def window(frame_length, dtype):
        length, step = int(static(frame_length)), int(static(frame_step))
        made = forward_window_fn(length, dtype=dtype)
        overlaps = -(-length // step)
        squares = o.pad(made * made, [[0, overlaps * step - length]])
        total = o.reduce_sum(o.reshape(squares, [overlaps, step]), 0, True)
        return made / o.reshape(o.tile(total, [overlaps, 1]), [-1])[:length]

    return window


def dct(input, type=2, n=None, axis=-1, norm=None, name=None):
    x = tensor(input)
    if axis != -1 or type != 2:
        raise NotImplementedError("tf.signal.dct: Stoker has type 2 along the last axis")
    x = x if n is None else _fitted(x, int(n))
    size = dims(x)[-1]
    waves = 2 * np.cos(np.pi / size * np.outer(np.arange(size) + 0.5, np.arange(size)))
    if norm == "ortho":
        waves *= np.sqrt(np.where(np.arange(size) == 0, 0.25, 0.5) / size)
    *lead, _ = dims(x)
    return o.reshape(o.matmul(o.reshape(x, [-1, size]), tensor(waves.astype(x.dtype.as_numpy_dtype))), lead + [size])


def idct(input, type=2, n=None, axis=-1, norm=None, name=None):
    """What dct of the same type undoes, but for the factor 2 n where norm is None."""
    x = tensor(input)
    if axis != -1 or type != 2 or n is not None:
        raise NotImplementedError("tf.signal.idct: Stoker has type 2 along the whole last axis")
    *lead, size = dims(x)
    waves = np.cos(np.pi / size * np.outer(np.arange(size), np.arange(size) + 0.5))
    waves *= np.sqrt(np.where(np.arange(size) == 0, 1, 2) / size)[:, None] if norm == "ortho" else np.where(np.arange(size) == 0, 1, 2)[:, None]
    return o.reshape(o.matmul(o.reshape(x, [-1, size]), tensor(waves.astype(x.dtype.as_numpy_dtype))), lead + [size])


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms, name=None):
    x = tensor(log_mel_spectrograms)
    return dct(x) / np.sqrt(dims(x)[-1] * 2.0).astype(x.dtype.as_numpy_dtype)
