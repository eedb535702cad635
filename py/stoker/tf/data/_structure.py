"""Structures of elements: what tf.data counts as one, their specifications, and how parts are packed into them.

A structure is made of tuples, dicts, namedtuples and attrs classes; lists are not structure. Each leaf of a
specification stands for one part of the pipeline's elements, or several (ragged, sparse), or none (None).
"""
from stoker import _stoker
from stoker.tf import nest
from stoker.tf._base import Tensor, Variable, tensor
from stoker.tf._specs import NoneTensorSpec, OptionalSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec, TypeSpec, common_shape

TensorShape = _stoker.TensorShape


class DatasetSpec(TypeSpec):
    """An element that is a dataset, as window makes them."""

    __slots__ = ("element_spec", "dataset_shape")

    def __init__(self, element_spec, dataset_shape=()):
        self.element_spec, self.dataset_shape = element_spec, TensorShape(dataset_shape)

    @property
    def value_type(self):
        from stoker.tf.data._dataset import DatasetV2

        return DatasetV2

    def _parts(self):
        return self.element_spec, self.dataset_shape

    def __repr__(self):
        return f"DatasetSpec({self.element_spec!r}, {self.dataset_shape!r})"


DatasetSpec.__module__ = "tensorflow.python.data.ops.dataset_ops"


def is_ragged(value):
    return hasattr(value, "nested_row_splits")


def is_sparse(value):
    return type(value).__name__ in ("SparseTensor", "SparseTensorValue") and hasattr(value, "dense_shape")


def is_nested(value):
    return (nest.is_nested(value) and not isinstance(value, list) and not is_sparse(value)) or hasattr(value, "_data_children")


def children(value):
    return value._data_children() if hasattr(value, "_data_children") else nest._children(value)


def rebuild(value, made):
    return value._data_rebuild(made) if hasattr(value, "_data_children") else nest._rebuild(value, made)


def map_leaves(function, structure):
    if is_nested(structure):
        return rebuild(structure, [map_leaves(function, c) for c in children(structure)])
    return function(structure)


def tuples(value):
    """Lists, which are not structure, as the tuples that a function or a caller meant."""
    if isinstance(value, list):
        return tuple(tuples(v) for v in value)
    if is_nested(value):
        return rebuild(value, [tuples(c) for c in children(value)])
    return value


def leaves(structure):
    if not is_nested(structure):
        return [structure]
    return [leaf for child in children(structure) for leaf in leaves(child)]


def normal(value):
    """A user's structure with every leaf a tensor, ragged, sparse, dataset or None."""
    return map_leaves(_leaf, value)


def _leaf(value):
    if value is None or isinstance(value, TypeSpec) or is_ragged(value) or is_sparse(value) or hasattr(value, "_pipe"):
        return value
    if isinstance(value, Variable):
        return value.value() if callable(getattr(value, "value", None)) else value.read_value()
    return value if isinstance(value, Tensor) else tensor(value)


def spec_of(value):
    """The specification of one leaf."""
    if value is None:
        return NoneTensorSpec()
    if isinstance(value, TypeSpec):
        return value
    if is_ragged(value):
        return RaggedTensorSpec(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)
    if is_sparse(value):
        return SparseTensorSpec(value.shape, value.dtype)
    if hasattr(value, "_pipe"):
        return DatasetSpec(value.element_spec)
    return TensorSpec(value.shape, value.dtype)


def parts_of(value):
    """The tensors that a leaf consists of."""
    if value is None:
        return []
    if is_ragged(value):
        return [value.flat_values, *value.nested_row_splits]
    if is_sparse(value):
        return [tensor(value.indices), tensor(value.values), tensor(value.dense_shape)]
    return [value]


def flat_parts(structure):
    return [part for leaf in leaves(structure) for part in parts_of(leaf)]


def _sizes(shape):
    return None if shape.rank is None else [-1 if d is None else d for d in shape.as_list()]


