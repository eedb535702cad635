"""Runs what _recording.py recorded and _sizes.py described: the same operations on other inputs.

A description comes from a file, so everything in it is looked at before it is used; what does not fit raises ValueError.
"""
import numpy as np

from stoker import _flow, _stoker
from stoker.tf._base import DType, Tensor, Variable, tensor
from stoker.tf._sizes import banded, counted, value_of

MOST = 1 << 33  # elements of a constant that is filled


def check(good, why):
    if not good:
        raise ValueError(f"the description of a saved function is damaged: {why}")


class _Sizes:
    """The numbers that formulas are made of: sizes of inputs, and of what was computed from them."""

    def __init__(self, run, places):
        self.run, self.places = run, places

    def __getitem__(self, n):
        value, axis = self.places[n]
        return self.run.get(value).shape.as_list()[axis]


class Replay:
    """One call: values by number."""

    def __init__(self, told, variables, constants, inputs):
        """told: the description; variables: {number: Variable}; constants(key) -> array."""
        self.values, self.tapes, self.sizes = {}, {}, _Sizes(self, told["places"])
        self.later = {int(number): c for number, c in told["constants"].items()}  # made when they are asked for: sizes must be known
        self.later.update((number, event) for event in told["prelude"] for number in event[2])
        self.constants = constants
        for number, variable in variables.items():
            self.values[number] = variable.value()
        self.values.update(zip(told["inputs"], inputs))

    def _constant(self, c):
        if "key" in c:
            return self.constants(c["key"], c["dtype"])
        kind = DType(c["dtype"]).as_numpy_dtype
        shape = self._ints(c["shape"])
        check(all(d >= 0 for d in shape) and int(np.prod(shape, dtype=np.float64)) < MOST, "a constant without end")
        if "ints" in c:
            return tensor(np.array(self._ints(c["ints"]), kind).reshape(shape))
        if "fill" in c:
            return tensor(np.full(shape, c["fill"], kind))
        if "band" in c:
            low, high = (None if b is None else value_of(b, self.sizes) for b in c["band"])
            return tensor(banded(*shape[-2:], low, high, c["in"], c["out"]).astype(kind).reshape(shape))
        return tensor(counted(shape[0], c["from"], c["step"], *self._ints([c["each"], c["period"]])).astype(kind))

    def _ints(self, numbers):
        return [value_of(n, self.sizes) for n in numbers]

    def get(self, number):
        if number is None:
            return None
        if number in self.later:
            self._make(number, self.later.pop(number))
        check(number in self.values, f"value {number} is used before it is made")
        return self.values[number]

    def _make(self, number, what):
        if isinstance(what, dict):
            self.values[number] = self._constant(what)
        else:
            self.run([what])

    def all(self, numbers):
        return [self.get(n) for n in numbers]

    def _set(self, numbers, values):
        check(len(numbers) == len(values), f"{len(values)} results where {len(numbers)} were expected")
        self.values.update(zip(numbers, values))

    def run(self, events):
        for kind, inputs, outputs, numbers, fixed, blocks in events:
            step = KINDS.get(kind)
            check(step is not None, f"'{kind}' is no kind of operation")
            step(self, self.all(inputs), outputs, self._ints(numbers), fixed, blocks)

    def body(self, block):
        """A function of the block's inputs that runs it and gives its outputs."""
        def run(*inputs):
            self._set(block["inputs"], inputs)
            self.run(block["events"])
            return self.all(block["outputs"])

        return run

    def _op(self, inputs, outputs, numbers, fixed, blocks):
        made = _stoker.run_row(fixed[0], inputs, numbers, list(fixed[1]))
        self._set(outputs, [made] if isinstance(made, Tensor) else made)

    def _stop(self, inputs, outputs, numbers, fixed, blocks):
        self._set(outputs, [_stoker.stop_gradient(inputs[0])])

    def _host(self, inputs, outputs, numbers, fixed, blocks):
        check(fixed[0] in HOSTS, f"there is no host function '{fixed[0]}'")
        HOSTS[fixed[0]](inputs, *fixed[1:])
        self._set(outputs, [])

    def _tape(self, inputs, outputs, numbers, fixed, blocks):
        number, method = fixed
        check(method in ("start", "stop", "pause", "resume", "watch", "cover"), f"'{method}' is no method of tapes")
        tape = self.tapes.setdefault(number, _stoker.Tape(True))
        if method == "start" and tape.active or method == "stop" and not tape.active:
            return
        getattr(tape, method)(*[x for x in inputs if x is not None])

    def _gradient(self, inputs, outputs, numbers, fixed, blocks):
        tape, n = self.tapes.get(fixed[0]), fixed[1]
        check(tape is not None and 0 < n and 2 * n <= len(inputs) and all(x is not None for x in inputs[:n] + inputs[2 * n:]), "a gradient")
        try:
            made = tape.gradient(inputs[:n], inputs[2 * n:], inputs[n:2 * n])
        except RuntimeError as error:  # the tape never started
            check(False, error)
        self._set(outputs, [_zeros(x) if g is None else g for g, x in zip(made, inputs[2 * n:])])

    def _custom(self, inputs, outputs, numbers, fixed, blocks):
        n = fixed[0]
        trace = _stoker.get_trace()
        backward = self.body(blocks[0])
        backward.ninputs = len(inputs) - n
        if any(_stoker.is_symbolic(x) for x in inputs):
            self._set(outputs, trace.custom(inputs[:n], inputs[n:], backward))
        else:
            self._set(outputs, inputs[:n])

    def _cond(self, inputs, outputs, numbers, fixed, blocks):
        if not _stoker.is_symbolic(inputs[0]):
            self._set(outputs, self.body(blocks[0 if bool(inputs[0]) else 1])())
            return
        made = _flow.cond(inputs[0], self.body(blocks[0]), self.body(blocks[1]), lambda x, y: (x, y, lambda results: results))
        self._set(outputs, made[:len(outputs)])

    def _while(self, inputs, outputs, numbers, fixed, blocks):
        test, body = self.body(blocks[0]), self.body(blocks[1])
        self._set(outputs, _flow.while_loop(lambda s: test(*s)[0], lambda s: body(*s), inputs, numbers[0]))

    def _scan(self, inputs, outputs, numbers, fixed, blocks):
        n, reverse = fixed
        body = self.body(blocks[0])

        def step(rows, state):
            made = body(*state, *rows)
            return made[:n], made[n:]

        state, rows = _flow.scan(step, inputs[n:], inputs[:n], reverse)
        self._set(outputs, list(state) + list(rows))


