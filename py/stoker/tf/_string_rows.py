"""Operations on strings that the engine's kernels do not have: name of the row -> function(tensors, numbers)."""
import numpy as np

from stoker.tf._base import errors, is_symbolic, not_traceable, string, tensor


def _arrays(tensors):
    if any(is_symbolic(t) for t in tensors):
        not_traceable("strings are chosen by values that are only known when the program runs")
    return [np.asarray(t.numpy(), object) if t.dtype == string else np.asarray(t.numpy()) for t in tensors]


def _equal(tensors, ints):
    x, y = _arrays(tensors)
    return tensor(np.asarray(x == y, bool))


def _not_equal(tensors, ints):
    x, y = _arrays(tensors)
    return tensor(np.asarray(x != y, bool))


def _gather(tensors, ints):
    x, places = _arrays(tensors)
    axis, batch = ints
    if np.any((places < 0) | (places >= x.shape[axis])):
        errors.invalid(f"indices are not in [0, {x.shape[axis]})", "GatherV2")
    if not batch:
        return tensor(np.take(x, places, axis=axis), string)
    rows = [_gather([tensor(a, string), tensor(p)], [axis - 1, batch - 1]).numpy() for a, p in zip(x, places)]
    return tensor(np.array(rows, object), string)


def _gather_nd(tensors, ints):
    x, places = _arrays(tensors)
    if ints[0]:
        rows = [_gather_nd([tensor(a, string), tensor(p)], [ints[0] - 1]).numpy() for a, p in zip(x, places)]
        return tensor(np.array(rows, object), string)
    return tensor(np.asarray(x[tuple(np.moveaxis(places, -1, 0))], object), string)


def _select(tensors, ints):
    return tensor(np.asarray(np.where(*_arrays(tensors)), object), string)


def _update(tensors, ints):
    x, places, values = _arrays(tensors)
    x = x.copy()
    x[tuple(np.moveaxis(places, -1, 0))] = values
    return tensor(x, string)


ROWS = {"equal": _equal, "not_equal": _not_equal, "gather": _gather, "gather_nd": _gather_nd, "select": _select,
        "tensor_scatter_nd_update": _update}
