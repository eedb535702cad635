"""tf.io.decode_proto and encode_proto: fields of any message as tensors.

Messages are described by a FileDescriptorSet (`bytes://...`, or a file of one), or, with "local://", are those of the table below.
"""
import collections
import struct

import numpy as np

from stoker.tf import errors
from stoker.tf._base import string, tensor
from stoker.tf._event_messages import _read_value, _read_varint, _varints, message
from stoker.tf._events import field_bytes, varint
from stoker.tf._specs import DType

# Type of a field in a descriptor: (wire type, how numbers are packed, the types of tensors that it may become; the first is its own).
_TYPES = {1: (1, "<d", ("float64",)), 2: (5, "<f", ("float32", "float64")), 3: (0, "signed", ("int64",)), 4: (0, "plain", ("uint64", "int64")),
          5: (0, "signed", ("int32", "int64")), 6: (1, "<Q", ("uint64", "int64")), 7: (5, "<I", ("uint32", "int64", "uint64", "int32")),
          8: (0, "plain", ("bool",)), 9: (2, None, ("string",)), 11: (2, None, ("string",)), 12: (2, None, ("string",)),
          13: (0, "plain", ("uint32", "int64", "uint64", "int32")), 14: (0, "signed", ("int32",)), 15: (5, "<i", ("int32", "int64")),
          16: (1, "<q", ("int64",)), 17: (0, "zigzag", ("int32", "int64")), 18: (0, "zigzag", ("int64",))}
_REPEATED = 3

Field = collections.namedtuple("Field", "name number type repeated default")
_FieldProto = message("FieldDescriptorProto", {1: ("name", "string"), 3: ("number", "int"), 4: ("label", "int"), 5: ("type", "int"),
                                               7: ("default_value", "string")})
_MessageProto = message("DescriptorProto", {1: ("name", "string"), 2: ("field", [_FieldProto])})
_MessageProto.FIELDS[3] = ("nested_type", [_MessageProto])
_FileProto = message("FileDescriptorProto", {1: ("name", "string"), 2: ("package", "string"), 4: ("message_type", [_MessageProto])})
_SetProto = message("FileDescriptorSet", {1: ("file", [_FileProto])})

_LOCAL = {
    "BytesList": [("value", 1, 12, True)], "FloatList": [("value", 1, 2, True)], "Int64List": [("value", 1, 3, True)],
    "Feature": [("bytes_list", 1, 11, False), ("float_list", 2, 11, False), ("int64_list", 3, 11, False)],
    "Features": [("feature", 1, 11, True)], "Features.FeatureEntry": [("key", 1, 9, False), ("value", 2, 11, False)],
    "FeatureList": [("feature", 1, 11, True)], "FeatureLists": [("feature_list", 1, 11, True)],
    "FeatureLists.FeatureListEntry": [("key", 1, 9, False), ("value", 2, 11, False)],
    "Example": [("features", 1, 11, False)], "SequenceExample": [("context", 1, 11, False), ("feature_lists", 2, 11, False)],
    "TensorShapeProto": [("dim", 2, 11, True), ("unknown_rank", 3, 8, False)],
    "TensorShapeProto.Dim": [("size", 1, 3, False), ("name", 2, 9, False)],
    "TensorProto": [("dtype", 1, 14, False), ("tensor_shape", 2, 11, False), ("version_number", 3, 5, False), ("tensor_content", 4, 12, False),
                    ("float_val", 5, 2, True), ("double_val", 6, 1, True), ("int_val", 7, 5, True), ("string_val", 8, 12, True),
                    ("int64_val", 10, 3, True), ("bool_val", 11, 8, True), ("half_val", 13, 5, True), ("uint32_val", 16, 13, True),
                    ("uint64_val", 17, 4, True)]}


def _described(source, name):
    """{field name: Field} of a message, or None."""
    if source in ("", "local://"):
        rows = _LOCAL.get(name[len("tensorflow."):]) if name.startswith("tensorflow.") else None
        return None if rows is None else {row[0]: Field(*row, None) for row in rows}
    if source.startswith(b"bytes://" if isinstance(source, bytes) else "bytes://"):
        data = source[len("bytes://"):]
        data = data if isinstance(data, bytes) else data.encode("latin-1")
    else:
        with open(source, "rb") as file:
            data = file.read()
    found = {}

    def walk(prefix, messages):
        for one in messages:
            found[prefix + one.name] = one
            walk(prefix + one.name + ".", one.nested_type)

    for file in _SetProto.FromString(data).file:
        walk(file.package + "." if file.package else "", file.message_type)
    if name not in found:
        return None
    return {f.name: Field(f.name, f.number, f.type, f.label == _REPEATED, f.default_value or None) for f in found[name].field}