def fields_of(spec):
    """(dtype, sizes or None, is a dataset) of every part of a leaf."""
    if isinstance(spec, NoneTensorSpec):
        return []
    if isinstance(spec, RaggedTensorSpec):
        inner = [-1] + ([-1 if d is None else d for d in spec.shape.as_list()[spec.ragged_rank + 1:]])
        inner = inner if spec.ragged_rank else _sizes(spec.shape)
        return [(spec.dtype, inner, False)] + [(spec.row_splits_dtype, [-1], False)] * spec.ragged_rank
    if isinstance(spec, SparseTensorSpec):
        rank = -1 if spec.shape.rank is None else spec.shape.rank
        return [("int64", [-1, rank], False), (spec.dtype, [-1], False), ("int64", [rank], False)]
    if isinstance(spec, DatasetSpec):
        inner = [f for leaf in leaves(spec.element_spec) for f in fields_of(leaf)]
        return [(inner[0][0], inner[0][1], True)]
    return [(spec.dtype, _sizes(spec.shape), False)]


def fields(structure):
    return [f for leaf in leaves(structure) for f in fields_of(leaf)]


def text(structure):
    """Nested numbers of parts, as the library has them: "(0,(1,2))"."""
    counter = iter(range(1 << 30))

    def walk(s):
        if is_nested(s):
            inner = [t for t in (walk(c) for c in children(s)) if t]
            return f"({','.join(inner)})" if inner else ""
        made = [str(next(counter)) for _ in fields_of(s)]
        return "" if not made else made[0] if len(made) == 1 else f"({','.join(made)})"

    made = walk(structure)
    return made or None


def template(structure, numpy=False):
    """What DataIterator needs to pack parts into the structure."""
    counter = iter(range(1 << 30))

    def take(s):
        if is_nested(s):
            if type(s) is dict:
                places = dict(zip(sorted(s), [None] * len(s)))
                for key in places:
                    places[key] = take(s[key])
                return ("d", tuple(s), [places[k] for k in s])
            inner = [take(c) for c in children(s)]
            if type(s) is tuple:
                return ("t", None, inner)
            return ("c", lambda made, s=s: rebuild(s, made), inner)
        return _leaf_template(s, counter, numpy)

    return take(structure)


def _leaf_template(spec, counter, numpy):
    if isinstance(spec, NoneTensorSpec):
        return ("k", None, [])
    if isinstance(spec, DatasetSpec):
        from stoker.tf.data import _dataset

        return ("w", lambda pipe, spec=spec: _dataset.wrap_window(pipe, spec.element_spec), [next(counter)])
    number = len(fields_of(spec))
    if number == 1 and isinstance(spec, TensorSpec):
        return next(counter)
    places = [next(counter) for _ in range(number)]
    return ("c", lambda made, spec=spec: composite(spec, made, numpy), places)


def composite(spec, parts, numpy=False):
    """A ragged or sparse tensor of its parts."""
    if isinstance(spec, RaggedTensorSpec):
        from stoker.tf._ragged import RaggedTensor

        made = RaggedTensor.from_nested_row_splits(tensor(parts[0]), [tensor(p) for p in parts[1:]])
        return made.numpy() if numpy else made
    if isinstance(spec, SparseTensorSpec):
        from stoker.tf._sparse import SparseTensor

        return SparseTensor(*(tensor(p) for p in parts))
    return parts[0]


def pack(structure, parts):
    """Parts (a list) in the structure of a specification; windows come as datasets."""
    feed = iter(parts)

    def take(spec):
        if isinstance(spec, NoneTensorSpec):
            return None
        number = len(fields_of(spec))
        mine = [next(feed) for _ in range(number)]
        if isinstance(spec, DatasetSpec):
            from stoker.tf.data import _dataset

            return _dataset.wrap_window(mine[0], spec.element_spec)
        return composite(spec, mine) if number > 1 or isinstance(spec, RaggedTensorSpec) else mine[0]

    return map_leaves(take, structure)


