"""Lists and dicts that a checkpoint knows: what is put into them is restored if a value waits for it. Keras asks for these classes, too."""


class ListWrapper(list):
    """A list that a checkpoint knows: what is put into it is restored."""

    def _arrived(self):
        for restoration, node in getattr(self, "_waiting", ()):
            restoration.bind(self, node)

    def append(self, value):
        super().append(value)
        self._arrived()

    def extend(self, values):
        super().extend(values)
        self._arrived()

    def insert(self, index, value):
        super().insert(index, value)
        self._arrived()

    def __setitem__(self, index, value):
        super().__setitem__(index, value)
        self._arrived()

    def __iadd__(self, values):
        self.extend(values)
        return self

    def __repr__(self):
        return f"ListWrapper({list(self)!r})"


class _DictWrapper(dict):
    """A dict that a checkpoint knows."""

    _arrived = ListWrapper._arrived

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self._arrived()

    def update(self, *args, **kwargs):
        super().update(*args, **kwargs)
        self._arrived()

    def setdefault(self, key, default=None):
        found = super().setdefault(key, default)
        self._arrived()
        return found


def wrapped(value):
    """Plain lists and dicts as ones that can be waited for."""
    if type(value) is list:
        return ListWrapper(value)
    return _DictWrapper(value) if type(value) is dict else value


ListWrapper.__module__ = _DictWrapper.__module__ = "tensorflow.python.trackable.data_structures"
