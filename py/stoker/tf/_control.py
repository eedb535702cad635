"""tf.cond, tf.while_loop, tf.map_fn, tf.scan and kin, py_function, control dependencies."""
import contextlib
import functools

import numpy as np

from stoker import _host_books, _stoker
from stoker.tf import _base, nest
from stoker.tf._base import dims, is_symbolic, o, tensor


def cond(pred, true_fn=None, false_fn=None, name=None):
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("tf.cond: 'true_fn' and 'false_fn' must be callable.")
    if not is_symbolic(pred):
        return true_fn() if bool(pred) else false_fn()
    from stoker import _autograph_ops, _flow

    align = _autograph_ops._Branches(("result",))
    (value,) = _flow.cond(pred, lambda: (true_fn(),), lambda: (false_fn(),), align)
    return value


smart_cond = cond


def case(pred_fn_pairs, default=None, exclusive=False, strict=False, name="case"):
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    if default is None:
        default = pairs.pop()[1]
    result = default
    for pred, function in reversed(pairs):
        result = (lambda p=pred, f=function, rest=result: cond(p, f, rest))
    return result()


def switch_case(branch_index, branch_fns, default=None, name="switch_case"):
    if isinstance(branch_fns, dict):
        branches = sorted(branch_fns.items())
    elif branch_fns and isinstance(branch_fns[0], (tuple, list)):
        branches = sorted((int(k), f) for k, f in branch_fns)
    else:
        branches = list(enumerate(branch_fns))
    default = branches[-1][1] if default is None else default
    return case([(o.equal(branch_index, tensor(k, tensor(branch_index).dtype)), f) for k, f in branches], default)


def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True,
               swap_memory=False, maximum_iterations=None, name=None):
    values = list(loop_vars) if isinstance(loop_vars, (list, tuple)) else [loop_vars]
    kind = type(loop_vars) if isinstance(loop_vars, (list, tuple)) and not hasattr(loop_vars, "_fields") else list
    trips = 0
    while True:
        going = cond(*values)
        if is_symbolic(going):
            return kind(_while_traced(cond, body, values, maximum_iterations, trips))
        if not bool(going) or (maximum_iterations is not None and trips >= int(maximum_iterations)):
            break
        made = body(*values)
        values = list(made) if isinstance(made, (list, tuple)) and len(values) == len(made) else [made]
        trips += 1
    return kind(values) if len(values) != 1 or isinstance(loop_vars, (list, tuple)) else values[0]


def _while_traced(cond, body, values, most, trips):
    from stoker import _autograph_ops

    state = {"values": tuple(values), "trips": trips}
    names = tuple(f"loop_vars[{n}]" for n in range(len(values)))

    def get():
        return (*state["values"], state["trips"])

    def put(new):
        state["values"], state["trips"] = tuple(new[:-1]), new[-1]

    def test():
        going = cond(*state["values"])
        if most is not None:
            going = o.logical_and(going, o.less(tensor(state["trips"]), tensor(int(most))))
        return going

    def run():
        made = body(*state["values"])
        state["values"] = tuple(made) if isinstance(made, (list, tuple)) and len(values) == len(made) else (made,)
        state["trips"] = state["trips"] + 1

    _autograph_ops.while_stmt(test, run, get, put, (*names, "trips"))
    return state["values"]


def _unstacked(elems):
    flat = nest.flatten(elems)
    arrays = [x if hasattr(x, "row_splits") else tensor(x) for x in flat]
    count = arrays[0].nrows_int() if hasattr(arrays[0], "row_splits") else dims(arrays[0])[0]
    return arrays, count


def map_fn(fn, elems, dtype=None, parallel_iterations=None, back_prop=True, swap_memory=False, infer_shape=True,
           name=None, fn_output_signature=None):
    if hasattr(elems, "row_splits") and not hasattr(fn_output_signature, "ragged_rank"):
        from stoker.tf import _ragged_ops

        return _ragged_ops.map_fn(fn, elems)
    if hasattr(elems, "_data_children"):  # an extension type goes row by row through its tensors
        whole, fn_of_one = elems, fn
        elems, fn = tuple(whole._to_components()), lambda row: fn_of_one(whole._from_components(list(row)))
    arrays, count = _unstacked(elems)
    signature = fn_output_signature if fn_output_signature is not None else dtype
    results = []
    if any(is_symbolic(a) for a in arrays) and count > 8 and not any(hasattr(a, "row_splits") for a in arrays):
        from stoker import _flow

        return _flow.map_rows(lambda *row: fn(nest.pack_sequence_as(elems, list(row))), arrays)
    for n in range(count):
        results.append(fn(nest.pack_sequence_as(elems, [a[n] for a in arrays])))
    if not results:
        return _empty_map(signature)
    flats = [nest.flatten(r) for r in results]
    kinds = nest.flatten(signature) if signature is not None else [None] * len(flats[0])
    return nest.pack_sequence_as(results[0], [_stack(list(column), kind) for column, kind in zip(zip(*flats), kinds)])


def _stack(rows, kind):
    if hasattr(kind, "ragged_rank") or any(hasattr(r, "row_splits") for r in rows):
        from stoker.tf import _ragged

        return _ragged.stack(rows)
    return o.stack([tensor(r) for r in rows])


def _empty_map(signature):
    if signature is None:
        raise ValueError("tf.map_fn over no rows needs fn_output_signature")
    return nest.map_structure(lambda s: tensor(np.zeros([0], getattr(s, "dtype", s).as_numpy_dtype)), signature)


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    return map_fn(fn, elems)


