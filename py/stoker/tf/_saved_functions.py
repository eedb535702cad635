"""Functions of saved models: what is written of a tf.function, and what is called after it was read."""
import abc
import inspect

import numpy as np

from stoker.tf import _sizes, errors, nest
from stoker.tf._base import NotTraceable, Tensor, Variable, tensor
from stoker.tf._asked import _is_tensor_like, _WithoutProgram
from stoker.tf._function import Concrete, Function, _Call, _Slot
from stoker.tf._recording import CannotSave
from stoker.tf._replay import check_description, replay
from stoker.tf._saved_file import pack, pack_argument, unpack, unpack_argument
from stoker.tf._specs import TensorSpec, TypeSpec

_RANKS = (0, 1, 2, 3, 4)  # tried where a specification leaves the rank open


# Writing.

def specs_of(function):
    """[(args, kwargs)] with specifications in the places of tensors: what can be called after loading."""
    if isinstance(function, RestoredFunction):
        return [c.specs for c in function.concrete_functions]
    found = []
    if function.input_signature is not None:
        found.append(function._bind(function.input_signature, {}) if function._arguments is not None else (function.input_signature, {}))
    else:
        found += function._asked
        found += [c._call.rebuild([TensorSpec(t.shape, t.dtype) for t in c._call.tensors]) for key, c in function._traces.items()
                  if key not in function._asked_keys]
    return found


def body_of(function):
    return function.body if isinstance(function, RestoredFunction) else function._body()


def describe_function(function, name, store):
    """JSON of a function with all that was traced of it, and the variables that each of them uses."""
    concretes = [describe(name, function, specs, store) for specs in specs_of(function)]
    return {"name": name, "parameters": _parameters(function), "signed": _is_signed(function), "concretes": [c for c in concretes if c is not None]}


def _is_signed(function):
    """Was it made with an input_signature? Calls are bound to that then."""
    return function.told["signed"] if isinstance(function, RestoredFunction) else function.input_signature is not None


def _parameters(function):
    if isinstance(function, RestoredFunction):
        return function.told["parameters"]
    if function._arguments is None:
        return None
    return [[p.name, int(p.kind), None if p.default is p.empty else pack(p.default, pack_argument)]
            for p in function._arguments.parameters.values()]


def _as_spec(x):
    """Values of a trace as specifications of them."""
    return TensorSpec(x.shape, x.dtype) if isinstance(x, (Tensor, np.ndarray, np.generic)) else x


def describe(name, function, specs, store):
    """JSON of a function for these arguments; None: an argument is an object that no file holds."""
    key = id(function), repr(specs)
    if key not in store.memo:
        store.memo[key] = _describe(name, function if isinstance(function, RestoredConcrete) else body_of(function), specs, store.keep)
    return store.memo[key]


def _describe(name, body, specs, keep):
    specs = nest.map_structure(_as_spec, (tuple(specs[0]), dict(specs[1])))
    flat = nest.flatten(specs)
    for x in flat:
        if isinstance(x, TypeSpec) and not isinstance(x, TensorSpec):
            raise CannotSave(f"{name} takes a {x!r}: only functions of dense tensors can be saved")
        if isinstance(x, TensorSpec) and x.dtype.name == "string":
            raise CannotSave(f"{name} takes strings, which are computed with outside of programs: it cannot be saved")
    packed = pack(specs, pack_argument)
    if any(not isinstance(x, TensorSpec) and not (x is None or isinstance(x, (bool, int, float, str))) for x in flat):
        return None
    tensors = [x for x in flat if isinstance(x, TensorSpec)]
    variants, failure = [], None
    for rank in _RANKS if any(s.shape.rank is None for s in tensors) else (0,):
        shapes = [(s.dtype, [None] * rank if s.shape.rank is None else s.shape.as_list()) for s in tensors]
        try:
            variants.append(_describe_for(name, body, specs, flat, shapes, keep))
        except NotTraceable as why:
            raise CannotSave(f"{name} cannot be saved: it has no program ({why})") from why
        except CannotSave:
            raise
        except Exception as error:
            failure = failure or error
    if not variants:
        raise failure
    return {"arguments": packed, "variants": variants}


