"""What the training loops stand on: batches of an epoch, steps as programs, results put together."""
import contextlib
import functools
import threading

import numpy as np
from keras.src import tree
from keras.src.trainers.data_adapters import array_data_adapter
from keras.src.trainers.data_adapters import array_slicing
from keras.src.trainers.data_adapters import data_adapter_utils
from keras.src.trainers.epoch_iterator import EpochIterator

from stoker import tf as _tf
from stoker.tf import _function


def program(step, model):
    """The step traced once per structure, shapes and dtypes of its batch. What no program can hold runs eagerly."""
    function = _function.Function(step, name=getattr(step, "__name__", "step"), autograph=False)
    function.traced_once = True  # its variables are the optimizer's

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
    if data_adapter_utils.is_scipy_sparse(x):
        return data_adapter_utils.scipy_sparse_to_tf_sparse(x)
    if data_adapter_utils.is_jax_sparse(x):
        return data_adapter_utils.jax_sparse_to_tf_sparse(x)
    return _tf.convert_to_tensor(x)


_recorded = threading.local()


@contextlib.contextmanager
def open_rows(data):
    """While a step is recorded whose batches may differ in size, layers are built for any number of rows, as TensorFlow builds them: a
    model's summary says (None, 4), and what is saved takes any batch. Programs of ours know the size of their batch."""
    first = next((x for x in tree.flatten(data) if hasattr(x, "shape") and len(x.shape)), None)
    before, _recorded.rows = getattr(_recorded, "rows", None), None if first is None else first.shape[0]
    _shapes_of_calls()
    try:
        yield
    finally:
        _recorded.rows = before


@functools.cache
def _shapes_of_calls():
    """Keras' layers ask this function for the shapes that they are built for."""
    from keras.src.layers import layer

    known = layer.get_shapes_dict

    def opened(shape):
        rows = getattr(_recorded, "rows", None)
        return (None, *shape[1:]) if shape and rows is not None and shape[0] == rows else shape

    @functools.wraps(known)
    def get_shapes_dict(call_spec):
        shapes = known(call_spec)
        return shapes if getattr(_recorded, "rows", None) is None else {k: tree.map_shape_structure(opened, v) for k, v in shapes.items()}

    layer.get_shapes_dict = get_shapes_dict


class Epochs(EpochIterator):
    """Batches of each epoch, from arrays, datasets, generators or PyDatasets."""

    @property
    def rows_vary(self):
        """Whether TensorFlow would not know the size of the batches: the last one is smaller, or nobody says that it is not."""
        adapter = self.data_adapter
        dataset = getattr(adapter, "_dataset", None)
        if hasattr(dataset, "element_spec"):
            shapes = (getattr(spec, "shape", None) for spec in tree.flatten(dataset.element_spec))
            return any(s is not None and s.rank != 0 and (s.rank is None or s[0] is None) for s in shapes)
        if isinstance(adapter, array_data_adapter.ArrayDataAdapter):
            return adapter._num_samples % adapter._batch_size != 0
        return True

    def _get_iterator(self):
        adapter = self.data_adapter
        dataset = getattr(adapter, "_dataset", None)
        if dataset is not None and hasattr(dataset, "element_spec"):
            return dataset
        if isinstance(adapter, array_data_adapter.ArrayDataAdapter) and any(map(_is_special, _arrays(adapter))):
            return _composite_batches(adapter)
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


def _arrays(adapter):
    return [x for x in tree.flatten(adapter._inputs) if x is not None]


def _is_special(x):
    """Sparse and ragged arrays stay what they are."""
    utils = data_adapter_utils
    return (utils.is_tensorflow_sparse(x) or utils.is_tensorflow_ragged(x) or utils.is_jax_sparse(x) or
            utils.is_scipy_sparse(x))


def _composite_batches(adapter):
    """Rows of an array adapter that holds sparse or ragged arrays, sliced by Keras' own rules for TensorFlow."""
    inputs = array_slicing.convert_to_sliceable(adapter._inputs, target_backend="tensorflow")
    inputs = tree.lists_to_tuples(inputs)
    count, size = adapter._num_samples, adapter._batch_size
    order = np.random.permutation(count) if adapter._shuffle and adapter._shuffle != "batch" else np.arange(count)
    for begin in range(0, count, size):
        places = order[begin:begin + size]
        if adapter._shuffle == "batch":
            places = np.random.permutation(places)
        rows = _tf.constant(places.astype(np.int64))

        def one(x):
            if isinstance(x, array_slicing.TensorflowSparseWrapper):
                return array_slicing.slice_tensorflow_sparse_wrapper(x, rows)
            if isinstance(x, (list, tuple, dict)):
                return None
            return _tf.gather(x, rows, axis=0) if _tf.is_tensor(x) else x

        yield tree.traverse(one, inputs)


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
    parts = [to_numpy(p) for p in parts]
    if not parts[0].shape:
        return np.stack(parts)
    if all(p.shape[1:] == parts[0].shape[1:] for p in parts):
        return np.concatenate(parts)
    return _ragged(parts)


def _ragged(parts):
    inner = list(zip(*(p.shape[1:] for p in parts)))
    constant = 0
    while constant < len(inner) and len(set(inner[-1 - constant])) == 1:
        constant += 1
    shape = parts[0].shape[len(inner) + 1 - constant:] if constant else None
    return _tf.ragged.constant(parts, inner_shape=shape).merge_dims(0, 1)


def to_numpy(x):
    return x if isinstance(x, np.ndarray) or hasattr(x, "row_splits") or hasattr(x, "dense_shape") else x.numpy()
