"""tf.lookup: tables from strings or integers to values. They live on the host."""
import numpy as _np

from stoker.tf import errors as _errors
from stoker.tf import _hash
from stoker.tf._base import is_symbolic as _is_symbolic
from stoker.tf._base import not_traceable as _not_traceable
from stoker.tf._base import string as _string
from stoker.tf._base import tensor as _tensor
from stoker.tf._specs import as_dtype as _as_dtype


class TextFileIndex:
    WHOLE_LINE, LINE_NUMBER = -2, -1


class KeyValueTensorInitializer:
    def __init__(self, keys, values, key_dtype=None, value_dtype=None, name=None):
        self._keys = _tensor(keys, key_dtype)
        self._values = _tensor(values, value_dtype)
        self.key_dtype, self.value_dtype = self._keys.dtype, self._values.dtype

    def pairs(self):
        if not hasattr(self, "_keys"):  # a subclass that has none, as Keras' for tables that are filled later
            return ()
        keys, values = _np.ravel(self._keys.numpy()).tolist(), _np.ravel(self._values.numpy()).tolist()
        if len(keys) != len(values):
            _errors.invalid(f"Number of keys ({len(keys)}) and values ({len(values)}) differ", "LookupTableImportV2")
        return zip(keys, values)


class TextFileInitializer:
    def __init__(self, filename, key_dtype, key_index, value_dtype, value_index, vocab_size=None, delimiter="\t",
                 name=None, value_index_offset=0):
        self._filename = filename.numpy().decode() if hasattr(filename, "numpy") else filename
        self.key_dtype, self.value_dtype = _as_dtype(key_dtype), _as_dtype(value_dtype)
        self._places, self._size, self._delimiter = (key_index, value_index), vocab_size, delimiter
        self._offset = value_index_offset

    def _field(self, line, number, place, kind):
        if place == TextFileIndex.LINE_NUMBER:
            return number + self._offset
        text = line if place == TextFileIndex.WHOLE_LINE else line.split(self._delimiter.encode())[place]
        return text if kind == _string else int(text) if kind.is_integer else float(text)

    def pairs(self):
        try:
            with open(self._filename, "rb") as file:
                lines = file.read().split(b"\n")
        except OSError as error:
            _errors.raise_(5, f"{self._filename}; {error.strerror}", "InitializeTableFromTextFileV2")
        if lines and not lines[-1]:
            lines.pop()
        lines = lines[:self._size] if self._size is not None else lines
        for n, line in enumerate(lines):
            yield (self._field(line, n, self._places[0], self.key_dtype),
                   self._field(line, n, self._places[1], self.value_dtype))


class _Table:
    """What all tables share: look up by element, keep the shape."""

    def __init__(self, key_dtype, value_dtype, default):
        self._key_dtype, self._value_dtype = _as_dtype(key_dtype), _as_dtype(value_dtype)
        self._default = _tensor(default, value_dtype).numpy()
        self._pairs = {}

    key_dtype = property(lambda self: self._key_dtype)
    value_dtype = property(lambda self: self._value_dtype)
    name = property(lambda self: type(self).__name__.lower())
    resource_handle = property(lambda self: self)

    def size(self, name=None):
        return _tensor(len(self._pairs), "int64")

    def lookup(self, keys, name=None):
        if hasattr(keys, "with_flat_values"):
            return keys.with_flat_values(self.lookup(keys.flat_values))
        if hasattr(keys, "with_values"):
            return keys.with_values(self.lookup(keys.values))
        keys = _tensor(keys)
        if keys.dtype != self._key_dtype:
            raise TypeError(f"Dtype of argument `keys` must be {self._key_dtype!r}, received: {keys.dtype!r}")
        if _is_symbolic(keys):
            _not_traceable("it looks up keys in a table")
        array = keys.numpy()
        flat = [array] if isinstance(array, bytes) else _np.ravel(array).tolist()
        found = [self._find(k) for k in flat]
        if self._value_dtype == _string:
            made = _np.empty(len(found), object)
            made[:] = found
        else:
            made = _np.array(found, self._value_dtype.as_numpy_dtype)
        return _tensor(made.reshape(keys.shape.as_list() + list(self._default.shape if hasattr(
            self._default, "shape") else [])), self._value_dtype)

    def _find(self, key):
        return self._pairs.get(key, self._default)

    def __getitem__(self, keys):
        return self.lookup(keys)

    def export(self, name=None):
        keys, values = list(self._pairs), list(self._pairs.values())
        return (_tensor(_np.array(keys, object if self._key_dtype == _string else None), self._key_dtype),
                _tensor(_np.array(values, object if self._value_dtype == _string else None), self._value_dtype))


class StaticHashTable(_Table):
    def __init__(self, initializer, default_value, name=None, experimental_is_anonymous=False):
        super().__init__(initializer.key_dtype, initializer.value_dtype, default_value)
        for key, value in initializer.pairs():
            if key in self._pairs and self._pairs[key] != value:
                _errors.raise_(9, f"HashTable has different value for same key. Key {key} has {self._pairs[key]} and "
                               f"trying to add value {value}", "LookupTableImportV2")
            self._pairs[key] = value


class StaticVocabularyTable(_Table):
    """Known words have their id; others fall into one of the buckets behind by their hash."""

    def __init__(self, initializer, num_oov_buckets, lookup_key_dtype=None, name=None, experimental_is_anonymous=False):
        if num_oov_buckets <= 0:
            raise ValueError(f"`num_oov_buckets` must be > 0; use StaticHashTable, got {num_oov_buckets}")
        super().__init__(lookup_key_dtype or (initializer.key_dtype if initializer else "string"), "int64", -1)
        self._buckets = num_oov_buckets
        if initializer is not None:
            self._pairs.update((k, v) for k, v in initializer.pairs())

    def size(self, name=None):
        return _tensor(len(self._pairs) + self._buckets, "int64")

    def _find(self, key):
        found = self._pairs.get(key)
        if found is None:
            text = key if isinstance(key, bytes) else str(key).encode()
            found = len(self._pairs) + _hash.fingerprint64(text) % self._buckets
        return found


class MutableHashTable(_Table):
    def __init__(self, key_dtype, value_dtype, default_value, name="MutableHashTable", checkpoint=True,
                 experimental_is_anonymous=False):
        super().__init__(key_dtype, value_dtype, default_value)

    def insert(self, keys, values, name=None):
        keys, values = _tensor(keys, self._key_dtype).numpy(), _tensor(values, self._value_dtype).numpy()
        keys = [keys] if isinstance(keys, bytes) else _np.ravel(keys).tolist()
        width = list(self._default.shape) if hasattr(self._default, "shape") else []
        rows = _np.asarray(values, object if self._value_dtype == _string else None).reshape([-1] + width)
        for key, value in zip(keys, rows if width else rows.tolist()):
            self._pairs[key] = value

    insert_or_assign = insert

    def remove(self, keys, name=None):
        keys = _tensor(keys, self._key_dtype).numpy()
        for key in [keys] if isinstance(keys, bytes) else _np.ravel(keys).tolist():
            self._pairs.pop(key, None)

    erase = remove


class DenseHashTable(MutableHashTable):
    def __init__(self, key_dtype, value_dtype, default_value, empty_key=None, deleted_key=None,
                 initial_num_buckets=None, name="MutableDenseHashTable", checkpoint=True, experimental_is_anonymous=False):
        super().__init__(key_dtype, value_dtype, default_value)


class experimental:
    MutableHashTable = MutableHashTable
    DenseHashTable = DenseHashTable
