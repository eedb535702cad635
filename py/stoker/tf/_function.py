"""tf.function: a Python function traced once per signature, then run as a program.

Tensors and arrays are keyed by dtype and shape, Python numbers by value, other objects by identity. Variables are read
when the program runs. What cannot be a program (values decide about shapes, a dataset is iterated) runs eagerly; the
function remembers why.
"""
import copy
import functools
import inspect
import logging
import threading
import types
import weakref

import numpy as np

from stoker import _autograph, _host_books, _stoker
from stoker.tf import errors, nest
from stoker.tf._asked import TraceType, _Asked, _describe, _example_of, _signature_of, _WithoutProgram
from stoker.tf._base import MakesVariable, NotTraceable, Tensor, Variable, is_symbolic, o, tensor
from stoker.tf._specs import RaggedTensorSpec, SparseTensorSpec, TensorSpec, TypeSpec

_log = logging.getLogger("stoker")
_state = types.SimpleNamespace(eager=False)
runs_eagerly = []  # functions that no program can hold, for reports


def run_functions_eagerly(run_eagerly):
    _state.eager = bool(run_eagerly)
    _stoker.functions_eager(_state.eager)


def functions_run_eagerly():
    return _state.eager


class _Slot:
    """The place of a tensor in a structure of arguments."""

    __slots__ = ("index",)

    def __init__(self, index):
        self.index = index


_COMPOSITE = "_to_components"


def _key_of(x):
    """What an argument contributes to the signature; tensors are added by the caller."""
    if x is None or isinstance(x, (bool, int, float, str, bytes, complex)):
        return x
    if isinstance(x, TypeSpec):
        return ("spec", str(x))
    if hasattr(x, "__tf_tracing_type__") and isinstance(kind := x.__tf_tracing_type__(None), TraceType):
        return kind
    try:
        hash(x)
        if isinstance(x, (type, types.FunctionType, types.MethodType, enum_type)):
            return x
    except TypeError:
        pass
    return ("object", id(x))


import enum as _enum  # noqa: E402

enum_type = _enum.Enum


class _Call:
    """Arguments of one call: the signature, the tensors, and what is needed to rebuild the structure."""

    __slots__ = ("key", "tensors", "structure", "leaves", "objects")

    def __init__(self, args, kwargs):
        self.tensors, self.leaves, self.objects = [], [], False  # objects: some are known by identity
        parts = []
        self.structure = (args, kwargs)
        for leaf in nest.flatten((args, kwargs)):
            if hasattr(leaf, _COMPOSITE):
                for inner in leaf._to_components():
                    self._add(inner, parts)
                parts.append(leaf._signature_key())
                self.leaves.append(leaf)
                continue
            if isinstance(leaf, Tensor) or isinstance(leaf, (np.ndarray, np.generic)):
                self.leaves.append(_Slot(len(self.tensors)))
                self._add(leaf, parts)
            else:
                part = _key_of(leaf)
                self.objects |= type(part) is tuple
                parts.append(part)
                self.leaves.append(leaf)
        self.key = (_shape_of_structure(args), _shape_of_structure(kwargs), tuple(parts), _stoker.device_key())

    def _add(self, leaf, parts):
        if not isinstance(leaf, Tensor):
            leaf = tensor(leaf)
        self.tensors.append(leaf)
        parts.append((leaf.dtype.name, tuple(leaf.shape.as_list())))

    def rebuild(self, values):
        """Arguments with these tensors in the slots."""
        flat, feed = [], iter(values)
        for leaf in self.leaves:
            if type(leaf) is _Slot:
                flat.append(next(feed))
            elif hasattr(leaf, _COMPOSITE):
                flat.append(leaf._from_components([next(feed) for _ in leaf._to_components()]))
            else:
                flat.append(leaf)
        return nest.pack_sequence_as(self.structure, flat)


def _shape_of_structure(value):
    if isinstance(value, dict):
        return ("d",) + tuple((k, _shape_of_structure(value[k])) for k in sorted(value, key=str))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__,) + tuple(_shape_of_structure(v) for v in value)
    return None