def _describe_for(name, body, specs, flat, shapes, keep):
    def rebuild(symbols):
        feed = iter(symbols)
        return nest.pack_sequence_as(specs, [next(feed) if isinstance(x, TensorSpec) else x for x in flat])

    made, places, sizes, closed = _sizes.recordings(name, body, shapes, rebuild)
    merged = _sizes.Merged(name, made, places, sizes, keep)
    told = merged.describe()
    slots = nest.pack_sequence_as(made[0].structure, [_Slot(n) for n in made[0].leaves])
    told["structure"] = pack(slots, lambda x: {"slot": x.index})
    told["variables"] = merged.variables  # {number: Variable}; the caller makes numbers of nodes of them
    told["assigned"] = [(v, n) for v, n in made[0].assigned]
    told["ranks"] = [len(shape) for _, shape in shapes]
    told["shapes"] = [list(shape) for _, shape in closed]  # with None for what is open
    return told


# Reading.

class SavedBody(Function):
    """One saved function at one set of ranks: a tf.function whose Python is the replay."""

    def __init__(self, name, told, variables, constants):
        check_description(told)
        known = {int(n): variables[node] for n, node in told["variables"]}
        assigns = [(int(n), int(value)) for n, value in told["assigned"]]
        self.known = known

        def run(*inputs):
            try:
                return tuple(replay(told, known, constants, inputs, assigns))
            except (KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
                errors.raise_(15, f"the saved function {name} is damaged: {type(error).__name__}: {error}")

        run.__name__ = name
        super().__init__(run, autograph=False)

    def _run_plainly(self, args, kwargs):
        """A recording has no Python to run eagerly."""
        call = _Call(args, kwargs)
        made = self._traces.get(call.key) or self._trace(call)
        if made is None:
            raise NotImplementedError(f"{self._name} has no program: {self._why_eager}")
        return made.run(call.tensors)


class RestoredConcrete:
    """A function for one set of arguments: TensorFlow's ConcreteFunction, after loading."""

    def __init__(self, name, told, variables, constants):
        self.name, self.told = name, told
        self.specs = unpack(told["arguments"], unpack_argument)
        self.flat = nest.flatten(self.specs)
        self.bodies = [(v["ranks"], v, SavedBody(name, v, variables, constants)) for v in told["variants"]]
        found = {id(x): x for _, _, b in self.bodies for x in b.known.values()}
        self.variables = tuple(found.values())
        self.trainable_variables = tuple(v for v in self.variables if v.trainable)
        self.captured_inputs, self.graph = [], self

    structured_input_signature = property(lambda self: self.specs)
    inputs = property(lambda self: [x for x in self.flat if isinstance(x, TensorSpec)])

    @property
    def structured_outputs(self):
        variant = self.bodies[0][1]
        return unpack(variant["structure"], lambda leaf: None if leaf["slot"] is None else
                      self._spec(variant["results"][leaf["slot"]]))

    def _spec(self, result, name=None):
        return TensorSpec(result[1] if len(self.bodies) == 1 else None, result[0], name)

    outputs = property(lambda self: [s for s in nest.flatten(self.structured_outputs) if s is not None])

    def matches(self, args, kwargs, convert, cast=False):
        """The tensors of a call that fits, or None. convert: numbers and arrays count as tensors; cast: arrays of any type."""
        if len(args) != len(self.specs[0]) or set(kwargs) != set(self.specs[1]):
            return None
        try:
            leaves = nest.flatten_up_to(self.specs, (tuple(args), dict(kwargs)), check_types=False)
        except (ValueError, TypeError, KeyError):
            return None
        if len(leaves) != len(self.flat):
            return None
        tensors = []
        for want, given in zip(self.flat, leaves):
            if not isinstance(want, TensorSpec):
                if isinstance(given, (Tensor, np.ndarray)) or type(given) is not type(want) or given != want:
                    return None
                continue
            if isinstance(given, TensorSpec):
                if given.dtype != want.dtype or not want.shape.is_compatible_with(given.shape):
                    return None
                tensors.append(given)
                continue
            given = _as_tensor(given, want.dtype, convert, cast)
            if given is None or given.dtype != want.dtype or not want.shape.is_compatible_with(given.shape):
                return None
            tensors.append(given)
        return tensors

    def variant_for(self, tensors):
        """(description, results) of the saved variant for tensors of these ranks."""
        shapes = [t.shape.as_list() for t in tensors]
        for ranks, variant, body in self.bodies:
            if ranks != [len(s) for s in shapes]:
                continue
            for given, saved in zip(shapes, variant["shapes"]):
                if any(d is not None and d != g for d, g in zip(saved, given)):
                    errors.invalid(f"{self.name} was saved for inputs of shapes {variant['shapes']}, not of {shapes}")
            return variant, body(*tensors)
        raise ValueError(f"{self.name} was saved for inputs of ranks {[w for w, _, _ in self.bodies]}, got shapes {shapes}")

    def run(self, tensors):
        variant, made = self.variant_for(tensors)
        return unpack(variant["structure"], lambda leaf: None if leaf["slot"] is None else made[leaf["slot"]])

    def __call__(self, *args, **kwargs):
        """By position or by name; tensors only, as TensorFlow has it."""
        whole, named = list(self.specs[0]), dict(self.specs[1])
        feed = iter(args)
        for n, old in enumerate(whole):
            if any(isinstance(s, TensorSpec) for s in nest.flatten(old)):
                whole[n] = next(feed, kwargs.pop(self.name_of(n), old))
        for key, old in named.items():
            named[key] = kwargs.pop(key, old)
        tensors = None if kwargs else self.matches(tuple(whole), named, True)
        if tensors is None or any(isinstance(t, TensorSpec) for t in tensors):
            raise TypeError(f"{self.name} was called with arguments that do not fit: it takes {self.specs[0]} {self.specs[1] or ''}".rstrip())
        return self.run(tensors)

    def name_of(self, n):
        names = self.told.get("names") or []
        return names[n] if n < len(names) else None

    def pretty_printed_signature(self, verbose=True):
        lines = [f"{self.name}(" + ", ".join(str(s) for s in nest.flatten(self.specs)) + ")", "Returns:"]
        return "\n".join(lines + [f"  {s}" for s in self.outputs])

    def __repr__(self):
        return f"<ConcreteFunction {self.name}{tuple(self.inputs)} at 0x{id(self):X}>"


def _as_tensor(given, dtype, convert, cast=False):
    if isinstance(given, Tensor) or given is None:
        return given
    if isinstance(given, Variable) or hasattr(given, "__tf_tensor__") or (_is_tensor_like(given) and not cast):
        return tensor(given)
    try:
        return tensor(given, dtype) if convert else None
    except (ValueError, TypeError):
        return None


_KINDS = {int(k): k for k in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL,
                              inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)}


