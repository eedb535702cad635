"""tf.* functions on the shape and place of elements that are made of others."""
import numpy as np

from stoker.tf import errors
from stoker.tf._base import (Tensor, TensorShape, Variable, axis_of, bool_, dims, float32, host, int32, int64,
                             is_symbolic, not_traceable, o, static, string, tensor)
from stoker.tf._specs import as_dtype

newaxis = None


def identity(input, name=None):
    from stoker.tf import nest

    if hasattr(input, "_to_components"):
        return input
    if nest.is_nested(input) and not isinstance(input, (list, tuple)):
        return nest.map_structure(identity, input)
    return o.identity(tensor(input))


def rank(input, name=None):
    return tensor(len(input.shape) if hasattr(input, "row_splits") else tensor(input).shape.rank, int32)


def shape(input, out_type=int32, name=None):
    if hasattr(input, "row_splits"):
        from stoker.tf._ragged_shape import DynamicRaggedShape

        return DynamicRaggedShape.from_tensor(input, "int64" if out_type is None or out_type == int32 else out_type)
    if hasattr(input, "dense_shape"):
        return o.cast(tensor(input.dense_shape), out_type or int32)
    return tensor(np.array(dims(tensor(input)), as_dtype(out_type or int32).as_numpy_dtype))


def shape_n(input, out_type=int32, name=None):
    return [shape(x, out_type) for x in input]


def size(input, out_type=int32, name=None):
    if hasattr(input, "row_splits"):
        return size(input.flat_values, out_type)
    if hasattr(input, "dense_shape"):
        return tensor(int(np.prod(input.shape.as_list(), dtype=np.int64)), out_type or int32)
    return tensor(int(np.prod(dims(tensor(input)), dtype=np.int64)), out_type or int32)


def _sizes(shape):
    """Concrete sizes from a shape argument, which may hold tensors."""
    if isinstance(shape, (list, tuple)):
        return [int(static(s, "a shape")) for s in shape]
    if isinstance(shape, TensorShape):
        return shape.as_list()
    return [int(s) for s in np.ravel(static(shape, "a shape"))]


def fill(dims, value, name=None, layout=None):
    return o.broadcast_to(tensor(value), _sizes(dims))


def zeros(shape, dtype=float32, name=None, layout=None):
    return _full(shape, 0, dtype)


def ones(shape, dtype=float32, name=None, layout=None):
    return _full(shape, 1, dtype)


def _full(shape, value, dtype):
    dtype = as_dtype(dtype)
    if hasattr(shape, "row_partitions"):
        return shape.filled(_full(shape.inner_shape, value, dtype))
    if dtype == string:
        return tensor(np.full(_sizes(shape), b"", object), string)
    made = np.full(_sizes(shape), value, dtype.as_numpy_dtype)
    if dtype.is_complex:
        from stoker.tf import _complex

        return _complex.from_value(made)
    return tensor(made)


def zeros_like(input, dtype=None, name=None, layout=None):
    return _like(input, 0, dtype)


def ones_like(input, dtype=None, name=None, layout=None):
    return _like(input, 1, dtype)


def _like(input, value, dtype):
    if hasattr(input, "with_flat_values"):
        return input.with_flat_values(_like(input.flat_values, value, dtype))
    if not hasattr(input, "_im"):
        input = tensor(input)
    return _full(dims(input), value, dtype or input.dtype)


def eye(num_rows, num_columns=None, batch_shape=None, dtype=float32, name=None):
    rows = int(static(num_rows))
    columns = rows if num_columns is None else int(static(num_columns))
    one = o.cast(o.equal(o.expand_dims(tensor(np.arange(rows)), 1), tensor(np.arange(columns))), dtype)
    return o.broadcast_to(one, _sizes(batch_shape) + [rows, columns]) if batch_shape is not None else one


def linspace(start, stop, num, name=None, axis=0):
    start, stop = tensor(start), tensor(stop)
    num = int(static(num))
    if num < 0:
        errors.invalid(f"Requires num >= 0: {num}", "LinSpace")
    dtype = start.dtype if start.dtype.is_floating else float32
    start, stop = o.cast(start, dtype), o.cast(stop, dtype)
    axis = axis_of(axis, len(dims(start)) + 1)
    start, stop = o.expand_dims(start, axis), o.expand_dims(stop, axis)
    steps = np.arange(num, dtype=np.float64) / max(num - 1, 1)
    view = [1] * len(dims(start))
    view[axis] = num
    part = tensor(steps.reshape(view).astype(dtype.as_numpy_dtype))
    inner = start + (stop - start) * part
    if num < 2:
        return o.slice(start, [0] * len(view), [num if n == axis else -1 for n in range(len(view))])
    head = o.slice(inner, [0] * len(view), [-1 if n != axis else num - 1 for n in range(len(view))])
    return o.concat([head, o.broadcast_to(stop, [1 if n == axis else d for n, d in enumerate(dims(inner))])], axis)


