"""tf.image on tensors of [height, width, channels] or [batch, height, width, channels]."""
import numpy as _np

from stoker.tf import errors as _errors
from stoker.tf import random as _random
from stoker.tf._base import dims as _dims
from stoker.tf._base import float32 as _float32
from stoker.tf._base import o as _o
from stoker.tf._base import static as _static
from stoker.tf._base import tensor as _tensor
from stoker.tf._specs import as_dtype as _as_dtype


class ResizeMethod:
    BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA = "bilinear", "nearest", "bicubic", "area"
    LANCZOS3, LANCZOS5, GAUSSIAN, MITCHELLCUBIC = "lanczos3", "lanczos5", "gaussian", "mitchellcubic"


def _image(x):
    x = _tensor(x)
    if len(_dims(x)) not in (3, 4):
        raise ValueError("'image' (shape %s) must be at least three-dimensional." % (x.shape,))
    return x


def flip_left_right(image):
    return _o.reverse(_image(image), [-2])


def flip_up_down(image):
    return _o.reverse(_image(image), [-3])


def transpose(image, name=None):
    x = _image(image)
    return _o.transpose(x, [1, 0, 2] if len(_dims(x)) == 3 else [0, 2, 1, 3])


def rot90(image, k=1, name=None):
    x, turns = _image(image), int(_static(k)) % 4
    for _ in range(turns):
        x = flip_up_down(transpose(x))
    return x


# Sizes.

def crop_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    x = _image(image)
    top, left = offset_height, offset_width
    height, width = int(_static(target_height)), int(_static(target_width))
    lead = [0] * (len(_dims(x)) - 3)
    h, w, c = _dims(x)[-3:]
    if not _is_tensor(top) and not _is_tensor(left):
        top, left = int(top), int(left)
        for good, text in ((left >= 0, "offset_width must be >= 0."), (top >= 0, "offset_height must be >= 0."),
                           (width > 0, "target_width must be > 0."), (height > 0, "target_height must be > 0."),
                           (left + width <= w, "width must be >= target + offset."),
                           (top + height <= h, "height must be >= target + offset.")):
            if not good:
                raise ValueError(text)
        return _o.slice(x, lead + [top, left, 0], [-1] * len(lead) + [height, width, c])
    rows = _tensor(_np.arange(height, dtype=_np.int64)) + _o.cast(_tensor(top), "int64")
    columns = _tensor(_np.arange(width, dtype=_np.int64)) + _o.cast(_tensor(left), "int64")
    return _o.gather(_o.gather(x, rows, axis=len(lead)), columns, axis=len(lead) + 1)


def _is_tensor(x):
    return hasattr(x, "dtype") and not isinstance(x, (_np.ndarray, _np.generic))


def pad_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    x = _image(image)
    top, left = int(_static(offset_height)), int(_static(offset_width))
    h, w = _dims(x)[-3:-1]
    bottom, right = int(_static(target_height)) - top - h, int(_static(target_width)) - left - w
    for good, text in ((top >= 0, "offset_height must be >= 0"), (left >= 0, "offset_width must be >= 0"),
                       (right >= 0, "width must be <= target - offset"), (bottom >= 0, "height must be <= target - offset")):
        if not good:
            raise ValueError(text)
    return _o.pad(x, [[0, 0]] * (len(_dims(x)) - 3) + [[top, bottom], [left, right], [0, 0]])


def central_crop(image, central_fraction):
    x, part = _image(image), float(_static(central_fraction))
    if not 0 < part <= 1:
        raise ValueError("central_fraction must be within (0, 1]")
    if part == 1:
        return x
    h, w = _dims(x)[-3:-1]
    top, left = int((h - h * part) / 2), int((w - w * part) / 2)
    return crop_to_bounding_box(x, top, left, h - 2 * top, w - 2 * left)


