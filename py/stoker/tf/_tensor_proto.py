"""TensorProto: tf.io.serialize_tensor and parse_tensor, tf.make_tensor_proto and make_ndarray, serialized sparse tensors."""
import numpy as np

from stoker import _stoker
from stoker.tf import errors
from stoker.tf._base import is_symbolic, not_traceable, string, tensor
from stoker.tf._specs import DType

_NUMBERS = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "int64": 9, "bool": 10,
            "complex64": 8, "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23}
_NAMES = {n: name for name, n in _NUMBERS.items()}
_LISTS = {5: "<f4", 6: "<f8"}  # float_val, double_val; the others are varints


def _varint(value):
    made = bytearray()
    value &= 2**64 - 1
    while value >= 128:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def _read_varint(data, at=0):
    value, shift = 0, 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def serialize_tensor(tensor_, name=None, **kwargs):
    x = tensor(kwargs.get("tensor", tensor_))
    if is_symbolic(x):
        not_traceable("serialize_tensor gives a string")
    dims = b"".join(_stoker.message_field(2, b"\x08" + _varint(d) if d else b"") for d in x.shape.as_list())
    made = b"\x08" + _varint(_NUMBERS[x.dtype.name]) + _stoker.message_field(2, dims)
    array = np.asarray(x.numpy(), object if x.dtype == string else None)
    if x.dtype == string:
        made += b"".join(_stoker.message_field(8, s) for s in np.ravel(array))
    elif array.size:
        made += _stoker.message_field(4, np.ascontiguousarray(array).tobytes())
    return tensor(made, string)


def parse_tensor(serialized, out_type, name=None):
    x = tensor(serialized, string)
    if is_symbolic(x):
        not_traceable("parse_tensor")
    data = x.numpy()
    fields = _stoker.message_fields(data)
    if fields is None:
        errors.invalid(f"Could not parse `serialized` as TensorProto: '{data[:40]!r}'", "ParseTensor")
    kind, shape, content, strings, numbers = None, [], None, [], []
    for number, wire, inner in fields:
        if number == 1:
            kind = _NAMES.get(_read_varint(inner)[0])
        elif number == 2:
            for which, _, dim in _stoker.message_fields(inner):
                if which == 2:
                    shape.append(next((_read_varint(v)[0] for n, _, v in _stoker.message_fields(dim) if n == 1), 0))
        elif number == 4:
            content = inner
        elif number == 8:
            strings.append(inner)
        elif number in _LISTS:
            numbers += np.frombuffer(inner, _LISTS[number]).tolist()
        elif number in (7, 10, 11, 13, 16, 17):
            at = 0
            while at < len(inner):
                value, at = _read_varint(inner, at)
                numbers.append(value - 2**64 if value >= 2**63 else value)
    want = DType(out_type)
    if kind != want.name:
        errors.invalid(f"Type mismatch between parsed tensor ({kind}) and dtype ({want.name})", "ParseTensor")
    count = int(np.prod(shape, dtype=np.int64))
    if kind == "string":
        flat = np.empty(count, object)
        flat[:] = (strings + [strings[-1] if strings else b""] * count)[:count]
        return tensor(flat.reshape(shape), string)
    if content is not None:
        flat = np.frombuffer(content, want.as_numpy_dtype)
    else:
        flat = np.array((numbers + [numbers[-1] if numbers else 0] * count)[:count])
        if kind in ("float16", "bfloat16"):
            flat = flat.astype(np.uint16).view(want.as_numpy_dtype)
        flat = flat.astype(want.as_numpy_dtype)
    return tensor(flat.reshape(shape).copy(), want)


# Messages.

_FIELDS = {"float32": "float_val", "float64": "double_val", "string": "string_val", "int64": "int64_val", "bool": "bool_val",
           "float16": "half_val", "bfloat16": "half_val", "uint32": "uint32_val", "uint64": "uint64_val", "complex64": "scomplex_val",
           "complex128": "dcomplex_val"}  # all others: int_val


def make_tensor_proto(values, dtype=None, shape=None, verify_shape=False, allow_broadcast=False):
    """A TensorProto; numbers that fill the shape are bytes in it, one number and strings are listed."""
    from stoker.tf._event_messages import TensorProto, TensorShapeProto

    if isinstance(values, TensorProto):
        return values
    array, kind = _array_of(values, dtype)
    sizes = list(array.shape) if shape is None else [int(s) for s in shape]
    count = int(np.prod(sizes, dtype=np.int64))
    if shape is not None and (verify_shape or allow_broadcast) and (list(array.shape) != sizes if verify_shape or array.size != 1 else False):
        raise TypeError(f"Expected Tensor's shape: {tuple(sizes)}, but got {array.shape}.")
    if array.size > count:
        raise ValueError(f"Too many elements provided. Takes at most {count}, but got {array.size}.")
    made = TensorProto(dtype=_NUMBERS[kind], tensor_shape=TensorShapeProto())
    for size in sizes:
        made.tensor_shape.dim.append(_dimension(size))
    flat = array.ravel()
    if array.size == count and count > 1 and kind not in ("string", "bool"):
        made.tensor_content = np.ascontiguousarray(array).tobytes()
        return made
    if kind in ("float16", "bfloat16"):
        flat = flat.view(np.uint16)
    elif kind.startswith("complex"):
        flat = flat.view(np.float32 if kind == "complex64" else np.float64)
    getattr(made, _FIELDS.get(kind, "int_val")).extend(flat.tolist())
    return made


