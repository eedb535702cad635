"""tf.train.Example and its kin, as protobuf's Python classes behave; bytes are written and read by the extension."""
from collections.abc import MutableMapping, MutableSequence

from stoker import _stoker

_PACKAGE = "tensorflow.core.example.feature_pb2"


class DecodeError(Exception):
    """The bytes are no such message."""


class EncodeError(Exception):
    """The message cannot be written."""


DecodeError.__module__ = EncodeError.__module__ = "google.protobuf.message"


class Repeated(MutableSequence):
    """A repeated field of numbers or bytes."""

    __slots__ = ("_kind", "_items", "_changed")

    def __init__(self, kind, items, changed=None):
        self._kind, self._items, self._changed = kind, items, changed

    def _values(self, items):
        made = _stoker.message_values(self._kind, items)
        if self._changed is not None:
            self._changed()
        return made

    def __len__(self):
        return len(self._items)

    def __getitem__(self, index):
        return self._items[index]

    def __setitem__(self, index, value):
        self._items[index] = self._values(value) if isinstance(index, slice) else self._values([value])[0]

    def __delitem__(self, index):
        del self._items[index]

    def __iter__(self):
        return iter(self._items)

    def insert(self, index, value):
        self._items.insert(index, self._values([value])[0])

    def append(self, value):
        self._items.append(self._values([value])[0])

    def extend(self, values):
        if values is not None:
            self._items.extend(self._values(list(values)))

    MergeFrom = extend

    def __eq__(self, other):
        return self._items == (other._items if isinstance(other, Repeated) else list(other))

    __hash__ = None

    def __repr__(self):
        return repr(self._items)

    def __array__(self, dtype=None, copy=None):
        import numpy as np

        return np.array(self._items, dtype)


class Message:
    """What all messages can do."""

    __slots__ = ()

    def SerializePartialToString(self, **kwargs):
        return self.SerializeToString(**kwargs)

    def SerializeToString(self, deterministic=None):
        return self._bytes()

    def ByteSize(self):
        return len(self._bytes())

    @classmethod
    def FromString(cls, serialized):
        made = cls()
        made.ParseFromString(serialized)
        return made

    def ParseFromString(self, serialized):
        self.Clear()
        return self.MergeFromString(serialized)

    def MergeFromString(self, serialized):
        serialized = bytes(serialized)
        if not self._read(serialized):
            raise DecodeError(f"Error parsing message with type 'tensorflow.{type(self).__name__}': Wire format was corrupt")
        return len(serialized)

    def CopyFrom(self, other):
        self.Clear()
        self.MergeFrom(other)

    def MergeFrom(self, other):
        self.MergeFromString(other.SerializeToString())

    def IsInitialized(self):
        return True

    def __eq__(self, other):
        return type(self) is type(other) and self._bytes() == other._bytes()

    __hash__ = None

    def __repr__(self):
        return "".join(line + "\n" for line in self._lines())

    __str__ = __repr__

    def __reduce__(self):
        return _restore, (type(self), self._bytes())

    def __copy__(self):
        return type(self).FromString(self._bytes())

    def __deepcopy__(self, memo):
        return self.__copy__()


def _restore(cls, serialized):
    return cls.FromString(serialized)


def _indent(lines):
    return ["  " + line for line in lines]


def _block(name, lines):
    return [name + " {", *_indent(lines), "}"]


def _number(value):
    """A float32 as protobuf writes it: the fewest digits that give it back."""
    import numpy as np

    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    text = f"{float(str(np.float32(value))):.9g}"
    for digits in range(1, 9):
        short = f"{value:.{digits}g}"
        if np.float32(float(short)) == np.float32(value):
            return short
    return text


_ESCAPES = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}


def _text(value):
    return '"' + "".join(_ESCAPES.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in value) + '"'


class _List(Message):
    """BytesList, FloatList, Int64List."""

    __slots__ = ("_items", "_owner")
    _kind = 0

    def __init__(self, value=None):
        self._items = [] if value is None else _stoker.message_values(self._kind, _listed(value))
        self._owner = None

    def _touch(self):
        if self._owner is not None:
            self._owner._become(self)

    @property
    def value(self):
        return Repeated(self._kind, self._items, self._touch)

    def _bytes(self):
        inner = _stoker.message_encode("f", (self._kind, self._items))
        return _stoker.message_fields(inner)[0][2]

    def _read(self, serialized):
        made = _stoker.message_decode("f", _stoker.message_field(self._kind, serialized))
        if made is None:
            return False
        self._items += made[1]
        return True

    def Clear(self):
        self._items.clear()

    def ListFields(self):
        return [("value", self.value)] if self._items else []

    def _lines(self):
        show = {1: _text, 2: _number, 3: str}[self._kind]
        return [f"value: {show(v)}" for v in self._items]