def range(start, limit=None, delta=1, dtype=None, name="range"):
    if limit is None:
        start, limit = 0, start
    if any(is_symbolic(v) for v in (start, limit, delta)):
        return SymbolicRange(start, limit, delta, dtype)
    values = [static(v, "tf.range") for v in (start, limit, delta)]
    if dtype is None:
        kinds = [np.asarray(v) for v in values]
        order = ["int32", "int64", "float32", "float64"]
        found = [_python_kind(v, given) for v, given in zip(kinds, (start, limit, delta))]
        dtype = order[max(order.index(k) if k in order else 0 for k in found)]
    dtype = as_dtype(dtype)
    first, last, step = [v.item() if v.ndim == 0 else errors.invalid("start, limit and delta must be scalars", "Range")
                         for v in values]
    if step == 0:
        errors.invalid("Requires delta != 0: 0", "Range")
    if dtype.is_integer:
        count = max(0, -((int(first) - int(last)) // int(step)))
        data = int(first) + int(step) * np.arange(count, dtype=np.int64)
    else:
        count = max(0, int(np.ceil((last - first) / step)))
        data = first + step * np.arange(count, dtype=np.float64)
    made = tensor(data.astype(dtype.as_numpy_dtype))
    made._stoker_range = True  # a `for` over it inside of tf.function is a loop of the program
    return made


class SymbolicRange:
    """tf.range with limits that only the running program knows: something to loop over, and nothing else."""

    def __init__(self, start, limit, delta, dtype):
        found = [v.dtype for v in (start, limit, delta) if hasattr(v, "dtype")]
        self.dtype = as_dtype(dtype) if dtype is not None else found[0]
        self.start, self.limit, self.delta = (tensor(v, self.dtype) for v in (start, limit, delta))

    def __getattr__(self, name):
        static(self.limit, "tf.range")  # raises


def _python_kind(array, given):
    if isinstance(given, (Tensor, Variable)) or isinstance(given, (np.ndarray, np.generic)):
        return array.dtype.name
    return "float32" if array.dtype.kind == "f" else "int32" if abs(int(array)) < 2**31 else "int64"


def boolean_mask(tensor, mask, axis=None, name="boolean_mask"):
    if hasattr(tensor, "row_splits") or hasattr(mask, "row_splits"):
        from stoker.tf import _ragged

        return _ragged.boolean_mask(tensor, mask)
    from stoker.tf import _base

    x, mask = _base.tensor(tensor), _base.tensor(mask, bool_)
    axis = 0 if axis is None else axis_of(axis, len(dims(x)))
    many = len(dims(mask))
    if many == 0:
        raise ValueError("mask cannot be scalar.")
    if dims(mask) != dims(x)[axis:axis + many]:
        raise ValueError(f"Shapes {tuple(dims(x)[axis:axis + many])} and {tuple(dims(mask))} are incompatible")
    sizes = dims(x)
    x = o.reshape(x, sizes[:axis] + [int(np.prod(sizes[axis:axis + many]))] + sizes[axis + many:])
    places = _base.tensor(np.flatnonzero(_concrete(mask, "boolean_mask")))
    return o.gather(x, places, axis=axis)


def _concrete(x, name):
    """The array of a tensor whose values decide about a shape; a recording gives up here."""
    if is_symbolic(x):
        not_traceable(f"{name} has results whose shape depends on values")
    return x.numpy()


def where(condition, x=None, y=None, name=None):
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    if x is None:
        return tensor(np.argwhere(_concrete(tensor(condition), "tf.where")), int64)
    if any(hasattr(v, "row_splits") for v in (condition, x, y)):
        from stoker.tf import _ragged_ops

        return _ragged_ops.where(condition, x, y)
    return o.where(condition, x, y)


def meshgrid(*args, indexing="xy", name=None):
    if indexing not in ("xy", "ij"):
        raise ValueError("Argument `indexing` parameter must be either 'xy' or 'ij', got '%s'" % indexing)
    values = [o.reshape(tensor(a), [-1]) for a in args]
    many = len(values)
    sizes = [dims(v)[0] for v in values]
    order = list(_prange(many))
    if indexing == "xy" and many > 1:
        order[0], order[1] = 1, 0
    full = [0] * many
    for n, place in enumerate(order):
        full[place] = sizes[n]
    grids = []
    for n, value in enumerate(values):
        view = [1] * many
        view[order[n]] = sizes[n]
        grids.append(o.broadcast_to(o.reshape(value, view), full))
    return grids


def _prange(*args):
    import builtins

    return builtins.range(*args)


def repeat(input, repeats, axis=None, name=None):
    x = tensor(input)
    if axis is None:
        x, axis = o.reshape(x, [-1]), 0
    axis = axis_of(axis, len(dims(x)))
    count = static(repeats, "repeats")
    places = np.repeat(np.arange(dims(x)[axis]), np.broadcast_to(count, [dims(x)[axis]]))
    return o.gather(x, tensor(places), axis=axis)


def sequence_mask(lengths, maxlen=None, dtype=bool_, name=None):
    lengths = tensor(lengths)
    if maxlen is None:
        maxlen = int(_concrete(lengths, "sequence_mask without maxlen").max(initial=0))
    steps = tensor(np.arange(int(static(maxlen)), dtype=lengths.dtype.as_numpy_dtype))
    mask = o.less(steps, o.expand_dims(lengths, -1))
    return mask if as_dtype(dtype) == bool_ else o.cast(mask, dtype)


def ensure_shape(x, shape, name=None):
    x = tensor(x)
    wanted = TensorShape(shape)
    if not wanted.is_compatible_with(x.shape):
        errors.invalid(f"Shape of tensor {x.shape} is not compatible with expected shape {wanted}.", "EnsureShape")
    return x


def unique(x, out_idx=int32, name=None):
    values, indices, _ = _unique(x, out_idx)
    return UniqueResult(values, indices)


def unique_with_counts(x, out_idx=int32, name=None):
    return UniqueWithCounts(*_unique(x, out_idx))


def _unique(x, out_idx):
    """In order of first appearance, as TensorFlow does."""
    x = tensor(x)
    flat = np.ravel(_concrete(x, "tf.unique"))
    found, places, numbers = {}, [], np.empty(flat.size, np.int64)
    for n, value in enumerate(flat.tolist()):
        if value not in found:
            found[value] = len(places)
            places.append(n)
        numbers[n] = found[value]
    counts = np.bincount(numbers, minlength=len(places))
    picked = flat[places] if places else flat[:0]
    return tensor(picked, x.dtype), tensor(numbers, out_idx), tensor(counts, out_idx)


from collections import namedtuple as _namedtuple  # noqa: E402

UniqueResult = _namedtuple("Unique", "y idx")
UniqueWithCounts = _namedtuple("UniqueWithCounts", "y idx count")


def searchsorted(sorted_sequence, values, side="left", out_type=int32, name=None):
    def find(row, wanted):
        rows = int(np.prod(row.shape[:-1]))
        flat, many = row.reshape(rows, row.shape[-1]), wanted.reshape(rows, wanted.shape[-1])
        found = [np.searchsorted(r, w, side) for r, w in zip(flat, many)]
        return np.asarray(found, as_dtype(out_type).as_numpy_dtype).reshape(wanted.shape)

    row, wanted = tensor(sorted_sequence), tensor(values)
    return host("searchsorted", find, [row, o.cast(wanted, row.dtype)], as_dtype(out_type), dims(wanted))


def parallel_stack(values, name=None):
    return o.stack(values)


def reverse_sequence(input, seq_lengths, seq_axis=None, batch_axis=None, name=None):
    x, lengths = tensor(input), tensor(seq_lengths)
    many = len(dims(x))
    seq, batch = axis_of(seq_axis or 0, many), axis_of(batch_axis or 0, many)
    steps = tensor(np.arange(dims(x)[seq], dtype=np.int64))
    lengths = o.expand_dims(o.cast(lengths, int64), 1)
    places = o.where(o.less(steps, lengths), lengths - 1 - steps, o.broadcast_to(steps, [dims(x)[batch], dims(x)[seq]]))
    order = [batch, seq] + [n for n in _prange(many) if n not in (batch, seq)]
    back = [order.index(n) for n in _prange(many)]
    return o.transpose(o.gather(o.transpose(x, order), places, axis=1, batch_dims=1), back)


def _scatter_by_loop(combine):
    def scatter(tensor, indices, updates, name=None):
        from stoker.tf import _base

        x, where_, new = _base.tensor(tensor), _base.tensor(indices), _base.tensor(updates)

        def run(base, places, values):
            base = base.copy()
            combine.at(base, tuple(np.moveaxis(places, -1, 0)), values)
            return base

        return host(f"tensor_scatter_nd_{combine.__name__}", run, [x, where_, new], x.dtype, dims(x))

    return scatter


def tensor_scatter_nd_sub(tensor, indices, updates, name=None):
    from stoker.tf import _base

    return o.tensor_scatter_nd_add(tensor, indices, -_base.tensor(updates))


tensor_scatter_nd_max = _scatter_by_loop(np.maximum)
tensor_scatter_nd_min = _scatter_by_loop(np.minimum)


def scatter_nd(indices, updates, shape, name=None):
    if tensor(updates).dtype.name == "bool":  # any of them
        return o.greater(scatter_nd(indices, o.cast(tensor(updates), "int32"), shape), tensor(0))
    updates = tensor(updates)
    return o.tensor_scatter_nd_add(zeros(shape, updates.dtype), indices, updates)


def unravel_index(indices, dims, name=None):
    sizes = [int(s) for s in np.ravel(static(dims))]
    rest = tensor(indices)
    parts = []
    for width in reversed(sizes):
        parts.append(o.floormod(rest, tensor(width, rest.dtype)))
        rest = o.floordiv(rest, tensor(width, rest.dtype))
    return o.stack(parts[::-1])


def get_static_value(tensor, partial=False):
    if isinstance(tensor, (Tensor,)):
        return None if is_symbolic(tensor) else tensor.numpy()
    return np.asarray(tensor)


def required_space_to_batch_paddings(input_shape, block_shape, base_paddings=None, name=None):
    size, block = np.ravel(static(input_shape)), np.ravel(static(block_shape))
    base = np.zeros((len(block), 2), np.int64) if base_paddings is None else np.asarray(static(base_paddings))
    full = size + base.sum(axis=1)
    extra = (-full) % block
    pads = base + np.stack([np.zeros_like(extra), extra], 1)
    crops = np.stack([np.zeros_like(extra), extra], 1)
    return tensor(pads.astype(np.int32)), tensor(crops.astype(np.int32))


def space_to_batch_nd(input, block_shape, paddings, name=None):
    x = tensor(input)
    block = [int(b) for b in np.ravel(static(block_shape))]
    pads = [list(map(int, p)) for p in static(paddings)]
    many = len(block)
    x = o.pad(x, [[0, 0]] + pads + [[0, 0]] * (len(dims(x)) - 1 - many))
    sizes = dims(x)
    view = [sizes[0]]
    for n, b in enumerate(block):
        view += [sizes[1 + n] // b, b]
    view += sizes[1 + many:]
    order = [2 + 2 * n for n in _prange(many)] + [0] + [1 + 2 * n for n in _prange(many)]
    order += list(_prange(1 + 2 * many, len(view)))
    x = o.transpose(o.reshape(x, view), order)
    return o.reshape(x, [sizes[0] * int(np.prod(block))] + [sizes[1 + n] // b for n, b in enumerate(block)]
                     + sizes[1 + many:])


space_to_batch = space_to_batch_nd


def batch_to_space(input, block_shape, crops, name=None):
    x = tensor(input)
    block = [int(b) for b in np.ravel(static(block_shape))]
    crop = [list(map(int, c)) for c in static(crops)]
    many, sizes = len(block), dims(tensor(input))
    batch = sizes[0] // int(np.prod(block))
    x = o.reshape(x, block + [batch] + sizes[1:])
    order = [many]
    for n in _prange(many):
        order += [many + 1 + n, n]
    order += list(_prange(2 * many + 1, len(sizes) + many))
    x = o.reshape(o.transpose(x, order), [batch] + [s * b for s, b in zip(sizes[1:], block)] + sizes[1 + many:])
    start = [0] + [c[0] for c in crop] + [0] * (len(sizes) - 1 - many)
    length = [-1] + [sizes[1 + n] * block[n] - sum(crop[n]) for n in _prange(many)] + [-1] * (len(sizes) - 1 - many)
    return o.slice(x, start, length)


def dynamic_partition(data, partitions, num_partitions, name=None):
    data = tensor(data)
    parts = np.asarray(_concrete(tensor(partitions), "dynamic_partition"))
    flat = o.reshape(data, [parts.size] + dims(data)[parts.ndim:])
    return [o.gather(flat, tensor(np.flatnonzero(parts.ravel() == k))) for k in _prange(num_partitions)]


def dynamic_stitch(indices, data, name=None):
    places = [np.ravel(_concrete(tensor(i), "dynamic_stitch")) for i in indices]
    tail = dims(tensor(data[0]))[len(dims(tensor(indices[0]))):]
    rows = o.concat([o.reshape(tensor(d), [-1] + tail) for d in data], 0)
    every = np.concatenate(places)
    source = np.zeros(int(every.max(initial=-1)) + 1, np.int64)
    source[every] = np.arange(every.size)
    return o.gather(rows, tensor(source))
