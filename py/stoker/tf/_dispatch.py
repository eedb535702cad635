"""tf.experimental.dispatch_for_*: functions of TensorFlow with another meaning for types of one's own.

A function that somebody registers for is put behind a wrapper in every public module that has it. Programs that register nothing pay nothing.
"""
import functools
import inspect
import sys
import typing

import numpy as np

from stoker.tf import _rooms
from stoker.tf._base import Tensor, Variable

_UNARY = {"": "abs acos acosh asin asinh atan atanh cast cos cosh exp floor identity logical_not negative ones_like round saturate_cast sigmoid sign "
              "sin sinh sqrt square stop_gradient tan tanh zeros_like clip_by_value ensure_shape",
          "math": "abs acos acosh asin asinh atan atanh ceil cos cosh digamma erf erfc erfinv exp expm1 floor is_finite is_inf is_nan lgamma log "
                  "log1p log_sigmoid logical_not negative reciprocal reciprocal_no_nan rint round rsqrt sigmoid sign sin sinh softplus sqrt "
                  "square tan tanh ndtri real imag conj angle",
          "nn": "elu gelu leaky_relu relu relu6 selu sigmoid silu softplus softsign tanh dropout",
          "strings": "as_string lower upper strip length to_number"}
_BINARY = {"": "add atan2 divide equal greater greater_equal less less_equal logical_and logical_or maximum minimum multiply not_equal pow subtract "
               "truediv",
           "math": "add atan2 divide divide_no_nan equal floordiv floormod greater greater_equal less less_equal logical_and logical_or "
                   "logical_xor maximum minimum multiply multiply_no_nan not_equal pow squared_difference subtract truediv xdivy xlog1py xlogy",
           "bitwise": "bitwise_and bitwise_or bitwise_xor left_shift right_shift"}

_APIS = {}    # id of the function -> _Api
_HANDLERS = []  # (kind, types, handler) of elementwise functions


class _Api:
    """One function behind its wrapper."""

    def __init__(self, function, kind=None):
        self.function, self.kind, self.targets = function, kind, []
        try:
            self.signature = inspect.signature(function)
        except (TypeError, ValueError):
            self.signature = None

        @functools.wraps(function, updated=())
        def wrapper(*args, **kwargs):
            return self(args, kwargs)

        self.wrapper = wrapper
        wrapper.__stoker_api__ = self

    def __call__(self, args, kwargs):
        for wanted, target in self.targets:
            if self._fits(wanted, args, kwargs):
                return target(*args, **kwargs)
        if self.kind is not None:
            count = 1 if self.kind == "unary" else 2
            operands, rest = self._operands(count, args, kwargs)
            for kind, types, handler in reversed(_HANDLERS):
                if kind == self.kind and len(operands) == count and all(matches(t, v) for t, v in zip(types, operands)):
                    def bound(*values, _rest=rest):
                        return self.function(*values, *_rest[0], **_rest[1])

                    return handler(bound, *operands)
        return self.function(*args, **kwargs)

    def _operands(self, count, args, kwargs):
        """The first arguments, by position or by whatever name they have, and the others."""
        rest, named = dict(kwargs), []
        for name in ("x", "y", "a", "b", "input", "features", "values", "tensor", "t"):
            if len(args) + len(named) < count and name in rest:
                named.append(rest.pop(name))
        return list(args[:count]) + named, (args[count:], rest)

    def _fits(self, wanted, args, kwargs):
        if self.signature is None or "arguments" in self.signature.parameters:
            given = {**dict(enumerate(args)), **kwargs}
        else:
            try:
                given = self.signature.bind(*args, **kwargs).arguments
            except TypeError:
                return False
            given = {**dict(enumerate(args)), **given}
        return (all(place in given and matches(kind, given[place]) for place, kind in wanted.items())
                and not all(_native(given[place]) for place in wanted))


def _native(value):
    """Tensors, numbers, texts and lists of them: what the function itself takes, even where an annotation allows it as well."""
    if isinstance(value, (list, tuple)):
        return all(map(_native, value))
    return value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.ndarray, np.generic, Tensor, Variable))


