"""Functions of tf.data: traced when they are given, replayed by the pipeline's workers without the interpreter lock.

A function is recorded for concrete shapes. Where a specification leaves a size open, it is recorded for two sizes to
learn which sizes of its results are open too; elements with new shapes cause further recordings. What cannot be
recorded (strings, Python code that wants values) is called for each element under the lock; `bill()` tells which.
"""
import collections
import contextlib
import functools
import io
import threading
import weakref

import numpy as np

from stoker import _autograph, _autograph_ops, _host_books, _stoker
from stoker.tf import _base, errors
from stoker.tf._base import NotTraceable, Tensor, is_symbolic, not_traceable, tensor
from stoker.tf._specs import SparseTensorSpec, TensorSpec
from stoker.tf.data import _structure as st

_current = threading.local()
_PROBES = ((37, 41, 43, 47, 53, 59, 61, 67), (71, 73, 79, 83, 89, 97, 101, 103))
_LARGE = ((331, 347, 3), (409, 421, 3))
_MOST_RECORDINGS = 48
_ON_DEVICE = "it uses a variable that is on a device; workers compute on the processor"
_billed = collections.OrderedDict()  # (function, reason) -> calls of functions that are gone
_alive = weakref.WeakSet()
debug = False  # tf.data.experimental.enable_debug_mode


def bill():
    """[(function, reason, calls)] of all functions that run under the interpreter lock."""
    calls = dict(_billed)
    for f in list(_alive):
        calls[f.title, f.why] = calls.get((f.title, f.why), 0) + f.fn.eager_calls
    return [(title, why, count) for (title, why), count in calls.items()]


def _put_on_bill(function):
    """A function keeps its place on the bill when it is gone; what it held goes with it."""
    key = function.title, function.why
    _billed.setdefault(key, 0)
    _billed.move_to_end(key)
    while len(_billed) > 256:
        _billed.popitem(last=False)
    _alive.add(function)


def recorder():
    """The recording of a function of tf.data on this thread, or None."""
    return getattr(_current, "recorder", None)


class _Recorder:
    """One recording: the trace, the slots (parts of the element, then results of host steps), the steps."""

    def __init__(self, trace, known_steps, sizes, probe):
        self.trace, self.known, self.sizes, self.probe = trace, known_steps, sizes, probe
        self.types, self.feeds, self.places, self.steps, self.wanted = [], [], {}, [], []
        self.open = False  # a size was guessed

    def slot(self, dtype, shape):
        symbol = self.trace.input(dtype, shape)
        self.places[symbol.name] = len(self.types)
        self.feeds.append(len(self.types))
        self.types.append((symbol.dtype, list(shape)))
        return symbol

    def place(self, symbol):
        """The slot of a value that is one, or None."""
        return self.places.get(symbol.name) if isinstance(symbol, Tensor) and is_symbolic(symbol) else None

    def host(self, key, make, inputs, results):
        """A step on strings. results: (dtype, sizes); None among the sizes: known when it ran."""
        at = [self.place(x) for x in inputs]
        if None in at:
            not_traceable(f"{key[0]} works on strings that the function computes")
        number = len(self.steps)
        if number < len(self.known):
            step = self.known[number]
            if step[0] != key or step[2] != at:
                not_traceable(f"{key[0]} depends on the shape of an element")
        else:
            step = (key, make(), at)
        self.steps.append(step)
        return [self.slot(dtype, self._sized(shape)) for dtype, shape in results]

    def _sized(self, shape):
        self.wanted.append(list(shape))
        if self.sizes is not None and len(self.types) < len(self.sizes):
            return self.sizes[len(self.types)]
        if None not in shape:
            return list(shape)
        self.open = True
        probes = _LARGE if len(shape) == 3 else _PROBES
        return [probes[self.probe][n] if d is None else d for n, d in enumerate(shape)]


@contextlib.contextmanager
def _recording(made):
    before, outer = _stoker.swap_trace(made.trace), recorder()
    _current.recorder = made
    try:
        yield
    finally:
        _current.recorder = outer
        _stoker.swap_trace(before)


def _title(function):
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    if code is None:
        return name
    return f"{name} ({code.co_filename.rpartition('/')[2]}:{code.co_firstlineno})"