def resize_with_crop_or_pad(image, target_height, target_width):
    x = _image(image)
    height, width = int(_static(target_height)), int(_static(target_width))
    h, w = _dims(x)[-3:-1]
    x = crop_to_bounding_box(x, max(h - height, 0) // 2, max(w - width, 0) // 2, min(height, h), min(width, w))
    return pad_to_bounding_box(x, max(height - h, 0) // 2, max(width - w, 0) // 2, height, width)


_KERNELS = {
    "bilinear": (1.0, lambda x: _np.maximum(1 - _np.abs(x), 0)),
    "bicubic": (2.0, lambda x: _cubic(_np.abs(x), 0.0, 0.5)),
    "mitchellcubic": (2.0, lambda x: _cubic(_np.abs(x), 1 / 3, 1 / 3)),
    "lanczos3": (3.0, lambda x: _np.where(_np.abs(x) < 3, _np.sinc(x) * _np.sinc(x / 3), 0)),
    "lanczos5": (5.0, lambda x: _np.where(_np.abs(x) < 5, _np.sinc(x) * _np.sinc(x / 5), 0)),
    "gaussian": (1.5, lambda x: _np.where(_np.abs(x) < 1.5, _np.exp(-x * x / (2 * 0.25)), 0)),
}


def _cubic(x, b, c):
    near = ((12 - 9 * b - 6 * c) * x**3 + (-18 + 12 * b + 6 * c) * x**2 + (6 - 2 * b)) / 6
    far = ((-b - 6 * c) * x**3 + (6 * b + 30 * c) * x**2 + (-12 * b - 48 * c) * x + (8 * b + 24 * c)) / 6
    return _np.where(x < 1, near, _np.where(x < 2, far, 0))


def _resize_weights(method, size, wanted, antialias):
    """[wanted, size]: how much of each old pixel goes into each new one, pixel centres at halves."""
    if method == "area":
        edges = _np.linspace(0, size, wanted + 1)
        low, high = edges[:-1, None], edges[1:, None]
        cells = _np.arange(size)[None]
        weights = _np.maximum(_np.minimum(high, cells + 1) - _np.maximum(low, cells), 0)
        return weights / weights.sum(1, keepdims=True)
    scale = size / wanted
    if method == "bicubic" and not antialias:
        return _keys_weights(size, wanted, scale)
    radius, kernel = _KERNELS[method]
    wide = max(scale, 1.0) if antialias else 1.0
    centres = (_np.arange(wanted) + 0.5) * scale
    cells = _np.arange(size) + 0.5
    if method == "bilinear" and not antialias:
        centres = _np.clip(centres, 0.5, size - 0.5)
    weights = kernel((cells[None] - centres[:, None]) / wide)
    total = weights.sum(1, keepdims=True)
    return weights / _np.where(total == 0, 1, total)


def _keys_weights(size, wanted, scale):
    """Bicubic without antialiasing: four taps of Keys' kernel (a = -0.5), edges taken out and weights summed to 1."""
    weights = _np.zeros((wanted, size))
    for n in range(wanted):
        place = (n + 0.5) * scale - 0.5
        first = int(_np.floor(place))
        taps = _np.arange(first - 1, first + 3)
        values = _cubic(_np.abs(taps - place), 0.0, 0.5)
        inside = (taps >= 0) & (taps < size)
        weights[n, taps[inside]] = values[inside] / values[inside].sum()
    return weights


def resize(images, size, method=ResizeMethod.BILINEAR, preserve_aspect_ratio=False, antialias=False, name=None):
    x = _image(images)
    sizes = [int(s) for s in _np.ravel(_static(size))] if not isinstance(size, (list, tuple)) else [
        int(_static(s)) for s in size]
    if len(sizes) != 2:
        raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
    height, width = sizes
    h, w = _dims(x)[-3:-1]
    if preserve_aspect_ratio:
        scale = min(height / h, width / w)
        height, width = int(round(h * scale)), int(round(w * scale))
    method = {0: "bilinear", 1: "nearest", 2: "bicubic", 3: "area"}.get(method, method)
    if method == "nearest":
        return _resize_nearest(x, h, w, height, width)
    if method != "area" and method not in _KERNELS:
        raise ValueError("Resize method is not implemented: {}".format(method))
    kind = x.dtype if x.dtype.is_floating else _float32
    x = _o.cast(x, _float32) if x.dtype.name != "float64" else x
    if (h, w) != (height, width):
        rows = _tensor(_resize_weights(method, h, height, antialias), x.dtype)
        columns = _tensor(_resize_weights(method, w, width, antialias), x.dtype)
        batch = _dims(x)[:-3]
        c = _dims(x)[-1]
        x = _o.matmul(rows, _o.reshape(x, batch + [h, w * c]))
        x = _o.matmul(columns, _o.reshape(x, batch + [height, w, c]))
    return x if x.dtype == kind else _o.cast(x, kind if kind.name == "float64" else _float32)


def _resize_nearest(x, h, w, height, width):
    def places(size, wanted):
        return _tensor(_np.minimum(((_np.arange(wanted) + 0.5) * (size / wanted)).astype(_np.int64), size - 1))

    lead = len(_dims(x)) - 3
    return _o.gather(_o.gather(x, places(h, height), axis=lead), places(w, width), axis=lead + 1)


def resize_with_pad(image, target_height, target_width, method=ResizeMethod.BILINEAR, antialias=False):
    x = _image(image)
    height, width = int(_static(target_height)), int(_static(target_width))
    h, w = _dims(x)[-3:-1]
    real = _np.float32  # TensorFlow's roundings, which decide about a row or a column
    ratio = max(real(w) / real(width), real(h) / real(height))
    exact = real(h) / ratio, real(w) / ratio
    new_h, new_w = int(exact[0]), int(exact[1])
    top, left = (max(0, int((real(n) - e) / real(2))) for n, e in zip((height, width), exact))
    return pad_to_bounding_box(resize(x, [new_h, new_w], method, antialias=antialias), top, left, height, width)


# Values.

def convert_image_dtype(image, dtype, saturate=False, name=None):
    x, dtype = _tensor(image), _as_dtype(dtype)
    if x.dtype == dtype:
        return x
    if dtype.is_floating:
        if x.dtype.is_floating:
            return _o.cast(x, dtype)
        return _o.cast(x, dtype) * _tensor(1.0 / int(x.dtype.max), dtype)
    if x.dtype.is_floating:
        scale = int(dtype.max) + 0.5
        scaled = x * _tensor(scale, x.dtype)
        from stoker.tf._math import saturate_cast

        return saturate_cast(scaled, dtype) if saturate else _o.cast(scaled, dtype)
    source, target = int(x.dtype.max), int(dtype.max)
    if source > target:
        return _o.cast(_o.floordiv(x, _tensor((source + 1) // (target + 1), x.dtype)), dtype)
    return _o.cast(x, dtype) * _tensor((target + 1) // (source + 1), dtype)


def _as_float(function):
    """Runs an adjustment on floats and gives back the image's own type."""

    def adjusted(image, *args):
        image = _tensor(image)
        if image.dtype.is_floating:
            return function(image, *args)
        return convert_image_dtype(function(convert_image_dtype(image, _float32), *args), image.dtype, saturate=True)

    return adjusted


def adjust_brightness(image, delta):
    return _as_float(lambda x, d: x + _o.cast(_tensor(d), x.dtype))(image, delta)


def adjust_contrast(images, contrast_factor):
    def run(x, factor):
        mean = _o.reduce_mean(x, axis=[-3, -2], keepdims=True)
        return (x - mean) * _o.cast(_tensor(factor), x.dtype) + mean

    from stoker.tf._tape import without_gradient

    return without_gradient("AdjustContrastv2", _as_float(run))(images, contrast_factor)


def rgb_to_grayscale(images, name=None):
    def run(x):
        return _o.reduce_sum(x * _tensor(_np.array([0.2989, 0.587, 0.114]), x.dtype), axis=[-1], keepdims=True)

    return _as_float(run)(images)


def grayscale_to_rgb(images, name=None):
    x = _tensor(images)
    return _o.tile(x, [1] * (len(_dims(x)) - 1) + [3])


def rgb_to_hsv(images, name=None):
    x = _tensor(images)
    red, green, blue = _o.unstack(x, axis=-1)
    value = _o.maximum(_o.maximum(red, green), blue)
    span = value - _o.minimum(_o.minimum(red, green), blue)
    zero, one = _tensor(0.0, x.dtype), _tensor(1.0, x.dtype)
    flat = _o.equal(span, zero)
    safe = _o.where(flat, one, span)
    dark = _o.less_equal(value, zero)
    saturation = _o.where(dark, zero, span / _o.where(dark, one, value))
    hue = _o.where(_o.equal(value, red), (green - blue) / safe,
                   _o.where(_o.equal(value, green), (blue - red) / safe + 2.0, (red - green) / safe + 4.0)) / 6.0
    hue = _o.where(flat, zero, _o.where(_o.less(hue, zero), hue + 1.0, hue))
    return _o.stack([hue, saturation, value], axis=-1)


def hsv_to_rgb(images, name=None):
    x = _tensor(images)
    hue, saturation, value = _o.unstack(x, axis=-1)
    zero, one = _tensor(0.0, x.dtype), _tensor(1.0, x.dtype)

    def channel(shift):
        k = _o.floormod(hue * 6.0 + shift, _tensor(6.0, x.dtype))
        part = _o.maximum(zero, _o.minimum(_o.minimum(k, 4.0 - k), one))
        return value - value * saturation * part

    return _o.stack([channel(5.0), channel(3.0), channel(1.0)], axis=-1)


def adjust_saturation(image, saturation_factor, name=None):
    def run(x, factor):
        hue, saturation, value = _o.unstack(rgb_to_hsv(x), axis=-1)
        zero, one = _tensor(0.0, x.dtype), _tensor(1.0, x.dtype)
        saturation = _o.minimum(_o.maximum(saturation * _o.cast(_tensor(factor), x.dtype), zero), one)
        return hsv_to_rgb(_o.stack([hue, saturation, value], axis=-1))

    return _as_float(run)(image, saturation_factor)


def adjust_hue(image, delta, name=None):
    def run(x, shift):
        hue, saturation, value = _o.unstack(rgb_to_hsv(x), axis=-1)
        hue = _o.floormod(hue + _o.cast(_tensor(shift), x.dtype), _tensor(1.0, x.dtype))
        return hsv_to_rgb(_o.stack([hue, saturation, value], axis=-1))

    return _as_float(run)(image, delta)


def adjust_gamma(image, gamma=1, gain=1):
    return _as_float(lambda x: x ** gamma * gain)(image)


def per_image_standardization(image):
    x = _o.cast(_image(image), _float32)
    mean = _o.reduce_mean(x, axis=[-3, -2, -1], keepdims=True)
    deviation = _o.sqrt(_o.reduce_mean(_o.square(x - mean), axis=[-3, -2, -1], keepdims=True))
    least = 1.0 / float(_np.sqrt(_np.prod(_dims(x)[-3:])))
    return (x - mean) / _o.maximum(deviation, _tensor(least, x.dtype))


def total_variation(images, name=None):
    x = _image(images)
    lead = [0] * (len(_dims(x)) - 3)
    h, w, c = _dims(x)[-3:]
    full = _dims(x)[:-3]
    down = _o.slice(x, lead + [1, 0, 0], full + [h - 1, w, c]) - _o.slice(x, lead + [0, 0, 0], full + [h - 1, w, c])
    across = _o.slice(x, lead + [0, 1, 0], full + [h, w - 1, c]) - _o.slice(x, lead + [0, 0, 0], full + [h, w - 1, c])
    return _o.reduce_sum(_o.abs(down), axis=[-3, -2, -1]) + _o.reduce_sum(_o.abs(across), axis=[-3, -2, -1])


def psnr(a, b, max_val, name=None):
    a, b = convert_image_dtype(a, _float32), convert_image_dtype(b, _float32)
    peak = float(_static(max_val))
    mse = _o.reduce_mean(_o.square(a - b), axis=[-3, -2, -1])
    return float(20 * _np.log10(peak)) - float(10 / _np.log(10)) * _o.log(mse)


def ssim(img1, img2, max_val, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03, return_index_map=False):
    x, y = convert_image_dtype(img1, _float32), convert_image_dtype(img2, _float32)
    if len(_dims(x)) == 3:
        return ssim(_o.expand_dims(x, 0), _o.expand_dims(y, 0), max_val, filter_size, filter_sigma, k1, k2)[0]
    if return_index_map:
        return _o.reduce_mean(_ssim_map(x, y, max_val, filter_size, filter_sigma, k1, k2)[0], axis=[-1])
    return _o.reduce_mean(_ssim_parts(x, y, max_val, filter_size, filter_sigma, k1, k2)[0], axis=[-1])


def _ssim_parts(x, y, max_val, filter_size, filter_sigma, k1, k2):
    """Of each channel: the likeness, and that of the structure alone."""
    return tuple(_o.reduce_mean(v, axis=[-3, -2]) for v in _ssim_map(x, y, max_val, filter_size, filter_sigma, k1, k2))


def _ssim_map(x, y, max_val, filter_size, filter_sigma, k1, k2):
    peak, channels = float(_static(max_val)), _dims(x)[-1]
    line = _np.exp(-((_np.arange(filter_size) - (filter_size - 1) / 2) ** 2) / (2 * filter_sigma**2))
    kernel = _np.outer(line, line) / line.sum() ** 2
    kernel = _tensor(_np.tile(kernel[:, :, None, None], [1, 1, channels, 1]).astype("float32"))

    def blur(v):
        return _o.depthwise_conv(v, kernel, [1, 1], "VALID", [1, 1])

    c1, c2 = (k1 * peak) ** 2, (k2 * peak) ** 2
    mx, my = blur(x), blur(y)
    both, squares = mx * my * 2.0, _o.square(mx) + _o.square(my)
    light = (both + c1) / (squares + c1)
    cross = blur(x * y) * 2.0
    power = blur(_o.square(x) + _o.square(y))
    structure = (cross - both + c2) / (power - squares + c2)
    return light * structure, structure


def sobel_edges(image):
    x = _image(image)
    h, w, c = _dims(x)[-3:]
    kernels = _np.array([[[-1, -2, -1], [0, 0, 0], [1, 2, 1]], [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]], "float32")
    kernel = _tensor(_np.tile(kernels.transpose(1, 2, 0)[:, :, None, :], [1, 1, c, 1]), x.dtype)
    around = _o.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
    return _o.reshape(_o.depthwise_conv(around, kernel, [1, 1], "VALID", [1, 1]), [-1, h, w, c, 2])


def extract_patches(images, sizes, strides, rates, padding, name=None):
    x = _tensor(images)
    kh, kw = int(sizes[1]), int(sizes[2])
    sh, sw, rh, rw = int(strides[1]), int(strides[2]), int(rates[1]), int(rates[2])
    n, h, w, c = _dims(x)
    eh, ew = (kh - 1) * rh + 1, (kw - 1) * rw + 1
    if padding.upper() == "SAME":
        oh, ow = -(-h // sh), -(-w // sw)
        ph, pw = max((oh - 1) * sh + eh - h, 0), max((ow - 1) * sw + ew - w, 0)
        x = _o.pad(x, [[0, 0], [ph // 2, ph - ph // 2], [pw // 2, pw - pw // 2], [0, 0]])
    else:
        oh, ow = (h - eh) // sh + 1, (w - ew) // sw + 1
    rows = _np.arange(oh)[:, None] * sh + _np.arange(kh) * rh
    columns = _np.arange(ow)[:, None] * sw + _np.arange(kw) * rw
    y = _o.gather(_o.gather(x, _tensor(rows.ravel()), axis=1), _tensor(columns.ravel()), axis=2)
    y = _o.transpose(_o.reshape(y, [n, oh, kh, ow, kw, c]), [0, 1, 3, 2, 4, 5])
    return _o.reshape(y, [n, oh, ow, kh * kw * c])


# Random adjustments. The drawn number may be of a program: then it differs with every run.

def _coin(seed):
    return _o.less(_random.uniform([], seed=seed), _tensor(0.5))


def _random_flip(image, axis, seed):
    x = _image(image)
    if len(_dims(x)) == 4:
        coins = _o.reshape(_o.less(_random.uniform([_dims(x)[0]], seed=seed), _tensor(0.5)), [-1, 1, 1, 1])
    else:
        coins = _coin(seed)
    return _o.where(coins, _o.reverse(x, [axis]), x)


def random_flip_left_right(image, seed=None):
    return _random_flip(image, -2, seed)


def random_flip_up_down(image, seed=None):
    return _random_flip(image, -3, seed)


def random_brightness(image, max_delta, seed=None):
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_brightness(image, _random.uniform([], -max_delta, max_delta, seed=seed))


def _between(lower, upper, seed):
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")
    return _random.uniform([], lower, upper, seed=seed)


def random_contrast(image, lower, upper, seed=None):
    return adjust_contrast(image, _between(lower, upper, seed))


def random_saturation(image, lower, upper, seed=None):
    return adjust_saturation(image, _between(lower, upper, seed))


def random_hue(image, max_delta, seed=None):
    if not 0 <= max_delta <= 0.5:
        raise ValueError("max_delta must be <= 0.5." if max_delta > 0.5 else "max_delta must be non-negative.")
    return adjust_hue(image, _random.uniform([], -max_delta, max_delta, seed=seed))


def _cropped(value, size, draw):
    """draw(count): that many random numbers of int32, from which places are taken as TensorFlow takes them."""
    x = _tensor(value)
    wanted = [int(_static(s)) for s in size] if isinstance(size, (list, tuple)) else [int(s) for s in _static(size)]
    if any(w > d for w, d in zip(wanted, _dims(x))):
        _errors.invalid(f"Need value.shape >= size, got {_dims(x)} {wanted}", "Assert")
    first = _o.floormod(draw(len(wanted)), _tensor([d - w + 1 for w, d in zip(wanted, _dims(x))], "int32"))
    for axis, (length, room) in enumerate(zip(wanted, _dims(x))):
        if length < room:
            x = _o.gather(x, _tensor(_np.arange(length, dtype=_np.int32)) + first[axis], axis=axis)
    return x


_MOST = 2**31 - 1


def random_crop(value, size, seed=None, name=None):
    return _cropped(value, size, lambda count: _random.uniform([count], maxval=_MOST, dtype="int32", seed=seed))


def stateless_random_flip_left_right(image, seed):
    x = _image(image)
    return _o.where(_o.less(_random.stateless_uniform([], seed), _tensor(0.5)), _o.reverse(x, [-2]), x)


def stateless_random_flip_up_down(image, seed):
    x = _image(image)
    return _o.where(_o.less(_random.stateless_uniform([], seed), _tensor(0.5)), _o.reverse(x, [-3]), x)


def stateless_random_brightness(image, max_delta, seed):
    return adjust_brightness(image, _random.stateless_uniform([], seed, -max_delta, max_delta))


def stateless_random_contrast(image, lower, upper, seed):
    return adjust_contrast(image, _random.stateless_uniform([], seed, lower, upper))


def stateless_random_saturation(image, lower, upper, seed=None):
    return adjust_saturation(image, _random.stateless_uniform([], seed, lower, upper))


def stateless_random_hue(image, max_delta, seed):
    return adjust_hue(image, _random.stateless_uniform([], seed, -max_delta, max_delta))


def stateless_random_crop(value, size, seed, name=None):
    return _cropped(value, size, lambda count: _random.stateless_uniform([count], seed, maxval=_MOST, dtype="int32"))


# Boxes: [y1, x1, y2, x2] in parts of the image.

def crop_and_resize(image, boxes, box_indices, crop_size, method="bilinear", extrapolation_value=0.0, name=None):
    x, boxes = _o.cast(_tensor(image), _float32), _o.cast(_tensor(boxes), _float32)
    height, width = (int(s) for s in _static(crop_size))
    h, w = _dims(x)[1:3]
    y1, x1, y2, x2 = _o.unstack(boxes, axis=1)

    def places(low, high, size, wanted):
        if wanted > 1:
            steps = _tensor(_np.arange(wanted, dtype="float32") / (wanted - 1))
            return (_o.expand_dims(low, 1) + _o.expand_dims(high - low, 1) * steps) * float(size - 1)
        return _o.expand_dims((low + high) * 0.5 * float(size - 1), 1)

    ys, xs = places(y1, y2, h, height), places(x1, x2, w, width)
    rows = _o.gather(x, box_indices)
    if method == "nearest":
        made = _pick(_pick(rows, _o.round(ys), h, 1), _o.round(xs), w, 2)
    else:
        made = _mix(_mix(rows, ys, h, 1), xs, w, 2)
    inside = _o.logical_and(_o.expand_dims(_within(ys, h), 2), _o.expand_dims(_within(xs, w), 1))
    return _o.where(_o.expand_dims(inside, 3), made, _tensor(float(extrapolation_value)))


def _within(places, size):
    return _o.logical_and(_o.greater_equal(places, _tensor(0.0)), _o.less_equal(places, _tensor(float(size - 1))))


def _pick(x, places, size, axis):
    index = _o.cast(_o.minimum(_o.maximum(places, _tensor(0.0)), _tensor(float(size - 1))), "int64")
    return _o.gather(x, index, axis=axis, batch_dims=1)


def _mix(x, places, size, axis):
    low = _o.floor(places)
    part = _o.reshape(places - low, _dims(places)[:1] + [1] * (axis - 1) + [_dims(places)[1]] + [1] * (3 - axis))
    return _pick(x, low, size, axis) * (1.0 - part) + _pick(x, low + 1.0, size, axis) * part


def non_max_suppression(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=float("-inf"), name=None):
    from stoker.tf._array import _concrete

    box, score = _concrete(_tensor(boxes), "non_max_suppression"), _concrete(_tensor(scores), "non_max_suppression")
    kept = _suppress(box, score, int(_static(max_output_size)), float(_static(iou_threshold)),
                     float(_static(score_threshold)))
    return _tensor(_np.array(kept, _np.int32))


def _suppress(box, score, most, threshold, least):
    y1, x1 = _np.minimum(box[:, 0], box[:, 2]), _np.minimum(box[:, 1], box[:, 3])
    y2, x2 = _np.maximum(box[:, 0], box[:, 2]), _np.maximum(box[:, 1], box[:, 3])
    area, kept = (y2 - y1) * (x2 - x1), []
    for n in _np.argsort(-score, kind="stable"):
        if len(kept) >= most or score[n] <= least:
            break
        k = _np.array(kept, int)
        high = _np.maximum(0, _np.minimum(y2[n], y2[k]) - _np.maximum(y1[n], y1[k]))
        wide = _np.maximum(0, _np.minimum(x2[n], x2[k]) - _np.maximum(x1[n], x1[k]))
        both = area[n] + area[k] - high * wide
        shared = _np.where(both > 0, high * wide / _np.where(both > 0, both, 1), 0)
        if not (shared > threshold).any():
            kept.append(int(n))
    return kept


def draw_bounding_boxes(images, boxes, colors, name=None):
    from stoker.tf._array import _concrete

    pictures = _concrete(_tensor(images), "draw_bounding_boxes").copy()
    every = _concrete(_tensor(boxes), "draw_bounding_boxes")
    colours = _np.array([[1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1]]) if colors is None else _np.asarray(_static(colors))
    n, h, w, c = pictures.shape
    for picture, rows in zip(pictures, every):
        for k, (y1, x1, y2, x2) in enumerate(rows):
            top, bottom, left, right = int(y1 * (h - 1)), int(y2 * (h - 1)), int(x1 * (w - 1)), int(x2 * (w - 1))
            colour = colours[k % len(colours)][:c]
            t, b, l, r = max(top, 0), min(bottom, h - 1), max(left, 0), min(right, w - 1)
            if t > b or l > r:
                continue
            picture[[v for v in (top, bottom) if 0 <= v < h], l:r + 1] = colour
            for v in (left, right):
                if 0 <= v < w:
                    picture[t:b + 1, v] = colour
    return _tensor(pictures)


def __getattr__(name):
    if name.startswith(("decode_", "encode_", "is_jpeg", "extract_jpeg")):  # files are tf.io's matter
        from stoker.tf import io

        if hasattr(io, name):
            return getattr(io, name)
    from stoker.tf import _image_more, _rooms

    if not name.startswith("_") and hasattr(_image_more, name):
        return getattr(_image_more, name)

    raise _rooms._missing("image", name)