def call(function, structure, values):
    """As tf.data calls functions: a tuple is several arguments."""
    return function(*values) if type(structure) is tuple else function(values)


def with_batch(spec, size):
    """The specification of `size` such elements in one (None: not known)."""
    if isinstance(spec, NoneTensorSpec):
        return spec
    if isinstance(spec, RaggedTensorSpec):
        return RaggedTensorSpec([size] + spec.shape.as_list(), spec.dtype, spec.ragged_rank + 1, spec.row_splits_dtype)
    if isinstance(spec, SparseTensorSpec):
        return SparseTensorSpec([size] + spec.shape.as_list(), spec.dtype)
    if spec.shape.rank is None:
        return TensorSpec(None, spec.dtype)
    return TensorSpec([size] + spec.shape.as_list(), spec.dtype)


def without_batch(spec):
    if isinstance(spec, NoneTensorSpec):
        return spec
    if isinstance(spec, RaggedTensorSpec):
        inner = spec.shape.as_list()[1:]
        if not spec.ragged_rank:
            return TensorSpec(inner, spec.dtype)
        return RaggedTensorSpec(inner, spec.dtype, spec.ragged_rank - 1, spec.row_splits_dtype)  # rows of a rank 0 are tensors
    if isinstance(spec, SparseTensorSpec):
        return SparseTensorSpec(spec.shape.as_list()[1:], spec.dtype)
    return TensorSpec(None if spec.shape.rank is None else spec.shape.as_list()[1:], spec.dtype)


def merge(a, b):
    """What fits both of two specifications of one structure."""
    if is_nested(a):
        if not is_nested(b) or len(children(a)) != len(children(b)):
            raise TypeError(f"Incompatible types of input datasets: {a} vs. {b}.")
        return rebuild(a, [merge(x, y) for x, y in zip(children(a), children(b))])
    if isinstance(a, TensorSpec) and isinstance(b, TensorSpec):
        if a.dtype != b.dtype:
            raise TypeError(f"Incompatible types of input datasets: {a} vs. {b}.")
        return TensorSpec(common_shape(a.shape, b.shape), a.dtype)
    if type(a) is not type(b):
        raise TypeError(f"Incompatible types of input datasets: {a} vs. {b}.")
    if isinstance(a, SparseTensorSpec):
        return SparseTensorSpec(common_shape(a.shape, b.shape), a.dtype)
    if isinstance(a, RaggedTensorSpec):
        return RaggedTensorSpec(common_shape(a.shape, b.shape), a.dtype, a.ragged_rank, a.row_splits_dtype)
    return a


def to_json(structure):
    """A specification as plain data, for files. Named tuples become tuples."""
    if isinstance(structure, dict):
        return {"dict": [[k, to_json(v)] for k, v in structure.items()]}
    if is_nested(structure):
        return {"tuple": [to_json(c) for c in children(structure)]}
    if isinstance(structure, NoneTensorSpec):
        return {"none": True}
    made = {"kind": type(structure).__name__, "dtype": structure.dtype.name,
            "shape": None if structure.shape.rank is None else structure.shape.as_list()}
    if isinstance(structure, RaggedTensorSpec):
        made |= {"ragged_rank": structure.ragged_rank, "row_splits_dtype": structure.row_splits_dtype.name}
    return made


def from_json(data):
    if "dict" in data:
        return {k: from_json(v) for k, v in data["dict"]}
    if "tuple" in data:
        return tuple(from_json(c) for c in data["tuple"])
    if "none" in data:
        return NoneTensorSpec()
    if data["kind"] == "RaggedTensorSpec":
        return RaggedTensorSpec(data["shape"], data["dtype"], data["ragged_rank"], data["row_splits_dtype"])
    kind = SparseTensorSpec if data["kind"] == "SparseTensorSpec" else TensorSpec
    return kind(data["shape"], data["dtype"])


__all__ = ["DatasetSpec", "OptionalSpec"]
