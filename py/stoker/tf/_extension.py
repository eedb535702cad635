"""tf.experimental.ExtensionType: classes whose fields are tensors and plain values. Objects do not change once they are made."""
import inspect
import typing

import numpy as np

from stoker.tf import nest
from stoker.tf._base import Tensor, TensorShape, Variable, o, tensor
from stoker.tf._specs import DType, TypeSpec, as_dtype, type_spec_from_value

_RESERVED = ("self",)


class ImmutableDict(dict):
    """A mapping that a field holds."""

    def _fixed(self, *args, **kwargs):
        raise TypeError("'ImmutableDict' object does not support item assignment")

    def _absent(self, *args, **kwargs):
        raise AttributeError("'ImmutableDict' object cannot be changed")

    __setitem__ = __delitem__ = _fixed
    update = pop = popitem = clear = setdefault = _absent

    def __hash__(self):
        return hash(tuple(sorted(self.items(), key=str)))

    def __repr__(self):
        return f"ImmutableDict({dict(self)!r})"


def _is_sequence(origin):
    return origin in (tuple, list)


def convert(path, kind, value):
    """A value as its annotation wants it; TypeError names the field."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Tensor:
        if isinstance(value, TypeSpec):
            return value
        try:
            return tensor(value)
        except (TypeError, ValueError):
            raise TypeError(f"{path}: expected a Tensor, got {type(value).__name__!r}") from None
    if origin is typing.Union or type(kind).__name__ == "UnionType":
        return _one_of(path, inner, value)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"{path}: expected tuple, got {type(value).__name__!r}")
        kinds = inner[:1] * len(value) if inner[1:] == (Ellipsis,) else inner
        if len(kinds) != len(value):
            raise TypeError(f"{path}: expected tuple with length {len(kinds)}, got {value!r}")
        return tuple(convert(f"{path}[{n}]", k, v) for n, (k, v) in enumerate(zip(kinds, value)))
    if origin is not None and origin.__name__ in ("Mapping", "dict"):
        if not hasattr(value, "items"):
            raise TypeError(f"{path}: expected mapping, got {type(value).__name__!r}")
        return ImmutableDict((convert(f"{path}.keys()", inner[0], k), convert(f"{path}[{k!r}]", inner[1], v)) for k, v in value.items())
    if kind is TensorShape:
        return TensorShape(value)
    if kind is DType:
        return as_dtype(value)
    if kind is type(None) or kind is None:
        if value is not None:
            raise TypeError(f"{path}: expected None, got {type(value).__name__!r}")
        return None
    if isinstance(kind, type) and isinstance(value, TypeSpec) and getattr(value, "value_type", None) is kind:
        return value
    if isinstance(kind, type) and not isinstance(value, kind):
        raise TypeError(f"{path}: expected {kind.__name__}, got {type(value).__name__!r}")
    return value


def _one_of(path, kinds, value):
    exact = [k for k in kinds if isinstance(k, type) and isinstance(value, k)]
    for kind in exact + list(kinds):
        try:
            return convert(path, kind, value)
        except TypeError:
            continue
    names = ", ".join(getattr(k, "__name__", str(k)) for k in kinds)
    raise TypeError(f"{path}: expected one of ({names}), got {type(value).__name__!r}")


def _of_own(spec):
    """Methods and properties of a Spec that the program wrote. Its constructor sets the fields."""
    if spec is None:
        return {}
    found = {k: v for k, v in vars(spec).items() if k not in ("__dict__", "__weakref__", "__module__", "__qualname__", "__slots__")}
    if "__init__" in found:
        fill = found["__init__"]

        def __init__(self, *args, **kwargs):
            self._values = {}
            fill(self, *args, **kwargs)
            fields = self.value_type._fields()
            missing = [k for k in fields if k not in self._values]
            if missing:
                raise AttributeError(f"{type(self).__qualname__}: its constructor did not set '{missing[0]}'")
            self._values = {k: convert(k, fields[k][0], self._values[k]) for k in fields}

        found["__init__"] = __init__
    return found


class _Fields(type):
    """The type of extension types: finds the annotations, writes the constructor and the specification."""

    def __init__(cls, name, bases, body):
        super().__init__(name, bases, body)
        if not any(isinstance(b, _Fields) for b in bases):
            return
        cls._own_init = None
        for base in cls.__mro__:
            if "__init__" in base.__dict__ and isinstance(base, _Fields) and base not in (ExtensionType, BatchableExtensionType):
                cls._own_init = base.__dict__["__init__"]
                break
        cls._found_fields = None
        cls.Spec = type("Spec", (ExtensionTypeSpec,), {**_of_own(body.get("Spec")), "value_type": cls, "__module__": cls.__module__,
                                                       "__qualname__": name + ".Spec", "__slots__": ()})

    def _fields(cls):
        """{name: (annotation, default)}; looked for at the first use, when forward names are known."""
        if cls._found_fields is None:
            hints = {}
            for base in reversed(cls.__mro__):
                if isinstance(base, _Fields) and base.__dict__.get("__annotations__"):
                    scope = vars(inspect.sys.modules.get(base.__module__, inspect)).copy()
                    scope.setdefault(base.__name__, base)
                    try:
                        found = typing.get_type_hints(type("_", (), {"__annotations__": base.__annotations__,
                                                                     "__module__": base.__module__}), scope, scope)
                    except NameError as error:
                        raise TypeError(f"{cls.__name__}: {error}") from None
                    hints.update(found)
            cls._found_fields = {k: (v, getattr(cls, k, inspect.Parameter.empty)) for k, v in hints.items()}
        return cls._found_fields

    def __call__(cls, *args, **kwargs):
        made = object.__new__(cls)
        object.__setattr__(made, "_open", True)
        if cls._own_init is not None:
            made.__init__(*args, **kwargs)
        else:
            parameters = [inspect.Parameter(k, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=d) for k, (_, d) in cls._fields().items()]
            try:
                bound = inspect.Signature(sorted(parameters, key=lambda p: p.default is not p.empty)).bind(*args, **kwargs)
            except ValueError as error:
                raise TypeError(str(error)) from None
            bound.apply_defaults()
            for key, value in bound.arguments.items():
                object.__setattr__(made, key, value)
        for key, (kind, _) in cls._fields().items():
            if key not in made.__dict__:
                raise AttributeError(f"'{cls.__name__}' object has no attribute '{key}': its constructor did not set it")
            object.__setattr__(made, key, convert(key, kind, made.__dict__[key]))
        unknown = [k for k in made.__dict__ if k not in cls._fields() and k != "_open"]
        if unknown:
            raise AttributeError(f"Cannot mutate attribute `{unknown[0]}` outside the custom constructor of ExtensionType.")
        object.__delattr__(made, "_open")
        made.__validate__()
        return made


class ExtensionType(metaclass=_Fields):
    def __validate__(self):
        """Subclasses check here."""

    def __setattr__(self, name, value):
        if "_open" not in self.__dict__ or name not in type(self)._fields():
            raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionType.")
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionType.")

    def _values(self):
        return {k: self.__dict__[k] for k in type(self)._fields()}

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._values().items())})"

    def __eq__(self, other):
        if type(self) is not type(other):
            return False
        mine, theirs = _leaves(self), _leaves(other)
        if self._type_spec._shape_of() != other._type_spec._shape_of():
            return tensor(False)
        same = [o.reduce_all(o.equal(a, b)) for a, b in zip(mine, theirs)]
        return o.reduce_all(o.stack(same)) if same else tensor(True)

    def __ne__(self, other):
        same = self == other
        return not same if isinstance(same, bool) else o.logical_not(same)

    __hash__ = None

    # As values of functions and structures.

    @property
    def _type_spec(self):
        return type(self).Spec._of(self)

    def _to_components(self):
        return _leaves(self)

    def _from_components(self, parts):
        feed = iter(parts)
        return _rebuilt(self, feed)

    def _data_children(self):
        return [v for v in self._values().values() if _holds_tensors(v)]

    def _data_rebuild(self, made):
        return _data_rebuild(type(self), self._values(), made)

    def _signature_key(self):
        return type(self).__qualname__, str([v for v in _plain(self._values())])


def _leaves(value):
    """All tensors inside of a value, in the order of the fields."""
    if isinstance(value, ExtensionType):
        return [leaf for v in value._values().values() for leaf in _leaves(v)]
    if isinstance(value, dict):
        return [leaf for k in sorted(value) for leaf in _leaves(value[k])]
    if isinstance(value, tuple):
        return [leaf for v in value for leaf in _leaves(v)]
    if hasattr(value, "_to_components"):
        return value._to_components()
    return [value] if isinstance(value, (Tensor, Variable)) else []


def _plain(value):
    """What is no tensor."""
    if isinstance(value, ExtensionType):
        return _plain(value._values())
    if isinstance(value, dict):
        return [k if v == [] else (k, v) for k, v in ((k, _plain(value[k])) for k in sorted(value))]
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, (Tensor, Variable)):
        return []
    if hasattr(value, "_to_components"):
        return [np.ravel(getattr(value, "_splits", ())).tolist()]
    return repr(value)


def _rebuilt(value, feed):
    """The same with the next tensors."""
    if isinstance(value, ExtensionType):
        made = object.__new__(type(value))
        for key, inner in value._values().items():
            object.__setattr__(made, key, _rebuilt(inner, feed))
        return made
    if isinstance(value, dict):
        by_key = {k: _rebuilt(value[k], feed) for k in sorted(value)}
        return ImmutableDict((k, by_key[k]) for k in value)
    if isinstance(value, tuple):
        return tuple(_rebuilt(v, feed) for v in value)
    if hasattr(value, "_to_components"):
        return value._from_components([next(feed) for _ in value._to_components()])
    return next(feed) if isinstance(value, (Tensor, Variable)) else value


def _spec_value(value):
    """Tensors as their specifications."""
    if isinstance(value, dict):
        return ImmutableDict((k, _spec_value(v)) for k, v in value.items())
    if isinstance(value, tuple):
        return tuple(_spec_value(v) for v in value)
    if isinstance(value, (Tensor, Variable)) or hasattr(value, "_type_spec"):
        return type_spec_from_value(value)
    return value


def map_specs(function, value):
    """A specification's fields with other specifications inside."""
    if isinstance(value, ExtensionTypeSpec):
        return value._with({k: map_specs(function, v) for k, v in value._values.items()})
    if isinstance(value, dict):
        return ImmutableDict((k, map_specs(function, v)) for k, v in value.items())
    if isinstance(value, tuple):
        return tuple(map_specs(function, v) for v in value)
    return function(value) if isinstance(value, TypeSpec) else value


