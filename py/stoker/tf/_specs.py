"""tf.TypeSpec and its kin: what a value will look like, without the value."""
from stoker import _stoker

TensorShape = _stoker.TensorShape
DType = _stoker.DType


def as_dtype(type_value):
    return DType(type_value)


class TypeSpec:
    """Base of all specifications."""

    __slots__ = ()

    def is_compatible_with(self, spec_or_value):
        other = spec_or_value if isinstance(spec_or_value, TypeSpec) else type_spec_from_value(spec_or_value)
        return type(self) is type(other) and self._compatible(other)

    def is_subtype_of(self, other):
        return other.is_compatible_with(self)

    def most_specific_compatible_type(self, other):
        if not self.is_compatible_with(other):
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return self

    def _compatible(self, other):
        return self == other

    def _parts(self):
        return ()

    def __eq__(self, other):
        return type(self) is type(other) and self._parts() == other._parts()

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((type(self).__name__,) + tuple(str(p) for p in self._parts()))

    def __reduce__(self):
        return type(self), self._parts()


class TensorSpec(TypeSpec):
    __slots__ = ("shape", "dtype", "name")

    def __init__(self, shape=None, dtype=None, name=None):
        self.shape = TensorShape(shape)
        self.dtype = as_dtype("float32" if dtype is None else dtype)
        self.name = name

    value_type = property(lambda self: _stoker.Tensor)
    rank = property(lambda self: self.shape.rank)

    @classmethod
    def from_tensor(cls, tensor, name=None):
        return cls(tensor.shape, tensor.dtype, name)

    @classmethod
    def from_spec(cls, spec, name=None):
        return cls(spec.shape, spec.dtype, name or spec.name)

    def _parts(self):
        return self.shape, self.dtype, self.name

    def __eq__(self, other):
        return (type(self) is type(other) and str(self.shape) == str(other.shape) and self.dtype == other.dtype
                and self.name == other.name)

    __hash__ = TypeSpec.__hash__

    def __reduce__(self):
        return type(self), (None if self.shape.rank is None else self.shape.as_list(), self.dtype.name, self.name)

    def _compatible(self, other):
        return self.dtype == other.dtype and self.shape.is_compatible_with(other.shape)

    def most_specific_compatible_type(self, other):
        if self.dtype != other.dtype:
            raise ValueError(f"Types are not compatible: {self} vs {other}")
        return type(self)(common_shape(self.shape, other.shape), self.dtype)

    most_specific_common_supertype = most_specific_compatible_type

    def __repr__(self):
        return f"{type(self).__name__}(shape={_shape_text(self.shape)}, dtype={self.dtype!r}, name={self.name!r})"


def common_shape(a, b):
    """The most that two shapes have in common."""
    if a.rank is None or a.rank != b.rank:
        return TensorShape(None)
    return TensorShape([x if x == y else None for x, y in zip(a.as_list(), b.as_list())])


def _shape_text(shape):
    return "<unknown>" if shape.rank is None else str(tuple(shape.as_list()))


TensorSpec.__module__ = "tensorflow.python.framework.tensor"


class VariableSpec(TensorSpec):
    __slots__ = ("trainable",)

    def __init__(self, shape, dtype="float32", trainable=True, alias_id=None):
        super().__init__(shape, dtype)
        self.trainable = trainable


