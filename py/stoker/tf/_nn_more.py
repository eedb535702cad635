"""Rarer functions of tf.nn, made of others."""
import collections

import numpy as np

from stoker.tf import _nn
from stoker.tf._array import _concrete
from stoker.tf._base import dims, int64, o, tensor


def atrous_conv2d(value, filters, rate, padding, name=None):
    return _nn.convolution(value, filters, 1, padding, dilations=rate)


def sufficient_statistics(x, axes, shift=None, keepdims=False, name=None):
    """(count, sum, sum of squares, shift) of x around the shift."""
    x = tensor(x)
    axes = [int(a) % len(dims(x)) for a in np.ravel(axes)]
    count = tensor(float(np.prod([dims(x)[a] for a in axes])), x.dtype)
    moved = x if shift is None else x - tensor(shift, x.dtype)
    return count, o.reduce_sum(moved, axes, keepdims), o.reduce_sum(o.square(moved), axes, keepdims), shift


def normalize_moments(counts, mean_ss, variance_ss, shift, name=None):
    counts, mean_ss, variance_ss = tensor(counts), tensor(mean_ss), tensor(variance_ss)
    moved = mean_ss / counts
    variance = variance_ss / counts - o.square(moved)
    return (moved if shift is None else moved + tensor(shift, moved.dtype)), variance


def weighted_moments(x, axes, frequency_weights, keepdims=False, name=None):
    x = tensor(x)
    weights = o.broadcast_to(o.cast(tensor(frequency_weights), x.dtype), dims(x))
    axes = [int(a) for a in np.ravel(axes)]
    total = o.reduce_sum(weights, axes, True)
    mean = o.reduce_sum(weights * x, axes, True) / total
    variance = o.reduce_sum(weights * o.square(x - mean), axes, True) / total
    return (mean, variance) if keepdims else (o.squeeze(mean, axes), o.squeeze(variance, axes))


MaxPoolWithArgmax = collections.namedtuple("MaxPoolWithArgmax", "output argmax")


def max_pool_with_argmax(input, ksize, strides, padding, data_format="NHWC", output_dtype=int64, include_batch_in_index=False, name=None):
    """The largest of each window, and its place in the picture: (y * width + x) * channels + c."""
    from stoker.tf.image import extract_patches

    x = tensor(input)
    n, high, wide, channels = dims(x)
    size, step = (_nn._pair(v, 2, data_format) for v in (ksize, strides))
    places = np.arange(high * wide * channels, dtype=np.float64).reshape(1, high, wide, channels)
    if padding == "SAME":  # what lies outside is never the largest
        before, after = zip(*[((p := max((-(-s // t) - 1) * t + k - s, 0)) // 2, p - p // 2) for s, t, k in zip((high, wide), step, size)])
        edges = [[0, 0], [before[0], after[0]], [before[1], after[1]], [0, 0]]
        inside = np.pad(np.ones([1, high, wide, 1], bool), edges)
        x, places = o.where(tensor(inside), o.pad(x, edges), tensor(np.finfo(np.float32).min, x.dtype)), np.pad(places, edges)
    cut = dict(sizes=[1, *size, 1], strides=[1, *step, 1], rates=[1, 1, 1, 1], padding="VALID")
    windows = extract_patches(x, **cut)
    _, rows, columns, _ = dims(windows)
    windows = o.reshape(windows, [n, rows, columns, size[0] * size[1], channels])
    where = extract_patches(tensor(places), **cut)
    where = o.broadcast_to(o.reshape(where, [1, rows, columns, size[0] * size[1], channels]), dims(windows))
    best = o.cast(o.argmax(windows, 3), "int32")
    turned = o.transpose(where, [0, 1, 2, 4, 3])
    found = o.cast(o.gather(turned, o.expand_dims(best, -1), axis=4, batch_dims=4)[..., 0], output_dtype)
    if include_batch_in_index:
        found += tensor((np.arange(n) * high * wide * channels).reshape(-1, 1, 1, 1), found.dtype)
    return MaxPoolWithArgmax(o.reduce_max(windows, 3), found)


def _embedded(params, ids, weights, combiner, max_norm, count=None):
    """Rows of params by the ids of each row of a sparse tensor, put together."""
    rows = _concrete(ids.indices, "embedding_lookup_sparse")[:, 0]
    count = int(rows[-1]) + 1 if count is None else count
    found = _nn.embedding_lookup(params, ids.values, max_norm)
    weight = o.fill_value([len(rows), 1], found.dtype.name, 1) if weights is None else o.reshape(o.cast(weights.values, found.dtype), [-1, 1])
    from stoker.tf._math import unsorted_segment_sum

    total = unsorted_segment_sum(found * weight, tensor(rows), count)
    if combiner == "sum":
        return total
    if combiner not in ("mean", "sqrtn", None):
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}")
    share = unsorted_segment_sum(weight if combiner != "sqrtn" else o.square(weight), tensor(rows), count)
    empty = o.equal(share, o.zeros_like(share))
    share = o.where(empty, tensor(1, share.dtype), share if combiner != "sqrtn" else o.sqrt(share))
    return total / share


def embedding_lookup_sparse(params, sp_ids, sp_weights, combiner=None, max_norm=None, name=None, allow_fast_lookup=False):
    return _embedded(params, sp_ids, sp_weights, combiner or "mean", max_norm)


def safe_embedding_lookup_sparse(embedding_weights, sparse_ids, sparse_weights=None, combiner="mean", default_id=None, max_norm=None, name=None,
                                 allow_fast_lookup=False):
    """Ids below zero and weights that are not above zero are left out; empty rows are zeros, or those of default_id."""
    from stoker.tf import _sparse

    keep = _concrete(sparse_ids.values, "safe_embedding_lookup_sparse") >= 0
    if sparse_weights is not None:
        keep &= _concrete(sparse_weights.values, "safe_embedding_lookup_sparse") > 0
        sparse_weights = _sparse.retain(sparse_weights, keep)
    ids = _sparse.retain(sparse_ids, keep)
    if default_id is not None:
        ids, _ = _sparse.fill_empty_rows(ids, default_id)
        if sparse_weights is not None:
            sparse_weights, _ = _sparse.fill_empty_rows(sparse_weights, 1.0)
    return _embedded(embedding_weights, ids, sparse_weights, combiner, max_norm, ids._shape[0])
