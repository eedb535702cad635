"""Convolution and pooling: where "same" padding puts the odd pixel, what dilation and groups mean,
the weight layout of transposed convolution, and whether padding counts in an average.

Layouts: images are batch, height, width, channels; conv weights height, width, in / groups, out;
depthwise weights height, width, in, multiplier; transposed weights height, width, out, in.
"""
import tensorflow as tf
from case import Case, Values


def conv2d(name, size, kernel, channels, stride=1, padding="same", dilation=1, groups=1):
    height, width = size
    values, (inside, outside) = Values(name), channels
    return Case(
        name, "conv2d",
        {"strides": [stride, stride], "padding": padding, "dilations": [dilation, dilation],
         "groups": groups},
        {"x": values.normal(2, height, width, inside),
         "w": values.normal(*kernel, inside // groups, outside)},
        lambda x, w: grouped(x, w, stride, padding, dilation, groups), ("x", "w"))


def spread_out(w, dilation, axis):
    """Zeros between the taps: a dilated convolution by definition. TensorFlow's CPU kernels have no
    gradient for dilations."""
    taps = tf.unstack(w, axis=axis)
    between = [tf.zeros_like(taps[0])] * (dilation - 1)
    row = taps[:1]
    for tap in taps[1:]:
        row += between + [tap]
    return tf.stack(row, axis)


def grouped(x, w, stride, padding, dilation, groups):
    """Groups are convolutions side by side; the CPU kernels have no gradient for them either."""
    wide = spread_out(spread_out(w, dilation, 0), dilation, 1)
    parts = [tf.nn.conv2d(a, b, stride, padding.upper())
             for a, b in zip(tf.split(x, groups, 3), tf.split(wide, groups, 3))]
    y = tf.concat(parts, 3)
    direct = tf.nn.conv2d(x, w, stride, padding.upper(), dilations=dilation)
    tf.debugging.assert_near(y, direct, 1e-4, 1e-4)
    return y


def depthwise(name, size, kernel, inside, multiplier, stride, padding):
    values = Values(name)
    return Case(
        name, "depthwise_conv2d",
        {"strides": [stride, stride], "padding": padding, "dilations": [1, 1]},
        {"x": values.normal(2, *size, inside), "w": values.normal(*kernel, inside, multiplier)},
        lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, stride, stride, 1], padding.upper()),
        ("x", "w"))


def conv1d_causal(name, length, kernel, dilation):
    values = Values(name)

    def function(x, w):
        x = tf.pad(x, [[0, 0], [dilation * (kernel - 1), 0], [0, 0]])
        return tf.nn.conv1d(x, spread_out(w, dilation, 0), 1, "VALID")

    return Case(name, "conv1d", {"strides": [1], "padding": "causal", "dilations": [dilation]},
                {"x": values.normal(2, length, 3), "w": values.normal(kernel, 3, 4)},
                function, ("x", "w"))


def conv3d(name, size, stride, padding):
    values = Values(name)
    return Case(name, "conv3d", {"strides": [stride] * 3, "padding": padding, "dilations": [1] * 3},
                {"x": values.normal(1, *size, 2), "w": values.normal(3, 3, 3, 2, 3)},
                lambda x, w: tf.nn.conv3d(x, w, [1, stride, stride, stride, 1], padding.upper()),
                ("x", "w"))


def transpose2d(name, size, kernel, stride, padding):
    """Output size as Keras chooses it: in * stride for same, in * stride + max(kernel - stride, 0)
    for valid."""
    values = Values(name)
    out = [n * stride + (max(k - stride, 0) if padding == "valid" else 0)
           for n, k in zip(size, kernel)]
    return Case(
        name, "conv2d_transpose",
        {"strides": [stride, stride], "padding": padding, "output_size": out},
        {"x": values.normal(2, *size, 3), "w": values.normal(*kernel, 4, 3)},
        lambda x, w: tf.nn.conv2d_transpose(x, w, [2, *out, 4], stride, padding.upper()),
        ("x", "w"))


def pool(name, kind, size, window, stride, padding, ties=False):
    values = Values(name)
    x = values.integers(3, 2, *size, 2).astype("float32") if ties else values.normal(2, *size, 2)
    function = tf.nn.max_pool2d if kind == "max_pool2d" else tf.nn.avg_pool2d
    return Case(name, kind,
                {"window": list(window), "strides": [stride, stride], "padding": padding}, {"x": x},
                lambda v: function(v, window, stride, padding.upper()), ("x",))


def cases():
    yield conv2d("conv2d_same_stride2_even", (8, 6), (3, 3), (3, 4), stride=2)
    yield conv2d("conv2d_same_stride2_odd", (7, 5), (3, 3), (3, 4), stride=2)
    yield conv2d("conv2d_same_even_kernel", (6, 7), (4, 2), (2, 3))
    yield conv2d("conv2d_same_stride3_big_step", (8, 8), (2, 2), (2, 3), stride=3)
    yield conv2d("conv2d_valid_stride2", (8, 9), (3, 2), (3, 5), stride=2, padding="valid")
    yield conv2d("conv2d_same_dilated", (9, 8), (3, 3), (2, 3), dilation=2)
    yield conv2d("conv2d_groups2_same_stride2", (6, 6), (3, 3), (4, 6), stride=2, groups=2)
    yield conv2d("conv2d_1x1_stride2", (5, 6), (1, 1), (3, 4), stride=2)
    yield depthwise("depthwise_same_stride2", (7, 8), (3, 3), 3, 2, 2, "same")
    yield depthwise("depthwise_valid", (6, 5), (3, 2), 4, 1, 1, "valid")
    yield conv1d_causal("conv1d_causal_dilated", 9, 3, 2)
    yield conv3d("conv3d_same_stride2", (4, 5, 6), 2, "same")
    yield conv3d("conv3d_valid", (4, 5, 4), 1, "valid")
    yield transpose2d("conv2d_transpose_same_stride2", (4, 3), (3, 3), 2, "same")
    yield transpose2d("conv2d_transpose_same_even_kernel", (3, 4), (4, 4), 2, "same")
    yield transpose2d("conv2d_transpose_valid_stride2", (3, 4), (3, 3), 2, "valid")
    yield transpose2d("conv2d_transpose_valid_stride3", (3, 3), (2, 2), 3, "valid")
    yield pool("avg_pool_same_stride2_odd", "avg_pool2d", (7, 5), (3, 3), 2, "same")
    yield pool("avg_pool_same_stride1", "avg_pool2d", (5, 4), (2, 2), 1, "same")
    yield pool("avg_pool_valid_overlap", "avg_pool2d", (7, 6), (3, 2), 2, "valid")
    yield pool("max_pool_same_stride2_odd", "max_pool2d", (7, 5), (3, 3), 2, "same")
    yield pool("max_pool_valid_ties", "max_pool2d", (6, 6), (2, 2), 2, "valid", ties=True)
    yield pool("max_pool_overlap_ties", "max_pool2d", (6, 5), (3, 3), 1, "valid", ties=True)
