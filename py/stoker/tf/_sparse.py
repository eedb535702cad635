"""tf.SparseTensor and tf.IndexedSlices: Python objects that hold dense tensors."""
import numpy as np

from stoker.tf._base import TensorShape, dims, int64, o, static, string, tensor
from stoker.tf._specs import SparseTensorSpec


class SparseTensor:
    def __init__(self, indices, values, dense_shape):
        self._indices = tensor(indices, int64)
        self._values = tensor(values)
        self._shape = [int(s) for s in np.ravel(static(dense_shape))]

    indices = property(lambda self: self._indices)
    values = property(lambda self: self._values)
    dtype = property(lambda self: self._values.dtype)
    dense_shape = property(lambda self: tensor(np.array(self._shape, np.int64)))
    shape = property(lambda self: TensorShape(self._shape))
    _type_spec = property(lambda self: SparseTensorSpec(self.shape, self.dtype))

    @classmethod
    def from_value(cls, value):
        return cls(value.indices, value.values, value.dense_shape)

    def get_shape(self):
        return self.shape

    def set_shape(self, shape):
        """Shapes are known here: a check."""
        if not TensorShape(shape).is_compatible_with(self.shape):
            raise ValueError(f"Shapes {TensorShape(shape)} and {self.shape} are incompatible")

    def with_values(self, new_values):
        return SparseTensor(self._indices, new_values, self._shape)

    def __repr__(self):
        return f"SparseTensor(indices={self._indices}, values={self._values}, dense_shape={self.dense_shape})"

    def __mul__(self, y):
        y = tensor(y, self.dtype)
        if dims(y):
            y = o.gather_nd(o.broadcast_to(y, self._shape), self._indices)
        return self.with_values(self._values * y)

    def __truediv__(self, y):
        y = tensor(y, self.dtype)
        if dims(y):
            y = o.gather_nd(o.broadcast_to(y, self._shape), self._indices)
        return self.with_values(self._values / y)

    def _to_components(self):
        return [self._values]

    def _signature_key(self):
        return "SparseTensor", static(self._indices).tobytes(), tuple(self._shape)

    def _from_components(self, parts):
        return self.with_values(parts[0])


SparseTensor.__module__ = "tensorflow.python.framework.sparse_tensor"


class IndexedSlices:
    """Rows of a gradient and where they belong."""

    def __init__(self, values, indices, dense_shape=None):
        self._values, self._indices = tensor(values), tensor(indices)
        self._dense_shape = None if dense_shape is None else tensor(dense_shape)

    values = property(lambda self: self._values)
    indices = property(lambda self: self._indices)
    dense_shape = property(lambda self: self._dense_shape)
    dtype = property(lambda self: self._values.dtype)

    @property
    def shape(self):
        if self._dense_shape is None:
            return TensorShape([None] + dims(self._values)[1:])
        return TensorShape([int(s) for s in np.ravel(static(self._dense_shape))])

    def __tf_tensor__(self, dtype=None, name=None):
        if self._dense_shape is None:
            raise ValueError("Tensor conversion requested for IndexedSlices without dense_shape")
        sizes = [int(s) for s in np.ravel(static(self._dense_shape))]
        zeros = tensor(np.zeros(sizes, self.dtype.as_numpy_dtype))
        return o.tensor_scatter_nd_add(zeros, o.expand_dims(tensor(self._indices), -1), self._values)

    def with_values(self, new_values):
        return IndexedSlices(new_values, self._indices, self._dense_shape)

    def numpy(self):
        return self.__tf_tensor__().numpy()

    def __neg__(self):
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __repr__(self):
        return f"IndexedSlices(indices={self._indices}, values={self._values}, dense_shape={self._dense_shape})"

    def _to_components(self):
        return [self._values, self._indices]

    def _signature_key(self):
        return "IndexedSlices", None if self._dense_shape is None else tuple(np.ravel(static(self._dense_shape)).tolist())

    def _from_components(self, parts):
        return IndexedSlices(parts[0], parts[1], self._dense_shape)


IndexedSlices.__module__ = "tensorflow.python.framework.indexed_slices"


def from_dense(tensor, name=None):
    from stoker.tf import _base

    array = _base.tensor(tensor).numpy()
    some = array != (b"" if array.dtype == object else 0)
    return SparseTensor(np.argwhere(some), array[some], array.shape)


def to_dense(sp_input, default_value=None, validate_indices=True, name=None):
    if sp_input.dtype == string:
        fill = b"" if default_value is None else default_value
        fill = fill.encode() if isinstance(fill, str) else fill
        array = np.full(sp_input._shape, fill, object)
        array[tuple(sp_input.indices.numpy().T)] = sp_input.values.numpy()
        return tensor(array, string)
    base = o.broadcast_to(tensor(0 if default_value is None else default_value, sp_input.dtype), sp_input._shape)
    return o.tensor_scatter_nd_update(base, sp_input.indices, sp_input.values)


def _rebuilt(sp, indices, values, shape):
    order = np.lexsort(indices.T[::-1]) if indices.size else np.arange(len(indices))
    return SparseTensor(indices[order], o.gather(values, tensor(order)), shape)