def _holds_tensors(value):
    if isinstance(value, (dict, tuple)):
        return any(_holds_tensors(v) for v in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, (Tensor, Variable, TypeSpec, ExtensionType)) or hasattr(value, "_to_components")


def _data_rebuild(kind, fields, made):
    """A value, or a specification where the parts are some: tf.data walks over both in the same way."""
    feed = iter(made)
    values = {k: next(feed) if _holds_tensors(v) else v for k, v in fields.items()}
    if any(isinstance(leaf, TypeSpec) for leaf in nest.flatten(list(values.values()))):
        return _make_spec(kind, values)
    one = object.__new__(kind)
    for key, value in values.items():
        object.__setattr__(one, key, value)
    return one


class ExtensionTypeSpec(TypeSpec):
    """X.Spec: the fields of X, specifications in the place of tensors."""

    __slots__ = ("_values",)
    name = None

    def __init__(self, *args, **kwargs):
        fields = self.value_type._fields()
        bound = inspect.Signature([inspect.Parameter(k, inspect.Parameter.POSITIONAL_OR_KEYWORD) for k in fields]).bind(*args, **kwargs)
        self._values = {k: convert(k, fields[k][0], v) for k, v in bound.arguments.items()}

    @classmethod
    def _of(cls, value):
        made = cls.__new__(cls)
        made._values = {k: _spec_value(v) for k, v in value._values().items()}
        return made

    def __setattr__(self, name, value):
        """Fields that a constructor of one's own sets."""
        if name == "_values":
            object.__setattr__(self, name, value)
        else:
            self._values[name] = value

    def _with(self, values):
        made = type(self).__new__(type(self))
        made._values = values
        return made

    def __getattr__(self, name):
        if not name.startswith("_") and name in self._values:
            return self._values[name]
        raise AttributeError(f"'{type(self).__qualname__}' object has no attribute '{name}'", name=name)

    def _data_children(self):
        return [v for v in self._values.values() if _holds_tensors(v)]

    def _data_rebuild(self, made):
        return _data_rebuild(self.value_type, self._values, made)

    def _parts(self):
        return (repr(self),)

    def _shape_of(self):
        return repr(self)

    def __reduce__(self):
        return _make_spec, (self.value_type, self._values)

    def _compatible(self, other):
        mine, theirs = nest.flatten(list(self._values.values())), nest.flatten(list(other._values.values()))
        return len(mine) == len(theirs) and all(
            a.is_compatible_with(b) if isinstance(a, TypeSpec) else a == b for a, b in zip(mine, theirs))

    def _example(self, example_of):
        made = object.__new__(self.value_type)

        def filled(value):
            if isinstance(value, dict):
                return ImmutableDict((k, filled(v)) for k, v in value.items())
            if isinstance(value, tuple):
                return tuple(filled(v) for v in value)
            return example_of(value)

        for key, value in self._values.items():
            object.__setattr__(made, key, filled(value))
        return made

    def __repr__(self):
        return f"{self.value_type.__name__}.Spec({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"


def _make_spec(kind, values):
    made = kind.Spec.__new__(kind.Spec)
    made._values = values
    return made


class BatchableExtensionType(ExtensionType):
    """Rows of an object are objects: tf.map_fn and tf.data take them apart and put them together."""


class ExtensionTypeBatchEncoder:
    """Batching goes leaf by leaf here."""
