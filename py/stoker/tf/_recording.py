"""What a function does, as data: the operations that it calls, one after the other.

A Recorder is told of each operation while the function is traced (py/src/recorder.c). Values have numbers; what comes from outside
is an input, a variable or a constant. A body of control flow is a Block of its own that may use values of those around it. Operations
on values that exist already are recorded as well: what they give may depend on the sizes of the inputs (_sizes.py finds out).
"""
import contextlib
import io

import numpy as np

from stoker import _host_books, _stoker
from stoker.tf._base import Tensor, Variable, tensor


class CannotSave(NotImplementedError):
    """A function does something that has no form in a file."""


class Block:
    """Operations in order; inputs and outputs are numbers of values."""

    def __init__(self, inputs=()):
        self.inputs, self.events, self.outputs = list(inputs), [], []


class Event:
    """kind; inputs and outputs: numbers of values (None: absent); numbers: ints that may follow sizes; fixed: everything else."""

    __slots__ = ("kind", "inputs", "outputs", "numbers", "fixed", "blocks", "eager", "place")

    def __init__(self, kind, inputs, outputs, numbers=(), fixed=(), blocks=(), eager=False):
        self.kind, self.inputs, self.outputs, self.numbers, self.fixed = kind, inputs, outputs, tuple(numbers), fixed
        self.blocks, self.eager, self.place = list(blocks), eager, _host_books.caller()

    def where(self):
        file, line = self.place
        return f" ({file}, line {line})" if file else ""


class Recorder:
    """Told of operations while a function is traced."""

    def __init__(self, name):
        self.name = name
        self.count, self.known, self._kept = 0, {}, []  # key of a value -> its number
        self.shapes = {}  # number -> sizes of what the function around all bodies computes
        self.constants, self.variables = {}, {}  # number -> tensor, number -> Variable
        self.stack, self.bodies, self.tapes = [Block()], {}, {}

    def __enter__(self):
        self._before = _stoker.recorder(self)
        return self

    def __exit__(self, *exc):
        _stoker.recorder(self._before)

    def __call__(self, what, *args):
        getattr(self, "_" + what)(*args)

    # Values.

    def new(self, value):
        self._kept.append(value)  # its key stays its own
        self.known[_stoker.value_key(value)] = number = self.count
        if len(self.stack) == 1 and _stoker.is_symbolic(value):
            self.shapes[number] = value.shape.as_list()
        self.count += 1
        return number

    def number(self, value):
        """The number of a value that is there already, or comes from outside."""
        value = tensor(value)
        key = _stoker.value_key(value)
        if key in self.known:
            return self.known[key]
        if _stoker.is_symbolic(value):
            source = value.graph.source(value)
            if source is None:
                raise CannotSave(f"{self.name} uses a value that nobody recorded; it cannot be saved")
            number = self._variable(source) if isinstance(source, Variable) else self.number(source)
            self._kept.append(value)
            self.known[key] = number
            return number
        number = self.new(value)
        self.constants[number] = value
        return number

    def numbers(self, values):
        return [None if v is None else self.number(v) for v in values]

    def _variable(self, variable):
        for number, known in self.variables.items():
            if known is variable:
                return number
        self.count += 1
        self.variables[self.count - 1] = variable
        return self.count - 1

    def _add(self, *args, **kwargs):
        self.stack[-1].events.append(Event(*args, **kwargs))

    # What is told.

    def _op(self, name, inputs, ints, reals, result):
        given = self.numbers(inputs)
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        eager = not any(_stoker.is_symbolic(r) for r in results)
        outputs = [self.new(r) for r in results]
        if eager:
            self.constants.update(zip(outputs, results))
        self._add("op", given, outputs, ints, (name, reals), eager=eager)

    def _stop(self, x, result):
        given = self.number(x)
        eager = not _stoker.is_symbolic(result)
        made = self.new(result)
        if eager:
            self.constants[made] = result
        self._add("stop", [given], [made], eager=eager)

    def _host(self, function, name, inputs, results):
        saved = getattr(function, "saved", None)
        if saved is None:
            file, line = _host_books.caller()
            raise CannotSave(f"{self.name} cannot be saved: it calls Python code ({name}" + (f", {file}, line {line})" if file else ")") +
                             ", which a file does not hold. Keep that part out of the function that is saved.")
        self._add("host", self.numbers(inputs), [self.new(r) for r in results], fixed=saved)

    def _tape(self, tape, method, argument):
        self._kept.append(tape)
        number = self.tapes.setdefault(id(tape), len(self.tapes))
        if argument is None or isinstance(argument, Tensor):
            self._add("tape", self.numbers([argument]), [], fixed=(number, method))

    def _gradient(self, tape, targets, sources, given, results):
        if not any(_stoker.is_symbolic(r) for r in results if r is not None):
            return
        keep = [n for n, r in enumerate(results) if r is not None]
        targets, n = self.numbers(targets), len(targets)
        given = [None] * n if given is None else self.numbers(given)
        sources = self.numbers([sources[k] for k in keep])
        self._add("gradient", targets + given + sources, [self.new(results[k]) for k in keep], fixed=(self.tapes[id(tape)], n))

    def _custom(self, trace, outputs, inputs, backward, results):
        """The gradient function is called once with symbols: its body is a block."""
        from stoker import _flow

        held, given = self.numbers(outputs), self.numbers(inputs)
        before = _stoker.recorder(self)
        try:
            body, made = _flow._record(lambda *dy: list(backward(*dy)), outputs)
            with _flow._inside(body):
                block = self._body(body, [None if g is None else tensor(g) for g in made])
        finally:
            _stoker.recorder(before)
        self._add("custom", held + given, [self.new(r) for r in results], fixed=(len(held),), blocks=[block])

    def _enter(self, body, symbols):
        self._kept.append(body)
        self.bodies[id(body)] = block = Block([self.new(s) for s in symbols])
        self.stack.append(block)

    def _leave(self, body):
        self.stack.pop()

    def _body(self, trace, outputs):
        block = self.bodies[id(trace)]
        block.outputs = self.numbers(outputs)
        return block

    def _without_effects(self, values, changed, first):
        """Values without the one behind the order of prints, which is no variable of the program: replaying makes it anew."""
        hidden = _stoker.effects()
        drop = {first + n for n, v in enumerate(changed) if v is hidden}
        return [v for n, v in enumerate(values) if n not in drop]

    def _cond(self, pred, a, x, b, y, changed, results):
        first = len(x) - len(changed)
        x, y, kept = (self._without_effects(v, changed, first) for v in (x, y, results))
        blocks = [self._body(a, x), self._body(b, y)]
        self._add("cond", [self.number(pred)], [self.new(r) for r in kept], blocks=blocks)

    def _while(self, test, going, body, made, start, changed, most, results):
        first = len(start) - len(changed)
        start, made, kept = (self._without_effects(v, changed, first) for v in (start, made, results))
        given = self.numbers(start)
        blocks = [self._body(test, going), self._body(body, made)]
        for block in blocks:
            block.inputs = self._without_effects(block.inputs, changed, first)
        self._add("while", given, [self.new(r) for r in kept], [most], blocks=blocks)

    def _scan(self, trace, made, carried, rows, changed, reverse, results):
        first = len(carried) - len(changed)
        start, made, kept = (self._without_effects(v, changed, first) for v in (carried, made, results))
        given = self.numbers(start) + self.numbers(rows)
        block = self._body(trace, made)
        block.inputs = self._without_effects(block.inputs, changed, first)
        self._add("scan", given, [self.new(r) for r in kept], fixed=(len(start), bool(reverse)), blocks=[block])


