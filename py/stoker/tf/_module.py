"""tf.Module, tf.TensorArray, tf.print and other objects that are plain Python."""
import contextlib
import logging
import sys
import time

import numpy as np

from stoker import _stoker
from stoker.tf import errors, nest
from stoker.tf._base import Tensor, TensorShape, Variable, dims, is_symbolic, not_traceable, o, recording, static, tensor
from stoker.tf._specs import as_dtype


class Module:
    """Finds the variables of the objects that it holds."""

    def __init__(self, name=None):
        if name is None:
            text = type(self).__name__
            name = "".join(("_" if n and c.isupper() and not text[n - 1].isupper() else "") + c.lower()
                           for n, c in enumerate(text))
        elif not str(name).isidentifier():
            raise ValueError(f"{name!r} is not a valid module name. Module names must be valid Python identifiers (e.g. a "
                             "valid class name).")
        self._name = name

    name = property(lambda self: self._name)

    def __setattr__(self, name, value):
        if "_waiting" in self.__dict__ and not name.startswith("_waiting"):  # a checkpoint was restored before this part was there
            from stoker.tf._trackables import arrived

            value = arrived(self, name, value)
        object.__setattr__(self, name, value)

    @property
    def name_scope(self):
        from stoker.tf._control import name_scope

        return name_scope(self._name)

    @classmethod
    def with_name_scope(cls, method):
        return method

    def _flatten(self, recursive=True, predicate=None, attribute_traversal_key=None, with_path=False,
                 expand_composites=False):
        seen, found = set(), []
        _walk(self, predicate or (lambda _: True), recursive, seen, found, ())
        return [(p, v) for p, v in found] if with_path else [v for _, v in found]

    @property
    def variables(self):
        return tuple(self._flatten(predicate=lambda v: isinstance(v, Variable) or _is_keras_variable(v)))

    @property
    def trainable_variables(self):
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self):
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self):
        return tuple(m for m in self._flatten(predicate=lambda v: isinstance(v, Module) or hasattr(
            v, "trainable_variables")) if m is not self)


Module.__module__ = "tensorflow.python.module.module"


def _is_keras_variable(x):
    return hasattr(x, "trainable") and hasattr(x, "_value") and hasattr(x, "assign")


def _walk(owner, predicate, recursive, seen, found, path):
    """Attributes in order of their names, lists and dicts through; every object once."""
    if id(owner) in seen:
        return
    seen.add(id(owner))
    attributes = {k: v for k, v in getattr(owner, "__dict__", {}).items() if k not in ("_obj_reference_counts_dict",)}
    for key in sorted(attributes, key=str):
        for where, leaf in _leaves(attributes[key], (key,)):
            if id(leaf) in seen and not isinstance(leaf, (int, float, str)):
                continue
            if predicate(leaf):
                found.append((path + where, leaf))
                if isinstance(leaf, Variable) or _is_keras_variable(leaf):
                    seen.add(id(leaf))
            inner = isinstance(leaf, Module) or (hasattr(leaf, "trainable_variables") and hasattr(leaf, "__dict__"))
            if recursive and inner:
                _walk(leaf, predicate, recursive, seen, found, path + where)


def _leaves(value, path):
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _leaves(value[key], path + (key,))
    elif isinstance(value, (list, tuple)):
        for n, item in enumerate(value):
            yield from _leaves(item, path + (n,))
    else:
        yield path, value


def _stacked(items, zero):
    """Items of a TensorArray; where all are still zero this is a constant."""
    if any(i is not zero for i in items):
        return o.stack(items)
    return tensor(np.zeros([len(items)] + dims(zero), zero.dtype.as_numpy_dtype))


