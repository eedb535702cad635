"""keras.ops' functions for networks on Stoker; those that are missing here are Keras' own, over stoker.tf."""
import numpy as _np
from keras.src import backend
from keras.src.backend import standardize_dtype
from stoker import _hook
from stoker import _stoker
from stoker.tf._base import o as _o

from keras.src.backend.tensorflow import _own
from keras.src.backend.tensorflow.core import convert_to_tensor

__getattr__ = _own.fallback("nn", globals())


def _keras(name):
    return getattr(_hook.keras_own("nn"), name)


# Activations.

def _activation(name, op=None):
    def function(x):
        if hasattr(x, "dense_shape") or hasattr(x, "row_splits"):
            return _keras(name)(x)
        return call(convert_to_tensor(x))

    call = _stoker.ops[op or name]
    function.__name__ = function.__qualname__ = name
    return function


for _public in ("relu relu6 tanh tanh_shrink softplus softsign sparse_plus sparse_sigmoid log_sigmoid hard_sigmoid hard_silu "
                "hard_tanh selu").split():
    globals()[_public] = _activation(_public)
del _public


def sigmoid(x):
    logits = convert_to_tensor(x)
    made = _o.sigmoid(logits)
    made._keras_logits = logits  # crossentropy computes from logits where it can
    return made


def softmax(x, axis=-1):
    logits = convert_to_tensor(x)
    if "float" not in logits.dtype.name:
        logits = _o.cast(logits, backend.floatx())
    if axis is None:
        made = _o.reshape(_o.softmax(_o.reshape(logits, [-1])), logits.shape.as_list())
    else:
        made = _o.softmax(logits, axis=axis)
    made._keras_logits = logits
    return made


def log_softmax(x, axis=-1):
    x = convert_to_tensor(x)
    if axis is None:
        return _o.reshape(_o.log_softmax(_o.reshape(x, [-1])), x.shape.as_list())
    return _o.log_softmax(x, axis=axis)


def silu(x):
    return _o.silu(convert_to_tensor(x))


def gelu(x, approximate=True):
    return _o.gelu(convert_to_tensor(x), approximate=approximate)


def leaky_relu(x, negative_slope=0.2):
    return _o.leaky_relu(convert_to_tensor(x), alpha=negative_slope)


def elu(x, alpha=1.0):
    return _o.elu(convert_to_tensor(x), alpha=alpha)


def celu(x, alpha=1.0):
    return _o.celu(convert_to_tensor(x), alpha=alpha)


def squareplus(x, b=4):
    return _o.squareplus(convert_to_tensor(x), b=b)


def soft_shrink(x, threshold=0.5):
    return _o.soft_shrink(convert_to_tensor(x), threshold=threshold)


def hard_shrink(x, threshold=0.5):
    return _o.hard_shrink(convert_to_tensor(x), threshold=threshold)


def threshold(x, threshold, default_value):
    return _o.threshold(convert_to_tensor(x), threshold=threshold, value=default_value)


# Convolutions and pools: the engine's images have their channels last.

def _several(value, n):
    return [int(value)] * n if isinstance(value, int) else [int(v) for v in value]


def _channels_last(x, data_format):
    rank = len(x.shape)
    return _o.transpose(x, [0] + list(range(2, rank)) + [1]) if data_format == "channels_first" else x


def _channels_back(x, data_format):
    rank = len(x.shape)
    return _o.transpose(x, [0, rank - 1] + list(range(1, rank - 1))) if data_format == "channels_first" else x


def _operands(inputs, kernel, data_format):
    x, w = convert_to_tensor(inputs), convert_to_tensor(kernel)
    if x.dtype.name != w.dtype.name:
        dtype = backend.result_type(x.dtype, w.dtype)
        x, w = convert_to_tensor(x, dtype), convert_to_tensor(w, dtype)
    if "float" not in x.dtype.name:
        x, w = _o.cast(x, "float32"), _o.cast(w, "float32")
    return _channels_last(x, data_format), w