def matches(annotation, value):
    """Is a value of an annotated type? Lists must hold nothing else."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is typing.Any:
        return True
    if origin is typing.Union or type(annotation).__name__ == "UnionType":
        return any(matches(a, value) for a in inner)
    if origin in (list, tuple, typing.Sequence) or (origin is not None and origin.__name__ in ("Sequence", "list", "tuple")):
        items = inner[:1] if inner[1:] in ((), (Ellipsis,)) else inner
        return isinstance(value, (list, tuple)) and len(value) > 0 and all(matches(items[0], v) for v in value)
    if origin is not None:
        return isinstance(value, origin)
    return annotation is not None and isinstance(annotation, type) and isinstance(value, annotation)


def _places(function):
    """(module, name) of every public name of a function."""
    title = getattr(function, "__name__", "")
    for room, entries in _rooms._TABLE.items():
        for name, (_, other) in entries.items():
            if title in (name, other):
                module = _rooms.module(room) if room else sys.modules["stoker.tf"]
                if getattr(module, name, None) is function:
                    yield module, name
    for module in [m for n, m in sys.modules.items() if n.startswith("stoker.tf.") and "._" not in n]:
        if title and vars(module).get(title) is function:
            yield module, title


def _behind(function, kind=None):
    """The wrapper of a function; put in its place when it is new."""
    api = getattr(function, "__stoker_api__", None) or _APIS.get(id(function))
    if api is None:
        api = _APIS[id(function)] = _Api(function, kind)
        for module, name in list(_places(function)):
            setattr(module, name, api.wrapper)
    api.kind = kind or api.kind
    return api


def dispatch_for_api(api, *signatures):
    if not callable(api):
        raise TypeError(f"Expected an API to be a function, got {api!r}")

    def decorator(target):
        entry = _behind(api)
        wanted = [dict(s) for s in signatures]
        if not wanted:
            hints = typing.get_type_hints(target)
            wanted = [{k: v for k, v in hints.items() if k != "return"}]
        for one in wanted:
            if not one:
                raise ValueError("must specify at least one type annotation or signature")
            unknown = [k for k in one if entry.signature is not None and isinstance(k, str) and k not in entry.signature.parameters
                       and "arguments" not in entry.signature.parameters]
            if unknown:
                raise ValueError(f"signature includes annotation for unknown parameter {unknown[0]!r}.")
            entry.targets.insert(0, (one, target))
        return target

    return decorator


def _elementwise(kind, table, types):
    def decorator(handler):
        for room, names in table.items():
            for name in names.split():
                try:
                    function = _rooms.find(room, name) if room not in ("strings",) else getattr(_rooms.module(room), name)
                except AttributeError:
                    continue
                _behind(function, kind)
        _HANDLERS.append((kind, types, handler))
        return handler

    return decorator


def dispatch_for_unary_elementwise_apis(x_type):
    return _elementwise("unary", _UNARY, (x_type,))


def dispatch_for_binary_elementwise_apis(x_type, y_type):
    return _elementwise("binary", _BINARY, (x_type, y_type))


def dispatch_for_binary_elementwise_assert_apis(x_type, y_type):
    names = "assert_equal assert_none_equal assert_greater assert_greater_equal assert_less assert_less_equal"
    return _elementwise("binary", {"debugging": names}, (x_type, y_type))


def unregister_dispatch_for(dispatch_target):
    found = False
    for entry in _APIS.values():
        kept = [t for t in entry.targets if t[1] is not dispatch_target]
        found |= len(kept) != len(entry.targets)
        entry.targets[:] = kept
    kept = [h for h in _HANDLERS if h[2] is not dispatch_target]
    found |= len(kept) != len(_HANDLERS)
    _HANDLERS[:] = kept
    if not found:
        raise ValueError(f"Function {dispatch_target} was not registered using a `@dispatch_for` decorator.")