class MapFunction:
    """A user's function over elements of a specification. `fn` is what the pipeline takes, `spec` what comes out."""

    def __init__(self, function, spec, variants=(), sample=None, check=None, serial=None, unpack=None, raise_early=True):
        self.function, self.input_spec, self.title = function, spec, _title(function)
        self.unpack = st.call if unpack is None else unpack
        self.fields = st.fields(spec)
        self.fn = _stoker.MapFn(self.title, len(self.fields), self._record_for)
        self.registered = self.assigns = self.on_device = False
        self.check, self.why, self.steps, self._sample, self.shapes = check, None, [], sample, []
        self._lock = threading.RLock()
        self._infer(list(variants))
        if self.why is not None:
            self.fn.eager = self._run_eagerly
            self.fn.serial = self.assigns or bool(serial) if serial is not None else True
            _put_on_bill(self)
        self.out_fields, self.text = st.fields(self.spec), st.text(self.spec)
        if self.why is not None:  # sizes that were seen are not promised to the pipeline
            self.out_fields = [(d, None if s is None else [-1] * len(s), w) for d, s, w in self.out_fields]

    def __del__(self):
        key = self.title, getattr(self, "why", None)
        if _billed is not None and key in _billed:
            _billed[key] += self.fn.eager_calls

    # Recording.

    def _record(self, shapes, sizes=None, probe=0):
        """Record for concrete shapes of the parts. Gives the recorder and the structure of results."""
        made = self._last = _Recorder(_stoker.Trace(), self.steps, sizes, probe)
        with _recording(made):
            parts = [made.slot(dtype, shape) for (dtype, _, _), shape in zip(self.fields, shapes)]
            values = st.pack(self.input_spec, parts)
            result = self.unpack(self._body, self.input_spec, values)
            result = st.normal(st.tuples(result))
            if self.check is not None:
                result = self.check(result)
        if made.trace.assigned and not self.assigns:
            self.assigns = True
            if self.fn.plans:
                not_traceable("it assigns to a variable for some shapes only")
            self.fn.serial = True
        if any("/device:CPU:" not in v.device for v in made.trace.variables):
            if self.fn.plans:
                not_traceable(_ON_DEVICE)
            self.on_device = True
        if any(hasattr(leaf, "_pipe") for leaf in st.leaves(result)):
            not_traceable("it gives a dataset")
        if len(made.steps) < len(self.steps):
            not_traceable("what it does with strings depends on the shape of an element")
        return made, result

    def _body(self, *args, **kwargs):
        function = getattr(self.function, "_python_function", self.function)
        return _autograph_ops.call(function, *args, **kwargs)

    def _add(self, made, result):
        """Make the recording a plan of the MapFn; one over variables of a device only tells what comes out."""
        if self.on_device:
            return
        self._register(made)
        outputs = []
        for part in st.flat_parts(result):
            place = made.place(part)
            outputs.append(part if place is None else place)
        self.fn.plan([(d, s) for d, s in made.types], made.trace, made.feeds, outputs)
        self.shapes.append([_shape(p) for p in st.flat_parts(result)])

    def _register(self, made):
        """The steps on strings are the same for all recordings."""
        if not self.registered:
            self.registered = True
            for _, host, at in made.steps:
                self.fn.step(host, at)
            self.steps = made.steps

    def _record_for(self, values):
        """Called by a worker, with the lock, for an element whose shapes are new."""
        with self._lock:
            if self.fn.records > _MOST_RECORDINGS and 3 * self.fn.records > self.fn.calls:
                self._give_up("nearly every element has a shape of its own")
                return
            shapes = [v.shape.as_list() for v in values]
            try:
                made, result = self._record(shapes[:len(self.fields)], shapes)
                if self.on_device:
                    not_traceable(_ON_DEVICE)
                self._compare(result)
                self._add(made, result)
            except (NotTraceable, NotImplementedError, errors.OperatorNotAllowedInGraphError) as why:
                self._give_up(str(why))

    def _compare(self, result):
        """A recording for other shapes must give what was promised."""
        made = [(p.dtype, p.shape) for p in st.flat_parts(result)]
        for (dtype, shape), (want, sizes, _) in zip(made, self.out_fields):
            if dtype != want or (sizes is not None and len(sizes) != shape.rank):
                not_traceable("the kind of its result depends on the shape of an element")

    def _give_up(self, why):
        self.why = why
        self.fn.eager = self._run_eagerly
        _put_on_bill(self)

    # What comes out.

    def _infer(self, variants):
        try:
            self._infer_recorded(variants)
            if self.on_device:
                self.why = _ON_DEVICE
        except (NotTraceable, NotImplementedError, errors.OperatorNotAllowedInGraphError) as why:
            self._infer_eagerly(str(why) or type(why).__name__, why)
        except errors.InvalidArgumentError as error:  # what TensorFlow finds while it records is a mistake of the program
            kind = TypeError if "was expected to be a" in str(error) else ValueError
            raise kind(str(error)).with_traceback(error.__traceback__) from None
        except Exception as error:
            if any(str(getattr(d, "name", d)) == "string" or ds for d, _, ds in self.fields):
                self._infer_eagerly(f"it cannot be recorded: {error}", error)
                return
            told = _autograph.explain(error) if not _base.recording() else None
            if told is None:
                raise
            raise told.with_traceback(error.__traceback__) from None

    def _infer_recorded(self, variants):
        if debug:
            not_traceable("tf.data runs in debug mode")
        if any(is_dataset for _, _, is_dataset in self.fields):
            not_traceable("its argument is a dataset")
        if any(shape is None for _, shape, _ in self.fields):
            not_traceable("the rank of its argument is not known")
        known = all(-1 not in shape for _, shape, _ in self.fields)
        if known:
            shapes = [shape for _, shape, _ in self.fields]
            made, result = self._probe(shapes, 0)
            if not made.open:
                self._add(made, result)
                self.spec = st.map_leaves(st.spec_of, result)
                return
            self._infer_open([shapes, shapes], (made, result), False)
        elif variants:
            first = variants[0]
            real = len(variants) > 1
            second = variants[1] if real else self._other(first)
            self._infer_open([first, second], None, real)
        else:
            self._infer_open([self._probed(0), self._probed(1)], None, None)

    def _probed(self, probe):
        return [[_PROBES[probe][n] if d < 0 else d for n, d in enumerate(shape)] for _, shape, _ in self.fields]

    def _other(self, shapes):
        """Sizes that are open, one larger."""
        return [[s + 1 if d < 0 else s for d, s in zip(shape, mine)] for (_, shape, _), mine in zip(self.fields, shapes)]

    def _infer_open(self, pair, first, second_is_real):
        """Two recordings with different sizes: what differs in the results is open."""
        made, result = first or self._probe(pair[0], 0)
        with _quiet():
            other, again = self._probe(pair[1], 1)
        self._register(made)
        if not made.open and second_is_real is not None:
            self._add(made, result)
            if second_is_real and not other.open:
                self._add(other, again)
        one = st.map_leaves(st.spec_of, result)
        two = iter(st.leaves(st.map_leaves(st.spec_of, again)))
        self.spec = st.map_leaves(lambda a: _open(a, next(two)), one)

    def _probe(self, shapes, probe):
        try:
            return self._record(shapes, None, probe)
        except (NotTraceable, NotImplementedError):
            raise
        except Exception:
            guessed = self._last.open or self._is_open()
            values = next(iter(self._samples()), None) if guessed else None  # guessed sizes may not do: take an element
            if values is None:
                raise
            made, result = self._record_sample(values, probe)
            made.open = True
            return made, result

    def _record_sample(self, values, probe):
        """Record for the sizes of an element; for the second recording open sizes are doubled, if the function lets them."""
        recorder = self._run_until_known(values)
        shapes = [list(s) for _, s in recorder.types]
        if probe:
            wanted = [[None if d < 0 else d for d in f[1]] for f in self.fields] + recorder.wanted
            other = [[2 * s if d is None else s for s, d in zip(shape, want)] for shape, want in zip(shapes, wanted)]
            try:
                return self._record(other[:len(self.fields)], other)
            except Exception:  # sizes that cannot be other ones are not open
                pass
        return self._record(shapes[:len(self.fields)], shapes)

    def _run_until_known(self, values):
        """A recorder whose slots have the sizes of this element: steps are run one after the other."""
        values, at = list(values), 0
        while True:
            sizes = [v.shape.as_list() for v in values]
            made = _Recorder(_stoker.Trace(), [], sizes, 0)
            failure = None
            with _recording(made):
                parts = [made.slot(dtype, shape) for (dtype, _, _), shape in zip(self.fields, sizes)]
                try:
                    self.unpack(self._body, self.input_spec, st.pack(self.input_spec, parts))
                except Exception as error:
                    failure = error
            if len(made.steps) <= at:
                if failure is not None:
                    raise failure
                return made
            for _, host, inputs in made.steps[at:at + 1]:
                values += host(*[values[n] for n in inputs])
            at += 1

    def _samples(self):
        """The first elements; what cannot be read is told of when the elements are wanted."""
        try:
            yield from self._sample() if self._sample is not None else ()
        except errors.OpError:
            return

    def _infer_eagerly(self, why, error=None):
        """The specification of what Python code gives is learnt from the first elements that do not fail: their sizes may depend on
        values, so what differs among them is not promised."""
        self.why, failure, learnt = why, error, []
        self.used_python = False
        for _, values in zip(range(4), self._samples()):
            try:
                before = _base.python_calls
                with _quiet() if learnt else contextlib.nullcontext():
                    result = self._call(values)
                asked = _base.python_calls != before
            except Exception as one:
                failure = one
                continue
            sizes_depend = asked or isinstance(error, errors.OperatorNotAllowedInGraphError)
            learnt.append(self._spec_of_samples(values, result, sizes_depend))
            if asked:  # Python code may count its calls
                break
        if learnt:
            self.spec = functools.reduce(_common, learnt)
            return
        if failure is None or (failure is error and isinstance(error, NotTraceable)):  # no element at all
            self.spec = self.input_spec
            return
        if failure is error and isinstance(error, errors.OperatorNotAllowedInGraphError):
            raise error
        self._failure = failure
        self.spec = TensorSpec((), "string")

    def _spec_of_samples(self, values, result, asked):
        """What one element gave, and a second one with other sizes where sizes are open."""
        spec = st.map_leaves(st.spec_of, result)
        if not asked and not self._is_open():
            return spec
        if not asked:
            try:
                with _quiet():
                    other = self._call([_resized(v, f) for v, f in zip(values, self.fields)])
                second = iter(st.leaves(st.map_leaves(st.spec_of, other)))
                return st.map_leaves(lambda a: _open(a, next(second)), spec)
            except Exception:  # then nothing is promised
                pass
        return st.map_leaves(lambda a: _loose(a, True), spec)

    def _is_open(self):
        return any(shape is None or -1 in shape for _, shape, _ in self.fields)

    def _call(self, values):
        result = self.unpack(self.function, self.input_spec, st.pack(self.input_spec, values))
        result = st.normal(st.tuples(result))
        return self.check(result) if self.check is not None else result

    def _run_eagerly(self, values):
        if not _host_books.on:
            return st.flat_parts(self._call(values))
        with _host_books.timed("map", *_host_books.place_of(self.function)):
            return st.flat_parts(self._call(values))