def _listed(value):
    if isinstance(value, (str, bytes)):
        raise TypeError(f"value must be a list, got {type(value).__name__}")
    return value if isinstance(value, (list, tuple)) else list(value)


BytesList = type("BytesList", (_List,), {"__slots__": (), "_kind": 1, "__module__": _PACKAGE})
FloatList = type("FloatList", (_List,), {"__slots__": (), "_kind": 2, "__module__": _PACKAGE})
Int64List = type("Int64List", (_List,), {"__slots__": (), "_kind": 3, "__module__": _PACKAGE})
_LISTS = {"bytes_list": BytesList, "float_list": FloatList, "int64_list": Int64List}
_NAMES = {1: "bytes_list", 2: "float_list", 3: "int64_list"}


class Feature(Message):
    __slots__ = ("_one",)

    def __init__(self, bytes_list=None, float_list=None, int64_list=None):
        self._one = None
        if bytes_list is not None:
            self._take(BytesList, bytes_list)
        if float_list is not None:
            self._take(FloatList, float_list)
        if int64_list is not None:
            self._take(Int64List, int64_list)

    def _take(self, cls, given):
        if isinstance(given, dict):
            given = cls(**given)
        if type(given) is not cls:
            raise TypeError(f"Parameter to initialize message field must be dict or instance of same class: expected "
                            f"tensorflow.{cls.__name__} got {type(given).__name__}.")
        self._become(given if given._owner is None else cls(given._items))

    def _become(self, one):
        self._one, one._owner = one, self

    def _get(self, name):
        if self._one is not None and type(self._one) is _LISTS[name]:
            return self._one
        made = _LISTS[name]()
        made._owner = self  # becomes the feature's list when something is put into it
        return made

    bytes_list = property(lambda self: self._get("bytes_list"))
    float_list = property(lambda self: self._get("float_list"))
    int64_list = property(lambda self: self._get("int64_list"))

    def _pair(self):
        return (0, []) if self._one is None else (self._one._kind, self._one._items)

    def _set(self, pair):
        kind, items = pair
        self._one = None
        if kind:
            made = _LISTS[_NAMES[kind]]()
            made._items = items
            self._become(made)
        return self

    def WhichOneof(self, oneof_group):
        if oneof_group != "kind":
            raise ValueError(f"Protocol message has no oneof \"{oneof_group}\" field.")
        return None if self._one is None else _NAMES[self._one._kind]

    def HasField(self, field_name):
        if field_name not in _LISTS:
            raise ValueError(f"Protocol message Feature has no field {field_name}.")
        return self.WhichOneof("kind") == field_name

    def ClearField(self, field_name):
        if self.HasField(field_name):
            self._one = None

    def Clear(self):
        self._one = None

    def _bytes(self):
        return _stoker.message_encode("f", self._pair())

    def _read(self, serialized):
        pair = _stoker.message_decode("f", serialized)
        if pair is None:
            return False
        if pair[0]:
            self._set(pair)
        return True

    def _lines(self):
        return [] if self._one is None else _block(_NAMES[self._one._kind], self._one._lines())


class _Map(MutableMapping):
    """A map of messages: asking for a key makes it, as protobuf does."""

    __slots__ = ("_cls", "_items")

    def __init__(self, cls, items):
        self._cls, self._items = cls, items

    def __getitem__(self, key):
        if not isinstance(key, str):
            raise TypeError(f"bad argument type for built-in operation: a key must be str, got {type(key).__name__}")
        if key not in self._items:
            self._items[key] = self._cls()
        return self._items[key]

    def get_or_create(self, key):
        return self[key]

    def get(self, key, default=None):
        return self._items.get(key, default)

    def __setitem__(self, key, value):
        raise ValueError("Direct assignment of submessage not allowed")

    def __delitem__(self, key):
        del self._items[key]

    def __contains__(self, key):
        return key in self._items

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)

    def __repr__(self):
        return repr(self._items)

    def MergeFrom(self, other):
        for key in other:
            self[key].CopyFrom(other[key])