KINDS = {name: getattr(Replay, "_" + name) for name in ("op", "stop", "host", "tape", "gradient", "custom", "cond", "while", "scan")}


def _are(part, kind, test=lambda x: True):
    return isinstance(part, list) and all(isinstance(x, kind) and test(x) for x in part)


def _is_formula(x):
    return len(x) == 5 and _are(x[1], int) and _are(x[:1] + x[2:], int) and x[3] != 0


def check_numbers(part, places):
    ok = isinstance(part, list) and all(type(x) is int or (isinstance(x, list) and _is_formula(x) and all(0 <= p < places for p in x[1]))
                                        for x in part)
    check(ok, "numbers of an operation")


def check_events(events, places):
    """The form of everything in a list of events."""
    check(isinstance(events, list), "a list of operations")
    for event in events:
        check(isinstance(event, list) and len(event) == 6, "an operation")
        kind, inputs, outputs, numbers, fixed, blocks = event
        check(kind in KINDS and _are(inputs, (int, type(None))) and _are(outputs, int) and isinstance(fixed, list), "an operation")
        check(kind in ("gradient", "tape") or None not in inputs, f"the inputs of {kind}")
        check(len(fixed) >= {"op": 2, "host": 1, "tape": 2, "gradient": 2, "custom": 1, "scan": 2}.get(kind, 0), kind)
        check(isinstance(blocks, list) and len(blocks) == {"cond": 2, "while": 2, "scan": 1, "custom": 1}.get(kind, 0), f"the bodies of {kind}")
        check_numbers(numbers, places)
        for block in blocks:
            check(isinstance(block, dict) and _are(block["inputs"], int) and _are(block["outputs"], (int, type(None))), f"a body of {kind}")
            check_events(block["events"], places)


def check_description(told):
    places = told["places"]
    check(_are(told["inputs"], int) and _are(told["outputs"], int) and _are(told["ranks"], int) and isinstance(told["constants"], dict) and
          len(told["ranks"]) == len(told["inputs"]) and _are(told["shapes"], list, lambda s: _are(s, (int, type(None)))), "inputs and outputs")
    check(_are(places, list, lambda p: _are(p, int) and len(p) == 2 and p[1] >= 0), "open sizes")
    for c in told["constants"].values():
        if "key" not in c:
            check_numbers(c["shape"] + c.get("ints", []) + [c[k] for k in ("each", "period") if k in c] +
                          [b for b in c.get("band", []) if b is not None], len(places))
    check_events(told["prelude"], len(places))
    check_events(told["events"], len(places))


def _zeros(x):
    return tensor(np.zeros(x.shape.as_list(), x.dtype.as_numpy_dtype))


# Host functions that have a name in files: what they run says so by an attribute `saved`.

def _print(inputs, parts, stream, summarize, sep, end):
    from stoker.tf import _module

    feed = iter(inputs)
    values = [next(feed) if p is None else p for p in parts]
    _module.tf_print(*values, output_stream=stream, summarize=summarize, sep=sep, end=end)


_CHECKS = ("assert_equal", "assert_none_equal", "assert_less", "assert_less_equal", "assert_greater", "assert_greater_equal", "assert_near",
           "assert_positive", "assert_negative", "assert_non_positive", "assert_non_negative", "check_numerics", "Assert")


def _assert(inputs, title, options):
    from stoker.tf import debugging

    check(title in _CHECKS and set(options) <= {"message", "rtol", "atol", "data"}, f"there is no check '{title}'")

    def complain(*arrays):
        if title == "Assert":
            debugging.Assert(arrays[0], list(arrays[1:]) or options.get("data"))
        else:
            getattr(debugging, title)(*arrays, **options)

    complain.saved = ("assert", title, options)
    if _stoker.get_trace() is not None:
        _stoker.host_call(complain, inputs, [], [], "Assert", True)
    else:
        complain(*[x.numpy() for x in inputs])


HOSTS = {"print": _print, "assert": _assert}


def replay(told, variables, constants, inputs, assigns):
    """The outputs; variables are assigned at the end, as a program does it."""
    run = Replay(told, variables, constants, inputs)
    try:
        run.run(told["events"])
        outputs = run.all(told["outputs"])
        for number, value in assigns:
            check(isinstance(variables.get(number), Variable), "an assignment to something that is no variable")
            variables[number].assign(run.get(value))
        return outputs
    finally:
        for tape in run.tapes.values():
            if tape.active:
                tape.stop()