def foldl(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None):
    arrays, count = _unstacked(elems)
    rows = [nest.pack_sequence_as(elems, [a[n] for a in arrays]) for n in range(count)]
    value = rows.pop(0) if initializer is None else initializer
    for row in rows:
        value = fn(value, row)
    return value


def foldr(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None):
    arrays, count = _unstacked(elems)
    rows = [nest.pack_sequence_as(elems, [a[n] for a in arrays]) for n in range(count)]
    value = rows.pop() if initializer is None else initializer
    for row in reversed(rows):
        value = fn(value, row)
    return value


def scan(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, infer_shape=True,
         reverse=False, name=None):
    arrays, count = _unstacked(elems)
    order = range(count - 1, -1, -1) if reverse else range(count)
    rows = [nest.pack_sequence_as(elems, [a[n] for a in arrays]) for n in order]
    made = []
    value = initializer
    if initializer is None:
        value = rows.pop(0)
        made.append(value)
    for row in rows:
        value = fn(value, row)
        made.append(value)
    made = made[::-1] if reverse else made
    return nest.map_structure(lambda *column: o.stack([tensor(c) for c in column]), *made)


# Code outside of the engine.

def _results(made, Tout):
    single = not isinstance(Tout, (list, tuple))
    kinds = [Tout] if single else list(Tout)
    if made is None:
        made = []
    values = list(made) if isinstance(made, (list, tuple)) and (not single or len(kinds) != 1) else [made]
    return single, [tensor(v, getattr(k, "dtype", k)) for v, k in zip(values, kinds)]


def py_function(func=None, inp=None, Tout=None, name=None):
    """Runs Python on eager tensors. Taped eagerly; inside a program it is a host operation. Without func: a decorator."""
    if func is None:
        return lambda inner: functools.wraps(inner)(lambda *inputs: py_function(inner, inputs, Tout, name))
    inp = list(inp or [])
    func = _host_books.watch(func, "tf.py_function")
    _base.note_python_call("py_function")
    if not any(is_symbolic(x) for x in inp) and not _base.recording():
        single, values = _results(func(*[tensor(x) for x in inp]), Tout)
        return values[0] if single else values
    return _host_function(func, inp, Tout, name or "EagerPyFunc", lambda a: tensor(a))


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    if func is None:
        return lambda inner: functools.wraps(inner)(lambda *inputs: numpy_function(inner, inputs, Tout, stateful, name))
    inp = list(inp or [])
    func = _host_books.watch(func, "tf.numpy_function")
    _base.note_python_call("numpy_function")
    if not any(is_symbolic(x) for x in inp) and not _base.recording():
        single, values = _results(func(*[tensor(x).numpy() for x in inp]), Tout)
        return values[0] if single else values
    return _host_function(func, inp, Tout, name or "PyFunc", lambda a: a)


def _host_function(func, inp, Tout, name, given):
    """Inside a recording the result's shape must be known: it is what the function gives on values like these."""
    single = not isinstance(Tout, (list, tuple))
    kinds = [getattr(k, "dtype", k) for k in ([Tout] if single else Tout)]
    inputs = [tensor(x) for x in inp]
    known = [getattr(k, "shape", None) for k in ([Tout] if single else Tout)]
    if any(s is None or not s.is_fully_defined() for s in known):
        _base.not_traceable(f"{name} calls Python, and the shape of what it gives is not known before; a tf.TensorSpec "
                            "as Tout would tell it")
    shapes = [s.as_list() for s in known]

    def run(*arrays):
        made = func(*[given(a) for a in arrays])
        made = [made] if single else list(made or [])
        return tuple(np.asarray(m) for m in made)

    results = _stoker.host_call(run, inputs, kinds, shapes, name, True)
    return results[0] if single else list(results)


@contextlib.contextmanager
def control_dependencies(control_inputs):
    """Order is the order of the program here: nothing to do."""
    yield


@contextlib.contextmanager
def name_scope_v1(name=None, default_name=None, values=None):
    yield (name or "") + "/"


class name_scope:
    """tf.name_scope: the name shows in traces; nothing else depends on it."""

    _stack = []

    def __init__(self, name, default_name=None, values=None):
        if not isinstance(name, str) and name is not None:
            raise ValueError("name for name_scope must be a string.")
        self._name = name or default_name or ""

    @property
    def name(self):
        return self._name

    def __enter__(self):
        name_scope._stack.append(self._name)
        return "/".join(n for n in name_scope._stack if n) + "/"

    def __exit__(self, *exc):
        name_scope._stack.pop()
        return False


def group(*inputs, **kwargs):
    return None


def tuple_(tensors, control_inputs=None, name=None):
    return list(tensors)


def no_op(name=None):
    return None


@contextlib.contextmanager
def init_scope():
    """Out of every recording: what happens here happens now."""
    with _base.eager_scope():
        yield


def executing_eagerly():
    return not _base.recording()


def inside_function():
    return _base.recording()


def stop_gradient(input, name=None):
    return o.stop_gradient(input)


def recompute_grad(f):
    """Gradients by running f again; the engine's memory plan decides, so f itself is the answer."""
    return f


def grad_pass_through(f):
    def passed(x, *args, **kwargs):
        x = tensor(x)
        return x + o.stop_gradient(f(x, *args, **kwargs) - x)

    return passed