class Concrete:
    """One trace: tf's ConcreteFunction."""

    def __init__(self, name, program, outputs, structure, call, variables, source=None, single=False):
        self.name, self._program, self._call = name, program, call
        self._outputs, self._structure = outputs, structure  # leaves: _Slot into the program's results, or values
        self.single = single  # the result is the program's only one
        self.variables = variables
        self.trainable_variables = tuple(v for v in variables if v.trainable)
        self.captured_inputs, self.graph = [], self
        self._source, self._backward = source, None  # (trace, tape, symbolic inputs, symbolic results)
        self.asked = None  # what get_concrete_function was asked for

    def run(self, tensors):
        if _stoker.taped():
            return self._run_taped(tensors)
        return self.pack(self._program(*tensors))

    def _run_taped(self, tensors):
        """As one operation of the tapes: its gradient is a program, too."""
        variables = self._source[0].variables
        sources = list(tensors) + [v.value() for v in variables]
        step = self._program.runs
        results = [o.stop_gradient(y) for y in self._program(*tensors)]

        def backward(*dy):
            return self._gradients(sources, dy, step)

        backward.ninputs = len(sources)
        _stoker.note_gradient(sources, results, backward)
        return self.pack(results)

    def _gradients(self, sources, dy, step):
        if self._backward is None:
            self._backward = self._make_backward()
        program, which, places = self._backward
        if program is None:
            return [None] * len(sources)
        program.set_step(step)  # random numbers are those of the run that is differentiated
        given = list(sources) + [d for d, y in zip(dy, self._source[3]) if y.dtype.is_floating]
        made = iter(program(*[given[n] for n in which]))
        return [next(made) if there else None for there in places]

    def _make_backward(self):
        trace, tape, inputs, outputs = self._source
        before = _stoker.swap_trace(trace)
        try:
            leaves = [trace.leaf(v) for v in trace.variables]
            targets = [y for y in outputs if y.dtype.is_floating]
            dy = [trace.input(y.dtype, y.shape.as_list()) for y in targets]
            wanted = inputs + leaves
            made = tape.gradient(targets, wanted, dy)
            found = [g for g in made if g is not None]
            if not found:
                return None, [], []
            program, which = _stoker.Program.part(trace, wanted + dy, found)
        finally:
            _stoker.swap_trace(before)
        return program, which, [g is not None for g in made]

    def pack(self, results):
        if self.single:
            return results[0]
        flat = []
        for leaf in self._outputs:
            if type(leaf) is _Slot:
                flat.append(results[leaf.index])
            elif type(leaf) is tuple and leaf and leaf[0] is _COMPOSITE:
                flat.append(leaf[1]._from_components([results[s.index] for s in leaf[2]]))
            else:
                flat.append(leaf)
        return nest.pack_sequence_as(self._structure, flat)

    def __call__(self, *args, **kwargs):
        """Other sizes than those of the trace, which specifications with open sizes allow, go by way of the function."""
        if self.asked is not None:
            self.asked.check(self.name, args, kwargs)
        given = _Call(args, kwargs)
        known = [(t.dtype.name, t.shape.as_list()) for t in self._call.tensors]
        same = [(t.dtype.name, t.shape.as_list()) for t in given.tensors] == known
        composite = any(hasattr(leaf, _COMPOSITE) for leaf in given.leaves)
        if self.asked is None or (same and not composite):
            return self.run(given.tensors)
        return self.asked.again(args, kwargs)

    @property
    def structured_input_signature(self):
        if self.asked is not None:
            return self.asked.specs
        specs = [TensorSpec(t.shape, t.dtype) for t in self._call.tensors]
        return self._call.rebuild(specs)

    @property
    def structured_outputs(self):
        return self._outputs[0] if self.single else nest.pack_sequence_as(self._structure, self._outputs)

    @property
    def inputs(self):
        return list(self._call.tensors)

    @property
    def function_type(self):
        return self.asked.signature() if self.asked is not None else _signature_of(self.structured_input_signature, None)

    inference_fn = property(lambda self: self)

    def pretty_printed_signature(self, verbose=True):
        parts = ", ".join(f"{t.dtype.name}{tuple(t.shape.as_list())}" for t in self._call.tensors)
        return f"{self.name}({parts})"

    def as_graph_def(self):
        return self._program.dump()

    def __repr__(self):
        return f"<ConcreteFunction {self.pretty_printed_signature()} at 0x{id(self):X}>"