class _MapMessage(Message):
    """A message whose one field is a map: Features, FeatureLists."""

    __slots__ = ("_items", "_set")

    def _fill(self, given):
        self._items, self._set = {}, given is not None
        for key, value in (given or {}).items():
            if not isinstance(key, str):
                raise TypeError(f"bad argument type for built-in operation: a key must be str, got {type(key).__name__}")
            if isinstance(value, dict):
                value = self._cls(**value)
            if type(value) is not self._cls:
                raise TypeError(f"expected tensorflow.{self._cls.__name__}, got {type(value).__name__}")
            self._items[key] = value

    def Clear(self):
        self._items.clear()

    def _bytes(self):
        return _stoker.message_encode(self._what, {k: v._pair() for k, v in self._items.items()})

    def _read(self, serialized):
        made = _stoker.message_decode(self._what, serialized)
        if made is None:
            return False
        for key, pair in made.items():
            self._items[key] = self._cls()._set(pair)
        return True

    def _lines(self):
        return [line for key in sorted(self._items, key=lambda k: k.encode(), reverse=True)
                for line in _block(self._name, [f"key: {_text(key.encode())}", *_block("value", self._items[key]._lines())])]


class Features(_MapMessage):
    __slots__ = ()
    _cls, _what, _name = Feature, "m", "feature"

    def __init__(self, feature=None):
        self._fill(feature)

    @property
    def feature(self):
        return _Map(Feature, self._items)


class _Messages(list):
    """A repeated field of messages."""

    def __init__(self, cls, items=()):
        super().__init__(items)
        self._cls = cls

    def add(self, **kwargs):
        made = self._cls(**kwargs)
        self.append(made)
        return made


class FeatureList(Message):
    __slots__ = ("_items",)

    def __init__(self, feature=None):
        self._items = _Messages(Feature, feature or ())

    feature = property(lambda self: self._items)

    def _pair(self):
        return [f._pair() for f in self._items]

    def _set(self, pairs):
        self._items = _Messages(Feature, [Feature()._set(p) for p in pairs])
        return self

    def Clear(self):
        self._items.clear()

    def _bytes(self):
        return b"".join(_stoker.message_field(1, f._bytes()) for f in self._items)

    def _read(self, serialized):
        fields = _stoker.message_fields(serialized)
        for number, wire, inner in fields or ():
            if number == 1 and wire == 2:
                self._items.append(Feature.FromString(inner))
        return fields is not None

    def _lines(self):
        return [line for f in self._items for line in _block("feature", f._lines())]


class FeatureLists(_MapMessage):
    __slots__ = ()
    _cls, _what, _name = FeatureList, "l", "feature_list"

    def __init__(self, feature_list=None):
        self._fill(feature_list)

    @property
    def feature_list(self):
        return _Map(FeatureList, self._items)


class _Outer(Message):
    """Example and SequenceExample: messages of maps."""

    __slots__ = ("_parts", "_given")
    _fields = ()

    def __init__(self, **given):
        self._parts, self._given = {}, set()
        for name, cls in self._fields:
            value = given.pop(name, None)
            if value is None:
                self._parts[name] = cls()
                continue
            if isinstance(value, dict):
                value = cls(**value)
            if type(value) is not cls:
                raise TypeError(f"Parameter to initialize message field must be dict or instance of same class: expected "
                                f"tensorflow.{cls.__name__} got {type(value).__name__}.")
            self._given.add(name)
            self._parts[name] = value
        for name in given:
            raise ValueError(f'Protocol message {type(self).__name__} has no "{name}" field.')

    def HasField(self, field_name):
        return field_name in self._given or bool(self._parts[field_name]._items)

    def Clear(self):
        self._parts = {name: cls() for name, cls in self._fields}
        self._given = set()

    def ClearField(self, field_name):
        self._parts[field_name] = dict(self._fields)[field_name]()
        self._given.discard(field_name)

    def _bytes(self):
        return b"".join(_stoker.message_field(n + 1, self._parts[name]._bytes())
                        for n, (name, _) in enumerate(self._fields) if self.HasField(name))

    def _read(self, serialized):
        fields = _stoker.message_fields(serialized)
        for number, wire, inner in fields or ():
            if wire == 2 and 1 <= number <= len(self._fields):
                name = self._fields[number - 1][0]
                self._given.add(name)
                if not self._parts[name]._read(inner):
                    return False
        return fields is not None

    def _lines(self):
        return [line for name, _ in self._fields if self.HasField(name) for line in _block(name, self._parts[name]._lines())]


class Example(_Outer):
    __slots__ = ()
    _fields = (("features", Features),)
    features = property(lambda self: self._parts["features"])


class SequenceExample(_Outer):
    __slots__ = ()
    _fields = (("context", Features), ("feature_lists", FeatureLists))
    context = property(lambda self: self._parts["context"])
    feature_lists = property(lambda self: self._parts["feature_lists"])


for _made in (Feature, Features, FeatureList, FeatureLists):
    _made.__module__ = _PACKAGE
for _made in (Example, SequenceExample):
    _made.__module__ = "tensorflow.core.example.example_pb2"
