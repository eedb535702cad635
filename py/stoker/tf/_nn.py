"""tf.nn functions that are made of others: TensorFlow's argument conventions around the engine's operations."""
import numpy as np

from stoker import _stoker
from stoker.tf._array import _sizes
from stoker.tf._base import as_type_of, axis_of, dims, float32, o, static, tensor
from stoker.tf._math import _two


def _plain_function(name):
    """Keras writes an activation into a model's file by its name, and takes only plain functions for such."""
    operation = _stoker.ops[name]

    def activation(*arguments, **options):
        return operation(*arguments, **options)

    activation.__name__ = activation.__qualname__ = name
    return activation


for _name in "elu gelu leaky_relu log_softmax relu relu6 selu sigmoid softmax softplus softsign tanh".split():
    globals()[_name] = _plain_function(_name)


def bias_add(value, bias, data_format=None, name=None):
    value = tensor(value)
    bias = as_type_of(value, bias)
    if data_format is not None and data_format.startswith("NC") and len(dims(value)) > 2:
        bias = o.reshape(bias, [-1] + [1] * (len(dims(value)) - 2))
    return o.add(value, bias)


def l2_loss(t, name=None):
    t = tensor(t)
    return o.reduce_sum(o.square(t)) / tensor(2, t.dtype)


def _pair(value, rank, data_format):
    """Spatial numbers from an int, a list of them, or TensorFlow's list with batch and channel."""
    values = [int(v) for v in np.ravel(static(value))]
    if len(values) == 1:
        return values * rank
    if len(values) == rank + 2:
        return values[2:] if data_format.startswith("NC") else values[1:-1]
    return values


def _channels_last(x, data_format):
    if data_format and data_format.startswith("NC"):
        many = len(dims(x))
        return o.transpose(x, [0] + list(range(2, many)) + [1]), True
    return x, False


def _channels_back(x, turned):
    if not turned:
        return x
    many = len(dims(x))
    return o.transpose(x, [0, many - 1] + list(range(1, many - 1)))


def _padding(x, padding, rank, data_format):
    """Explicit paddings are made with pad; then VALID is left."""
    if isinstance(padding, str):
        return x, padding.upper()
    rows = [[int(a) for a in p] for p in padding]
    if len(rows) == rank + 2:
        rows = rows[2:] if data_format.startswith("NC") else rows[1:-1]
    return o.pad(x, [[0, 0]] + rows + [[0, 0]]), "VALID"


def convolution(input, filters, strides=1, padding="VALID", data_format=None, dilations=None, name=None):
    x = tensor(input)
    w = as_type_of(x, filters)
    rank = len(dims(w)) - 2
    data_format = data_format or "N" + "DHW"[3 - rank:] + "C"
    strides = _pair(1 if strides is None else strides, rank, data_format)
    dilations = _pair(1 if dilations is None else dilations, rank, data_format)
    x, turned = _channels_last(x, data_format)
    x, padding = _padding(x, padding, rank, "N..C" if turned else data_format)
    return _channels_back(o.conv(x, w, strides, padding, dilations), turned)


def conv1d(input, filters, stride, padding, data_format="NWC", dilations=None, name=None):
    return convolution(input, filters, stride, padding, data_format or "NWC", dilations)


def conv2d(input, filters, strides, padding, data_format="NHWC", dilations=None, name=None):
    return convolution(input, filters, strides, padding, data_format or "NHWC", dilations)


def conv3d(input, filters, strides, padding, data_format="NDHWC", dilations=None, name=None):
    return convolution(input, filters, strides, padding, data_format or "NDHWC", dilations)