class TensorArray:
    """A list of tensors that a loop writes to. Writing gives the array to go on with, as in TensorFlow."""

    def __init__(self, dtype, size=None, dynamic_size=None, clear_after_read=None, tensor_array_name=None, handle=None,
                 flow=None, infer_shape=True, element_shape=None, colocate_with_first_write_call=True, name=None):
        self._dtype = as_dtype(dtype)
        self._dynamic = bool(dynamic_size)
        self._element_shape = TensorShape(element_shape)
        count = 0 if size is None else int(static(size, "the size of a TensorArray"))
        self._items, self._dense = [None] * count, None
        self._clear = clear_after_read is None or clear_after_read
        self._grows_at = None  # in a loop of a program: the item of the trip, the only place that is known to be new

    dtype = property(lambda self: self._dtype)
    dynamic_size = property(lambda self: self._dynamic)
    element_shape = property(lambda self: self._element_shape)
    flow = property(lambda self: tensor(0.0))
    handle = property(lambda self: None)

    def _copy(self):
        made = TensorArray.__new__(TensorArray)
        made.__dict__.update(self.__dict__)
        made._items = list(self._items)
        return made

    def identity(self):
        return self._copy()

    def grad(self, source, flow=None, name=None):
        return self._copy()

    def _index(self, index):
        if is_symbolic(index):
            return None
        return int(static(index))

    def write(self, index, value, name=None):
        value = tensor(value, self._dtype)
        n = self._index(index)
        if n is None:
            return self._write_symbolic(index, value)
        if n < 0 or (n >= len(self._items) and not self._dynamic):
            from stoker.tf import errors

            errors.raise_(11, f"Tried to write to index {n} but array is not resizeable and size is: {len(self._items)}",
                          "TensorArrayWriteV3")
        made = self._copy()
        if made._dense is not None:
            made._dense = o.tensor_scatter_nd_update(made._dense, tensor(np.array([[n]])), o.expand_dims(value, 0))
            return made
        made._items += [None] * (n + 1 - len(made._items))
        made._items[n] = value
        return made

    def for_loop(self, after, places):
        """The array as a loop of a program starts with it: dense, of elements like those of `after`, one trip later."""
        if self._dense is not None:
            return self
        if self._dynamic and places is None:
            not_traceable("a TensorArray grows in a loop whose number of trips is not known")
        made, known = self._copy(), [i for i in after._items if i is not None]
        if after._dense is None and not known:
            made._items += [None] * (max(places or 0, len(made._items)) - len(made._items))
            return made
        sizes = dims(known[0]) if after._dense is None else dims(after._dense)[1:]
        zero = tensor(np.zeros(sizes, self._dtype.as_numpy_dtype))
        count = max(len(self._items), places) if self._dynamic else len(self._items)
        items = [zero if i is None else i for i in self._items] + [zero] * (count - len(self._items))
        made._dense = _stacked(items, zero)
        return made

    def in_loop(self, dense, item):
        """This array in a trip of a loop, with what it holds then."""
        made = self._copy()
        made._dense, made._grows_at = dense, item
        return made

    def _write_symbolic(self, index, value):
        """Inside of a loop of the program the array is one dense tensor."""
        if self._dynamic and (self._grows_at is None or index is not self._grows_at):
            not_traceable("a TensorArray grows at a place that only the running program knows")
        made = self._copy()
        if made._dense is None:
            zero = tensor(np.zeros(dims(value), value.dtype.as_numpy_dtype))
            made._dense = _stacked([zero if i is None else i for i in self._items], zero)
        place = o.reshape(o.cast(index, "int64"), [1, 1])
        made._dense = o.tensor_scatter_nd_update(made._dense, place, o.expand_dims(value, 0))
        return made

    def read(self, index, name=None):
        if self._dense is not None or is_symbolic(index):
            return o.gather(self.stack(), index)
        n = int(static(index))
        if not 0 <= n < len(self._items):
            from stoker.tf import errors

            errors.raise_(11, f"Tried to read from index {n} but array size is: {len(self._items)}", "TensorArrayReadV3")
        if self._items[n] is None:
            from stoker.tf import errors

            errors.invalid(f"Could not read index {n} twice because it was cleared after a previous read (perhaps try "
                           "setting clear_after_read = false?)", "TensorArrayReadV3")
        return self._items[n]

    def stack(self, name=None):
        if self._dense is not None:
            return self._dense
        known = [i for i in self._items if i is not None]
        if not known:
            shape = [len(self._items)] + (self._element_shape.as_list() if self._element_shape.rank is not None else [])
            return tensor(np.zeros([0 if d is None else d for d in shape], self._dtype.as_numpy_dtype))
        zero = tensor(np.zeros(dims(known[0]), self._dtype.as_numpy_dtype))
        return o.stack([zero if i is None else i for i in self._items])

    def concat(self, name=None):
        if self._dense is not None:
            return o.reshape(self._dense, [-1] + dims(self._dense)[2:])
        return o.concat([i for i in self._items if i is not None], 0)

    def gather(self, indices, name=None):
        return o.gather(self.stack(), indices)

    def unstack(self, value, name=None):
        made = self._copy()
        made._items, made._dense = list(o.unstack(tensor(value, self._dtype))), None
        return made

    def split(self, value, lengths, name=None):
        made = self._copy()
        made._items = o.split(tensor(value, self._dtype), static(lengths))
        return made

    def scatter(self, indices, value, name=None):
        made = self
        for n, row in zip(np.ravel(static(indices)), o.unstack(tensor(value, self._dtype))):
            made = made.write(int(n), row)
        return made

    def size(self, name=None):
        if self._dynamic and self._grows_at is not None and recording():
            not_traceable("it asks for the size of a TensorArray that grows")
        return tensor(len(self._items) if self._dense is None else dims(self._dense)[0], "int32")

    def close(self, name=None):
        self._items = []

    # One value of a loop's state once it is dense.

    def _to_components(self):
        return [self._dense if self._dense is not None else self.stack()]

    def _signature_key(self):
        return ("TensorArray",)

    def _from_components(self, parts):
        made = self._copy()
        made._dense = parts[0]
        return made


TensorArray.__module__ = "tensorflow.python.ops.tensor_array_ops"


def tf_print(*inputs, output_stream=None, summarize=3, sep=" ", end="\n", name=None, **kwargs):
    """tf.print: to stderr by default; inside of a program with the values of that run."""
    if recording() or any(is_symbolic(x) for x in nest.flatten(list(inputs))):
        return _print_in_program(inputs, output_stream, summarize, sep, end)
    _print_now(inputs, output_stream, summarize, sep, end)
    return None


