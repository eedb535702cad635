"""The messages inside of event files: Event, Summary, SummaryMetadata, TensorProto.

What `tf.compat.v1.train.summary_iterator` gives, and tensorflow.core.util.event_pb2 to programs that import it. A class is a table of
its fields, so that bytes are read and written by one pair of functions.
"""
import struct

from stoker.tf._events import field_bytes, varint

_WIRE = {"double": 1, "float": 5, "fixed32": 5, "int": 0, "bool": 0, "string": 2, "bytes": 2}
_ZERO = {"double": 0.0, "float": 0.0, "fixed32": 0, "int": 0, "bool": False, "string": "", "bytes": b""}
_LETTERS = {"double": "d", "float": "f", "fixed32": "I"}  # of struct


def _read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data):
            raise ValueError("Error parsing message: it ends in the middle of a number")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _read_value(data, at, wire):
    if wire == 0:
        return _read_varint(data, at)
    if wire in (1, 5):
        size = 8 if wire == 1 else 4
    elif wire == 2:
        size, at = _read_varint(data, at)
    else:
        raise ValueError(f"Error parsing message: wire type {wire}")
    if at + size > len(data):
        raise ValueError("Error parsing message: it ends in the middle of a field")
    return data[at:at + size], at + size


def _signed(value):
    return value - (1 << 64) if value >> 63 else value


def _varints(raw, wire):
    """The numbers of one field on the wire: several where they are packed."""
    if wire != 2:
        return [raw]
    numbers, at = [], 0
    while at < len(raw):
        value, at = _read_varint(raw, at)
        numbers.append(value)
    return numbers


def _decode(kind, raw, wire):
    """The values that one field on the wire holds: several when numbers are packed."""
    if isinstance(kind, type):
        return [kind.FromString(raw)]
    if kind in ("string", "bytes"):
        return [raw.decode("utf-8") if kind == "string" else raw]
    if kind in _LETTERS:
        letter, size = _LETTERS[kind], 8 if kind == "double" else 4
        return list(struct.unpack(f"<{len(raw) // size}{letter}", raw))
    return [bool(n) if kind == "bool" else _signed(n) for n in _varints(raw, wire)]


def _packed(number, kind, values):
    """A repeated field: numbers stand together in one piece, as proto3 writes them."""
    if not isinstance(kind, str) or kind in ("string", "bytes"):
        return b"".join(_encode(number, kind, v) for v in values)
    head = len(varint(number << 3 | _WIRE[kind]))
    body = b"".join(_encode(number, kind, v)[head:] for v in values)
    return field_bytes(number, body) if body else b""


def _encode(number, kind, value):
    if isinstance(kind, type):
        return field_bytes(number, value.SerializeToString())
    if kind in ("string", "bytes"):
        return field_bytes(number, value)
    head = varint(number << 3 | _WIRE[kind])
    if kind in _LETTERS:
        return head + struct.pack("<" + _LETTERS[kind], value)
    return head + varint(int(value))


class Message:
    """FIELDS: number -> (name, kind), a kind in a list repeats. ONEOF: name -> the fields of which one is set."""

    FIELDS = {}
    ONEOF = {}
    ENUMS = {}  # field -> {number: its name}

    def __init__(self, **fields):
        self._set, self._given = {}, set()  # given: messages that were set as a whole; they count even if empty
        for name, value in fields.items():
            setattr(self, name, value)

    @classmethod
    def _kind(cls, name):
        for known, kind in cls.FIELDS.values():
            if known == name:
                return kind
        raise AttributeError(f"{cls.__name__} has no field '{name}'", name=name)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        kind = self._kind(name)
        if name not in self._set:
            if isinstance(kind, list):
                self._set[name] = []
            elif isinstance(kind, type):
                made = kind()  # written through, as message.plugin_data.plugin_name = ... is
                self._set[name] = made
            else:
                return _ZERO[kind]
        return self._set[name]

    def __setattr__(self, name, value):
        if name.startswith("_"):
            return object.__setattr__(self, name, value)
        self._kind(name)
        for group in self.ONEOF.values():
            if name in group:
                for other in group:
                    self._set.pop(other, None)
        self._set[name] = value
        self._given.add(name)

    def HasField(self, name):
        kind = self._kind(name)
        value = self._set.get(name)
        if isinstance(kind, type) and value is not None:
            return name in self._given or bool(value.ListFields())
        return value is not None

    def WhichOneof(self, group):
        return next((name for name in self.ONEOF[group] if self.HasField(name)), None)

    def ListFields(self):
        empty = (None, [])
        return [(name, self._set[name]) for name, kind in self.FIELDS.values()
                if self._set.get(name) not in empty and (not isinstance(kind, type) or self._set[name].ListFields())]

    @classmethod
    def FromString(cls, data):
        made = cls()
        made.ParseFromString(data)
        return made

    def ParseFromString(self, data):
        data, at = bytes(data), 0
        self._set.clear()
        self._given.clear()
        while at < len(data):
            key, at = _read_varint(data, at)
            raw, at = _read_value(data, at, key & 7)
            name, kind = self.FIELDS.get(key >> 3, (None, None))
            if name is None:
                continue
            if isinstance(kind, list):
                self._set.setdefault(name, []).extend(_decode(kind[0], raw, key & 7))
            else:
                setattr(self, name, _decode(kind, raw, key & 7)[-1])
        return len(data)

    def SerializeToString(self):
        out = b""
        for number, (name, kind) in sorted(self.FIELDS.items()):
            value = self._set.get(name)
            if isinstance(kind, list):
                out += _packed(number, kind[0], value or [])
            elif value is not None and (self.HasField(name) if isinstance(kind, type) else value != _ZERO[kind] or any(
                    name in group for group in self.ONEOF.values())):
                out += _encode(number, kind, value)
        return out

    def __eq__(self, other):
        return type(self) is type(other) and self.SerializeToString() == other.SerializeToString()

    __hash__ = None

    def CopyFrom(self, other):
        self.ParseFromString(other.SerializeToString())

    def ByteSize(self):
        return len(self.SerializeToString())

    def __repr__(self):
        return "".join(line + "\n" for line in self._lines())

    def _lines(self):
        """Text as protobuf prints it."""
        from stoker.tf._messages import _block, _number, _text

        show = {"string": lambda v: _text(v.encode()), "bytes": _text, "bool": lambda v: str(v).lower(), "float": _number,
                "double": lambda v: f"{v:.17g}" if float(f"{v:.15g}") != v else f"{v:.15g}", "int": str, "fixed32": str}
        lines = []
        for name, kind in self.FIELDS.values():
            inner = kind[0] if isinstance(kind, list) else kind
            present = self._set.get(name, []) if isinstance(kind, list) else [self._set[name]] if self.HasField(name) else []
            for value in present:
                names = self.ENUMS.get(name)
                if isinstance(inner, type):
                    lines += _block(name, value._lines())
                else:
                    lines.append(f"{name}: {names.get(value, value) if names else show[inner](value)}")
        return lines


