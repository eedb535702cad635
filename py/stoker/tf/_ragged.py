"""tf.RaggedTensor: values in a row after the other and where each row ends. Splits are concrete; values may be symbolic."""
import numpy as np

from stoker.tf._base import Tensor, TensorShape, dims, int64, is_symbolic, o, static, string, tensor
from stoker.tf._specs import RaggedTensorSpec, as_dtype


def _splits_of(lengths):
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]).astype(np.int64)


def _text(x):
    """NumPy's text of an array with commas between the elements, also in arrays of arrays."""
    if not isinstance(x, np.ndarray):
        return str(x)
    return np.array2string(x, separator=", ") if x.size else repr(x.tolist())


class RaggedTensor:
    def __init__(self, values, row_splits, internal=True):
        self._values = values if isinstance(values, RaggedTensor) else tensor(values)
        self._splits = np.asarray(static(row_splits, "row_splits"), np.int64)

    # How they are made.

    @classmethod
    def from_row_splits(cls, values, row_splits, name=None, validate=True):
        splits = np.asarray(static(row_splits))
        if validate and (splits.size == 0 or splits[0] != 0 or (np.diff(splits) < 0).any()):
            from stoker.tf import errors

            errors.invalid("Arguments to from_row_splits do not form a valid RaggedTensor: row_splits must start with 0 "
                           "and not go down")
        return cls(values, splits)

    @classmethod
    def from_row_lengths(cls, values, row_lengths, name=None, validate=True):
        return cls(values, _splits_of(static(row_lengths)))

    @classmethod
    def from_value_rowids(cls, values, value_rowids, nrows=None, name=None, validate=True):
        ids = np.asarray(static(value_rowids), np.int64)
        rows = int(ids.max(initial=-1)) + 1 if nrows is None else int(static(nrows))
        return cls(values, _splits_of(np.bincount(ids, minlength=rows)))

    @classmethod
    def from_row_starts(cls, values, row_starts, name=None, validate=True):
        total = _length(values)
        return cls(values, np.append(np.asarray(static(row_starts), np.int64), total))

    @classmethod
    def from_row_limits(cls, values, row_limits, name=None, validate=True):
        return cls(values, np.insert(np.asarray(static(row_limits), np.int64), 0, 0))

    @classmethod
    def from_uniform_row_length(cls, values, uniform_row_length, nrows=None, name=None, validate=True):
        width = int(static(uniform_row_length))
        rows = _length(values) // width if width else int(static(nrows or 0))
        return cls(values, np.arange(rows + 1) * width)

    @classmethod
    def from_nested_row_splits(cls, flat_values, nested_row_splits, name=None, validate=True):
        made = flat_values
        for splits in reversed(list(nested_row_splits)):
            made = cls.from_row_splits(made, splits)
        return made

    @classmethod
    def from_nested_row_lengths(cls, flat_values, nested_row_lengths, name=None, validate=True):
        made = flat_values
        for lengths in reversed(list(nested_row_lengths)):
            made = cls.from_row_lengths(made, lengths)
        return made

    @classmethod
    def from_tensor(cls, tensor, lengths=None, padding=None, ragged_rank=1, name=None, row_splits_dtype=int64):
        from stoker.tf import _base

        x = _base.tensor(tensor)
        rows, width = dims(x)[:2]
        if lengths is not None:
            count = np.asarray(static(lengths), np.int64)
        elif padding is not None:
            same = np.asarray(x.numpy() == np.asarray(static(padding)))
            same = same.reshape(rows, width, -1).all(-1)
            count = width - np.cumprod(same[:, ::-1], 1).sum(1)
        else:
            count = np.full(rows, width, np.int64)
        flat = o.reshape(x, [rows * width] + dims(x)[2:])
        keep = np.flatnonzero((np.arange(width)[None] < count[:, None]).ravel())
        values = _take(flat, keep)
        if ragged_rank > 1:
            values = cls.from_tensor(values, ragged_rank=ragged_rank - 1)
        return cls(values, _splits_of(count))

    @classmethod
    def from_sparse(cls, st_input, name=None, row_splits_dtype=int64):
        rows = st_input.indices.numpy()[:, 0]
        return cls.from_value_rowids(st_input.values, rows, st_input.dense_shape.numpy()[0])

    # What they are.

    values = property(lambda self: self._values)
    row_splits = property(lambda self: tensor(self._splits))
    dtype = property(lambda self: self._values.dtype)
    ragged_rank = property(lambda self: 1 + (self._values.ragged_rank if isinstance(self._values, RaggedTensor) else 0))

    @property
    def flat_values(self):
        inner = self._values
        return inner.flat_values if isinstance(inner, RaggedTensor) else inner

    @property
    def nested_row_splits(self):
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedTensor) else ()
        return (self.row_splits, *inner)

    def nested_row_lengths(self, name=None):
        inner = self._values.nested_row_lengths() if isinstance(self._values, RaggedTensor) else ()
        return (self.row_lengths(), *inner)

    uniform_row_length = None  # every row has its own length here

    @property
    def shape(self):
        inner = self._values.shape.as_list()
        return TensorShape([len(self._splits) - 1, None] + inner[1:])

    def get_shape(self):
        return self.shape

    @property
    def _type_spec(self):
        return RaggedTensorSpec(self.shape, self.dtype, self.ragged_rank)

    def nrows_int(self):
        return len(self._splits) - 1

    def nrows(self, out_type=None, name=None):
        return tensor(self.nrows_int(), out_type or int64)

    def row_lengths(self, axis=1, name=None):
        return tensor(np.diff(self._splits)) if axis == 1 else self.with_values(self._values.row_lengths(axis - 1))

    def row_starts(self, name=None):
        return tensor(self._splits[:-1])

    def row_limits(self, name=None):
        return tensor(self._splits[1:])

    def value_rowids(self, name=None):
        return tensor(np.repeat(np.arange(self.nrows_int()), np.diff(self._splits)))

    def bounding_shape(self, axis=None, name=None, out_type=None):
        inner = self._values.bounding_shape().numpy().tolist()[1:] if isinstance(self._values, RaggedTensor) else \
            dims(self._values)[1:]
        sizes = np.array([self.nrows_int(), int(np.diff(self._splits).max(initial=0))] + inner, np.int64)
        return tensor(sizes if axis is None else sizes[axis], out_type or int64)

    def with_values(self, new_values):
        return RaggedTensor(new_values, self._splits)

    def with_flat_values(self, new_values):
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype):
        return self

    def merge_dims(self, outer_axis, inner_axis):
        if outer_axis == 0 and inner_axis == 1:
            return self._values
        return self.with_values(self._values.merge_dims(outer_axis - 1, inner_axis - 1))

    def expand_dims(self, axis):
        if axis == 0:
            return RaggedTensor(self, [0, self.nrows_int()])
        if axis == 1:
            return RaggedTensor(self, np.arange(self.nrows_int() + 1))
        rank = 1 + self.ragged_rank + len(dims(self.flat_values)) - 1
        axis = axis % (rank + 1)
        inner = self._values
        return self.with_values(inner.expand_dims(axis - 1) if isinstance(inner, RaggedTensor)
                                else o.expand_dims(inner, axis - 1))

    # What they become.

    def to_tensor(self, default_value=None, name=None, shape=None):
        inner = self._values.to_tensor(default_value) if isinstance(self._values, RaggedTensor) else self._values
        widths, rows = np.diff(self._splits), self.nrows_int()
        wide = int(widths.max(initial=0))
        sizes = [None] * 2 if shape is None else [None if s in (None, -1) else int(s) for s in list(shape)]
        out_rows = rows if sizes[0] is None else sizes[0]
        wide = wide if len(sizes) < 2 or sizes[1] is None else sizes[1]
        place = np.arange(wide)[None] + self._splits[:-1][:, None]
        good = np.arange(wide)[None] < widths[:, None]
        total = _length(inner)
        place = np.where(good, place, total)
        if out_rows != rows:
            extra = np.full((max(out_rows - rows, 0), wide), total)
            place = np.concatenate([place[:out_rows], extra])
        filler = _filler(inner, default_value)
        return o.gather(o.concat([inner, filler], 0), tensor(place))

    def to_sparse(self, name=None):
        from stoker.tf._sparse import SparseTensor

        widths = np.diff(self._splits)
        rows = np.repeat(np.arange(self.nrows_int()), widths)
        columns = np.arange(rows.size) - np.repeat(self._splits[:-1], widths)
        return SparseTensor(np.stack([rows, columns], 1), self._values, [self.nrows_int(), int(widths.max(initial=0))])

    def to_list(self):
        inner = self._values.to_list() if isinstance(self._values, RaggedTensor) else self._values.numpy().tolist()
        return [inner[a:b] for a, b in zip(self._splits[:-1], self._splits[1:])]

    def numpy(self):
        inner = self._values.numpy()
        rows = [inner[a:b] for a, b in zip(self._splits[:-1], self._splits[1:])]
        if not rows:
            return np.array([], inner.dtype)
        if all(len(row) == len(rows[0]) for row in rows):  # an array of that many axes, as TensorFlow gives it
            return np.array(rows)
        made = np.empty(len(rows), object)
        made[:] = rows
        return made

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        if any(k is Ellipsis for k in key):
            at = [k is Ellipsis for k in key].index(True)
            key = key[:at] + (slice(None),) * (self.shape.rank + 1 - len(key)) + key[at + 1:]
        first, rest = key[0], key[1:]
        if isinstance(first, slice):
            rows = np.arange(self.nrows_int())[first]
            made = gather(self, rows)
            if not rest:
                return made
            if isinstance(rest[0], slice):
                return _slice_rows(made, rest)
            at = int(static(rest[0]))
            place = made._splits[1:] + at if at < 0 else made._splits[:-1] + at
            return _take(made._values, place)
        n = int(static(first))
        n = n + self.nrows_int() if n < 0 else n
        row = _take(self._values, np.arange(self._splits[n], self._splits[n + 1]))
        return row[rest if len(rest) > 1 else rest[0]] if rest else row

    def __len__(self):
        return self.nrows_int()

    def __iter__(self):
        return (self[n] for n in range(self.nrows_int()))

    def __repr__(self):
        if is_symbolic(self.flat_values):
            return f"tf.RaggedTensor(values={self._values}, row_splits={self._splits})"
        with np.printoptions(formatter={"all": _text}):
            return f"<tf.RaggedTensor {_text(self.numpy())}>"

    __str__ = __repr__
    __hash__ = object.__hash__

    def __stoker_op__(self, name, is_elementwise, arguments):
        """What an operation of the extension means for ragged operands: asked when it finds one."""
        from stoker.tf import _ragged_ops

        return _ragged_ops.call(self, name, is_elementwise, arguments)

    def _to_components(self):
        return [self.flat_values]

    def _signature_key(self):
        inner = self._values._signature_key() if isinstance(self._values, RaggedTensor) else ()
        return ("RaggedTensor", self._splits.tobytes(), *inner)

    def _from_components(self, parts):
        return self.with_flat_values(parts[0])


