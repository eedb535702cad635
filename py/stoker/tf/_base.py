"""What the modules of stoker.tf build on: the C operations by name, and the door out of the engine."""
import contextlib

import numpy as np

from stoker import _host_books, _stoker
from stoker.tf import errors

Tensor, Variable, DType, TensorShape = _stoker.Tensor, _stoker.Variable, _stoker.DType, _stoker.TensorShape


_THIN = ("where", "divide", "pad", "split", "gather", "one_hot", "sort", "argsort", "top_k", "concat", "stack", "cast",
         "einsum", "transpose", "squeeze", "expand_dims", "roll")


class _Operations:
    """o.reshape is the C callable of that name, or the thin function that has TensorFlow's arguments."""

    def __getattr__(self, name):
        if name in _THIN:
            from stoker.tf import _thin

            value = getattr(_thin, name)
        elif name in _stoker.ops:
            value = _stoker.ops[name]
        else:
            raise AttributeError(f"the extension has no operation {name}")
        setattr(self, name, value)
        return value


o = _Operations()
float32, float64, float16 = DType("float32"), DType("float64"), DType("float16")
int32, int64, uint8, bool_, string = DType("int32"), DType("int64"), DType("uint8"), DType("bool"), DType("string")


is_symbolic = _stoker.is_symbolic


class NotTraceable(Exception):
    """Something that no program can hold: the function that does it runs eagerly, and the profile says why."""


class ValueNeeded(NotTraceable, errors.OperatorNotAllowedInGraphError):
    """Asked for the value of something that a program will compute: the function runs eagerly then."""


class MakesVariable(NotTraceable):
    """A variable is made of a value that a program will compute: only a run without a program can make it."""


def value_of_variable_is_traced():
    raise MakesVariable("a variable is made of values that the function computes")


def as_type_of(first, value):
    """A further operand: arrays and numbers take the type of the first one, tensors keep theirs."""
    return tensor(value) if isinstance(value, (Tensor, Variable)) or hasattr(value, "__tf_tensor__") else tensor(value, first.dtype)


def not_traceable(reason):
    raise NotTraceable(reason)


python_calls = 0  # of tf.py_function and tf.numpy_function so far


def note_python_call(name):
    """A function of tf.data that calls Python cannot be replayed by workers: it runs under the lock, element by element."""
    global python_calls
    python_calls += 1
    if recording():
        import sys

        functions = sys.modules.get("stoker.tf.data._function")
        if functions is not None and functions.recorder() is not None:
            not_traceable(f"it calls Python code with tf.{name}")


def recording():
    """Is a program being recorded on this thread?"""
    return _stoker.get_trace() is not None


@contextlib.contextmanager
def eager_scope():
    """Out of every recording for a while."""
    before = _stoker.swap_trace(None)
    try:
        yield
    finally:
        _stoker.swap_trace(before)


def tensor(x, dtype=None, preferred=None):
    """Anything as a tensor; composites of Python classes pass through __tf_tensor__."""
    return _stoker.convert_to_tensor(x, dtype, preferred)


def dims(x):
    """The sizes of a tensor as a list of int; all shapes are concrete."""
    return x.shape.as_list()


def rank(x):
    return x.shape.rank


def axis_of(axis, rank_, op="Axis"):
    """A non-negative axis."""
    axis = int(axis)
    if not -rank_ <= axis < rank_:
        errors.invalid(f"Expected dimension in the range [{-rank_}, {rank_}), but got {axis}", op)
    return axis % rank_ if rank_ else 0


def static(x, what="a value"):
    """The Python value of something that must be known now."""
    if is_symbolic(x):
        raise ValueNeeded(
            f"{what} depends on a value that is only known when the function runs; Stoker's programs need it when they "
            "are made")
    return np.asarray(x)


def host(name, function, inputs, dtypes, shapes=None):
    """Run NumPy code on tensors: at once, or as a host operation of the program that is being recorded.

    function(*arrays) gives one array or a tuple; dtypes (and shapes, when a program is recorded) say of what kind.
    """
    inputs = [tensor(x) for x in inputs]
    single = not isinstance(dtypes, (list, tuple))
    kinds = [dtypes] if single else list(dtypes)
    if any(is_symbolic(x) for x in inputs):
        if shapes is None:
            not_traceable(f"{name} has results whose shape depends on values")
        places = [shapes] if single else list(shapes)
        function = _host_books.watch(function, name, _host_books.caller()) if _host_books.on else function
        results = _stoker.host_call(function, inputs, kinds, [list(s) for s in places], name, False)
        return results[0] if single else results
    made = function(*[x.numpy() for x in inputs])
    made = [made] if single else list(made)
    results = [tensor(np.asarray(m) if k != string else m, k) for m, k in zip(made, kinds)]
    return results[0] if single else results


def strings_of(x):
    """An object array of bytes from a string tensor."""
    x = tensor(x, string)
    return np.asarray(x.numpy(), dtype=object)
