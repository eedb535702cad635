"""AutoGraph, second half: what the rewritten code calls. Every function looks at its values when it runs.

A Python value or a concrete tensor takes the Python road. A symbolic tensor makes the engine trace both branches, or
the loop's body, as graphs. The engine is a module with

    is_symbolic(x), is_tensor(x), constant(x)
    cond(pred, then, orelse, align)       then/orelse: () -> leaves; align pairs them, see _Branches
    while_loop(test, body, values)        test/body: list of tensors -> bool tensor / list of tensors
    for_loop(items, test, body, values)   over the first axis of `items`; test may be None
    spec_after(body, inputs)              what a body would make of values like inputs, without keeping any of it
    cannot(reason)                        raises: this function runs eagerly instead

which is stoker._flow, or a stand-in in tests.
"""
import builtins
import functools
import types

from stoker import _autograph
from stoker.tf import nest

engine = None


def _engine():
    global engine
    if engine is None:
        from stoker import _flow

        engine = _flow
    return engine


def _symbolic(value):
    return _engine().is_symbolic(value)


class Undefined:
    """A name that has no value yet. Any use of it says so."""

    __slots__ = ("ag_name",)

    def __init__(self, title):
        object.__setattr__(self, "ag_name", title)

    def _complain(self, *args, **kwargs):
        title = object.__getattribute__(self, "ag_name")
        raise UnboundLocalError(f"local variable '{title}' referenced before assignment")

    __getattr__ = __getitem__ = __call__ = __iter__ = __len__ = __bool__ = __add__ = __radd__ = _complain
    __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __eq__ = __lt__ = __gt__ = _complain
    __matmul__ = __neg__ = __pow__ = __mod__ = __floordiv__ = __float__ = __int__ = __index__ = __str__ = _complain
    __hash__ = None

    def __repr__(self):
        return f"<no value of '{object.__getattribute__(self, 'ag_name')}'>"


class _NoReturn(Undefined):
    __slots__ = ()


def undefined_return():
    return _NoReturn("return value")


def _is_undefined(value):
    return type(value) in (Undefined, _NoReturn)


def returned(value, done, complete):
    """The end of a function with returns inside of blocks."""
    if _symbolic(done) and not complete:
        raise ValueError("A value must also be returned from the else branch. If a value is returned from one branch of "
                         "a conditional a value must be returned from all branches.")
    if type(value) is _NoReturn:
        return None
    if type(value) is Undefined:
        value._complain()
    return value


def get_attribute(owner, title):
    if _is_undefined(owner):
        return Undefined(title)
    return getattr(owner, title, Undefined(title))


def put_attribute(owner, title, value):
    if not _is_undefined(value) and not _is_undefined(owner) and getattr(owner, title, None) is not value:
        setattr(owner, title, value)


# Values of a branch or loop: each name holds a structure; its leaves are tensors, numbers, or other objects.

_NUMBERS = (int, float, bool)


def _is_composite(leaf):
    """An object made of tensors that functions take apart: ragged and sparse tensors, extension types."""
    return hasattr(leaf, "_to_components") and not _is_array(leaf)


def _flat(value):
    """The leaves of a structure; composites are taken apart."""
    return [part for leaf in nest.flatten(value) for part in (leaf._to_components() if _is_composite(leaf) else (leaf,))]


def _pack(structure, leaves):
    feed = iter(leaves)
    return nest.map_structure(lambda leaf: leaf._from_components([next(feed) for _ in leaf._to_components()]) if _is_composite(leaf)
                              else next(feed), structure)


def _check_composites(title, a, b, where):
    for x, y in zip(nest.flatten(a), nest.flatten(b)):
        if _is_composite(x) and (type(x) is not type(y) or x._signature_key() != y._signature_key()):
            raise TypeError(f"'{title}' is {_what(x)} {where[0]} and {_what(y)} of another kind {where[1]}; Stoker's programs have concrete shapes")