RaggedTensor.__module__ = "tensorflow.python.ops.ragged.ragged_tensor"


def _binary(operation):
    def method(self, other):
        from stoker.tf import _ragged_broadcast

        mine, theirs, shaped = _ragged_broadcast.pair(self, other)
        return shaped(getattr(mine, operation)(theirs))

    return method


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "mod", "pow", "eq", "ne",
              "lt", "le", "gt", "ge", "and", "or"):
    setattr(RaggedTensor, f"__{_name}__", _binary(f"__{_name}__"))
RaggedTensor.__neg__ = lambda self: self.with_flat_values(-self.flat_values)


def _length(values):
    return values.nrows_int() if isinstance(values, RaggedTensor) else dims(tensor(values))[0]


def _take(values, places):
    """Rows of a dense or ragged value."""
    places = np.asarray(places, np.int64)
    if isinstance(values, RaggedTensor):
        return gather(values, places)
    return o.gather(values, tensor(places))


def _filler(values, default):
    shape = [1] + dims(values)[1:]
    if values.dtype == string:
        return tensor(np.full(shape, b"" if default is None else _bytes(default), object), string)
    value = 0 if default is None else default
    return o.broadcast_to(tensor(value, values.dtype), shape)


def _bytes(text):
    if isinstance(text, Tensor):
        return text.numpy()
    return text.encode() if isinstance(text, str) else text


