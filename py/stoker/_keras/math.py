"""keras.ops' mathematics on Stoker; what is missing here is Keras' own, over stoker.tf.

Transforms take and give pairs (real, imaginary). They are products with cosines and sines, the factors of a length one
after the other, so they run on the engine and have gradients.
"""

from keras.src.backend import standardize_dtype
from stoker import tf as _tf
from stoker.tf._base import o as _o
from stoker.tf._spectra import transform as _transform

from keras.src.backend.tensorflow import _own
from keras.src.backend.tensorflow.core import convert_to_tensor

__getattr__ = _own.fallback("math", globals())


def rsqrt(x):
    return _o.rsqrt(convert_to_tensor(x))


def erf(x):
    return _o.erf(convert_to_tensor(x))


def erfc(x):
    return _o.erfc(convert_to_tensor(x))


def logsumexp(x, axis=None, keepdims=False):
    return _o.reduce_logsumexp(convert_to_tensor(x), axis=axis, keepdims=keepdims)


def _parts(x):
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(f"Input `x` should be a tuple of two tensors - real and imaginary.Received: x={x}")
    real, imag = (convert_to_tensor(p) for p in x)
    if real.shape.as_list() != imag.shape.as_list():
        raise ValueError("Input `x` should be a tuple of two tensors - real and imaginary.Both the real and imaginary parts "
                         f"should have the same shape. Received: x[0].shape = {real.shape}, x[1].shape = {imag.shape}")
    if "float" not in real.dtype.name or "float" not in imag.dtype.name:
        raise ValueError(f"At least one tensor in input `x` is not of type float.Received: x={x}.")
    return real, imag


def _swapped(parts):
    rank = len(parts[0].shape)
    order = list(range(rank - 2)) + [rank - 1, rank - 2]
    return tuple(_o.transpose(p, order) for p in parts)


def fft(x):
    return _transform(*_parts(x), -1)


def fft2(x):
    once = _transform(*_parts(x), -1)
    return _swapped(_transform(*_swapped(once), -1))


def ifft2(x):
    real, imag = _parts(x)
    *_, height, width = real.shape.as_list()
    once = _transform(real, imag, 1)
    return tuple(p / float(height * width) for p in _swapped(_transform(*_swapped(once), 1)))


def _fitted(x, n):
    """The last axis cut or filled up with zeros to n."""
    *lead, have = x.shape.as_list()
    if have > n:
        return x[..., :n]
    return x if have == n else _tf.pad(x, [[0, 0]] * len(lead) + [[0, n - have]])


def rfft(x, fft_length=None):
    x = convert_to_tensor(x)
    n = x.shape.as_list()[-1] if fft_length is None else int(fft_length)
    re, im = _transform(_fitted(x, n), None, -1)
    return re[..., :n // 2 + 1], im[..., :n // 2 + 1]


def irfft(x, fft_length=None):
    re, im = _parts(x)
    n = 2 * (re.shape.as_list()[-1] - 1) if fft_length is None else int(fft_length)
    re, im = _fitted(re, n // 2 + 1), _fitted(im, n // 2 + 1)
    last = len(re.shape) - 1
    mirrored = [_o.reverse(p[..., 1:(n + 1) // 2], [last]) for p in (re, im)]
    re, im = _o.concat([re, mirrored[0]], last), _o.concat([im, _o.negative(mirrored[1])], last)
    return _transform(re, im, 1)[0] / float(n)


def _window(window, length, fft_length, dtype):
    """The window, with zeros on both sides up to the length of the transform; None for none."""
    if window is None:
        return None
    if isinstance(window, str):
        if window not in ("hann", "hamming"):
            raise ValueError("If a string is passed to `window`, it must be one of `\"hann\"`, `\"hamming\"`. Received: "
                             f"window={window}")
        made = getattr(_tf.signal, window + "_window")(length, periodic=True, dtype=dtype)
    else:
        made = convert_to_tensor(window, dtype)
    if made.shape.as_list() != [length]:
        raise ValueError(f"The shape of `window` must be equal to [sequence_length].Received: window shape={made.shape}")
    left = (fft_length - length) // 2
    return _tf.pad(made, [[left, fft_length - length - left]])


def stft(x, sequence_length, sequence_stride, fft_length, window="hann", center=True):
    if standardize_dtype(x.dtype) not in {"float32", "float64"}:
        raise TypeError(f"Invalid input type. Expected `float32` or `float64`. Received: input type={x.dtype}")
    if fft_length < sequence_length:
        raise ValueError("`fft_length` must equal or larger than `sequence_length`. Received: "
                         f"sequence_length={sequence_length}, fft_length={fft_length}")
    x = convert_to_tensor(x)
    window = _window(window, sequence_length, fft_length, x.dtype)
    if center:
        x = _tf.pad(x, [[0, 0]] * (len(x.shape) - 1) + [[fft_length // 2] * 2], mode="REFLECT")
    frames = _tf.signal.frame(x, fft_length, sequence_stride)
    return rfft(frames if window is None else frames * window, fft_length)


def istft(x, sequence_length, sequence_stride, fft_length, length=None, window="hann", center=True):
    re, im = _parts(x)
    window = _window(window, sequence_length, fft_length, re.dtype)
    frames = irfft((re, im), fft_length)
    if window is not None:
        frames = frames * _inverse_window(window, fft_length, sequence_stride)
    made = _tf.signal.overlap_and_add(frames, sequence_stride)
    start = fft_length // 2 if center else 0
    total = made.shape.as_list()[-1]
    end = start + length if length is not None else total - fft_length // 2 if center else total
    return made[..., start:end]


def _inverse_window(window, length, step):
    """What makes windows that overlap add up to one."""
    overlaps = -(-length // step)
    squares = _tf.pad(_o.square(window), [[0, overlaps * step - length]])
    total = _o.reduce_sum(_o.reshape(squares, [overlaps, step]), axis=0, keepdims=True)
    return window / _o.reshape(_o.tile(total, [overlaps, 1]), [-1])[:length]
