"""What the training loops stand on: batches of an epoch, steps as programs, results put together."""
import contextlib

import numpy as np
from keras.src import tree
from keras.src.trainers.data_adapters import array_data_adapter
from keras.src.trainers.epoch_iterator import EpochIterator

from stoker import tf as _tf
from stoker.tf import _function


def program(step, model):
    """The step traced once per structure, shapes and dtypes of its batch. What no program can hold runs eagerly."""
    function = _function.Function(step, name=getattr(step, "__name__", "step"), autograph=False)

    def run(data):
        return function(_tensors(data))

    run.function = function
    return run


def eager(step):
    """The step as plain Python on tensors."""
    return lambda data: step(_tensors(data))


def _tensors(data):
    return tree.map_structure(_tensor, data)


def _tensor(x):
    if x is None or hasattr(x, "dense_shape") or hasattr(x, "row_splits") or isinstance(x, _tf.Tensor):
        return x
    return _tf.convert_to_tensor(x)


class Epochs(EpochIterator):
    """Batches of each epoch, from arrays, datasets, generators or PyDatasets."""

    def _get_iterator(self):
        adapter = self.data_adapter
        dataset = getattr(adapter, "_dataset", None)
        if dataset is not None and hasattr(dataset, "element_spec"):
            return dataset
        if isinstance(adapter, array_data_adapter.ArrayDataAdapter):
            return adapter.get_numpy_iterator()
        return adapter.get_numpy_iterator()

    def __next__(self):
        return next(self._epoch_iterator)

    @contextlib.contextmanager
    def catch_stop_iteration(self):
        with super().catch_stop_iteration():
            try:
                yield
            except _tf.errors.OutOfRangeError:
                raise StopIteration from None


def take(iterator, count):
    """Up to `count` batches; StopIteration when there is none left."""
    batches = []
    for _ in range(count):
        try:
            batches.append(next(iterator))
        except (StopIteration, _tf.errors.OutOfRangeError):
            if not batches:
                raise
            break
    return batches


def concat(parts):
    """Outputs of batches as one; of different inner sizes as a ragged tensor."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    if hasattr(first, "dense_shape"):
        return _tf.sparse.concat(axis=0, sp_inputs=list(parts))
    if hasattr(first, "row_splits"):
        return _tf.concat(list(parts), axis=0)
    if not first.shape.as_list():
        return np.stack([p.numpy() for p in parts])
    if all(p.shape.as_list()[1:] == first.shape.as_list()[1:] for p in parts):
        return np.concatenate([p.numpy() for p in parts])
    return _ragged(parts)


def _ragged(parts):
    inner = list(zip(*(p.shape.as_list()[1:] for p in parts)))
    constant = 0
    while constant < len(inner) and len(set(inner[-1 - constant])) == 1:
        constant += 1
    shape = parts[0].shape.as_list()[len(inner) + 1 - constant:] if constant else None
    return _tf.ragged.constant([p.numpy() for p in parts], inner_shape=shape).merge_dims(0, 1)


def to_numpy(x):
    return x if isinstance(x, np.ndarray) or hasattr(x, "row_splits") or hasattr(x, "dense_shape") else x.numpy()