def reorder(sp_input, name=None):
    return _rebuilt(sp_input, sp_input.indices.numpy(), sp_input.values, sp_input._shape)


def reshape(sp_input, shape, name=None):
    sizes = [int(s) for s in np.ravel(static(shape))]
    total = int(np.prod(sp_input._shape, dtype=np.int64))
    if -1 in sizes:
        sizes[sizes.index(-1)] = total // int(-np.prod(sizes, dtype=np.int64))
    flat = np.ravel_multi_index(tuple(sp_input.indices.numpy().T), sp_input._shape)
    return SparseTensor(np.stack(np.unravel_index(flat, sizes), 1), sp_input.values, sizes)


def transpose(sp_input, perm=None, name=None):
    perm = list(perm) if perm is not None else list(range(len(sp_input._shape)))[::-1]
    return _rebuilt(sp_input, sp_input.indices.numpy()[:, perm], sp_input.values, [sp_input._shape[p] for p in perm])


def expand_dims(sp_input, axis=None, name=None):
    shape = list(sp_input._shape)
    axis = (-1 if axis is None else int(axis)) % (len(shape) + 1)
    indices = np.insert(sp_input.indices.numpy(), axis, 0, axis=1)
    return SparseTensor(indices, sp_input.values, shape[:axis] + [1] + shape[axis:])


def concat(axis, sp_inputs, expand_nonconcat_dims=False, name=None):
    axis = axis % len(sp_inputs[0]._shape)
    shape, shift, parts = list(sp_inputs[0]._shape), 0, []
    for sp in sp_inputs:
        moved = sp.indices.numpy().copy()
        moved[:, axis] += shift
        shift += sp._shape[axis]
        parts.append(moved)
    shape[axis] = shift
    return _rebuilt(sp_inputs[0], np.concatenate(parts), o.concat([s.values for s in sp_inputs], 0), shape)


def sparse_dense_matmul(sp_a, b, adjoint_a=False, adjoint_b=False, name=None):
    if not isinstance(sp_a, SparseTensor):
        return o.transpose(sparse_dense_matmul(transpose(b), o.transpose(tensor(sp_a))))
    a = transpose(sp_a) if adjoint_a else sp_a
    b = o.transpose(tensor(b)) if adjoint_b else tensor(b)
    rows = o.gather(b, a.indices[:, 1]) * o.expand_dims(a.values, 1)
    zeros = tensor(np.zeros([a._shape[0], dims(b)[1]], b.dtype.as_numpy_dtype))
    return o.tensor_scatter_nd_add(zeros, a.indices[:, :1], rows)


def _reduced(reduce, sp_input, axis, keepdims, output_is_sparse):
    """Only what is stored counts, each time it is stored; where nothing is, the result is 0."""
    rank = len(sp_input._shape)
    gone = range(rank) if axis is None else [int(k) % rank for k in np.ravel(static(axis))]
    left = [k for k in range(rank) if k not in gone]
    shape = [sp_input._shape[k] for k in left]
    place = sp_input.indices.numpy()[:, left]
    group = np.ravel_multi_index(tuple(place.T), shape) if left else np.zeros(len(place), np.int64)
    made = reduce(sp_input.values, tensor(group.astype(np.int64)), max(1, int(np.prod(shape, dtype=np.int64))))
    made = o.reshape(made, [1 if k in gone else n for k, n in enumerate(sp_input._shape)] if keepdims else shape)
    return _sparse_where(made, sp_input, axis, keepdims) if output_is_sparse else made


def _segment_max(values, group, count):
    from stoker.tf import _math

    made = _math.unsorted_segment_max(values, group, count)
    some = np.bincount(group.numpy(), minlength=count) > 0
    return o.where(tensor(some), made, o.zeros_like(made))


def _segment_sum(values, group, count):
    zeros = tensor(np.zeros(count, values.dtype.as_numpy_dtype))
    return o.tensor_scatter_nd_add(zeros, o.expand_dims(group, 1), values)


def _sparse_where(made, sp_input, axis, keepdims):
    """The reduced values at the places that had something in them."""
    some = np.zeros(sp_input._shape, bool)
    some[tuple(sp_input.indices.numpy().T)] = True
    axis = tuple(np.ravel(static(axis)).tolist()) if axis is not None else None
    places = np.argwhere(some.any(axis=axis, keepdims=bool(keepdims)))
    return SparseTensor(places, o.gather_nd(made, tensor(places.astype(np.int64))), dims(made))