def _leaves(values):
    return [_flat(v) if not _is_undefined(v) else [v] for v in values]


def _is_value(leaf):
    import numpy

    return isinstance(leaf, (*_NUMBERS, numpy.ndarray, numpy.generic)) or _engine().is_tensor(leaf)


def _is_array(leaf):
    """A tf.TensorArray: one dense tensor while a loop of the program writes to it."""
    return hasattr(leaf, "in_loop")


def _same(a, b):
    if a is b:
        return True
    if isinstance(a, _NUMBERS) and type(a) is type(b):
        return a == b
    return isinstance(a, (str, bytes)) and a == b


class _Branches:
    """Brings the values of two branches together: what is the same stays, numbers and tensors become outputs."""

    def __init__(self, names):
        self.names = names

    def __call__(self, then_values, else_values):
        self.plan = []  # per name: (structure, [leaf or _Output])
        self.values = then_values
        then_out, else_out = [], []
        for title, a, b in zip(self.names, then_values, else_values):
            self.plan.append(self._pair(title, a, b, then_out, else_out))
        return then_out, else_out, self.finish

    def _pair(self, title, a, b, then_out, else_out):
        if _is_undefined(a) and _is_undefined(b):
            return a, [a]
        if _is_undefined(a) or _is_undefined(b):
            there = b if _is_undefined(a) else a
            if type(a) is not _NoReturn and type(b) is not _NoReturn:
                which = "else" if _is_undefined(b) else "main"
                raise ValueError(f"'{title}' must also be initialized in the {which} branch")
            zero = nest.map_structure(_zero, there)  # never looked at: the flag of the return says so
            a, b = (zero, there) if _is_undefined(a) else (there, zero)
        try:
            nest.assert_same_structure(a, b)
        except (ValueError, TypeError) as error:
            raise type(error)(f"'{title}' must have the same nested structure in the main and else branches:\n\n"
                              f"{error}") from None
        _check_composites(title, a, b, ("in the main branch", "in the else branch"))
        leaves = []
        for x, y in zip(_flat(a), _flat(b)):
            if _same(x, y):
                leaves.append(x)
            elif _is_value(x) and _is_value(y):
                x, y = _like(x, y)
                _must_match(title, x, y)
                then_out.append(x)
                else_out.append(y)
                leaves.append(_Output(len(then_out) - 1))
            else:
                raise TypeError(f"'{title}' is {_what(x)} in the main branch and {_what(y)} in the else branch; "
                                "a condition on a tensor can only choose between tensors and numbers")
        return a, leaves

    def finish(self, outputs):
        done = []
        for structure, leaves in self.plan:
            leaves = [outputs[v.index] if type(v) is _Output else v for v in leaves]
            done.append(leaves[0] if _is_undefined(structure) else _pack(structure, leaves))
        return tuple(done)


class _Output:
    def __init__(self, index):
        self.index = index


def _what(x):
    return "None" if x is None else f"a {type(x).__name__}"


def _like(x, y):
    """Two values as tensors; a Python number takes the dtype of the tensor it meets."""
    make = _engine().constant
    if not _engine().is_tensor(x):
        x = make(x, y.dtype if _engine().is_tensor(y) else None)
    if not _engine().is_tensor(y):
        y = make(y, x.dtype)
    return x, y


def _zero(leaf):
    if _is_composite(leaf):
        return leaf._from_components([_zero(part) for part in leaf._to_components()])
    if not _is_value(leaf):
        return leaf
    return _engine().zeros_like(leaf)


def _must_match(title, x, y):
    if x.dtype != y.dtype:
        raise TypeError(f"'{title}' has dtype {_dtype(x)} in the main branch, but dtype {_dtype(y)} in the else branch")
    if tuple(x.shape) != tuple(y.shape):
        raise ValueError(f"'{title}' has shape {tuple(x.shape)} in the main branch, but shape {tuple(y.shape)} in the "
                         "else branch; Stoker's programs have concrete shapes")


