"""Methods of tf.Variable that change or read some of its rows; the extension's type calls them."""
from stoker.tf._base import dims, o, tensor


def _rows(sparse_delta):
    return tensor(sparse_delta.indices), tensor(sparse_delta.values)


def scatter_update(variable, sparse_delta, use_locking=False, name=None):
    indices, values = _rows(sparse_delta)
    return variable.assign(o.tensor_scatter_nd_update(variable.value(), o.expand_dims(indices, -1), values))


def scatter_add(variable, sparse_delta, use_locking=False, name=None):
    indices, values = _rows(sparse_delta)
    return variable.assign(o.tensor_scatter_nd_add(variable.value(), o.expand_dims(indices, -1), values))


def scatter_sub(variable, sparse_delta, use_locking=False, name=None):
    indices, values = _rows(sparse_delta)
    return variable.assign(o.tensor_scatter_nd_add(variable.value(), o.expand_dims(indices, -1), -values))


def _row_by_row(operation):
    """Indices may repeat: one update after the other."""

    def scatter(variable, sparse_delta, use_locking=False, name=None):
        indices, values = _rows(sparse_delta)
        flat, rows = o.reshape(indices, [-1]), o.reshape(values, [-1] + variable.shape.as_list()[1:])
        made = variable.value()
        for n in range(dims(flat)[0]):
            place = flat[n:n + 1]
            made = o.tensor_scatter_nd_update(made, o.expand_dims(place, -1), operation(o.gather(made, place), rows[n:n + 1]))
        return variable.assign(made)

    return scatter


scatter_mul = _row_by_row(lambda x, y: x * y)
scatter_div = _row_by_row(lambda x, y: x / y)
scatter_max = _row_by_row(lambda x, y: o.maximum(x, y))
scatter_min = _row_by_row(lambda x, y: o.minimum(x, y))


def scatter_nd_update(variable, indices, updates, name=None):
    return variable.assign(o.tensor_scatter_nd_update(variable.value(), tensor(indices), tensor(updates, variable.dtype)))


def scatter_nd_add(variable, indices, updates, name=None):
    return variable.assign(o.tensor_scatter_nd_add(variable.value(), tensor(indices), tensor(updates, variable.dtype)))


def scatter_nd_sub(variable, indices, updates, name=None):
    return variable.assign(o.tensor_scatter_nd_add(variable.value(), tensor(indices), -tensor(updates, variable.dtype)))


def batch_scatter_update(variable, sparse_delta, use_locking=False, name=None):
    indices, values = _rows(sparse_delta)
    lead = dims(indices)[:-1]
    import numpy as np

    places = [o.broadcast_to(tensor(np.arange(d).reshape([-1] + [1] * (len(lead) - n)), indices.dtype), dims(indices))
              for n, d in enumerate(lead)]
    return variable.assign(o.tensor_scatter_nd_update(variable.value(), o.stack(places + [indices], axis=-1), values))


def sparse_read(variable, indices, name=None):
    return o.gather(variable.value(), tensor(indices))


def gather_nd(variable, indices, name=None):
    return o.gather_nd(variable.value(), tensor(indices))


def assign_slice(variable, key, value):
    """v[key].assign(value): the places that the key picks, by picking from a table of places."""
    import numpy as np

    shape = variable.shape.as_list()
    places = tensor(np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape))[key]
    value = o.broadcast_to(tensor(value, variable.dtype), dims(places))
    flat = o.tensor_scatter_nd_update(o.reshape(variable.value(), [-1]), o.reshape(places, [-1, 1]), o.reshape(value, [-1]))
    return variable.assign(o.reshape(flat, shape))