def _gather_inside(params, indices, axis):
    """Ragged places along an inner axis of a dense tensor: the sizes before that axis become even rows around them."""
    params = tensor(params)
    before, after = dims(params)[:axis], dims(params)[axis + 1:]
    count, many = int(np.prod(before)), dims(indices.flat_values)[0]
    picked = o.reshape(o.gather(params, indices.flat_values, axis=axis), [count * many] + after)
    for splits in reversed([static(s) for s in indices.nested_row_splits]):
        rows = splits[:-1][None, :] + np.arange(count)[:, None] * splits[-1]
        picked = RaggedTensor(picked, np.append(np.ravel(rows), count * splits[-1]))
    rows = len(static(indices.row_splits)) - 1
    for size in reversed(before):
        count //= size
        picked, rows = RaggedTensor(picked, np.arange(count * size + 1) * rows), size
    return picked


def gather(params, indices, axis=0):
    if isinstance(indices, RaggedTensor):
        if axis and not isinstance(params, RaggedTensor):
            return _gather_inside(params, indices, axis % len(dims(tensor(params))))
        return indices.with_flat_values(o.gather(params, indices.flat_values)) if not isinstance(params, RaggedTensor) \
            else indices.with_flat_values(gather(params, indices.flat_values))
    rows = np.ravel(static(indices))
    starts, widths = params._splits[rows], np.diff(params._splits)[rows]
    splits = _splits_of(widths)
    place = np.arange(splits[-1]) - np.repeat(splits[:-1], widths) + np.repeat(starts, widths)
    return RaggedTensor(_take(params._values, place), splits)