class RestoredFunction:
    """A tf.function after loading: it can be called as it was traced before it was saved."""

    def __init__(self, told, variables, constants):
        self.told, self._name = told, told["name"]
        self.__name__ = self._name
        self._arguments = None
        if told["parameters"] is not None:
            self._arguments = inspect.Signature([
                inspect.Parameter(name, _KINDS[kind], default=inspect.Parameter.empty if default is None else unpack(default, unpack_argument))
                for name, kind, default in told["parameters"]])
        names = [p for p in self._arguments.parameters] if self._arguments else None
        self.concrete_functions = [RestoredConcrete(self._name, {**c, "names": names}, variables, constants) for c in told["concretes"]]

    def _list_all_concrete_functions(self):
        return list(self.concrete_functions)

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        return {f"trace_{n}": c for n, c in enumerate(self.concrete_functions)}

    input_signature = property(lambda self: tuple(self.concrete_functions[0].specs[0]) if len(self.concrete_functions) == 1 else None)
    variables = property(lambda self: tuple({id(v): v for c in self.concrete_functions for v in c.variables}.values()))
    trainable_variables = property(lambda self: tuple(v for v in self.variables if v.trainable))

    def _bound(self, args, kwargs):
        if self._arguments is None:
            return args, kwargs
        try:
            bound = self._arguments.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._name}: {error}") from None
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _find(self, args, kwargs):
        if not self.concrete_functions:
            raise ValueError(f"Found zero restored functions for caller function: {self._name} was saved without having been called, and without "
                             "an input_signature.")
        bound = self._bound(args, kwargs)
        for convert in (False, True):
            for concrete in self.concrete_functions:
                tensors = concrete.matches(*bound, convert, self.told["signed"])
                if tensors is not None:
                    return concrete, tensors
        if self.told["signed"]:
            raise TypeError(f"Binding inputs to tf.function failed due to `Can not cast {list(map(_as_spec, bound[0]))} to "
                            f"{list(self.input_signature)}`. Received args: {args} and kwargs: {kwargs} for signature: {self._arguments}.")
        raise ValueError(self._no_match(*bound))

    def body(self, *args, **kwargs):
        concrete, tensors = self._find(args, kwargs)
        return concrete.run(tensors)

    __call__ = body

    def get_concrete_function(self, *args, **kwargs):
        if not args and not kwargs and len(self.concrete_functions) == 1:
            return self.concrete_functions[0]
        return self._find(args, kwargs)[0]

    def _no_match(self, args, kwargs):
        options = [f"Option {n + 1}:\n{_arguments_text(*c.specs)}" for n, c in enumerate(self.concrete_functions)]
        return ("Could not find matching concrete function to call loaded from the SavedModel. Got:\n" + _arguments_text(args, kwargs) +
                f"\n\n Expected these arguments to match one of the following {len(options)} option(s):\n\n" + "\n\n".join(options))

    def __repr__(self):
        return f"<RestoredFunction {self._name}, {len(self.concrete_functions)} signatures>"


