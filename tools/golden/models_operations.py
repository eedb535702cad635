"""Golden models for operations of keras.ops that stand between layers, with their options and with constants as arguments."""

import keras
import numpy as np
from keras import layers as L
from keras import losses, ops, optimizers

from model import case

N = 20


def numbers(*shape):
    return np.sin(1.0 + np.arange(np.prod(shape))).reshape(shape).astype(keras.config.floatx())


def functional(name, shape, *steps):
    """x -> Dense -> each step -> flattened -> one Dense, so that every step has a gradient."""
    def build(r):
        i = L.Input(shape)
        h = L.Dense(shape[-1])(i)
        parts = []
        for step in steps:
            y = step(h)
            for part in y if isinstance(y, (list, tuple)) else [y]:
                if keras.backend.standardize_dtype(part.dtype) != keras.config.floatx():
                    part = ops.cast(part, keras.config.floatx())
                parts.append(L.Flatten()(part) if len(part.shape) > 1 else L.Reshape((1,))(part))
        m = keras.Model(i, L.Dense(2)(L.Concatenate()(parts) if len(parts) > 1 else parts[0]))
        x = r.normal(0, 1, (N,) + shape).astype(np.float32)
        y = r.normal(0, 1, (N, 2)).astype(np.float32)
        return dict(model=m, x=x, y=y, loss=losses.MeanSquaredError(), optimizer=optimizers.SGD(0.01), covers=["ops"])
    build.__name__ = name
    case(build)


functional("ops_activations", (6,), ops.gelu, lambda x: ops.gelu(x, approximate=False), lambda x: ops.elu(x, 0.7),
           lambda x: ops.leaky_relu(x, 0.1), lambda x: ops.celu(x, 1.3), ops.glu, ops.hard_tanh,
           lambda x: ops.hard_shrink(x, 0.3), lambda x: ops.soft_shrink(x, 0.2), ops.tanh_shrink,
           lambda x: ops.threshold(x, 0.1, -0.5), lambda x: ops.squareplus(x, 3), ops.sparse_plus, ops.sparse_sigmoid)
functional("ops_sparsemax", (5,), ops.sparsemax, L.Activation("sparsemax"))
functional("ops_by_element", (4,), lambda x: ops.clip(x, -0.5, 0.8), ops.erf, ops.expm1, ops.sign, ops.floor, ops.ceil,
           lambda x: ops.floor_divide(x, 0.7), lambda x: ops.mod(x, 0.9), ops.isnan, ops.isfinite, ops.nan_to_num,
           lambda x: ops.round(x, 1), ops.stop_gradient, ops.convert_to_tensor, lambda x: ops.log2(ops.square(x) + 1),
           lambda x: ops.log10(ops.square(x) + 2), lambda x: ops.tan(0.2 * x), ops.arctan,
           lambda x: ops.sinh(0.3 * x), ops.arcsinh, lambda x: ops.cosh(0.3 * x))
functional("ops_constants", (3, 4), lambda x: x + numbers(3, 4),
           lambda x: ops.multiply(numbers(4), x), lambda x: ops.maximum(x, ops.zeros((4,))),
           lambda x: ops.where(ops.greater(x, 0.1), x, numbers(4)),
           lambda x: ops.dot(x, numbers(4, 2)), lambda x: 2 / (x * x + 1) - 1)
functional("ops_axes", (3, 4), lambda x: ops.moveaxis(x, 1, 2), lambda x: ops.swapaxes(x, 1, 2), lambda x: ops.flip(x, 1),
           lambda x: ops.roll(x, 1, axis=2), lambda x: ops.repeat(x, 2, axis=1), lambda x: ops.tile(x, [1, 2, 1]),
           lambda x: ops.pad(x, [[0, 0], [1, 0], [0, 2]]), lambda x: ops.pad(x, [[0, 0], [1, 1], [1, 1]], mode="reflect"),
           lambda x: ops.pad(x, [[0, 0], [1, 0], [0, 0]], constant_values=2), lambda x: ops.split(x, 2, axis=-1)[1],
           lambda x: ops.split(x, [1, 3], axis=-1), lambda x: ops.unstack(x, axis=1)[2],
           lambda x: ops.take(x, [2, 0, -1], axis=2), lambda x: ops.diagonal(x, axis1=1, axis2=2), ops.tril, lambda x: ops.triu(x, 1),
           lambda x: ops.squeeze(x[:, 1:2], axis=1), lambda x: ops.einsum("bij,bkj->bik", x, x))
functional("ops_reductions", (3, 4), lambda x: ops.prod(x, axis=1), lambda x: ops.var(x, axis=[1, 2], keepdims=True),
           lambda x: ops.std(x, axis=2), lambda x: ops.logsumexp(x, axis=2), lambda x: ops.norm(x, axis=-1),
           lambda x: ops.norm(x, ord=1, axis=1, keepdims=True), ops.normalize, lambda x: ops.normalize(x, axis=1, order=1),
           ops.rms_normalization, ops.layer_normalization,
           lambda x: ops.layer_normalization(x, numbers(4), beta=numbers(4)),
           lambda x: ops.moments(x, axes=[1]), lambda x: ops.cumsum(x, axis=1), lambda x: ops.sort(x, axis=-1),
           lambda x: ops.top_k(x, 2)[0], lambda x: ops.argmax(x, axis=-1), lambda x: ops.argmin(x, axis=1, keepdims=True),
           lambda x: ops.one_hot(ops.argmax(x, axis=-1), 4))
functional("ops_images", (6, 6, 3), lambda x: ops.max_pool(x, 2), lambda x: ops.average_pool(x, 3, strides=2, padding="same"),
           lambda x: ops.conv(x, numbers(3, 3, 3, 2), strides=2, padding="same"),
           lambda x: ops.depthwise_conv(x, numbers(2, 2, 3, 1)),
           lambda x: ops.image.resize(x, (4, 5)), lambda x: ops.image.resize(x, (9, 8), interpolation="nearest"))
functional("ops_attention", (5, 2, 4), lambda x: ops.dot_product_attention(x, x, x),
           lambda x: ops.dot_product_attention(x, x, x, is_causal=True))
