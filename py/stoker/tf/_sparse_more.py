"""Rarer functions of tf.sparse."""
import numpy as np

from stoker.tf import _math, _sparse
from stoker.tf._base import dims, o, static, tensor


def softmax(sp_input, name=None):
    """Along the last axis, over the values that are there."""
    place = sp_input.indices.numpy()
    _, rows = np.unique(place[:, :-1], axis=0, return_inverse=True)
    rows, count = tensor(rows.reshape(-1).astype(np.int64)), int(rows.max(initial=-1)) + 1
    largest = o.gather(_math.unsorted_segment_max(sp_input.values, rows, count), rows)
    powers = o.exp(sp_input.values - largest)
    return sp_input.with_values(powers / o.gather(_math.unsorted_segment_sum(powers, rows, count), rows))


def split(sp_input=None, num_split=None, axis=None, name=None):
    """Parts along an axis; the first ones are longer by one when it does not divide."""
    shape, axis, count = list(sp_input._shape), int(static(axis)), int(static(num_split))
    axis %= len(shape)
    short, longer = divmod(shape[axis], count)
    made, at = [], 0
    for n in range(count):
        start, size = [0] * len(shape), list(shape)
        start[axis], size[axis] = at, short + (n < longer)
        made.append(_sparse.slice(sp_input, start, size))
        at += size[axis]
    return made


def to_indicator(sp_input, vocab_size, name=None):
    """[..., vocab_size] of bool: which numbers the last axis holds."""
    made = np.zeros(sp_input._shape[:-1] + [int(static(vocab_size))], bool)
    place = sp_input.indices.numpy()
    made[(*place[:, :-1].T, static(sp_input.values))] = True
    return tensor(made)


def reset_shape(sp_input, new_shape=None):
    place = sp_input.indices.numpy()
    least = place.max(0) + 1 if len(place) else np.zeros(len(sp_input._shape), np.int64)
    shape = least if new_shape is None else np.asarray(static(new_shape))
    if (shape < least).any():
        raise ValueError(f"tf.sparse.reset_shape: {shape.tolist()} has no room for values up to {least.tolist()}")
    return _sparse.SparseTensor(place, sp_input.values, shape)


def _segments(data, indices, segment_ids, num_segments):
    ids = np.asarray(static(segment_ids))
    count = int(static(num_segments)) if num_segments is not None else int(ids.max(initial=-1)) + 1
    total = _math.unsorted_segment_sum(o.gather(tensor(data), tensor(indices)), tensor(ids), count)
    sizes = np.maximum(np.bincount(ids, minlength=count), 1).reshape([-1] + [1] * (len(dims(total)) - 1))
    return total, sizes


def segment_sum(data, indices, segment_ids, num_segments=None, name=None):
    """Sums of the rows data[indices], by segment."""
    return _segments(data, indices, segment_ids, num_segments)[0]


def segment_mean(data, indices, segment_ids, num_segments=None, name=None):
    total, sizes = _segments(data, indices, segment_ids, num_segments)
    return total / tensor(sizes, total.dtype)


def segment_sqrt_n(data, indices, segment_ids, num_segments=None, name=None):
    total, sizes = _segments(data, indices, segment_ids, num_segments)
    return total / o.sqrt(tensor(sizes, total.dtype))