@contextlib.contextmanager
def _quiet():
    """The second recording is ours, not the program's: what it prints was printed before."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def _shape(part):
    return part.shape.as_list()


def _common(first, second):
    other = iter(st.leaves(second))
    return st.map_leaves(lambda a: _open(a, next(other)), first)


def _open(a, b):
    if isinstance(a, SparseTensorSpec) and isinstance(b, SparseTensorSpec) and a.shape.rank == b.shape.rank:
        return st.merge(a, b)
    if not isinstance(a, TensorSpec) or not isinstance(b, TensorSpec):
        return _loose(a, True)
    if a.dtype != b.dtype or a.shape.rank != b.shape.rank:
        not_traceable("the kind of its result depends on the shape of an element")
    return TensorSpec([x if x == y else None for x, y in zip(a.shape.as_list(), b.shape.as_list())], a.dtype)


def _resized(value, field):
    """An element's part with other sizes where they are open."""
    dtype, sizes, is_dataset = field
    if is_dataset or sizes is None or -1 not in sizes:
        return value
    array = np.asarray(value.numpy())
    for axis, size in enumerate(sizes):
        if size < 0:
            n = array.shape[axis]
            array = array.take(range(n - 1), axis) if n > 1 else np.concatenate([array, array], axis)
    return tensor(array, value.dtype)


def _loose(spec, is_open):
    """A specification learnt from one element: sizes are not promised when others may differ."""
    if not is_open or not isinstance(spec, TensorSpec):
        return spec
    return TensorSpec([None] * spec.shape.rank, spec.dtype)


def scalar(kind, what):
    """A check that a function gives one scalar of a kind."""

    def check(result):
        flat = st.flat_parts(result)
        if len(flat) != 1 or flat[0].dtype.name != kind or flat[0].shape.rank not in (0, None):
            raise ValueError(f"{what} must return a single {kind} scalar, got {st.map_leaves(st.spec_of, result)}")
        return result

    return check


__all__ = ["MapFunction", "bill", "recorder", "scalar", "np", "tensor"]