def message(name, fields, **oneof):
    return type(name, (Message,), {"FIELDS": fields, "ONEOF": oneof, "__module__": "tensorflow.compat.v1"})


_Dim = message("Dim", {1: ("size", "int"), 2: ("name", "string")})
TensorShapeProto = message("TensorShapeProto", {2: ("dim", [_Dim]), 3: ("unknown_rank", "bool")})
TensorProto = message("TensorProto", {
    1: ("dtype", "int"), 2: ("tensor_shape", TensorShapeProto), 3: ("version_number", "int"), 4: ("tensor_content", "bytes"),
    5: ("float_val", ["float"]), 6: ("double_val", ["double"]), 7: ("int_val", ["int"]), 8: ("string_val", ["bytes"]),
    9: ("scomplex_val", ["float"]), 10: ("int64_val", ["int"]), 11: ("bool_val", ["bool"]), 12: ("dcomplex_val", ["double"]),
    13: ("half_val", ["int"]), 16: ("uint32_val", ["int"]), 17: ("uint64_val", ["int"])})
DATA_TYPES = {1: "FLOAT", 2: "DOUBLE", 3: "INT32", 4: "UINT8", 5: "INT16", 6: "INT8", 7: "STRING", 8: "COMPLEX64", 9: "INT64", 10: "BOOL",
              14: "BFLOAT16", 17: "UINT16", 18: "COMPLEX128", 19: "HALF", 22: "UINT32", 23: "UINT64"}
TensorProto.ENUMS = {"dtype": {number: "DT_" + name for number, name in DATA_TYPES.items()}}
_PluginData = message("PluginData", {1: ("plugin_name", "string"), 2: ("content", "bytes")})
SummaryMetadata = message("SummaryMetadata", {
    1: ("plugin_data", _PluginData), 2: ("display_name", "string"), 3: ("summary_description", "string"), 4: ("data_class", "int")})
SummaryMetadata.PluginData = _PluginData
HistogramProto = message("HistogramProto", {
    1: ("min", "double"), 2: ("max", "double"), 3: ("num", "double"), 4: ("sum", "double"), 5: ("sum_squares", "double"),
    6: ("bucket_limit", ["double"]), 7: ("bucket", ["double"])})
_Image = message("Image", {
    1: ("height", "int"), 2: ("width", "int"), 3: ("colorspace", "int"), 4: ("encoded_image_string", "bytes")})
_Value = message("Value", {
    1: ("tag", "string"), 2: ("simple_value", "float"), 4: ("image", _Image), 5: ("histo", HistogramProto),
    7: ("node_name", "string"), 8: ("tensor", TensorProto), 9: ("metadata", SummaryMetadata)},
    value=("simple_value", "image", "histo", "tensor"))
Summary = message("Summary", {1: ("value", [_Value])})
Summary.Value, Summary.Image = _Value, _Image
Event = message("Event", {
    1: ("wall_time", "double"), 2: ("step", "int"), 3: ("file_version", "string"), 4: ("graph_def", "bytes"), 5: ("summary", Summary)},
    what=("file_version", "graph_def", "summary"))


def summary_iterator(path):
    """The events of a file, one after the other."""
    from stoker.tf import data

    for record in data.TFRecordDataset(path):
        yield Event.FromString(record.numpy())
