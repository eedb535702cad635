"""Iterators of tf.data, and optionals."""
from stoker import _stoker
from stoker.tf import errors
from stoker.tf._specs import OptionalSpec
from stoker.tf.data import _structure as st


class OwnedIterator(_stoker.DataIterator):
    """What iter(dataset) gives."""

    element_spec = property(lambda self: self._owner.element_spec)
    _type_spec = property(lambda self: self._owner.element_spec)

    def get_next(self, name=None):
        for element in self:
            return element
        raise errors.by_code[11](None, None, "End of sequence [Op:IteratorGetNext] name: ", 11)

    def get_next_as_optional(self):
        spec = self._owner.element_spec
        for element in self:
            return Optional(spec, element, True)
        return Optional(spec, None, False)

    def __bool__(self):
        return True


OwnedIterator.__module__ = "tensorflow.python.data.ops.iterator_ops"


class NumpyIterator(_stoker.DataIterator):
    """The same with arrays."""


class Optional:
    """tf.experimental.Optional: perhaps a value."""

    def __init__(self, spec, value, there):
        self._spec, self._value, self._there = spec, value, there

    element_spec = property(lambda self: self._spec)
    value_structure = element_spec
    _type_spec = property(lambda self: OptionalSpec(self._spec))

    def has_value(self, name=None):
        return _stoker.convert_to_tensor(self._there)

    def get_value(self, name=None):
        if not self._there:
            errors.invalid("The given optional does not have a value.", "OptionalGetValue")
        return self._value

    @staticmethod
    def empty(element_spec):
        return Optional(element_spec, None, False)

    @staticmethod
    def from_value(value):
        value = st.normal(value)
        return Optional(st.map_leaves(st.spec_of, value), value, True)
