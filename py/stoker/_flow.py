"""Control flow of recorded programs: branches and loops whose path depends on a tensor.

A body is recorded as a trace of its own inside of the one around it; what it uses from outside it captures, variables
that it assigns come out as further results. Short loops over rows are recorded row after row.
"""
import contextlib

import numpy as np

from stoker import _stoker
from stoker.tf import _array, nest
from stoker.tf._base import NotTraceable, Tensor, Variable, dims, o, tensor

UNROLL = 8  # rows of a loop that are recorded one after the other


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


# Bodies.

@contextlib.contextmanager
def _inside(trace):
    before = _stoker.swap_trace(trace)
    try:
        yield
    finally:
        _stoker.swap_trace(before)


def _record(run, inputs=(), captures=()):
    """(trace, what run gave): run is called with values like inputs; captures come first among what is captured."""
    body = _stoker.Trace(_stoker.get_trace())
    with _inside(body):
        symbols = [body.input(t.dtype, dims(t)) for t in inputs]
        for c in captures:
            body.capture(c)
        _stoker.tell("enter", body, symbols)
        try:
            made = run(*symbols)
        finally:
            _stoker.tell("leave", body)
    return body, made


def _values(body, outputs, changed=()):
    """The outputs of a body as its own tensors, then what the variables are at its end."""
    with _inside(body):
        made = [body.capture(tensor(x)) for x in outputs]
        return made + [body.capture(tensor(v)) for v in changed]


def _take(body, other):
    for c in other.captures:
        body.capture(c)


def _assign(changed, results):
    for v, value in zip(changed, results):
        v.assign(value)


def cond(pred, then, orelse, align):
    pred = tensor(pred)
    if dims(pred):
        raise ValueError(f"The condition of a branch must be a single value, got shape {tuple(dims(pred))}")
    if pred.dtype.name != "bool":
        pred = o.cast(pred, "bool")
    a, first = _record(then)
    b, second = _record(orelse, captures=a.captures)
    x, y, finish = align(first, second)
    changed = list({id(v): v for v in a.assigned + b.assigned}.values())
    if not x and not changed:
        return finish([])
    _take(a, b)
    x = _values(a, x, changed)
    _take(b, a)
    y = _values(b, y, changed)
    _take(a, b)
    results = _stoker.flow_cond(pred, a, x, b, y)
    _stoker.tell("cond", pred, a, x, b, y, changed, results)
    _assign(changed, results[len(x) - len(changed):])
    return finish(results)


# Loops.

def loop_kind(items):
    """None for Python's own iteration; tensors loop as part of the program."""
    if _stoker.get_trace() is None:
        return None
    if isinstance(items, _array.SymbolicRange):
        return "range"
    if isinstance(items, Tensor):
        if not dims(items):
            raise TypeError("iterating over a scalar tensor")
        return "tensor"
    if hasattr(items, "element_spec") and hasattr(items, "__iter__"):
        cannot("it iterates over a dataset")
    return None


def first_item(items):
    return items.start if isinstance(items, _array.SymbolicRange) else items[0]


def places(items):
    """How many places an array needs that is written to at each item; None: only the running program knows."""
    if isinstance(items, _array.SymbolicRange) or is_symbolic(items) or not items.dtype.is_integer or len(dims(items)) != 1:
        return None
    return int(np.max(items.numpy(), initial=-1)) + 1


def spec_after(run, inputs=()):
    """Run a body to see what it makes of values like inputs; what it records is never used."""
    return _record(run, inputs)[1]


def _range_loop(items, test, body, values):
    def going(state):
        up = o.logical_and(o.greater(items.delta, zero), o.less(state[0], items.limit))
        down = o.logical_and(o.less(items.delta, zero), o.greater(state[0], items.limit))
        more = o.logical_or(up, down)
        return more if test is None else o.logical_and(more, tensor(test(state[1:])))

    def trip(state):
        return [state[0] + items.delta] + list(body(state[0], state[1:]))

    zero = tensor(0, items.dtype)
    return while_loop(going, trip, [items.start] + list(values))[1:]


