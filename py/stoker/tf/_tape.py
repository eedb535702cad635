"""tf.GradientTape over the extension's tape, and custom gradients."""
import contextlib
import threading

import numpy as np

from stoker import _stoker
from stoker.tf import errors, nest
from stoker.tf._base import Tensor, Variable, dims, not_traceable, o, recording, tensor


class UnconnectedGradients:
    NONE, ZERO = "none", "zero"


def _source(x):
    """The tensor or variable behind something that holds one (a Keras variable, a ragged tensor)."""
    if isinstance(x, (Tensor, Variable)):
        return x
    inner = getattr(x, "_value", None)
    if isinstance(inner, (Tensor, Variable)):
        return inner
    inner = getattr(x, "handle", None)
    if isinstance(inner, (Tensor, Variable)):
        return inner
    if hasattr(x, "flat_values"):
        return x.flat_values
    raise ValueError(f"Passed in object {x} of type '{type(x).__name__}', not tf.Tensor or tf.Variable or ExtensionType.")


class GradientTape:
    """Records operations so that gradients can be asked for."""

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self._tape = _stoker.Tape(watch_accessed_variables)
        self._persistent, self._used, self._rows = persistent, False, []

    def __enter__(self):
        self._tape.start()
        _open_tapes().append(self)
        return self

    def __exit__(self, *exc):
        if self in _open_tapes():
            _open_tapes().remove(self)
        if self._tape.active:
            self._tape.stop()

    def watch(self, tensor):
        for x in nest.flatten(tensor):
            source = _source(x)
            if not source.dtype.is_floating:
                import logging

                logging.getLogger("tensorflow").warning(
                    "The dtype of the watched tensor must be floating (e.g. tf.float32), got %r", source.dtype)
            self._tape.watch(source)

    @contextlib.contextmanager
    def stop_recording(self):
        self._tape.pause()
        try:
            yield
        finally:
            self._tape.resume()

    def reset(self):
        self._tape.reset()
        self._used, self._rows = False, []

    def watched_variables(self):
        return tuple(self._tape.watched_variables())

    def _use(self):
        if self._used:
            raise RuntimeError("A non-persistent GradientTape can only be used to compute one set of gradients (or "
                               "jacobians)")
        if not self._persistent:
            if self._tape.active:
                self._tape.stop()
            self._used = True

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients=UnconnectedGradients.NONE):
        self._use()
        targets = [_source(t) if not isinstance(t, Variable) else t for t in nest.flatten(target)]
        for t in targets:
            if not t.dtype.is_floating:
                import logging

                logging.getLogger("tensorflow").warning(
                    "The dtype of the target tensor must be floating (e.g. tf.float32) when calling GradientTape.gradient, "
                    "got %r", t.dtype)
        given = None
        if output_gradients is not None:
            given = [None if g is None else tensor(g) for g in nest.flatten(output_gradients)]
        flat = nest.flatten(sources)
        plain = [_source(s) for s in flat]
        rows = [r for r in self._rows if any(r[0] is s for s in plain)] if self._rows and not recording() else []
        try:
            made = self._tape.gradient([_target(t) for t in targets], plain + [r[2] for r in rows], given)
        except errors.UnimplementedError as error:
            if recording():  # a loop of which nobody knows how often it turns: eagerly its steps are known
                not_traceable(f"its gradient has no program: {error.message}")
            raise
        if rows:
            made = [_by_rows(g, s, [(i, d) for (v, i, _), d in zip(rows, made[len(plain):]) if v is s and d is not None])
                    for g, s in zip(made, plain)]
        if unconnected_gradients in (UnconnectedGradients.ZERO, "zero"):
            made = [_zeros(s) if g is None else g for g, s in zip(made, flat)]
        return nest.pack_sequence_as(sources, made)

    def jacobian(self, target, sources, unconnected_gradients=UnconnectedGradients.NONE, parallel_iterations=None,
                 experimental_use_pfor=True):
        """Row by row: one backward pass per element of the target."""
        self._use()
        target = tensor(target)
        flat = [_source(s) for s in nest.flatten(sources)]
        count = int(np.prod(dims(target), dtype=np.int64))
        rows = []
        for n in range(count):
            one = np.zeros(count, target.dtype.as_numpy_dtype)
            one[n] = 1
            rows.append(self._tape.gradient([target], flat, [tensor(one.reshape(dims(target)))]))
        results = []
        for column, source in zip(zip(*rows), flat):
            if all(c is None for c in column):
                results.append(_zero_of(target, source) if unconnected_gradients in ("zero",) else None)
                continue
            parts = [_zeros(source) if c is None else c for c in column]
            results.append(o.reshape(o.stack(parts), dims(target) + source.shape.as_list()))
        return nest.pack_sequence_as(sources, results)

    def batch_jacobian(self, target, source, unconnected_gradients=UnconnectedGradients.NONE, parallel_iterations=None,
                       experimental_use_pfor=True):
        self._use()
        target, source = tensor(target), _source(source)
        batch = dims(target)[0]
        width = int(np.prod(dims(target)[1:], dtype=np.int64))
        parts = []
        for n in range(width):
            one = np.zeros([batch, width], target.dtype.as_numpy_dtype)
            one[:, n] = 1
            (g,) = self._tape.gradient([target], [source], [tensor(one.reshape(dims(target)))])
            if g is None:
                return None
            parts.append(g)
        return o.reshape(o.stack(parts, axis=1), dims(target) + source.shape.as_list()[1:])