def _arguments_text(args, kwargs):
    lines = [f"  Positional arguments ({len(args)} total):"]
    lines += [f"    * {x!r}" for x in nest.map_structure(_as_spec, list(args))]
    return "\n".join(lines + [f"  Keyword arguments: {kwargs}"])


class GenericFunction(abc.ABC):
    """tf.types.experimental.GenericFunction: what tf.function and loading give."""


GenericFunction.register(Function)
GenericFunction.register(RestoredFunction)


class ConcreteFunction(abc.ABC):
    """tf.types.experimental.ConcreteFunction."""


ConcreteFunction.register(Concrete)
ConcreteFunction.register(RestoredConcrete)


# Signatures: one function with named tensors, giving a dict.

def signature_of(given, name):
    """(function, specs) for what somebody gave as a signature."""
    if isinstance(given, (Concrete, _WithoutProgram)) and given.asked is not None:
        return given.asked.function, given.asked.specs
    if isinstance(given, RestoredConcrete):
        return given, given.specs
    if isinstance(given, (Function, RestoredFunction)):
        specs = specs_of(given)
        if len(specs) == 1:
            return given, specs[0]
        raise ValueError(f"Expected a TensorFlow function with one trace or an input_signature for the signature '{name}', but {given!r} has "
                         f"{len(specs)} of them. Give it an input_signature, or use get_concrete_function.")
    raise ValueError(f"Expected a TensorFlow function for which to generate a signature, but got {given!r}. Only `tf.functions` with an input "
                     "signature or concrete functions can be used as a signature.")


def describe_signature(given, name, store):
    function, specs = signature_of(given, name)
    told = describe(store.names.get(id(function)) or getattr(function, "_name", None) or function.name, function, specs, store)
    if told is None:
        raise ValueError(f"The signature '{name}' has an argument that is no tensor and cannot be saved.")
    told = dict(told)
    parameters = [p for p in function._arguments.parameters] if getattr(function, "_arguments", None) is not None else []
    told["inputs"] = _input_names(specs, parameters)
    told["outputs"] = _output_names(told["variants"][0]["structure"], name)
    return told