class Function(_stoker.FastFunction):
    """What @tf.function gives."""

    traced_once = False  # True: whoever made it answers for what it makes at its first call

    def __init__(self, python_function, name=None, input_signature=None, autograph=True, reduce_retracing=False,
                 jit_compile=None, **options):
        self._python_function = python_function
        self._name = name or getattr(python_function, "__name__", "function")
        self._signature = None if input_signature is None else tuple(input_signature)
        self._autograph, self._jit_compile = autograph, jit_compile
        self._traces, self._count = {}, 0
        self._asked, self._asked_keys = [], set()  # specifications that get_concrete_function was given, and their traces
        self._why_eager = None
        self._lock = threading.RLock()
        self._created = False
        self._methods = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, python_function, updated=())
        try:
            self._arguments = inspect.signature(python_function)
            self._plain = not any(p.kind in (p.VAR_KEYWORD, p.KEYWORD_ONLY) or p.default is not p.empty
                                  for p in self._arguments.parameters.values())
        except (TypeError, ValueError):
            self._arguments, self._plain = None, True

    # Methods: each object has traces of its own.

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        try:
            bound = self._methods.get(instance)
        except TypeError:
            bound = None
        if bound is None:
            reference = types.MethodType(self._python_function, instance)
            bound = Function(reference, self._name, None, self._autograph, jit_compile=self._jit_compile)
            bound._signature = self._signature
            try:
                self._methods[instance] = bound
            except TypeError:
                pass
        return bound

    python_function = property(lambda self: self._python_function)
    input_signature = property(lambda self: self._signature)
    function_spec = property(lambda self: self._arguments)

    def experimental_get_tracing_count(self):
        return self._count

    def pretty_printed_concrete_signatures(self, verbose=True):
        return "\n\n".join(c.pretty_printed_signature() for c in self._traces.values())

    def why_eager(self):
        """None, or the reason why this function runs without a program."""
        return self._why_eager

    # Calling.

    def _call(self, *args, **kwargs):
        """The way of a call that the extension has not seen before."""
        if _state.eager:
            return self._run_plainly(args, kwargs)
        given = None if kwargs else args
        if kwargs or not self._plain:
            args, kwargs = self._bind(args, kwargs)
        if self._signature is not None:
            args = self._check_signature(args)
        if self._why_eager is not None:
            return self._run_without_program(args, kwargs)
        call = _Call(args, kwargs)
        if _stoker.get_trace() is not None or any(is_symbolic(t) for t in call.tensors):
            return self._inline(args, kwargs)
        concrete = self._traces.get(call.key)
        if concrete is None:
            concrete = self._trace(call)
            if concrete is None:
                return self._run_without_program(args, kwargs)
            if type(concrete) is _Done:
                return concrete.value
        if given is not None and not call.objects:
            self._remember(given, call.tensors, concrete._program, None if concrete.single else concrete.pack)
        return concrete.run(call.tensors)

    def _bind(self, args, kwargs):
        try:
            bound = self._arguments.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"Binding inputs to tf.function failed due to `{error}`. Received args: {args} and kwargs: "
                            f"{kwargs} for signature: {self._arguments}.") from None
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _check_signature(self, args):
        """Arguments behind those of the signature have their defaults."""
        extra = tuple(args[len(self._signature):])
        if extra and extra == self._defaults_behind(len(self._signature), len(extra)):
            return tuple(self._check_signature(args[:len(self._signature)])) + extra
        flat = nest.flatten_up_to(self._signature, tuple(args)) if len(args) == len(self._signature) else None
        specs = nest.flatten(self._signature)
        if flat is None:
            raise TypeError(f"Binding inputs to tf.function failed due to `{self._name}() takes {len(self._signature)} "
                            f"arguments but {len(args)} were given`.")
        values = []
        for spec, value in zip(specs, flat):
            if isinstance(spec, TensorSpec):
                try:
                    value = tensor(value, spec.dtype)
                except (ValueError, TypeError):
                    raise TypeError(f"Binding inputs to tf.function failed due to `Can not cast {_describe(value)} to "
                                    f"{spec!r}`. Received args: {args} and kwargs: {{}} for signature: {self._signature}."
                                    ) from None
                if not spec.shape.is_compatible_with(value.shape):
                    raise TypeError(f"Binding inputs to tf.function failed due to `Can not cast {_describe(value)} to "
                                    f"{spec!r}`. Received args: {args} and kwargs: {{}} for signature: {self._signature}.")
            elif isinstance(spec, (RaggedTensorSpec, SparseTensorSpec)) and not spec.is_compatible_with(value):
                raise TypeError(f"Binding inputs to tf.function failed due to `Can not cast {getattr(value, '_type_spec', value)!r} to "
                                f"{spec!r}`. Received args: {args} and kwargs: {{}} for signature: {self._signature}.")
            values.append(value)
        return nest.pack_sequence_as(self._signature, values)

    def _defaults_behind(self, first, count):
        behind = [] if self._arguments is None else list(self._arguments.parameters.values())[first:first + count]
        return tuple(p.default for p in behind) if not any(p.default is p.empty for p in behind) else None

    def _body(self):
        """The function to trace: rewritten for tensors in control flow."""
        if not self._autograph:
            return self._python_function
        from stoker import _autograph_ops

        return functools.partial(_autograph_ops.call, self._python_function)

    def _inline(self, args, kwargs):
        """Called inside of another function's trace: part of that program."""
        return self._body()(*args, **kwargs)

    def _run_plainly(self, args, kwargs):
        return self._python_function(*args, **kwargs)

    def _run_without_program(self, args, kwargs):
        """As a program would, it gives tensors: numbers, texts and arrays become some."""
        made = self._run_plainly(args, kwargs)
        return made if isinstance(made, Tensor) or made is None else nest.map_structure(_as_result, made)

    def _trace(self, call):
        with self._lock:
            if call.key in self._traces:
                return self._traces[call.key]
            try:
                made = _stoker.booked("trace", self._record, (call,))
            except MakesVariable:
                return _Done(self._make_variables(call))
            except NotTraceable as why:
                self._why_eager = str(why)
                runs_eagerly.append(self)
                _log.info("tf.function %s runs eagerly: %s", self._name, why)
                return None
            if type(made) is not _Done:
                self._report_retrace(call)
                if _host_books.on and not self._traces:
                    _host_books.recorded.append(self)
                self._traces[call.key] = made
            return made

    def _make_variables(self, call):
        """The first call as it is, without a program: its variables exist from then on, and the next call is traced."""
        if self._created:
            raise ValueError(_ONCE)
        args, kwargs = call.rebuild(call.tensors)
        self._count += 1
        self._created = True
        return self._run_without_program(args, kwargs)

    def _record(self, call):
        """Trace. Variables that the first trace creates exist from then on; a second trace must create none."""
        trace, tape = _stoker.Trace(), _stoker.Tape(True)
        before = _stoker.swap_trace(trace)
        tape.start()
        made_before = _stoker.variables_made()
        try:
            symbols = [trace.input(t.dtype, t.shape.as_list()) for t in call.tensors]
            args, kwargs = call.rebuild(symbols)
            self._count += 1
            result = self._body()(*args, **kwargs)
            tape.stop()
            made = self._finish(trace, call, result, tape, symbols)
        except NotTraceable:
            raise
        except Exception as error:
            told = _autograph.explain(error) if before is None else None
            if told is None:
                raise
            raise told.with_traceback(error.__traceback__) from None
        finally:
            tape.stop()
            _stoker.swap_trace(before)
        made_now, made_inside = (after - before for after, before in zip(_stoker.variables_made(), made_before))
        if made_inside and self._created:
            raise ValueError(_ONCE)
        again = made_now and not self._created and not self.traced_once and before is None
        self._created = True
        return self._record(call) if again else made  # once the variables are there it must make no others: TensorFlow looks, too

    def _finish(self, trace, call, result, tape, symbols):
        outputs, leaves, places = [], [], {}

        def slot(value):
            key = id(value)
            if key not in places:
                places[key] = len(outputs)
                outputs.append(value)
            return _Slot(places[key])

        for leaf in nest.flatten(result):
            if hasattr(leaf, _COMPOSITE):
                leaves.append((_COMPOSITE, leaf, [slot(p) for p in leaf._to_components()]))
            elif isinstance(leaf, Variable):
                leaves.append(slot(leaf.value()))
            elif isinstance(leaf, Tensor):
                leaves.append(leaf if leaf.dtype.name == "string" else slot(leaf))
            elif leaf is None or isinstance(leaf, TypeSpec):
                leaves.append(leaf)
            elif isinstance(leaf, (int, float, bool, np.ndarray, np.generic)):
                leaves.append(slot(tensor(leaf)))
            elif isinstance(leaf, (str, bytes)):
                leaves.append(tensor(leaf))
            elif hasattr(leaf, "__tf_tensor__"):
                leaves.append(slot(tensor(leaf)))
            else:
                leaves.append(leaf)
        program = _stoker.Program(trace, outputs)
        single = isinstance(result, Tensor) and len(outputs) == 1
        return Concrete(self._name, program, leaves, result, call, tuple(trace.variables),
                        (trace, tape, symbols, outputs), single)

    def _report_retrace(self, call):
        """Many traces of one function are usually a mistake: say which argument changes."""
        if len(self._traces) not in (5, 20, 80):
            return
        last = next(reversed(self._traces.values()))._call.key[2]
        pairs = [(n, a, b) for n, (a, b) in enumerate(zip(last, call.key[2])) if a != b]
        sizes = pairs and all(type(a) is type(b) is tuple and a[0] == b[0] and type(a[1]) is tuple for _, a, b in pairs)
        if sizes and len(self._traces) == 5:
            return  # batches of a few sizes are usual
        changed = [f"argument {n}: {a} became {b}" for n, a, b in pairs[:3]]
        _log.warning("%s was traced %d times; %s. %s", self._name, len(self._traces) + 1,
                     "; ".join(changed) or "its structure changed",
                     "Every shape has a program of its own: pad to a few sizes." if sizes
                     else "Python numbers are part of the signature: pass tensors.")

    def get_concrete_function(self, *args, **kwargs):
        if not args and not kwargs and self._signature is not None:
            args = self._signature
        args, kwargs = self._bind(args, kwargs) if self._arguments is not None else (args, kwargs)
        asked, made = _Asked(self, tuple(args), dict(kwargs)), None
        tries = [(rank, size) for size in (1, 24, 240) for rank in (1, 0, 2, 3, 4)]  # in the place of unknown ones: the first that fit
        for rank, size in tries:
            try:
                values = nest.map_structure(lambda x: _example_of(x, rank, size), (list(args), dict(kwargs)))
                call = _Call(tuple(values[0]), values[1])
                made = self._traces.get(call.key) or self._trace(call)
                if type(made) is _Done:
                    made = self._trace(call)
                break
            except (ValueError, TypeError, errors.OpError):
                if not asked.is_open() or (rank, size) == tries[-1]:
                    raise
        if made is None:
            return _WithoutProgram(asked)
        made = copy.copy(made)
        made.asked, made.graph = asked, made
        if call.key not in self._asked_keys:
            self._asked_keys.add(call.key)
            self._asked.append(asked.specs)
        return made

    def _list_all_concrete_functions(self):
        if self._signature is not None and not self._traces:
            self.get_concrete_function()
        made = [copy.copy(c) for c in self._traces.values()]
        for c in made:
            c.asked = c.asked or _Asked(self, *c._call.rebuild([TensorSpec(t.shape, t.dtype) for t in c._call.tensors]))
        return made

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        return {f"trace_{n}": c for n, c in enumerate(self._list_all_concrete_functions())}

    def __repr__(self):
        return f"<stoker function {self._name}>"


_ONCE = ("tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is only created once or "
         "created outside tf.function. See https://www.tensorflow.org/guide/function#creating_tfvariables for more information.")


class _Done:
    def __init__(self, value):
        self.value = value


def _as_result(value):
    return tensor(value) if isinstance(value, (bool, int, float, str, bytes, np.ndarray, np.generic)) else value


def function(func=None, input_signature=None, autograph=True, jit_compile=None, reduce_retracing=False,
             experimental_implements=None, experimental_autograph_options=None, experimental_attributes=None,
             experimental_relax_shapes=None, experimental_compile=None, experimental_follow_type_hints=None):
    if input_signature is not None and not isinstance(input_signature, (list, tuple)):
        raise TypeError(f"input_signature must be either a tuple or a list, got {type(input_signature)}")

    def decorated(inner):
        if isinstance(inner, Function):
            inner = inner.python_function
        return Function(inner, None, input_signature, autograph, reduce_retracing, jit_compile)

    return decorated if func is None else decorated(func)
