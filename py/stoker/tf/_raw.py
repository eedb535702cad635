"""tf.raw_ops: the few that programs and Keras call, with keyword arguments only as in TensorFlow."""
import numpy as np

from stoker.tf._base import dims, o, tensor


def Bucketize(*, input, boundaries, name=None):
    """How many boundaries are not above each value."""
    from stoker.tf import _array

    x = tensor(input)
    edges = tensor(np.asarray(boundaries, np.float32), "float32")
    kind = "float64" if x.dtype.name in ("float64", "int64", "int32") else "float32"
    flat = o.reshape(o.cast(x, kind), [-1])
    return o.reshape(_array.searchsorted(o.cast(edges, kind), flat, side="right"), dims(x))


def _unique_along(x, axis, out_idx):
    """Slices along an axis, in order of first appearance."""
    from stoker.tf import _array

    x = tensor(x)
    axis = int(np.ravel(np.asarray(axis))[0]) if np.size(axis) else 0
    rows = np.moveaxis(_array._concrete(x, "UniqueV2"), axis, 0)
    flat = rows.reshape(len(rows), int(np.prod(rows.shape[1:])))
    _, first, numbers, counts = np.unique(flat, axis=0, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    picked = np.moveaxis(rows[first[order]], 0, axis)
    return tensor(picked, x.dtype), tensor(rank[np.ravel(numbers)], out_idx), tensor(counts[order], out_idx)


def UniqueV2(*, x, axis, out_idx="int32", name=None):
    from stoker.tf import _array

    return _array.UniqueResult(*_unique_along(x, axis, out_idx)[:2])


def UniqueWithCountsV2(*, x, axis, out_idx="int32", name=None):
    from stoker.tf import _array

    return _array.UniqueWithCounts(*_unique_along(x, axis, out_idx))


# Pictures seen through a projection.

def _reflected(x, size):
    """abcd -> dcba|abcd|dcba"""
    turn = 2.0 * size
    x = x - o.floor(x / turn) * turn
    return o.minimum(o.maximum(o.where(o.less(x, tensor(float(size))), x, turn - 1.0 - x), tensor(0.0)), tensor(size - 1.0))


def _wrapped(x, size):
    """abcd -> abcd|abcd|abcd, as TensorFlow counts the copies."""
    if size <= 1:
        return o.zeros_like(x)
    below = x + size * (o.trunc(o.negative(x) / (size - 1.0)) + 1.0)
    above = x - size * o.trunc(x / (size - 1.0))
    x = o.where(o.less(x, tensor(0.0)), below, o.where(o.greater(x, tensor(size - 1.0)), above, x))
    return _clamped(x, size)


def _clamped(x, size):
    return o.minimum(o.maximum(x, tensor(0.0)), tensor(size - 1.0))


_FILL = {"REFLECT": _reflected, "WRAP": _wrapped, "NEAREST": _clamped, "CONSTANT": lambda x, size: x}


def _pixels(images, y, x, fill):
    """Pixels at whole coordinates; fill outside of the picture."""
    batch, height, width, channels = dims(images)
    inside = o.logical_and(o.logical_and(o.greater_equal(y, tensor(0.0)), o.less_equal(y, tensor(height - 1.0))),
                           o.logical_and(o.greater_equal(x, tensor(0.0)), o.less_equal(x, tensor(width - 1.0))))
    place = o.cast(_clamped(y, height), "int32") * width + o.cast(_clamped(x, width), "int32")
    rows = o.gather(o.reshape(images, [batch, height * width, channels]), o.reshape(place, [batch, -1]), axis=1, batch_dims=1)
    rows = o.reshape(rows, dims(place) + [channels])
    return o.where(o.expand_dims(inside, -1), rows, fill)


def ImageProjectiveTransformV3(*, images, transforms, output_shape, fill_value, interpolation, fill_mode="CONSTANT", name=None):
    """Output pixel (x, y) is the input's at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), k = c0 x + c1 y + 1."""
    images = tensor(images)
    kind = images.dtype
    work = images if kind.name in ("float32", "float64") else o.cast(images, "float32")
    batch, height, width, _ = dims(images)
    rows, columns = (int(v) for v in np.ravel(tensor(output_shape).numpy()))
    t = o.cast(tensor(transforms), "float32")
    t = o.reshape(o.broadcast_to(t, [batch, 8]), [batch, 8, 1, 1])
    x = tensor(np.arange(columns, dtype=np.float32).reshape(1, 1, columns))
    y = tensor(np.arange(rows, dtype=np.float32).reshape(1, rows, 1))
    k = t[:, 6] * x + t[:, 7] * y + 1.0
    at_x = (t[:, 0] * x + t[:, 1] * y + t[:, 2]) / k
    at_y = (t[:, 3] * x + t[:, 4] * y + t[:, 5]) / k
    mode = fill_mode.decode() if isinstance(fill_mode, bytes) else fill_mode
    at_x, at_y = _FILL[mode.upper()](at_x, width), _FILL[mode.upper()](at_y, height)
    fill = o.cast(tensor(fill_value, "float32"), work.dtype)
    if interpolation.upper() == "NEAREST":
        made = _pixels(work, _rounded(at_y), _rounded(at_x), fill)
    else:
        made = _bilinear(work, at_y, at_x, fill)
    seen = o.expand_dims(o.not_equal(k, tensor(0.0)), -1)
    return o.cast(o.where(seen, made, fill), kind)


def _rounded(x):
    """Half away from zero."""
    return o.sign(x) * o.floor(o.abs(x) + 0.5)


def _bilinear(images, y, x, fill):
    top, left = o.floor(y), o.floor(x)
    down, right = o.cast(o.expand_dims(y - top, -1), images.dtype), o.cast(o.expand_dims(x - left, -1), images.dtype)
    upper = _pixels(images, top, left, fill) * (1.0 - right) + _pixels(images, top, left + 1.0, fill) * right
    lower = _pixels(images, top + 1.0, left, fill) * (1.0 - right) + _pixels(images, top + 1.0, left + 1.0, fill) * right
    return upper * (1.0 - down) + lower * down
