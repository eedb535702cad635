"""tf.io.serialize_tensor and parse_tensor: TensorProto, as TensorFlow writes it."""
import numpy as np

from stoker import _stoker
from stoker.tf import errors
from stoker.tf._base import is_symbolic, not_traceable, string, tensor
from stoker.tf._specs import DType

_NUMBERS = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "int64": 9, "bool": 10,
            "bfloat16": 14, "uint16": 17, "float16": 19, "uint32": 22, "uint64": 23}
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