def reduce_sum(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
    return _reduced(_segment_sum, sp_input, axis, keepdims, output_is_sparse)


def add(a, b, threshold=0):
    """Two sparse tensors: what either has stays, zeros too, unless it is below the threshold."""
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        places = np.unique(np.concatenate([a.indices.numpy(), b.indices.numpy()]), axis=0)
        made = SparseTensor(places, o.gather_nd(to_dense(a) + to_dense(b), tensor(places)), a._shape)
        return made if not threshold else retain(made, o.greater_equal(o.abs(made.values), tensor(threshold, made.dtype)))
    return (to_dense(a) if isinstance(a, SparseTensor) else a) + (to_dense(b) if isinstance(b, SparseTensor) else b)


def slice(sp_input, start, size, name=None):
    start, size = np.asarray(static(start)), np.asarray(static(size))
    place = sp_input.indices.numpy()
    end = np.maximum(np.minimum(start + size, sp_input._shape), start)
    keep = ((place >= start) & (place < end)).all(1)
    return SparseTensor(place[keep] - start, o.gather(sp_input.values, tensor(np.flatnonzero(keep))), end - start)


def retain(sp_input, to_retain):
    keep = np.flatnonzero(static(to_retain))
    return SparseTensor(sp_input.indices.numpy()[keep], o.gather(sp_input.values, tensor(keep)), sp_input._shape)


def mask(a, mask_indices, name=None):
    keep = ~np.isin(a.indices.numpy(), np.asarray(static(mask_indices)))
    return IndexedSlices(o.gather(a.values, tensor(np.flatnonzero(keep))), tensor(a.indices.numpy()[keep]), a.dense_shape)


def bincount(values, weights=None, axis=0, minlength=None, maxlength=None, binary_output=False, name=None):
    from stoker.tf import _math

    kind = "int64" if weights is None else weights.dtype if hasattr(weights, "dtype") else "float32"
    dense = _math.bincount(values, weights, minlength, maxlength, kind, axis=axis,
                           binary_output=binary_output)
    return from_dense(dense)


def eye(num_rows, num_columns=None, dtype="float32", name=None):
    columns = num_rows if num_columns is None else num_columns
    n = min(num_rows, columns)
    return SparseTensor(np.stack([np.arange(n)] * 2, 1), tensor(np.ones(n), dtype), [num_rows, columns])


def map_values(op, *args, **kwargs):
    first = next(a for a in args if isinstance(a, SparseTensor))
    return first.with_values(op(*[a.values if isinstance(a, SparseTensor) else a for a in args], **kwargs))


def maximum(sp_a, sp_b, name=None):
    return from_dense(o.maximum(to_dense(sp_a), to_dense(sp_b)))


def minimum(sp_a, sp_b, name=None):
    return from_dense(o.minimum(to_dense(sp_a), to_dense(sp_b)))


def reduce_max(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
    return _reduced(_segment_max, sp_input, axis, keepdims, output_is_sparse)


def fill_empty_rows(sp_input, default_value, name=None):
    """Rows without a value get one, in their first column."""
    places, rows = sp_input.indices.numpy(), sp_input._shape[0]
    empty = np.setdiff1d(np.arange(rows), places[:, 0])
    extra = np.zeros((len(empty), places.shape[1]), np.int64)
    extra[:, 0] = empty
    values = o.concat([sp_input.values, o.broadcast_to(tensor(default_value, sp_input.dtype), [len(empty)])], 0)
    filled = _rebuilt(sp_input, np.concatenate([places, extra]), values, sp_input._shape)
    return filled, tensor(np.isin(np.arange(rows), empty))


_DEFAULT_KEY = 0xDECAFCAFFE
_WORD = (1 << 64) - 1


def _joined_hash(x, y):
    """One 64-bit number for two, as TensorFlow joins fingerprints."""
    multiplier = 0xC6A4A7935BD1E995

    def mix(value):
        return value ^ (value >> 47)

    made = x ^ multiplier ^ ((mix((y * multiplier) & _WORD) * multiplier) & _WORD)
    made = (mix((made * multiplier) & _WORD) * multiplier) & _WORD
    return mix(made)


def _features(x):
    """For each row the hashes of its strings, or its integers."""
    from stoker.tf import _hash

    def one(value):
        return _hash.fingerprint64(bytes(value)) if isinstance(value, bytes) else int(value) & _WORD

    if isinstance(x, SparseTensor):
        rows = [[] for _ in range(x._shape[0])]
        for place, value in zip(x.indices.numpy().tolist(), np.ravel(x.values.numpy()).tolist()):
            rows[place[0]].append(one(value))
        return rows
    if hasattr(x, "row_splits"):
        return [[one(v) for v in np.ravel(np.asarray(row, object)).tolist()] for row in x.to_list()]
    return [[one(v) for v in row] for row in tensor(x).numpy().tolist()]


def cross_hashed(inputs, num_buckets=0, hash_key=None, name=None):
    """Every combination of one value of each input, by row, as a hash: the numbers TensorFlow gives."""
    import itertools

    columns = [_features(x) for x in inputs]
    key = _DEFAULT_KEY if hash_key is None else int(hash_key)
    top = num_buckets if num_buckets else (1 << 63) - 1
    places, values, wide = [], [], 0
    for n, row in enumerate(zip(*columns)):
        made = []
        for combination in itertools.product(*row):
            mixed = key
            for feature in combination:
                mixed = _joined_hash(mixed, feature)
            made.append(mixed % top)
        places += [[n, m] for m in range(len(made))]
        values += made
        wide = max(wide, len(made))
    return SparseTensor(np.array(places, np.int64).reshape(-1, 2), tensor(np.array(values, np.int64)), [len(columns[0]), wide])