def _dtype(x):
    return getattr(x.dtype, "name", x.dtype)


# Statements.

def if_stmt(pred, body, orelse, get, put, names):
    if not _symbolic(pred):
        if pred:
            body()
        else:
            orelse()
        return
    before = get()

    def branch(run):
        def traced():
            put(before)
            run()
            return get()

        return traced

    put(_engine().cond(pred, branch(body), branch(orelse), _Branches(names)))


def if_exp(pred, body, orelse):
    if not _symbolic(pred):
        return body() if pred else orelse()
    (value,) = _engine().cond(pred, lambda: (body(),), lambda: (orelse(),), _Branches(("expression",)))
    return value


class _Loop:
    """The state of a loop as a list of tensors; what is no tensor or number stays outside and must not change."""

    def __init__(self, get, put, names):
        self.get, self.put, self.names = get, put, names
        self.start = get()
        self.item = None  # of the trip that is recorded
        self.most, self.shapes_may_change = None, False  # by set_loop_options

    def record(self, trip):
        """One trip; what tf.autograph.experimental.set_loop_options says in it is for this loop."""
        _loops.append(self)
        try:
            trip()
        finally:
            _loops.pop()

    def define(self, body, places=None):
        """Names that get their first value inside of the loop start as zeros of what the body makes, and an array starts with
        room for what the body writes: elements like that, `places` of them if it grows."""
        if not any(_is_undefined(v) or any(map(_is_array, _flat(v))) for v in self.start):
            return
        after = _engine().spec_after(self._run_and_get(body))
        start = []
        for title, old, new in zip(self.names, self.start, after):
            if _is_undefined(old) and not _is_undefined(new):
                try:
                    old = nest.map_structure(_zero, new)
                except Exception:
                    raise ValueError(f"'{title}' must be defined before the loop") from None
            elif not _is_undefined(old) and any(map(_is_array, _flat(old))):
                old = nest.map_structure(lambda a, b: a.for_loop(b, places) if _is_array(a) else a, old, new)
            start.append(old)
        self.start = tuple(start)
        if any(map(_is_undefined, self.start)):
            self._define_by_later_trips(body)

    def _define_by_later_trips(self, body):
        """The first trip may go past a branch that a later one takes: look at a trip whose values are not known."""
        flat = [None if _is_undefined(v) else _flat(v) for v in self.start]
        known = [leaf for leaves in flat for leaf in leaves or () if _is_value(leaf)]

        def run(*symbols):
            feed = iter(symbols)
            self.put(tuple(old if leaves is None else _pack(old, [next(feed) if _is_value(x) else x for x in leaves])
                           for old, leaves in zip(self.start, flat)))
            self.record(body)
            return self.get()

        after = _engine().spec_after(run, [x if _engine().is_tensor(x) else _engine().constant(x, None) for x in known])
        self.start = tuple(nest.map_structure(_zero, new) if _is_undefined(old) and not _is_undefined(new) else old
                           for old, new in zip(self.start, after))

    def _run_and_get(self, body):
        def run():
            self.put(self.start)
            self.record(body)
            return self.get()

        return run

    def tensors(self):
        values = []
        for title, value in zip(self.names, self.start):
            for leaf in _flat(value) if not _is_undefined(value) else []:
                if _is_array(leaf):
                    values.append(leaf.stack())
                elif _is_value(leaf):
                    values.append(leaf if _engine().is_tensor(leaf) else _engine().constant(leaf, None))
        return values

    def enter(self, tensors):
        """Bind the names to the loop's values for one trip."""
        feed = iter(tensors)
        bound = []
        for value in self.start:
            if _is_undefined(value):
                bound.append(value)
            else:
                leaves = [leaf.in_loop(next(feed), self.item) if _is_array(leaf) else next(feed) if _is_value(leaf) else leaf
                          for leaf in _flat(value)]
                bound.append(_pack(value, leaves))
        self.put(tuple(bound))

    def leave(self, before):
        """The values after one trip, checked against those before it."""
        after, out = self.get(), []
        olds = iter(before)
        for title, value, old_value in zip(self.names, after, self.start):
            if _is_undefined(old_value):
                continue
            try:
                nest.assert_same_structure(old_value, value)
            except (ValueError, TypeError) as error:
                raise type(error)(f"'{title}' does not have the same nested structure after one iteration.\n\n{error}") \
                    from None
            _check_composites(title, old_value, value, ("before the loop", "after one iteration"))
            for new, first in zip(_flat(value), _flat(old_value)):
                if _is_array(first) and _is_array(new):
                    new, first = new.stack(), first.stack()
                if not _is_value(first):
                    if not _same(new, first):
                        raise ValueError(f"'{title}' is {_what(first)} before the loop and {_what(new)} after one "
                                         "iteration; a loop on tensors can only change tensors and numbers")
                    continue
                old = next(olds)
                if not _engine().is_tensor(new):
                    new = _engine().constant(new, old.dtype)
                if new.dtype != old.dtype:
                    raise TypeError(f"'{title}' has dtype {_dtype(old)} before the loop, but dtype {_dtype(new)} "
                                    "after one iteration")
                if tuple(new.shape) != tuple(old.shape) and self.shapes_may_change:
                    _engine().cannot(f"'{title}' has another shape after each trip of a loop")
                if tuple(new.shape) != tuple(old.shape):
                    raise ValueError(f"'{title}' has shape {_shape(old)} before the loop, but shape {_shape(new)} "
                                     "after one iteration. Use tf.autograph.experimental.set_loop_options to set shape "
                                     "invariants.")
                out.append(new)
        return out


