"""Elements that are ragged or sparse: made of several parts, batched by code of their own, under the interpreter lock."""
import itertools

import numpy as np

from stoker import _stoker
from stoker.tf._base import tensor
from stoker.tf._specs import RaggedTensorSpec, SparseTensorSpec, TensorSpec
from stoker.tf.data import _structure as st
from stoker.tf.data._dataset import make


def _from_python(kind, open_walk, spec, inputs, cardinality):
    """A dataset of what a Python iterator of structures gives."""

    def walk():
        return (st.flat_parts(st.normal(element)) for element in open_walk())

    pipe = _stoker.data_generator(walk, st.fields(spec), st.text(spec), cardinality)
    return make(kind, pipe, spec, inputs, None, True)


def _stack_ragged(values):
    from stoker.tf import _ragged

    return _ragged.stack(values)


def _stack_sparse(values):
    from stoker.tf._sparse import SparseTensor

    places, flat = [], []
    for row, one in enumerate(values):
        inner = np.asarray(one.indices)
        places.append(np.concatenate([np.full((len(inner), 1), row, np.int64), inner], 1))
        flat.append(np.asarray(one.values))
    most = np.max([np.asarray(v.dense_shape) for v in values], 0)
    return SparseTensor(tensor(np.concatenate(places)), tensor(np.concatenate(flat), values[0].dtype),
                        tensor(np.concatenate([[len(values)], most]).astype(np.int64)))


def _stack(spec, values):
    if isinstance(spec, RaggedTensorSpec):
        return _stack_ragged(values)
    if isinstance(spec, SparseTensorSpec):
        return _stack_sparse(values)
    if values[0] is None:
        return None
    if spec.dtype.name == "string":
        return tensor(np.array([v.numpy() for v in values], object), "string")
    return tensor(np.stack([v.numpy() for v in values]), spec.dtype)


def _join(structure, elements, stack=_stack):
    columns = iter(list(zip(*[st.leaves(e) for e in elements])))
    return st.map_leaves(lambda spec: stack(spec, list(next(columns))), structure)


def _batches(dataset, size, drop, stack):
    walk = iter(dataset)
    while True:
        rows = list(itertools.islice(walk, size))
        if not rows or (drop and len(rows) < size):
            return
        yield _join(dataset.element_spec, rows, stack)


def _batch_count(dataset, size, drop):
    count = dataset._count()
    return count if count < 0 else count // size if drop else -(-count // size)


def batch(dataset, size, drop, spec):
    return _from_python("Batch", lambda: _batches(dataset, size, drop, _stack), spec, (dataset,),
                        _batch_count(dataset, size, drop))


def ragged_batch(dataset, size, drop, row_splits_dtype):
    """Tensors of different sizes become rows of a ragged tensor; those whose sizes are known are stacked."""

    def is_open(spec):
        return isinstance(spec, TensorSpec) and (spec.shape.rank is None or None in spec.shape.as_list())

    def spec_of(spec):
        if not is_open(spec):
            return st.with_batch(spec, size if drop else None)
        inner = spec.shape.as_list()
        ragged = max(n for n, d in enumerate(inner) if d is None) + 1
        return RaggedTensorSpec([size if drop else None] + inner, spec.dtype, ragged, row_splits_dtype)

    def stack(spec, values):
        if not is_open(spec):
            return _stack(spec, values)
        from stoker.tf._ragged import RaggedTensor

        inner = spec.shape.as_list()
        ragged = max(n for n, d in enumerate(inner) if d is None) + 1
        if ragged == 1:
            arrays = [v.numpy() for v in values]
            flat = np.concatenate(arrays) if arrays else np.zeros(0)
            made = RaggedTensor.from_row_lengths(tensor(flat, spec.dtype), [len(a) for a in arrays])
            return made.with_row_splits_dtype(row_splits_dtype) if hasattr(made, "with_row_splits_dtype") else made
        from stoker.tf import _ragged

        return _ragged.constant([v.numpy().tolist() for v in values], dtype=spec.dtype, ragged_rank=ragged)

    spec = st.map_leaves(spec_of, dataset.element_spec)
    return _from_python("RaggedBatch", lambda: _batches(dataset, size, drop, stack), spec, (dataset,),
                        _batch_count(dataset, size, drop))


def _rows(value, count=None):
    """The rows of one leaf."""
    if value is None:
        return itertools.repeat(None)
    if st.is_sparse(value):
        return _sparse_rows(value)
    if st.is_ragged(value):
        return (value[n] for n in range(int(value.nrows())))
    return (value[n] for n in range(value.shape.as_list()[0]))


def _sparse_rows(value):
    from stoker.tf._sparse import SparseTensor

    places, flat, shape = np.asarray(value.indices), np.asarray(value.values), np.asarray(value.dense_shape)
    for row in range(int(shape[0])):
        mine = places[:, 0] == row
        yield SparseTensor(tensor(places[mine][:, 1:]), tensor(flat[mine], value.dtype), tensor(shape[1:]))


def _slices_of(structure):
    columns = [_rows(leaf) for leaf in st.leaves(structure)]
    for row in zip(*columns):
        feed = iter(row)
        yield st.map_leaves(lambda _: next(feed), structure)


def slices(value):
    """from_tensor_slices of a structure with ragged or sparse leaves."""
    spec = st.map_leaves(lambda v: st.without_batch(st.spec_of(v)), value)
    counts = [int(leaf.nrows()) if st.is_ragged(leaf) else int(np.asarray(leaf.dense_shape)[0]) if st.is_sparse(leaf)
              else leaf.shape.as_list()[0] for leaf in st.leaves(value) if leaf is not None]
    if len(set(counts)) > 1:
        raise ValueError(f"Dimensions {counts[0]} and {counts[1]} are not compatible")
    return _from_python("TensorSlice", lambda: _slices_of(value), spec, (), counts[0])


def unbatch(dataset, spec):
    def walk():
        for element in dataset:
            yield from _slices_of(element)

    return _from_python("Unbatch", walk, spec, (dataset,), -2)