def conv_transpose(input, filters, output_shape, strides, padding="SAME", data_format=None, dilations=None, name=None):
    x = tensor(input)
    w = as_type_of(x, filters)
    rank = len(dims(w)) - 2
    data_format = data_format or "N" + "DHW"[3 - rank:] + "C"
    strides = _pair(strides, rank, data_format)
    dilations = _pair(1 if dilations is None else dilations, rank, data_format)
    wanted = _sizes(output_shape)
    x, turned = _channels_last(x, data_format)
    spatial = wanted[2:] if turned else wanted[1:-1]
    sizes = dims(x)[1:-1]
    padding = padding.upper()
    if padding == "SAME" and spatial == [n * s for n, s in zip(sizes, strides)]:
        return _channels_back(o.conv_transpose(x, w, strides, padding, dilations, None), turned)
    made = o.conv_transpose(x, w, strides, "VALID", dilations, None)  # all there is, then the part that is asked for
    for axis, (n, s, k, d, wanted_) in enumerate(zip(sizes, strides, dims(w)[:-2], dilations, spatial), 1):
        whole = (n - 1) * s + (k - 1) * d + 1
        low = max(whole - wanted_, 0) // 2 if padding == "SAME" else 0
        made = _part(made, axis, low, wanted_)
    return _channels_back(made, turned)


def _part(x, axis, low, size):
    """`size` places of an axis from `low` on; zeros where there are none."""
    have = dims(x)[axis]
    if low + size > have:
        x = o.pad(x, [[0, low + size - have if a == axis else 0] for a in range(len(dims(x)))])
    begin = [low if a == axis else 0 for a in range(len(dims(x)))]
    return o.slice(x, begin, [size if a == axis else n for a, n in enumerate(dims(x))])


def conv2d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NHWC", dilations=None,
                     name=None):
    return conv_transpose(input, filters, output_shape, strides, padding, data_format, dilations)


def conv1d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NWC", dilations=None,
                     name=None):
    return conv_transpose(input, filters, output_shape, strides, padding, data_format, dilations)


def conv3d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NDHWC", dilations=None,
                     name=None):
    return conv_transpose(input, filters, output_shape, strides, padding, data_format, dilations)


def depthwise_conv2d(input, filter, strides, padding, data_format="NHWC", dilations=None, name=None):
    data_format = data_format or "NHWC"
    x = tensor(input)
    w = as_type_of(x, filter)
    strides = _pair(strides, 2, data_format)
    dilations = _pair(1 if dilations is None else dilations, 2, data_format)
    x, turned = _channels_last(x, data_format)
    x, padding = _padding(x, padding, 2, "N..C" if turned else data_format)
    return _channels_back(o.depthwise_conv(x, w, strides, padding, dilations), turned)


def separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, data_format="NHWC", dilations=None,
                     name=None):
    x = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return convolution(x, pointwise_filter, 1, "VALID", data_format or "NHWC")


def _pool(kind):
    def pool(input, ksize, strides, padding, data_format=None, name=None):
        x = tensor(input)
        rank = len(dims(x)) - 2
        data_format = data_format or "N" + "DHW"[3 - rank:] + "C"
        size, step = _pair(ksize, rank, data_format), _pair(strides, rank, data_format)
        x, turned = _channels_last(x, data_format)
        if not isinstance(padding, str):
            rows = [[int(a) for a in p] for p in padding]
            rows = rows[2:] if data_format.startswith("NC") else rows[1:-1]
            x = o.pad(x, [[0, 0]] + rows + [[0, 0]], "CONSTANT", float(x.dtype.min))
            padding = "VALID"
        return _channels_back(getattr(o, kind)(x, size, step, padding.upper()), turned)

    pool.__name__ = kind
    return pool


max_pool = max_pool1d = max_pool2d = max_pool3d = _pool("max_pool")
avg_pool = avg_pool1d = avg_pool2d = avg_pool3d = _pool("avg_pool")


def pool(input, window_shape, pooling_type, strides=None, padding="VALID", data_format=None, dilations=None, name=None):
    strides = strides or [1] * len(window_shape)
    return (max_pool if pooling_type.upper() == "MAX" else avg_pool)(input, window_shape, strides, padding, data_format)