_NO_LIMIT = 1 << 62
_loops = []  # that are being recorded, the innermost last


class _Limited(Exception):
    """A loop turns out to have a limit of trips: it is recorded again, with one."""


def loop_options(most, shape_invariants):
    if not _loops:
        return
    loop = _loops[-1]
    if type(loop) is _Unrolled:
        loop.most = most
        return
    loop.shapes_may_change = loop.shapes_may_change or bool(shape_invariants)
    if most is not None and loop.most is None:
        loop.most = most
        raise _Limited


def _shape(x):
    return tuple(int(d) for d in x.shape)


class _Unrolled:
    """A loop whose trips are known while the program is recorded."""

    def __init__(self):
        self.most, self.trips = None, 0

    record = _Loop.record


def while_stmt(test, body, get, put, names):
    first, unrolled = test(), _Unrolled()
    while not _symbolic(first):
        if not first or unrolled.most == unrolled.trips:
            return
        unrolled.record(body)
        unrolled.trips += 1
        first = test()
    loop = _Loop(get, put, names)
    loop.trips = unrolled.trips
    try:
        loop.define(body)
        loop.enter(_while(loop, test, body))
    except _Limited:
        put(loop.start)
        loop.define(body)
        loop.enter(_while_limited(loop, test, body))


def _while(loop, test, body):
    def run_test(tensors):
        loop.enter(tensors)
        return test()

    def run_body(tensors):
        loop.enter(tensors)
        loop.record(body)
        return loop.leave(tensors)

    return _engine().while_loop(run_test, run_body, loop.tensors())


def _while_limited(loop, test, body):
    """With a count of the trips before the values of the loop."""
    def run_test(tensors):
        loop.enter(tensors[1:])
        return _engine().logical_and(tensors[0] < loop.most, test())

    def run_body(tensors):
        loop.enter(tensors[1:])
        loop.record(body)
        return [tensors[0] + 1, *loop.leave(tensors[1:])]

    return _engine().while_loop(run_test, run_body, [_engine().constant(loop.trips, None), *loop.tensors()])[1:]