def _slice_rows(ragged, rest):
    """ragged[:, a:b, ...]"""
    widths = np.diff(ragged._splits)
    picked = [np.arange(w)[rest[0]] + s for w, s in zip(widths, ragged._splits[:-1])]
    values = _take(ragged._values, np.concatenate(picked) if picked else [])
    if len(rest) > 1:
        values = values[(slice(None),) + tuple(rest[1:])]
    return RaggedTensor(values, _splits_of([len(p) for p in picked]))


def concat(values, axis):
    values = [v if isinstance(v, RaggedTensor) else RaggedTensor.from_tensor(v) for v in values]
    if axis == 0:
        inner = [v._values for v in values]
        both = concat(inner, 0) if any(isinstance(i, RaggedTensor) for i in inner) else o.concat(inner, 0)
        return RaggedTensor(both, _splits_of(np.concatenate([np.diff(v._splits) for v in values])))
    if axis in (1, -1):
        every = concat(values, 0)
        rows = values[0].nrows_int()
        order = np.arange(rows * len(values)).reshape(len(values), rows).T.ravel()
        turned = gather(every, order)
        return RaggedTensor(turned._values, turned._splits[::len(values)])
    raise ValueError(f"tf.concat of ragged tensors along axis {axis} is not in Stoker")


def stack(rows):
    parts = [r if isinstance(r, RaggedTensor) else tensor(r) for r in rows]
    inner = concat(parts, 0) if any(isinstance(p, RaggedTensor) for p in parts) else o.concat(parts, 0)
    return RaggedTensor(inner, _splits_of([_length(p) for p in parts]))


def squeeze(ragged, axis):
    axis = axis[0] if isinstance(axis, (list, tuple)) else axis
    if axis == 0:
        return ragged[0]
    if axis == 1:
        return ragged._values
    return ragged.with_values(o.squeeze(ragged._values, [axis - 1]))


def boolean_mask(data, mask, name=None):
    if isinstance(data, RaggedTensor):
        keep = np.ravel(static(mask.flat_values if isinstance(mask, RaggedTensor) else mask))
        rows = np.repeat(np.arange(data.nrows_int()), np.diff(data._splits))
        count = np.bincount(rows[keep], minlength=data.nrows_int())
        return RaggedTensor(_take(data._values, np.flatnonzero(keep)), _splits_of(count))
    keep = np.asarray(static(mask))
    flat = o.reshape(tensor(data), [-1] + dims(tensor(data))[2:])
    return RaggedTensor(_take(flat, np.flatnonzero(keep)), _splits_of(keep.sum(1)))


def bincount(arr, weights, minlength, maxlength, dtype, axis, binary_output):
    from stoker.tf import _math

    if hasattr(arr, "dense_shape"):
        if len(arr._shape) == 1:
            return _math.bincount(arr.values, getattr(weights, "values", weights), minlength, maxlength, dtype,
                                  binary_output=binary_output)
        arr, weights = RaggedTensor.from_sparse(arr), RaggedTensor.from_sparse(weights) if hasattr(weights, "dense_shape") else weights
    rows = [_math.bincount(arr[n], None if weights is None else weights[n], minlength, maxlength, dtype,
                           binary_output=binary_output) for n in range(arr.nrows_int())]
    if axis in (None, 0):
        return _math.bincount(arr.flat_values, weights, minlength, maxlength, dtype)
    wide = max((dims(r)[0] for r in rows), default=0)
    return o.stack([o.pad(r, [[0, wide - dims(r)[0]]]) for r in rows])


