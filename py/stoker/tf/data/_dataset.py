"""tf.data.Dataset: a pipeline of the library, the specification of its elements, and TensorFlow's methods."""
import atexit
import numbers
import random as _python_random

import numpy as np

from stoker import _host_books, _stoker
from stoker.tf import errors
from stoker.tf._base import static, tensor
from stoker.tf._specs import TensorSpec
from stoker.tf.data import _structure as st
from stoker.tf.data._function import MapFunction, scalar
from stoker.tf.data._iterator import NumpyIterator, OwnedIterator
from stoker.tf.data._options import Options

AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -1, -2
_classes = {}


@atexit.register
def _end():
    _stoker.data_end()
    _stoker.data_is_over()


def integer(value, what):
    value = static(value, what)
    if value.dtype.kind not in "iu" or value.ndim:
        raise TypeError(f"{what} must be an integer scalar, got {value!r}")
    return int(value)


def seed_of(seed):
    """Seeds as tf.data combines them: of the program, of the operation; drawn when there is none."""
    from stoker.tf import random

    pair = random._pair(None if seed is None else integer(seed, "seed"))
    if pair is None:
        return _python_random.SystemRandom().getrandbits(63)
    return (pair[0] << 31 ^ pair[1]) & (2**63 - 1)


def _class_of(kind):
    if kind not in _classes:
        made = type("CacheDataset" if kind == "Cache" else f"_{kind}Dataset", (DatasetV2,), {"__module__": f"tensorflow.python.data.ops.{kind.lower()}_op"})
        _classes[kind] = made
    return _classes[kind]


def make(kind, pipe, spec, inputs=(), variants=None, python=False):
    """A dataset. variants: concrete shapes of the parts that will be seen, most frequent first."""
    self = object.__new__(_class_of(kind))
    self._setup(pipe, spec, inputs, variants, python)
    return self


def wrap_window(pipe, element_spec):
    return make("Window", pipe, element_spec)


class _Walks:
    """How many walks there were. A shuffle begins to count anew; what is made of it counts on with it."""

    __slots__ = ("count", "shuffled")

    def __init__(self, shuffled=False):
        self.count, self.shuffled = 0, shuffled


def _walks_of(inputs):
    return next((i._walks for i in inputs if i._walks.shuffled), inputs[0]._walks if inputs else _Walks())


class DatasetV2:
    """What tf.data calls a dataset. Immutable, except that every walk over it counts its epochs on."""

    _pipe = None

    def __new__(cls, *args, **kwargs):
        return object.__new__(cls)

    def __init__(self, variant_tensor=None):
        if variant_tensor is not None and self._pipe is None:
            self._setup(variant_tensor._pipe, variant_tensor.element_spec, (variant_tensor,), None, variant_tensor._python)

    def _setup(self, pipe, spec, inputs=(), variants=None, python=False):
        self._pipe, self._spec, self._inputs_ = pipe, spec, tuple(inputs)
        fields = st.fields(spec)
        if variants is None and all(s is not None and -1 not in s for _, s, _ in fields):
            variants = [[s for _, s, _ in fields]]
        self._variants = variants or []
        self._python = python or any(i._python for i in inputs)
        self._template = self._options_ = self._cardinality = None
        self._walks = _walks_of(self._inputs_)
        for i in inputs:
            self._options_ = self._options_ or i._options_

    # Asking.

    element_spec = property(lambda self: self._spec)
    _type_spec = property(lambda self: st.DatasetSpec(self._spec))

    def __repr__(self):
        return f"<{type(self).__name__} element_spec={self._spec}>"

    __str__ = __repr__

    def __bool__(self):
        return True

    def _count(self):
        if self._cardinality is not None:
            return self._cardinality
        return self._pipe.cardinality

    def cardinality(self, name=None):
        return tensor(self._count(), "int64")

    def __len__(self):
        count = self._count()
        if count == INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite.")
        if count == UNKNOWN_CARDINALITY:
            raise TypeError("The dataset length is unknown.")
        return count

    def _inputs(self):
        return list(self._inputs_)

    def options(self):
        return self._options_ or Options()

    def explain(self):
        """What will run, as text."""
        return self._pipe.explain()

    # Walking.

    def _next_epoch(self):
        """The number that keys shuffles and random functions of the next walk."""
        self._walks.count += 1
        return self._walks.count - 1

    def _walk(self, kind, numpy=False):
        if self._template is None:
            self._template = st.template(self._spec), st.template(self._spec, True)
        return kind(self._pipe, self._template[numpy], self._next_epoch(), numpy, self._python, self)

    def __iter__(self):
        if _stoker.get_trace() is not None:
            from stoker.tf._base import not_traceable

            not_traceable("it iterates over a dataset")
        if _host_books.on:
            _host_books.walked[id(self)] = self
        return self._walk(OwnedIterator)

    def as_numpy_iterator(self):
        for leaf in st.leaves(self._spec):
            if isinstance(leaf, st.DatasetSpec):
                raise TypeError("`tf.data.Dataset.as_numpy_iterator()` is not supported for datasets that produce values of "
                                f"type {leaf.value_type!r}")
        return self._walk(NumpyIterator, True)

    def make_one_shot_iterator(self):
        return iter(self)

    def get_single_element(self, name=None):
        it = iter(self)
        try:
            element = next(it)
        except StopIteration:
            errors.invalid("Dataset was empty.", "DatasetToSingleElement")
        if next(it, None) is not None:
            errors.invalid("Dataset had more than one element.", "DatasetToSingleElement")
        return element

    def _samples(self):
        """Elements such as will be seen, as lists of parts, for functions that have to be tried."""
        source = self
        while getattr(source, "_same_elements", False) and source._inputs_:
            source = source._inputs_[0]
        plain = st.template(tuple(_part_spec(f) for f in st.fields(source._spec)))
        walk = OwnedIterator(source._pipe, plain, 0, False, source._python, source)
        for element in walk:
            yield [getattr(p, "_pipe", p) for p in element]

    # Making others.

    def _same(self, kind, pipe, variants=None):
        """A dataset of the same elements in another order or number."""
        made = make(kind, pipe, self._spec, (self,), self._variants if variants is None else variants)
        made._same_elements = True
        return made

    def _function(self, function, **options):
        return MapFunction(function, self._spec, self._variants, self._samples, **options)

    # The sources are static methods, as in TensorFlow; see _sources.py.


DatasetV2.__module__ = "tensorflow.python.data.ops.dataset_ops"
DatasetV2.__qualname__ = DatasetV2.__name__ = "DatasetV2"


def _part_spec(field):
    dtype, sizes, is_dataset = field
    spec = TensorSpec(None if sizes is None else [None if d < 0 else d for d in sizes], dtype)
    return st.DatasetSpec(spec) if is_dataset else spec


def is_integer(value):
    return isinstance(value, (numbers.Integral, np.integer))


def parallel_of(num_parallel_calls):
    if num_parallel_calls is None:
        return 1
    number = integer(num_parallel_calls, "num_parallel_calls")
    if number < 1 and number != AUTOTUNE:
        errors.invalid(f"num_parallel_calls must be greater than zero, got {number}", "ParallelMapDataset")
    return number


__all__ = ["DatasetV2", "make", "scalar"]