def moments(x, axes, shift=None, keepdims=False, name=None):
    x = tensor(x)
    wide = o.cast(x, float32) if x.dtype.name in ("float16", "bfloat16") else x
    mean = o.reduce_mean(wide, axis=axes, keepdims=True)
    variance = o.reduce_mean(o.square(wide - o.stop_gradient(mean)), axis=axes, keepdims=True)
    if not keepdims:
        gone = list(range(len(dims(x)))) if axes is None else [
            axis_of(a, len(dims(x))) for a in np.ravel(static(axes))]
        mean, variance = o.squeeze(mean, gone), o.squeeze(variance, gone)
    return o.cast(mean, x.dtype), o.cast(variance, x.dtype)


def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    x = tensor(x)
    inverse = o.rsqrt(tensor(variance) + variance_epsilon)
    if scale is not None:
        inverse = inverse * scale
    shift = -tensor(mean) * inverse if offset is None else tensor(offset) - mean * inverse
    return x * o.cast(inverse, x.dtype) + o.cast(shift, x.dtype)


def dropout(x, rate, noise_shape=None, seed=None, name=None):
    from stoker.tf import random

    x = tensor(x)
    if isinstance(rate, (int, float)) and not 0 <= rate < 1:
        raise ValueError(f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}")
    if isinstance(rate, (int, float)) and rate == 0:
        return x
    shape = dims(x) if noise_shape is None else [
        d if n is None or n == -1 else int(n) for n, d in zip(list(noise_shape), dims(x))]
    keep = o.greater_equal(random.uniform(shape, seed=seed, dtype=x.dtype), tensor(rate, x.dtype))
    return o.where(keep, x / (1 - rate), tensor(0, x.dtype))


def experimental_stateless_dropout(x, rate, seed, rng_alg="auto_select", noise_shape=None, name=None):
    from stoker.tf import random

    x = tensor(x)
    shape = dims(x) if noise_shape is None else _sizes(noise_shape)
    keep = o.greater_equal(random.stateless_uniform(shape, seed, dtype=x.dtype), tensor(rate, x.dtype))
    return o.where(keep, x / (1 - rate), tensor(0, x.dtype))


def embedding_lookup(params, ids, max_norm=None, name=None):
    from stoker.tf._math import clip_by_norm

    if isinstance(params, (list, tuple)):
        params = params[0] if len(params) == 1 else o.concat(list(params), 0)
    rows = o.gather(params, ids)
    return rows if max_norm is None else clip_by_norm(rows, max_norm, axes=[-1])


def softmax_cross_entropy_with_logits(labels, logits, axis=-1, name=None):
    logits = tensor(logits)
    labels = tensor(labels, logits.dtype)
    return o.negative(o.reduce_sum(labels * o.log_softmax(logits, axis), axis=axis))


def sparse_softmax_cross_entropy_with_logits(labels, logits, name=None):
    labels, logits = tensor(labels), tensor(logits)
    if dims(labels) != dims(logits)[:-1]:
        if len(dims(labels)) != len(dims(logits)) - 1:
            raise ValueError("Rank mismatch: Rank of labels (received {}) should equal rank of logits minus 1 (received "
                             "{}).".format(len(dims(labels)), len(dims(logits))))
        raise ValueError("`labels.shape` must equal `logits.shape` except for the last dimension. Received: "
                         f"labels.shape={tuple(dims(labels))} and logits.shape={tuple(dims(logits))}")
    return o.sparse_softmax_cross_entropy(labels, logits)


def sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None):
    logits = tensor(logits)
    labels = tensor(labels, logits.dtype)
    if dims(labels) != dims(logits):
        raise ValueError(f"`logits` and `labels` must have the same shape, received ({tuple(dims(logits))} vs "
                         f"{tuple(dims(labels))}).")
    return o.maximum(logits, tensor(0, logits.dtype)) - logits * labels + o.softplus(-o.abs(logits))