class Recording:
    """One trace of a function at known sizes."""

    def __init__(self, recorder, inputs, outputs, assigned, leaves, structure, shapes):
        self.recorder, self.root, self.inputs, self.outputs = recorder, recorder.stack[0], inputs, outputs
        self.assigned = assigned  # [(Variable, number of its last value)]
        self.leaves, self.structure, self.shapes = leaves, structure, shapes  # results: places among outputs, or values


def record(name, body, specs, rebuild):
    """body(*args, **kwargs) on inputs of these [(dtype, sizes)]; rebuild(symbols) gives its arguments."""
    from stoker.tf import nest

    trace, recorder = _stoker.Trace(), Recorder(name)
    before = _stoker.swap_trace(trace)
    try:
        symbols = [trace.input(dtype, sizes) for dtype, sizes in specs]
        inputs = [recorder.new(s) for s in symbols]
        args, kwargs = rebuild(symbols)
        with recorder, contextlib.redirect_stdout(io.StringIO()):  # what it prints was shown when it was traced
            result = body(*args, **kwargs)
        leaves, made = [], []
        for leaf in nest.flatten(result):
            if leaf is None:
                leaves.append(None)
            elif isinstance(leaf, (Tensor, Variable, bool, int, float, np.ndarray, np.generic, str, bytes)) or hasattr(leaf, "__tf_tensor__"):
                leaves.append(len(made))
                made.append(leaf.value() if isinstance(leaf, Variable) else tensor(leaf))
            else:
                raise CannotSave(f"{name} gives a {type(leaf).__name__}, which cannot be saved; tensors in lists, tuples and dicts can")
        hidden = _stoker.effects()
        assigned = [(v, recorder.number(v.value())) for v in trace.assigned if v is not hidden]
        outputs = recorder.numbers(made)
        shapes = [(y.dtype.name, y.shape.as_list()) for y in made]
        return Recording(recorder, inputs, outputs, assigned, leaves, result, shapes)
    except Exception as error:
        seen = [x.shape.as_list() for x in list(trace.variables) + list(recorder.constants.values())]
        error.sizes = sorted({d for sizes in seen for d in sizes})
        raise
    finally:
        _stoker.swap_trace(before)