def for_loop(items, test, body, values):
    if isinstance(items, _array.SymbolicRange):
        return _range_loop(items, test, body, values)
    count = dims(items)[0]
    if count > UNROLL and not values and test is None:  # nothing but effects: a loop has to carry something
        scan(lambda row, state: (body(row[0], []) or state, []), [items], [tensor(0)])
        return []
    if count > UNROLL:
        if test is None:
            return scan(lambda row, state: (body(row[0], state), []), [items], values)[0]
        return _loop_with_break(items, count, test, body, values)
    for n in _prange(count):
        if test is None:
            values = body(items[n], values)
            continue
        going = test(values)
        if is_symbolic(going):
            values = _once(going, items[n], body, values)
        elif going:
            values = body(items[n], values)
        else:
            break
    return values


def _once(going, item, body, values):
    """A trip that may be left out."""
    def align(x, y):
        return list(x), list(y), lambda outputs: outputs

    return cond(going, lambda: body(item, list(values)), lambda: list(values), align)


def _loop_with_break(items, count, test, body, values):
    def going(state):
        return o.logical_and(o.less(state[0], tensor(count)), tensor(test(state[1:])))

    def trip(state):
        row = o.gather(items, state[0], axis=0)
        return [state[0] + 1] + list(body(row, state[1:]))

    return while_loop(going, trip, [tensor(0)] + list(values), count)[1:]


def _prange(n):
    import builtins

    return builtins.range(n)


def scan(body, rows, start, reverse=False):
    """body([row of each], state) -> (state, results); gives (last state, results stacked)."""
    rows, start = [tensor(r) for r in rows], [tensor(v) for v in start]
    n, m = len(start), len(rows)

    def record(changed):
        carried = start + [tensor(v) for v in changed]
        ones = [r[0] for r in rows]

        def run(*s):
            _assign(changed, s[n:])
            return body(list(s[len(carried):]), list(s[:n]))

        trace, (state, results) = _record(run, carried + ones)
        return trace, carried, list(state), list(results)

    changed = []
    trace, carried, state, results = record(changed)
    if trace.assigned:
        changed = list(trace.assigned)
        trace, carried, state, results = record(changed)
    made = _values(trace, state) + _values(trace, changed) + _values(trace, results)
    if not m:
        raise ValueError("scan needs something to scan")
    out = _stoker.flow_scan(trace, made, carried, rows, 0, reverse)
    _stoker.tell("scan", trace, made, carried, rows, changed, reverse, out)
    _assign(changed, out[n:len(carried)])
    return out[:n], out[len(carried):]


def while_loop(test, body, values, most=0):
    values = [tensor(v) for v in values]
    n = len(values)

    def record(changed):
        start = values + [tensor(v) for v in changed]

        def run_test(*s):
            _assign(changed, s[n:])
            return test(list(s[:n]))

        def run_body(*s):
            _assign(changed, s[n:])
            return list(body(list(s[:n])))

        t, going = _record(run_test, start)
        b, made = _record(run_body, start, t.captures)
        return start, t, going, b, made

    changed = []
    start, t, going, b, made = record(changed)
    if b.assigned:
        changed = list(b.assigned)
        start, t, going, b, made = record(changed)
    _take(t, b)
    going = _values(t, [going])
    _take(b, t)
    made = _values(b, made, changed)
    _take(t, b)
    results = _stoker.flow_while(t, going, b, made, start, most)
    _stoker.tell("while", t, going, b, made, start, changed, most, results)
    _assign(changed, results[n:])
    return results[:n]


def map_rows(fn, arrays):
    structure = []

    def body(rows, state):
        made = fn(*rows)
        structure[:] = [made]
        return [], [tensor(x) for x in nest.flatten(made)]

    _, stacked = scan(body, arrays, [])
    return nest.pack_sequence_as(structure[0], stacked)