def weighted_cross_entropy_with_logits(labels, logits, pos_weight, name=None):
    logits = tensor(logits)
    labels = tensor(labels, logits.dtype)
    weight = 1 + (pos_weight - 1) * labels
    return (1 - labels) * logits + weight * (o.softplus(-o.abs(logits)) + o.relu(-logits))


def log_poisson_loss(targets, log_input, compute_full_loss=False, name=None):
    targets, log_input = _two(targets, log_input)
    return o.exp(log_input) - log_input * targets


def compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None):
    loss = tensor(per_example_loss)
    if sample_weight is not None:
        loss = loss * o.cast(tensor(sample_weight), loss.dtype)
    size = dims(loss)[0] if global_batch_size is None and dims(loss) else global_batch_size or 1
    return o.reduce_sum(loss) / tensor(float(static(size)), loss.dtype)


def scale_regularization_loss(regularization_loss):
    return o.reduce_sum(tensor(regularization_loss))


def local_response_normalization(input, depth_radius=5, bias=1, alpha=1, beta=0.5, name=None):
    x = tensor(input)
    around = o.pad(o.square(x), [[0, 0]] * (len(dims(x)) - 1) + [[depth_radius, depth_radius]])
    total, width = None, dims(x)[-1]
    for shift in range(2 * depth_radius + 1):
        part = o.slice(around, [0] * (len(dims(x)) - 1) + [shift], dims(x)[:-1] + [width])
        total = part if total is None else total + part
    return x / (bias + alpha * total) ** beta


lrn = local_response_normalization


def crelu(features, axis=-1, name=None):
    x = tensor(features)
    return o.relu(o.concat([x, -x], axis))


def silu(features, beta=1.0):
    x = tensor(features)
    return o.silu(x) if isinstance(beta, (int, float)) and beta == 1 else x * o.sigmoid(x * beta)


def _shuffle_space(x, block, data_format, up):
    x, turned = _channels_last(tensor(x), data_format)
    n, h, w, c = dims(x)
    if up:
        y = o.transpose(o.reshape(x, [n, h, w, block, block, c // block**2]), [0, 1, 3, 2, 4, 5])
        y = o.reshape(y, [n, h * block, w * block, c // block**2])
    else:
        y = o.transpose(o.reshape(x, [n, h // block, block, w // block, block, c]), [0, 1, 3, 2, 4, 5])
        y = o.reshape(y, [n, h // block, w // block, c * block**2])
    return _channels_back(y, turned)


def depth_to_space(input, block_size, data_format="NHWC", name=None):
    return _shuffle_space(input, int(block_size), data_format, True)


def space_to_depth(input, block_size, data_format="NHWC", name=None):
    return _shuffle_space(input, int(block_size), data_format, False)


def ctc_greedy_decoder(inputs, sequence_length, merge_repeated=True, blank_index=None):
    """The best label of each step without repeats and blanks; inputs are time major."""
    from stoker.tf._array import _concrete
    from stoker.tf._sparse import SparseTensor

    scores = _concrete(tensor(inputs), "ctc_greedy_decoder")
    lengths = _concrete(tensor(sequence_length), "ctc_greedy_decoder")
    blank = scores.shape[-1] - 1 if blank_index is None else blank_index % scores.shape[-1]
    best = scores.argmax(-1).T
    indices, values, longest = [], [], 0
    for row, (labels, length) in enumerate(zip(best, lengths)):
        last, count = None, 0
        for label in labels[:length]:
            if label != blank and not (merge_repeated and label == last):
                indices.append([row, count])
                values.append(label)
                count += 1
            last = label
        longest = max(longest, count)
    score = np.array([[-scores[:n, row].max(-1).sum()] for row, n in enumerate(lengths)], scores.dtype)
    decoded = SparseTensor(np.array(indices, np.int64).reshape(-1, 2), np.array(values, np.int64), [len(best), longest])
    return [decoded], tensor(score)