GradientTape.__module__ = "tensorflow.python.eager.backprop"


# What was gathered from a variable has a gradient by rows (IndexedSlices) where nothing else used the variable.

_local = threading.local()


def _open_tapes():
    if not hasattr(_local, "tapes"):
        _local.tapes = []
    return _local.tapes


def note_rows(source, indices, rows):
    """tf.gather tells the open tapes of rows that it took from a variable."""
    source = source if isinstance(source, Variable) else getattr(source, "_value", None)
    if isinstance(source, Variable) and not _stoker.is_symbolic(rows):
        for tape in _open_tapes():
            tape._rows.append((source, indices, rows))


def _by_rows(gradient, source, parts):
    """IndexedSlices, if the rows add up to the whole gradient; else something besides the gathers used the variable."""
    from stoker.tf._sparse import IndexedSlices

    if not parts or gradient is None or _stoker.is_symbolic(gradient):
        return gradient
    sizes, kinds = source.shape.as_list(), {i.dtype.name for i, _ in parts}
    rows = [o.reshape(d, [-1] + sizes[1:]) for _, d in parts]
    places = [o.reshape(i if len(kinds) == 1 else o.cast(i, "int64"), [-1]) for i, _ in parts]
    whole, total = gradient.numpy(), np.zeros(sizes, gradient.dtype.as_numpy_dtype)
    for place, row in zip(places, rows):
        np.add.at(total, place.numpy(), row.numpy())
    if not np.allclose(whole, total, rtol=1e-4, atol=1e-6 * float(np.max(np.abs(whole), initial=0))):
        return gradient
    many = len(rows) > 1
    return IndexedSlices(o.concat(rows, 0) if many else rows[0], o.concat(places, 0) if many else places[0],
                         tensor(np.array(sizes, np.int32)))


def _target(t):
    return t.value() if isinstance(t, Variable) else t


def _zeros(source):
    source = _source(source)
    return tensor(np.zeros(source.shape.as_list(), source.dtype.as_numpy_dtype))


def _zero_of(target, source):
    return tensor(np.zeros(dims(target) + source.shape.as_list(), source.dtype.as_numpy_dtype))


def gradients(ys, xs, grad_ys=None, name="gradients", gate_gradients=False, aggregation_method=None, stop_gradients=None,
              unconnected_gradients=UnconnectedGradients.NONE):
    if _stoker.get_trace() is None:
        raise RuntimeError("tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.")
    tape = _stoker.Tape(True)
    tape.start()
    tape.cover()
    tape.stop()
    return tape.gradient([tensor(y) for y in nest.flatten(ys)], [_source(x) for x in nest.flatten(xs)], grad_ys)


def custom_gradient(f=None):
    """y, grad = f(*args): the gradient of y is what grad(dy) says."""
    import functools

    if f is None:
        return custom_gradient

    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        return _with_gradient(f, args, kwargs)

    return wrapped


def without_gradient(title, function):
    """A function that has no gradient in TensorFlow: programs find that out by asking for it."""

    def refuse(*_, **__):
        raise LookupError(f"gradient registry has no entry for: {title}")

    def run(*args):
        return custom_gradient(lambda *inner: (function(*inner), refuse))(*args) if _open_tapes() else function(*args)

    return run


def _with_gradient(f, args, kwargs):
    flat = nest.flatten(args)
    places = [n for n, a in enumerate(flat) if _has_value(a)]
    inputs = [tensor(flat[n]) for n in places]
    for n, x in zip(places, inputs):
        flat[n] = x
    seen = _stoker.Tape(True)  # variables that f reads: its grad function gives their gradients, too
    seen.start()
    try:
        made, grad = f(*nest.pack_sequence_as(args, flat), **kwargs)
    finally:
        seen.stop()
    known = {id(x) for x in flat if isinstance(x, Variable)}
    variables = [v for v in seen.watched_variables() if id(v) not in known] if _takes_variables(grad) else []
    sources = inputs + [v.value() for v in variables]
    outputs = [tensor(m) for m in nest.flatten(made)]

    def backward(*dy):
        if variables:
            dx, dv = grad(*dy, variables=variables)
        else:
            dx, dv = grad(*dy), []
        return [None if g is None else tensor(g) for g in _as_list(dx, len(inputs)) + list(dv)]

    backward.ninputs = len(sources)
    trace = _stoker.get_trace()
    if trace is not None and any(_stoker.is_symbolic(x) for x in sources + outputs):
        outputs = trace.custom(outputs, sources, backward)
    else:
        outputs = [o.stop_gradient(y) for y in outputs]
        _stoker.note_gradient(sources, outputs, backward)
    return nest.pack_sequence_as(made, outputs)


def _has_value(a):
    return isinstance(a, (Tensor, Variable, np.ndarray, np.generic)) or hasattr(a, "__tf_tensor__")


def _as_list(dx, n):
    flat = nest.flatten(dx)
    if len(flat) != n:
        raise ValueError(f"custom_gradient: the function gave {len(flat)} gradients for {n} inputs")
    return flat


def _takes_variables(grad):
    import inspect

    try:
        parameters = inspect.signature(grad).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters)