def for_stmt(items, go_on, body, get, put, names):
    kind = _engine().loop_kind(items)  # None: Python's own
    if kind is None:
        _for_python(items, go_on, body, get, put, names)
        return
    loop = _Loop(get, put, names)
    loop.most = _NO_LIMIT  # a loop over items ends by itself
    loop.define(lambda: body(_engine().first_item(items)), _engine().places(items) if go_on is None else None)

    def run_test(tensors):
        loop.enter(tensors)
        return go_on()

    def run_body(item, tensors):
        loop.item = item
        loop.enter(tensors)
        loop.record(lambda: body(item))
        return loop.leave(tensors)

    loop.enter(_engine().for_loop(items, run_test if go_on is not None else None, run_body, loop.tensors()))


def _for_python(items, go_on, body, get, put, names):
    """A Python loop. Once a break or return depends on a tensor, each further trip becomes a branch."""
    feed = iter(items)
    for item in feed:
        if go_on is not None:
            going = go_on()
            if _symbolic(going):
                if_stmt(going, functools.partial(body, item), lambda: None, get, put, names)
                continue
            if not going:
                return
        body(item)


def assert_stmt(test, message):
    if _symbolic(test):
        _engine().check(test, "" if message is None else message())
    elif not test:
        raise AssertionError(*(() if message is None else (message(),)))


# Expressions.

def not_(value):
    return _engine().logical_not(value) if _symbolic(value) else not value


def and_(*parts):
    value = parts[0]()
    for part in parts[1:]:
        if _symbolic(value):
            value = _engine().logical_and(value, part())
        elif not value:
            return value
        else:
            value = part()
    return value


def or_(*parts):
    value = parts[0]()
    for part in parts[1:]:
        if _symbolic(value):
            value = _engine().logical_or(value, part())
        elif value:
            return value
        else:
            value = part()
    return value


# Calls.

def converted(function):
    """Marks a nested function, whose body has been rewritten with its surroundings."""
    try:
        function.__ag_converted__ = True
    except AttributeError:
        pass
    return function


def _some_symbolic(values):
    return any(_symbolic(v) for v in values)


def _overload(function, args, kwargs):
    """Builtins that would ask a symbolic tensor for its value."""
    here = _engine()
    if function is builtins.max and len(args) > 1:
        return functools.reduce(here.maximum, args)
    if function is builtins.min and len(args) > 1:
        return functools.reduce(here.minimum, args)
    if function is builtins.int:
        return here.cast(args[0], "int32")
    if function is builtins.float:
        return here.cast(args[0], "float32")
    if function is builtins.bool:
        return here.cast(args[0], "bool")
    if function is builtins.range:
        return here.range(*args)
    return function(*args, **kwargs)


_OVERLOADS = {builtins.max, builtins.min, builtins.int, builtins.float, builtins.bool, builtins.range}


def call(function, /, *args, **kwargs):
    kind = type(function)
    if kind is types.FunctionType:
        if getattr(function, "__ag_converted__", False) or not _autograph.is_users(function):
            return function(*args, **kwargs)
        return _autograph.convert(function)(*args, **kwargs)
    if kind is types.MethodType and isinstance(function.__func__, types.FunctionType):
        if _autograph.is_users(function.__func__):
            return _autograph.convert(function.__func__)(function.__self__, *args, **kwargs)
        return function(*args, **kwargs)
    if (kind is types.BuiltinFunctionType or kind is type) and function in _OVERLOADS:
        if _some_symbolic(args):
            return _overload(function, args, kwargs)
        return function(*args, **kwargs)
    if kind is functools.partial:
        return call(function.func, *function.args, *args, **{**function.keywords, **kwargs})
    if not isinstance(function, type):
        method = kind.__dict__.get("__call__")  # an object of the user's class
        if isinstance(method, types.FunctionType) and _autograph.is_users(method):
            return _autograph.convert(method)(function, *args, **kwargs)
    return function(*args, **kwargs)
