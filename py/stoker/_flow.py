"""Control flow of recorded programs: branches and loops whose path depends on a tensor.

A branch becomes a graph of its own when the engine's cond can hold it; a branch that assigns variables, and one with
too many values, is computed on both sides and the right values are chosen. A loop over a known number of rows is
recorded row after row when it is short, and as a while loop of the engine else.
"""
import numpy as np

from stoker import _stoker
from stoker.tf import nest
from stoker.tf._base import NotTraceable, Tensor, Variable, dims, o, tensor

UNROLL = 64  # rows of a loop that are recorded one after the other


def is_symbolic(x):
    return _stoker.is_symbolic(x)


def is_tensor(x):
    return isinstance(x, (Tensor, Variable))


def constant(x, dtype):
    return tensor(x, dtype)


def zeros_like(x):
    x = tensor(x)
    return tensor(np.zeros(dims(x), x.dtype.as_numpy_dtype))


def cannot(reason):
    raise NotTraceable(reason)


def logical_not(x):
    return o.logical_not(x)


def logical_and(x, y):
    return o.logical_and(x, y)


def logical_or(x, y):
    return o.logical_or(x, y)


def maximum(x, y):
    return o.maximum(x, y)


def minimum(x, y):
    return o.minimum(x, y)


def cast(x, dtype):
    return o.cast(x, dtype)


def range(*args):
    from stoker.tf import _array

    return _array.range(*args)


def check(test, message):
    from stoker.tf import debugging

    debugging.Assert(test, [message])


# Branches: both are recorded, the values are chosen. Assignments inside are chosen, too.

def cond(pred, then, orelse, align):
    pred = tensor(pred)
    if dims(pred):
        raise ValueError(f"The condition of a branch must be a single value, got shape {tuple(dims(pred))}")
    if pred.dtype.name != "bool":
        pred = o.cast(pred, "bool")
    trace = _stoker.get_trace()
    before = _current_values(trace)
    first = then()
    after_then = _current_values(trace)
    for key, (variable, _) in after_then.items():  # the other branch starts where this one started
        variable.assign(before[key][1] if key in before else trace.start(variable))
    second = orelse()
    after_else = _current_values(trace)
    x, y, finish = align(first, second)
    chosen = [a if a is b else o.where(pred, a, b) for a, b in zip(x, y)]
    for key, (variable, value) in after_else.items():
        taken = after_then[key][1] if key in after_then else before[key][1] if key in before else trace.start(variable)
        variable.assign(o.where(pred, taken, value))
    return finish(chosen)


def _current_values(trace):
    """Variables that the trace has assigned, with the value each has now."""
    return {id(v): (v, v.value()) for v in trace.assigned}


# Loops.

def loop_kind(items):
    """None for Python's own iteration; tensors loop as part of the program."""
    if _stoker.get_trace() is None:
        return None
    if isinstance(items, Tensor):
        if not dims(items):
            raise TypeError("iterating over a scalar tensor")
        return "tensor"
    if hasattr(items, "element_spec") and hasattr(items, "__iter__"):
        cannot("it iterates over a dataset")
    return None


def first_item(items):
    return items[0]


def spec_after(run):
    """Run a body to see what it makes; what it records is never used."""
    return run()


def for_loop(items, test, body, values):
    count = dims(items)[0]
    if count > UNROLL and test is None:
        made = _scan(items, body, values)
        if made is not None:
            return made
    for n in _prange(count):
        if test is None:
            values = body(items[n], values)
            continue
        going = test(values)
        if is_symbolic(going):
            after = body(items[n], values)
            values = [a if a is b else o.where(going, a, b) for a, b in zip(after, values)]
        elif going:
            values = body(items[n], values)
        else:
            break
    return values


def _prange(n):
    import builtins

    return builtins.range(n)


def _scan(items, body, values):
    """The engine's scan over the rows; None when it cannot hold the body."""
    if not hasattr(_stoker, "scan"):
        return None
    return _stoker.scan(lambda item, *state: body(item, list(state)), items, values)


def while_loop(test, body, values):
    if not hasattr(_stoker, "while_loop"):
        cannot("a while loop depends on a tensor")
    return list(_stoker.while_loop(lambda *v: test(list(v)), lambda *v: body(list(v)), values))


def map_rows(fn, arrays):
    rows = [fn(*[a[n] for a in arrays]) for n in _prange(dims(arrays[0])[0])]
    return nest.map_structure(lambda *column: o.stack([tensor(c) for c in column]), *rows)