def _print_now(inputs, stream, summarize, sep, end):
    from stoker.tf.strings import summary

    def text(x):
        if isinstance(x, (Tensor, Variable)):
            return summary(x.numpy(), summarize)
        if isinstance(x, (list, tuple)) and any(isinstance(v, (Tensor, Variable)) for v in nest.flatten(x)):
            return "[" + ", ".join(text(v) for v in x) + "]"
        if isinstance(x, dict):
            return "{" + ", ".join(f"{k!r}: {text(v)}" for k, v in x.items()) + "}"
        if isinstance(x, np.ndarray):
            return summary(x, summarize)
        return str(x)

    line = sep.join(text(x) for x in inputs) + end
    if isinstance(stream, str) and stream.startswith("file://"):
        with open(stream[7:], "a") as file:
            file.write(line)
        return
    target = {None: sys.stderr, sys.stdout: sys.stdout, "stdout": sys.stdout}.get(stream, stream or sys.stderr)
    target = target if hasattr(target, "write") else sys.stderr
    target.write(line)
    target.flush()


def _print_in_program(inputs, stream, summarize, sep, end):
    flat = nest.flatten(list(inputs))
    places = [n for n, x in enumerate(flat) if isinstance(x, Tensor)]

    def run(*arrays):
        values = list(flat)
        for n, a in zip(places, arrays):
            values[n] = np.asarray(a)
        _print_now(nest.pack_sequence_as(list(inputs), values), stream, summarize, sep, end)
        return ()

    if all(n in places or isinstance(x, (str, int, float, bool, type(None))) for n, x in enumerate(flat)) and len(flat) == len(inputs):
        known = stream if stream is None or isinstance(stream, str) else "stdout" if stream is sys.stdout else None
        run.saved = ("print", [None if n in places else x for n, x in enumerate(flat)], known, summarize, sep, end)
    _stoker.host_call(run, [flat[n] for n in places], [], [], "PrintV2", True)


def timestamp(name=None):
    return tensor(time.time(), "float64")


def get_logger():
    return logging.getLogger("tensorflow")


def is_tensor(x):
    if isinstance(x, (Tensor, Variable)):
        return True
    return hasattr(x, "row_splits") or hasattr(x, "dense_shape") or hasattr(x, "_im") or (hasattr(x, "_value") and hasattr(x, "__tf_tensor__"))


def is_symbolic_tensor(x):
    return is_symbolic(x)


def convert_to_tensor(value, dtype=None, dtype_hint=None, name=None):
    if isinstance(value, Tensor) and dtype is not None and value.dtype != as_dtype(dtype):
        raise ValueError(f"Tensor conversion requested dtype {as_dtype(dtype).name} for Tensor with dtype "
                         f"{value.dtype.name}: {value!r}")
    try:
        return tensor(value, dtype, dtype_hint)
    except (TypeError, ValueError, errors.UnimplementedError):
        from stoker.tf import _complex

        made = _complex.from_value(value, dtype)
        if made is None:
            raise
        return made


def broadcast_static_shape(shape_x, shape_y):
    return TensorShape(list(np.broadcast_shapes(tuple(TensorShape(shape_x).as_list()), tuple(TensorShape(shape_y).as_list()))))


def broadcast_dynamic_shape(shape_x, shape_y):
    return tensor(np.array(np.broadcast_shapes(tuple(static(shape_x)), tuple(static(shape_y))), np.int32))


class Variable_aggregation:
    NONE, SUM, MEAN, ONLY_FIRST_REPLICA = "none", "sum", "mean", "only_first_replica"


class VariableSynchronization:
    AUTO, NONE, ON_WRITE, ON_READ = "auto", "none", "on_write", "on_read"


@contextlib.contextmanager
def variable_creator_scope(variable_creator):
    yield


# Initializers under their old names.

def _initializer(draw):
    class Initializer:
        def __init__(self, *args, **kwargs):
            self._args, self._kwargs = args, kwargs

        def __call__(self, shape, dtype="float32", **kwargs):
            return draw(shape, dtype, *self._args, **self._kwargs)

        def get_config(self):
            return dict(self._kwargs)

        @classmethod
        def from_config(cls, config):
            return cls(**config)

    return Initializer


def _draw_normal(shape, dtype, mean=0.0, stddev=0.05, seed=None):
    from stoker.tf import random

    return random.normal(shape, mean, stddev, dtype, seed)


def _draw_uniform(shape, dtype, minval=-0.05, maxval=0.05, seed=None):
    from stoker.tf import random

    return random.uniform(shape, minval, maxval, dtype, seed)


def _draw_constant(shape, dtype, value=0):
    from stoker.tf import _thin

    return _thin.constant(value, dtype, shape)


random_normal_initializer = _initializer(_draw_normal)
random_uniform_initializer = _initializer(_draw_uniform)
constant_initializer = _initializer(_draw_constant)
zeros_initializer = _initializer(lambda shape, dtype: _draw_constant(shape, dtype, 0))
ones_initializer = _initializer(lambda shape, dtype: _draw_constant(shape, dtype, 1))