def _fields(op, message_type, names, source):
    fields = _described(source, message_type)
    if fields is None:
        errors.invalid(f"No descriptor found for message type {message_type}"
                       + (" (local:// knows tensorflow.Example, its kin and TensorProto; give a FileDescriptorSet as bytes:// or a file)"
                          if source in ("", "local://") else ""), op)
    for name in names:
        if name not in fields:
            errors.invalid(f"Unknown field: {name} in message type {message_type}", op)
    return [fields[name] for name in names]


def _number(how, raw):
    if how == "zigzag":
        return raw >> 1 ^ -(raw & 1)
    return raw - (1 << 64) if how == "signed" and raw >> 63 else raw


def _values(field, raw, wire):
    """What one piece on the wire holds: several numbers where they are packed."""
    own, how, _ = _TYPES[field.type]
    if how is None:
        return [raw]
    if own != 0:
        return [v for (v,) in struct.iter_unpack(how, raw)]
    return [_number(how, n) for n in _varints(raw, wire)]


def _read(data, fields):
    """The values of the wanted fields of one message."""
    by_number, found, at = {f.number: n for n, f in enumerate(fields)}, [[] for _ in fields], 0
    while at < len(data):
        key, at = _read_varint(data, at)
        raw, at = _read_value(data, at, key & 7)
        place = by_number.get(key >> 3)
        if place is not None and (key & 7 == 2 or _TYPES[fields[place].type][0] == key & 7):
            got = _values(fields[place], raw, key & 7)
            found[place] = found[place] + got if fields[place].repeated else got[-1:]
    return found


def _default(field, kind):
    if field.default is None or field.repeated:
        return b"" if kind == string else 0
    return field.default.encode() if kind == string else field.default == "true" if kind.name == "bool" else float(field.default)


Decoded = collections.namedtuple("DecodeProtoV2", ["sizes", "values"])


def decode_proto(bytes, message_type, field_names, output_types, descriptor_source="local://", message_format="binary", sanitize=False,
                 name=None):
    if message_format != "binary":
        raise NotImplementedError(f"decode_proto: message_format {message_format!r}; only binary messages are read")
    x, kinds = tensor(bytes, string), [DType(t) for t in output_types]
    array = np.asarray(x.numpy(), object)
    if len(field_names) != len(kinds):
        errors.invalid(f"field_names and output_types must have the same length, got {len(field_names)} and {len(kinds)}", "DecodeProtoV2")
    fields = _fields("DecodeProtoV2", message_type, field_names, descriptor_source)
    for field, kind in zip(fields, kinds):
        if kind.name not in _TYPES[field.type][2]:
            errors.invalid(f"Unexpected output type for {message_type}.{field.name}: {_TYPES[field.type][2][0]} to {kind.name}", "DecodeProtoV2")
    rows = []
    for data in array.ravel():
        try:
            rows.append(_read(data, fields))
        except (ValueError, struct.error):
            errors.raise_(15, "CountFields: Failed to consume entire buffer", "DecodeProtoV2")
    sizes = np.array([[len(v) for v in row] for row in rows], np.int32).reshape(array.shape + (len(fields),))
    values = []
    for n, (field, kind) in enumerate(zip(fields, kinds)):
        wide = max((len(row[n]) for row in rows), default=0) if field.repeated else 1
        full = np.full((len(rows), wide), _default(field, kind), object if kind == string else kind.as_numpy_dtype)
        for row, out in zip(rows, full):
            if row[n]:
                out[:len(row[n])] = np.array(row[n], object if kind == string else None).astype(full.dtype)
        values.append(tensor(full.reshape(array.shape + (wide,)), kind))
    return Decoded(tensor(sizes), values)


def _one(field, value):
    wire, how, _ = _TYPES[field.type]
    if how is None:
        return field_bytes(field.number, value)
    head = varint(field.number << 3 | wire)
    if wire != 0:
        return head + struct.pack(how, float(value) if how in ("<d", "<f") else int(value))
    number = int(value)
    return head + varint((number << 1 ^ number >> 63) if how == "zigzag" else number)


def encode_proto(sizes, values, field_names, message_type, descriptor_source="local://", name=None):
    """The other way round: one message for each row of the values."""
    counts, arrays = tensor(sizes).numpy(), [np.asarray(tensor(v).numpy()) for v in values]
    fields = _fields("EncodeProto", message_type, field_names, descriptor_source)
    flat, made = counts.reshape(-1, len(fields)), []
    rows = [a.reshape(-1, a.shape[-1]) for a in arrays]
    order = sorted(range(len(fields)), key=lambda n: fields[n].number)
    for n, row in enumerate(flat):
        out = b""
        for m in order:
            field, items = fields[m], rows[m][n][:row[m]]
            if field.repeated and _TYPES[field.type][1] is not None:  # numbers stand together
                head = len(varint(field.number << 3))
                out += field_bytes(field.number, b"".join(_one(field, v)[head:] for v in items)) if len(items) else b""
            else:
                out += b"".join(_one(field, v) for v in items)
        made.append(out)
    shape = counts.shape[:-1]
    full = np.empty(len(made), object)
    full[:] = made
    return tensor(full.reshape(shape), string)