def _check_channels(channels, kernel, axis, what):
    if channels % kernel:
        raise ValueError(f"The number of input channels must be evenly divisible by kernel's in_channels. Received input channels "
                         f"{channels} and kernel in_channels {kernel}. ")


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    data_format = backend.standardize_data_format(data_format)
    x, w = _operands(inputs, kernel, data_format)
    n, channels, each = len(x.shape) - 2, x.shape.as_list()[-1], w.shape.as_list()[-2]
    _check_channels(channels, each, -1, "conv")
    made = _o.conv(x, w, _several(strides, n), padding.upper(), _several(dilation_rate, n), channels // each)
    return _like(_channels_back(made, data_format), inputs)


def _like(made, inputs):
    """Integers are convolved as floats and become integers again."""
    dtype = getattr(getattr(inputs, "dtype", None), "name", getattr(inputs, "dtype", "float32"))
    return _o.cast(made, standardize_dtype(dtype)) if "int" in str(dtype) else made


def depthwise_conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    data_format = backend.standardize_data_format(data_format)
    x, w = _operands(inputs, kernel, data_format)
    n = len(x.shape) - 2
    if n > 2:
        raise ValueError(f"`inputs` rank must be 3 (1D conv) or 4 (2D conv). Received: {len(x.shape)}.")
    _check_channels(x.shape.as_list()[-1], w.shape.as_list()[-2], -1, "depthwise_conv")
    made = _o.depthwise_conv(x, w, _several(strides, n), padding.upper(), _several(dilation_rate, n))
    return _channels_back(made, data_format)


def separable_conv(inputs, depthwise_kernel, pointwise_kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    n = len(convert_to_tensor(inputs).shape) - 2
    if n > 2:
        raise ValueError(f"`num_spatial_dims` must be 1 or 2. Received: num_spatial_dims={n}.")
    made = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(made, pointwise_kernel, 1, "valid", data_format, 1)


def conv_transpose(inputs, kernel, strides=1, padding="valid", output_padding=None, data_format=None, dilation_rate=1):
    data_format = backend.standardize_data_format(data_format)
    x, w = _operands(inputs, kernel, data_format)
    n, channels, each = len(x.shape) - 2, x.shape.as_list()[-1], w.shape.as_list()[-1]
    if channels != each:
        raise ValueError(f"The number of input channels must be equal to the kernel's in_channels. Received input channels "
                         f"{channels} and kernel in_channels {each}. ")
    more = [-1] * n if output_padding is None else _several(output_padding, n)
    made = _o.conv_transpose(x, w, _several(strides, n), padding.upper(), _several(dilation_rate, n), more)
    return _channels_back(made, data_format)


def _pool(op, inputs, pool_size, strides, padding, data_format):
    data_format = backend.standardize_data_format(data_format)
    x = _channels_last(convert_to_tensor(inputs), data_format)
    n = len(x.shape) - 2
    made = op(x, _several(pool_size, n), _several(pool_size if strides is None else strides, n), padding.upper())
    return _channels_back(made, data_format)


def max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    return _pool(_o.max_pool, inputs, pool_size, strides, padding, data_format)


def average_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    return _pool(_o.avg_pool, inputs, pool_size, strides, padding, data_format)


# Classes.

def one_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    if sparse:
        return _keras("one_hot")(x, num_classes, axis, dtype, sparse)
    if hasattr(x, "row_splits") and axis == -1:
        return x.with_flat_values(one_hot(x.flat_values, num_classes, axis, dtype))
    x = convert_to_tensor(x, "int64")
    dtype = "float32" if dtype is None else standardize_dtype(dtype)
    made = _o.one_hot_values(x, int(num_classes), 1, 0, -1, "float32" if dtype == "bool" else dtype)
    rank = len(x.shape)
    axis = axis + rank + 1 if axis < 0 else axis
    if axis != rank:
        order = list(range(rank))
        order.insert(axis, rank)
        made = _o.transpose(made, order)
    return _o.cast(made, "bool") if dtype == "bool" else made


# Attention.

def _masked(logits, mask, is_causal):
    if mask is None and not is_causal:
        return logits
    keep = None if mask is None else convert_to_tensor(mask, "bool")
    if is_causal:
        rows, columns = logits.shape.as_list()[-2:]
        causal = convert_to_tensor(_np.tril(_np.ones((rows, columns), bool))[None, None])
        keep = causal if keep is None else _o.logical_and(keep, causal)
    low = -3e4 if logits.dtype.name == "float16" else float(_np.finfo(_np.float32).min) * 0.7
    return _o.where(keep, logits, convert_to_tensor(low, logits.dtype))


def _for_heads(x, heads):
    """Keys and values that several heads share stand once for each."""
    batch, rows, have, width = x.shape.as_list()
    if have == heads or heads % have:
        return x
    x = _o.broadcast_to(_o.expand_dims(x, 3), [batch, rows, have, heads // have, width])
    return _o.reshape(x, [batch, rows, heads, width])


def _is_one_operation(query, key, value, mask, scale):
    """Whether the engine's attention takes it and is fast: float32, known sizes, a mask of as many axes at most."""
    shapes = [t.shape.as_list() for t in (query, key, value)]
    q, k, v = shapes
    if query.dtype.name != "float32" or not isinstance(scale, (int, float, _np.floating)) or scale == 0:
        return False
    if any(n is None for shape in shapes for n in shape) or not (q[0] == k[0] == v[0] and k[1:3] == v[1:3] and q[3] == k[3]):
        return False
    if k[1] < 1 or k[2] < 1 or q[2] % k[2] or q[3] < 1:
        return False
    full = [q[0], q[2], q[1], k[1]]
    have = [] if mask is None else mask.shape.as_list()
    return len(have) <= 4 and all(n in (1, m) for n, m in zip(reversed(have), reversed(full)))


def dot_product_attention(query, key, value, bias=None, mask=None, scale=None, is_causal=False, flash_attention=None,
                          attn_logits_soft_cap=None):
    if flash_attention:
        raise ValueError("Flash attention is not supported in tensorflow backend.")
    query, key, value = (convert_to_tensor(t) for t in (query, key, value))
    if not len(query.shape) == len(key.shape) == len(value.shape) == 4:
        raise ValueError("`dot_product_attention` only supports 4D inputs. Received: "
                         f"query.shape={query.shape}, key.shape={key.shape}, value.shape={value.shape}.")
    dtype = backend.result_type(query.dtype, key.dtype, value.dtype, float)
    query, key, value = (convert_to_tensor(t, dtype) for t in (query, key, value))
    heads = query.shape.as_list()[2]
    scale = 1.0 / _np.sqrt(query.shape.as_list()[-1]) if scale is None else scale
    if bias is None and attn_logits_soft_cap is None:
        keep = None if mask is None else convert_to_tensor(mask, "bool")
        if _is_one_operation(query, key, value, keep, scale):
            return _o.attention(query, key, value, keep, bool(is_causal), float(scale))
    key, value = _for_heads(key, heads), _for_heads(value, heads)
    compute = backend.result_type(dtype, "float32")
    logits = _stoker.einsum("BTNH,BSNH->BNTS", [query, key])
    logits = convert_to_tensor(logits, compute) * convert_to_tensor(scale, compute)
    if attn_logits_soft_cap is not None:
        logits = _o.tanh(logits / attn_logits_soft_cap) * attn_logits_soft_cap
    if bias is not None:
        logits = logits + convert_to_tensor(bias, compute)
    weights = convert_to_tensor(_o.softmax(_masked(logits, mask, is_causal)), dtype)
    return _stoker.einsum("BNTS,BSNH->BTNH", [weights, value])


# Connectionist temporal classification.

def ctc_loss(target, output, target_length, output_length, mask_index=0):
    target = convert_to_tensor(target, "int32")
    output = convert_to_tensor(output)
    dtype = backend.result_type(output.dtype, "float32")
    logits = _o.log_softmax(convert_to_tensor(output, dtype), axis=-1)
    lengths = [convert_to_tensor(n, "int32") for n in (target_length, output_length)]
    from stoker.tf import _ctc

    return _ctc.all_ways(target, logits, *lengths, mask_index)