def constant(pylist, dtype=None, ragged_rank=None, inner_shape=None, name=None, row_splits_dtype=int64):
    """tf.ragged.constant"""
    def depth(value):
        if not isinstance(value, (list, tuple, np.ndarray)):
            return 0
        return 1 + max([depth(v) for v in value], default=0)

    levels = max(depth(pylist) - 1, 0) if ragged_rank is None else ragged_rank
    if inner_shape is not None and ragged_rank is None:
        levels -= len(inner_shape)
    if levels == 0:
        return tensor(pylist, dtype)
    lengths, flat = [], list(pylist)
    for _ in range(levels):
        lengths.append([len(v) for v in flat])
        flat = [x for v in flat for x in v]
    if dtype is None and not flat:
        dtype = "float32"
    made = tensor(flat, dtype) if flat else tensor(np.zeros([0] + list(inner_shape or []),
                                                            as_dtype(dtype).as_numpy_dtype), dtype)
    return RaggedTensor.from_nested_row_lengths(made, lengths)


def ragged_range(starts, limits=None, deltas=1, dtype=None, name=None, row_splits_dtype=int64):
    starts, limits = (0, starts) if limits is None else (starts, limits)
    starts, limits, deltas = np.broadcast_arrays(static(starts), static(limits), static(deltas))
    rows = [np.arange(a, b, d) for a, b, d in zip(starts, limits, deltas)]
    return RaggedTensor(tensor(np.concatenate(rows), dtype), _splits_of([len(r) for r in rows]))


def map_flat_values(op, *args, **kwargs):
    first = next(a for a in args if isinstance(a, RaggedTensor))
    flat = [a.flat_values if isinstance(a, RaggedTensor) else a for a in args]
    return first.with_flat_values(op(*flat, **kwargs))


def row_splits_to_segment_ids(splits, name=None, out_type=None):
    splits = static(splits)
    return tensor(np.repeat(np.arange(len(splits) - 1), np.diff(splits)), out_type or int64)


def ragged_reduce(kind, ragged, axis, keepdims=False):
    """tf.reduce_* of a ragged tensor along axis 1."""
    from stoker.tf import _math

    ids = np.repeat(np.arange(ragged.nrows_int()), np.diff(ragged._splits))
    reduce = {"sum": _math.unsorted_segment_sum, "mean": _math.unsorted_segment_mean, "max": _math.unsorted_segment_max,
              "min": _math.unsorted_segment_min, "prod": _math.unsorted_segment_prod}[kind]
    return reduce(ragged._values, tensor(ids), ragged.nrows_int())


class RowPartition:
    """Where the rows of a ragged tensor begin and end."""

    def __init__(self, row_splits, uniform=False):
        self._splits, self._uniform = np.asarray(static(row_splits), np.int64), uniform

    @classmethod
    def from_value_rowids(cls, value_rowids, nrows=None, validate=True, dtype=None):
        rows = np.ravel(static(value_rowids))
        count = int(rows[-1]) + 1 if nrows is None and len(rows) else int(0 if nrows is None else static(nrows))
        return cls(np.searchsorted(rows, np.arange(count + 1)))

    @classmethod
    def from_row_splits(cls, row_splits, validate=True, dtype=None):
        return cls(static(row_splits))

    @classmethod
    def from_row_lengths(cls, row_lengths, validate=True, dtype=None):
        return cls(np.concatenate([[0], np.cumsum(static(row_lengths))]))

    @classmethod
    def from_row_starts(cls, row_starts, nvals, validate=True, dtype=None):
        return cls(np.append(static(row_starts), static(nvals)))

    @classmethod
    def from_row_limits(cls, row_limits, validate=True, dtype=None):
        return cls(np.insert(static(row_limits), 0, 0))

    @classmethod
    def from_uniform_row_length(cls, uniform_row_length, nvals=None, nrows=None, validate=True, dtype=None):
        width = int(static(uniform_row_length))
        rows = int(static(nrows)) if nrows is not None else int(static(nvals)) // width if width else 0
        return cls(np.arange(rows + 1) * width, True)

    def row_splits(self):
        return tensor(self._splits)

    def row_lengths(self):
        return tensor(np.diff(self._splits))

    def row_starts(self):
        return tensor(self._splits[:-1])

    def row_limits(self):
        return tensor(self._splits[1:])

    def value_rowids(self):
        return tensor(np.repeat(np.arange(len(self._splits) - 1), np.diff(self._splits)))

    def nrows(self):
        return tensor(len(self._splits) - 1, "int64")

    def uniform_row_length(self):
        """The length of all rows where they have one; of no rows and of rows that differ there is none."""
        widths = set(np.diff(self._splits).tolist())
        return tensor(widths.pop(), "int64") if self._uniform and len(widths) == 1 else None

    def __repr__(self):
        return f"tf.RowPartition(row_splits={self._splits})"

    def nvals(self):
        return tensor(int(self._splits[-1]), "int64")