class RaggedTensorSpec(TypeSpec):
    __slots__ = ("shape", "dtype", "ragged_rank", "row_splits_dtype", "flat_values_spec")

    def __init__(self, shape=None, dtype="float32", ragged_rank=None, row_splits_dtype="int64", flat_values_spec=None):
        self.shape = TensorShape(shape)
        self.dtype = as_dtype(dtype)
        self.ragged_rank = (self.shape.rank - 1) if ragged_rank is None else ragged_rank
        self.row_splits_dtype = as_dtype(row_splits_dtype)
        self.flat_values_spec = flat_values_spec

    name = None

    @property
    def value_type(self):
        from stoker.tf._ragged import RaggedTensor

        return RaggedTensor

    def _parts(self):
        return str(self.shape), self.dtype, self.ragged_rank, self.row_splits_dtype

    def __reduce__(self):
        return type(self), (self.shape.as_list(), self.dtype.name, self.ragged_rank, self.row_splits_dtype.name)

    def _compatible(self, other):
        return self.dtype == other.dtype and self.ragged_rank == other.ragged_rank and self.shape.is_compatible_with(other.shape)

    def _example(self, example_of):
        """One row of one element at each level."""
        from stoker.tf._ragged import RaggedTensor

        sizes = [1 if d is None else d for d in self.shape.as_list()] if self.shape.rank is not None else [1] * (self.ragged_rank + 1)
        flat = [1]
        for size in sizes[:self.ragged_rank + 1]:
            flat[0] *= size
        made = example_of(TensorSpec(flat + sizes[self.ragged_rank + 1:], self.dtype))
        for size in reversed(sizes[1:self.ragged_rank + 1]):
            made = RaggedTensor.from_uniform_row_length(made, size)
        return made

    def __repr__(self):
        return (f"RaggedTensorSpec({self.shape!r}, {self.dtype!r}, {self.ragged_rank!r}, {self.row_splits_dtype!r})")


RaggedTensorSpec.__module__ = "tensorflow.python.ops.ragged.ragged_tensor"


class SparseTensorSpec(TypeSpec):
    __slots__ = ("shape", "dtype")

    def __init__(self, shape=None, dtype="float32"):
        self.shape, self.dtype = TensorShape(shape), as_dtype(dtype)

    name = None

    @property
    def value_type(self):
        from stoker.tf._sparse import SparseTensor

        return SparseTensor

    def _parts(self):
        return str(self.shape), self.dtype

    def _compatible(self, other):
        return self.dtype == other.dtype and self.shape.is_compatible_with(other.shape)

    def _example(self, example_of):
        from stoker.tf._sparse import SparseTensor

        sizes = [1 if d is None else d for d in self.shape.as_list()] if self.shape.rank is not None else [1]
        return SparseTensor([[0] * len(sizes)], example_of(TensorSpec([1], self.dtype)), sizes)

    def __repr__(self):
        return f"SparseTensorSpec({self.shape!r}, {self.dtype!r})"


SparseTensorSpec.__module__ = "tensorflow.python.framework.sparse_tensor"


class IndexedSlicesSpec(TensorSpec):
    __slots__ = ()


class TensorArraySpec(TypeSpec):
    __slots__ = ("element_shape", "dtype")

    def __init__(self, element_shape=None, dtype="float32", dynamic_size=False, infer_shape=True):
        self.element_shape, self.dtype = TensorShape(element_shape), as_dtype(dtype)

    def _parts(self):
        return str(self.element_shape), self.dtype


class NoneTensorSpec(TypeSpec):
    __slots__ = ()

    def __repr__(self):
        return "NoneTensorSpec()"


class OptionalSpec(TypeSpec):
    __slots__ = ("element_spec",)

    def __init__(self, element_spec):
        self.element_spec = element_spec

    def _parts(self):
        return (self.element_spec,)

    def __repr__(self):
        return f"OptionalSpec({self.element_spec!r})"


def type_spec_from_value(value):
    """The specification of a tensor, variable, ragged or sparse tensor, dataset or anything that becomes a tensor."""
    if isinstance(value, TypeSpec):
        return value
    if value is None:
        return NoneTensorSpec()
    for attribute in ("_type_spec", "spec"):
        found = getattr(value, attribute, None)
        if isinstance(found, TypeSpec):
            return found
    if isinstance(value, _stoker.Variable):
        return VariableSpec(value.shape, value.dtype)
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        value = _stoker.convert_to_tensor(value)
    return TensorSpec(value.shape, value.dtype)
