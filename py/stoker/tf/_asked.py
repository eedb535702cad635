"""What get_concrete_function is asked for: specifications, the check of a call against them, and concrete functions without a program."""
import abc
import inspect

import numpy as np

from stoker.tf import errors, nest
from stoker.tf._base import Tensor, tensor
from stoker.tf._specs import TensorSpec, TypeSpec


class TraceType(abc.ABC):
    """tf.types.experimental.TraceType: what an object's __tf_tracing_type__ gives. Objects with equal ones share a trace. Programs
    derive from it; one that lacks a method cannot be made, as in TensorFlow."""

    @abc.abstractmethod
    def is_subtype_of(self, other):
        """Could a trace for `other` be called with this?"""

    @abc.abstractmethod
    def most_specific_common_supertype(self, others):
        """What stands for this and all others; None: nothing does."""

    @abc.abstractmethod
    def placeholder_value(self, placeholder_context=None):
        """The object for a trace; here it is the one of the call."""

    @abc.abstractmethod
    def __eq__(self, other):
        """Equal ones share a trace,"""

    @abc.abstractmethod
    def __hash__(self):
        """and have equal hashes."""


def _is_tensor_like(x):
    return isinstance(x, (Tensor, np.ndarray, np.generic))


class _Asked:
    """Specifications that a concrete function was made for; arguments that are no tensors are fixed."""

    def __init__(self, function, args, kwargs):
        self.function, self.specs = function, (args, kwargs)

    def is_open(self):
        return any(isinstance(s, TensorSpec) and not s.shape.is_fully_defined() for s in nest.flatten(self.specs))

    def names(self):
        return list(self.function._arguments.parameters) if self.function._arguments is not None else []

    def signature(self):
        return _signature_of(self.specs, self.names())

    def check(self, title, args, kwargs):
        """Tensors of the type that was asked for, and no other values for what is fixed."""
        named = dict(zip(self.names(), self.specs[0]), **self.specs[1])
        for key, value in kwargs.items():
            if key not in named:
                raise TypeError(f"ConcreteFunction {title} got unexpected keyword argument {key}; it takes {list(named)}")
            if isinstance(named[key], (bool, int, float, str, bytes)) and value != named[key]:
                raise TypeError(f"ConcreteFunction {title} was made with {key}={named[key]!r}; it cannot be called with {value!r}")
        wanted = [s for s in self.specs[0] if any(isinstance(leaf, TypeSpec) or _is_tensor_like(leaf) for leaf in nest.flatten(s))]
        if len(args) > max(len(self.specs[0]), len(wanted)):
            raise TypeError(f"ConcreteFunction {title} takes {len(wanted)} tensors, {len(args)} were given")
        pairs = list(zip(wanted, args)) + [(named[k], v) for k, v in kwargs.items()]
        for n, (spec, value) in enumerate(pairs):
            if isinstance(spec, TensorSpec) and isinstance(value, Tensor) and value.dtype != spec.dtype:
                errors.invalid(f"cannot compute {title} as input #{n}(zero-based) was expected to be a {spec.dtype.name} tensor but is a "
                               f"{value.dtype.name} tensor", title)

    def again(self, args, kwargs):
        """The function itself with these values in the places of the specifications."""
        whole, named = list(self.specs[0]), dict(self.specs[1])
        feed, names = iter(args), self.names()
        for n, old in enumerate(whole):
            if n < len(names) and names[n] in kwargs:
                whole[n] = kwargs[names[n]]
            elif any(isinstance(s, TypeSpec) or _is_tensor_like(s) for s in nest.flatten(old)):
                whole[n] = next(feed, old)
        named.update({k: v for k, v in kwargs.items() if k in named})
        return self.function(*whole, **named)


def _signature_of(specs, names):
    """The specifications as an inspect.Signature."""
    names = names or [f"arg{n}" for n in range(len(specs[0]))]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parts = [inspect.Parameter(n, kind, annotation=s) for n, s in zip(names, specs[0])]
    parts += [inspect.Parameter(k, inspect.Parameter.KEYWORD_ONLY, annotation=s) for k, s in specs[1].items()]
    return inspect.Signature(parts)


class _WithoutProgram:
    """What get_concrete_function gives for a function that runs eagerly: it can be called, there is no graph to look at."""

    def __init__(self, asked):
        self.asked, self.name, self.graph = asked, asked.function._name, self
        self.variables = self.trainable_variables = ()
        self.inputs, self.outputs, self.captured_inputs = [], [], []

    structured_input_signature = property(lambda self: self.asked.specs)

    def __call__(self, *args, **kwargs):
        self.asked.check(self.name, args, kwargs)
        return self.asked.again(args, kwargs)

    function_type = property(lambda self: self.asked.signature())
    inference_fn = property(lambda self: self)

    def as_graph_def(self):
        raise NotImplementedError(f"{self.name} has no program: {self.asked.function._why_eager}")

    def __repr__(self):
        return f"<ConcreteFunction {self.name}, run eagerly: {self.asked.function._why_eager}>"


def _describe(value):
    return f"TensorSpec(shape={tuple(getattr(value, 'shape', ()))}, dtype={getattr(value, 'dtype', type(value).__name__)})"


def _example_of(x, rank=1, size=1):
    """A tensor for a specification."""
    if isinstance(x, TensorSpec):
        sizes = [size] * rank if x.shape.rank is None else [size if d is None else d for d in x.shape.as_list()]
        if x.dtype.name == "string":
            return tensor(np.full(sizes, b"", object))
        return tensor(np.zeros(sizes, x.dtype.as_numpy_dtype))
    if hasattr(x, "_example"):
        return x._example(_example_of)
    return x