def _input_names(specs, parameters):
    names = []
    pairs = [(parameters[n] if n < len(parameters) else f"arg_{n}", x) for n, x in enumerate(specs[0])] + list(specs[1].items())
    for parameter, x in pairs:
        for spec in nest.flatten(x):
            if not isinstance(spec, (TensorSpec, Tensor, np.ndarray)):
                continue
            base = getattr(spec, "name", None) if isinstance(spec, TensorSpec) else None
            base = str(base or parameter).split(":")[0].replace("/", "_")
            name, n = base, 0
            while name in names:
                n += 1
                name = f"{base}_{n}"
            names.append(name)
    return names


def _output_names(structure, name):
    if "dict" in structure:
        for key, value in structure["dict"]:
            if not isinstance(key, str) or "slot" not in value:
                raise ValueError(f"Got a dictionary with a non-string key or a nested value in the output of the function for the signature '{name}'"
                                 f" (key {key!r}). Outputs of signatures are tensors with names.")
        return sorted(key for key, _ in structure["dict"])  # as nest.flatten has them
    flat = [structure] if "slot" in structure else structure.get("list", structure.get("tuple", structure.get("named", [0, 0, []])[2]
                                                                                      if "named" in structure else []))
    if any("slot" not in x for x in flat):
        raise ValueError(f"Got a nested structure in the output of the function for the signature '{name}'. Outputs of signatures are tensors.")
    return [f"output_{n}" for n, x in enumerate(flat) if x["slot"] is not None]


class Signature(RestoredConcrete):
    """loaded.signatures["serving_default"]: tensors by name, a dict of tensors."""

    def __init__(self, name, told, variables, constants):
        super().__init__(f"signature_wrapper_{name}", told, variables, constants)
        self._inputs, self._outputs = told["inputs"], told["outputs"]
        self._arg_keywords, self._num_positional_args = self._inputs, 0
        self._specs = [x for x in self.flat if isinstance(x, TensorSpec)]

    @property
    def structured_input_signature(self):
        return (), {n: TensorSpec(s.shape, s.dtype, n) for n, s in zip(self._inputs, self._specs)}

    @property
    def structured_outputs(self):
        results = self.bodies[0][1]["results"]
        return {n: self._spec(result, n) for n, result in zip(self._outputs, self._results(results))}

    def _results(self, made):
        flat = nest.flatten(unpack(self.bodies[0][1]["structure"], lambda leaf: leaf["slot"]))
        return [made[slot] for slot in flat if slot is not None]

    def __call__(self, *args, **kwargs):
        if len(args) > len(self._inputs) or (args and len(self._inputs) > 1):
            raise TypeError(f"{self.name}({', '.join(self._inputs)}) takes its tensors by name, got {len(args)} without.")
        given = dict(zip(self._inputs, args))
        if set(given) & set(kwargs) or set(given) | set(kwargs) != set(self._inputs):
            missing, more = [n for n in self._inputs if n not in given and n not in kwargs], [k for k in kwargs if k not in self._inputs]
            raise TypeError(f"{self.name}({', '.join(self._inputs)})" + (f" missing required arguments: {', '.join(missing)}." if missing else
                            f" got unexpected keyword arguments: {', '.join(more or kwargs)}."))
        given.update(kwargs)
        tensors = []
        for name, spec in zip(self._inputs, self._specs):
            value = _as_tensor(given[name], spec.dtype, True)
            if value is None or value.dtype != spec.dtype or not spec.shape.is_compatible_with(value.shape):
                raise TypeError(f"{self.name}: argument {name} is {given[name]!r}, which does not fit {spec}")
            tensors.append(value)
        variant, made = self.variant_for(tensors)
        flat = nest.flatten(unpack(variant["structure"], lambda leaf: leaf["slot"]))
        return dict(zip(self._outputs, [made[s] for s in flat if s is not None]))