def _dimension(size):
    from stoker.tf._event_messages import TensorShapeProto

    return TensorShapeProto.FIELDS[2][1][0](size=size)


def _array_of(values, dtype):
    """(array, name of its type) under the rules of tf.constant: Python floats are float32, strings bytes."""
    plain = values.numpy() if hasattr(values, "numpy") else values
    kinds = np.asarray(plain).dtype.kind
    if kinds == "c":
        array = np.asarray(plain, None if dtype is None else DType(dtype).as_numpy_dtype)
        return array, array.dtype.name
    if not hasattr(plain, "dtype") and dtype is not None and kinds == "f" and DType(dtype).is_integer:
        bad = np.ravel(plain)[0]
        raise TypeError(f"Expected {DType(dtype).name}, but got {bad} of type 'float'.")
    x = tensor(plain) if dtype is None or hasattr(plain, "dtype") else tensor(plain, dtype)
    array = np.asarray(x.numpy(), object if x.dtype == string else None)
    if dtype is not None and x.dtype != DType(dtype):
        array, x = array.astype(DType(dtype).as_numpy_dtype), tensor(0, dtype)
    return array, x.dtype.name


def make_ndarray(tensor):
    """The array of a TensorProto."""
    sizes = [d.size for d in tensor.tensor_shape.dim]
    count = int(np.prod(sizes, dtype=np.int64))
    kind = _NAMES.get(tensor.dtype)
    if kind is None:
        raise TypeError(f"Unsupported tensor type: {tensor.dtype}.")
    numpy_type = object if kind == "string" else np.dtype(kind) if kind.startswith("complex") else DType(kind).as_numpy_dtype
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, numpy_type).copy().reshape(sizes)
    listed = getattr(tensor, _FIELDS.get(kind, "int_val"))
    if kind.startswith("complex"):
        flat = np.array(listed, "f4" if kind == "complex64" else "f8").view(numpy_type)
    elif kind in ("float16", "bfloat16"):
        flat = np.array(listed, np.uint16).view(numpy_type)
    else:
        flat = np.empty(len(listed), numpy_type)
        flat[:] = listed
    if not len(flat):
        return np.zeros(sizes, numpy_type)
    full = np.empty(count, numpy_type)
    full[:len(flat)], full[len(flat):] = flat[:count], flat[-1]
    return full.reshape(sizes)


# Sparse tensors as three messages: places, values, shape.

def serialize_sparse(sp_input, out_type=string, name=None):
    parts = [sp_input.indices, sp_input.values, sp_input.dense_shape]
    return tensor(np.array([serialize_tensor(p).numpy() for p in parts], object), string)


def serialize_many_sparse(sp_input, out_type=string, name=None):
    """A row for each index of the first dimension, which leaves the tensors."""
    from stoker.tf._sparse import SparseTensor

    indices, values, shape = sp_input.indices.numpy(), sp_input.values.numpy(), sp_input.dense_shape.numpy()
    if len(shape) < 2:
        errors.invalid("Rank of input SparseTensor should be > 1, but saw rank: %d" % len(shape), "SerializeManySparse")
    rows = np.empty((int(shape[0]), 3), object)
    for n in range(int(shape[0])):
        mine = indices[:, 0] == n
        one = SparseTensor(indices[mine, 1:], tensor(values[mine], sp_input.dtype), shape[1:])
        rows[n] = serialize_sparse(one).numpy()
    return tensor(rows, string)


def deserialize_many_sparse(serialized_sparse, dtype, rank=None, name=None):
    """The tensors of all rows as one with a new first dimension, as wide as the widest."""
    from stoker.tf._sparse import SparseTensor

    rows, kind = np.asarray(tensor(serialized_sparse, string).numpy(), object), DType(dtype)
    if rows.ndim != 2 or rows.shape[1] != 3:
        errors.invalid(f"Serialized sparse should have 3 as the last dimension, has shape {rows.shape}", "DeserializeManySparse")
    places, values, shapes = [], [], []
    for n, (where, what, shape) in enumerate(rows):
        stored = make_ndarray(_parsed(what))
        if stored.dtype != np.dtype(object if kind == string else kind.as_numpy_dtype):
            errors.invalid(f"Requested SparseTensor of type {kind.name} but SparseTensor[{n}].values.dtype() == {stored.dtype}",
                           "DeserializeManySparse")
        inner = make_ndarray(_parsed(where))
        places.append(np.insert(inner, 0, n, axis=1))
        values.append(stored)
        shapes.append(make_ndarray(_parsed(shape)))
    if len({len(s) for s in shapes}) > 1:
        errors.invalid("Inconsistent rank across SparseTensors", "DeserializeManySparse")
    shape = [len(rows), *np.max(shapes, axis=0).tolist()]
    return SparseTensor(np.concatenate(places), tensor(np.concatenate(values), kind), shape)


def _parsed(data):
    from stoker.tf._event_messages import TensorProto

    try:
        return TensorProto.FromString(data)
    except ValueError:
        errors.invalid("Could not parse serialized_sparse as TensorProto", "DeserializeManySparse")
