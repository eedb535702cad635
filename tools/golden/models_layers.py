"""Golden models for layers on vectors and images. Each is as small as the layer allows."""

import keras
import numpy as np
from keras import layers as L
from keras import losses, metrics, optimizers

from model import case

N = 20  # rows: 5 batches of 4


def floats(r, *shape, low=None, high=None):
    a = r.normal(0, 1, (N,) + shape) if low is None else r.uniform(low, high, (N,) + shape)
    return a.astype(np.float32)


def classes(r, n, *shape):
    return r.integers(0, n, (N,) + shape).astype(np.int32)


def trained(model, x, y, loss=None, optimizer=None, **more):
    """Regression with SGD unless said otherwise: it shows errors of gradients in proportion."""
    return dict(model=model, x=x, y=y, loss=loss or losses.MeanSquaredError(),
                optimizer=optimizer or optimizers.SGD(0.05), **more)


def classified(model, x, y, optimizer=None, **more):
    more.setdefault("metrics", [metrics.SparseCategoricalAccuracy(name="accuracy")])
    return trained(model, x, y, losses.SparseCategoricalCrossentropy(from_logits=True),
                   optimizer or optimizers.SGD(0.1), **more)


@case
def dense_softmax(r):
    m = keras.Sequential([L.Input((6,)), L.Dense(8, "relu"), L.Dense(3, "softmax")])
    return trained(m, floats(r, 6), classes(r, 3), losses.SparseCategoricalCrossentropy(),
                   metrics=[metrics.SparseCategoricalAccuracy(name="accuracy"),
                            metrics.SparseTopKCategoricalAccuracy(k=2)], covers=["Input", "Dense"])


@case
def dense_deep(r):
    m = keras.Sequential([L.Input((5,)), L.Dense(6, "tanh", use_bias=False)] +
                         [L.Dense(6, "silu") for _ in range(8)] + [L.Dense(2)])
    return trained(m, floats(r, 5), floats(r, 2), metrics=[metrics.MeanAbsoluteError()])


@case
def dense_on_sequences(r):
    m = keras.Sequential([L.Input((3, 4)), L.Dense(5, "elu"), L.Dense(2)])
    return trained(m, floats(r, 3, 4), floats(r, 3, 2), metrics=[metrics.RootMeanSquaredError()])


@case
def activations(r):
    i = L.Input((4,))
    names = ("relu leaky_relu elu selu gelu silu softplus softsign tanh sigmoid hard_sigmoid softmax log_softmax "
             "linear exponential mish").split()
    parts = [L.Activation(name)(L.Dense(3)(i)) for name in names]
    m = keras.Model(i, L.Dense(2)(L.Concatenate()(parts)))
    return trained(m, floats(r, 4), floats(r, 2), optimizer=optimizers.SGD(0.01), covers=["Activation"] + names)


@case
def activations_inside_dense(r):
    i = L.Input((4,))
    parts = [L.Dense(3, activation=name)(i) for name in ("gelu", "softmax", "leaky_relu", "mish", "relu6", "swish")]
    return trained(keras.Model(i, L.Dense(2)(L.Concatenate()(parts))), floats(r, 4), floats(r, 2))


@case
def conv1d(r):
    m = keras.Sequential([L.Input((12, 3)), L.Conv1D(4, 3, padding="causal", dilation_rate=2, activation="relu"),
                          L.Conv1D(4, 3, strides=2, padding="same"), L.MaxPooling1D(2), L.Flatten(), L.Dense(2)])
    return trained(m, floats(r, 12, 3), floats(r, 2), covers=["Conv1D", "MaxPooling1D", "Flatten"])


@case
def conv2d(r):
    m = keras.Sequential([L.Input((11, 8, 2)), L.Conv2D(4, 3, padding="same", activation="relu"),
                          L.MaxPooling2D(2), L.Conv2D(4, (3, 2), strides=(2, 1), use_bias=False),
                          L.Conv2D(4, 2, groups=2, activation="tanh"), L.Flatten(), L.Dense(3)])
    return classified(m, floats(r, 11, 8, 2), classes(r, 3), covers=["Conv2D", "MaxPooling2D"])


@case
def conv2d_dilated(r):
    m = keras.Sequential([L.Input((9, 9, 2)), L.Conv2D(3, 3, dilation_rate=(2, 1), padding="same"),
                          L.GlobalMaxPooling2D(), L.Dense(2)])
    return trained(m, floats(r, 9, 9, 2), floats(r, 2), covers=["GlobalMaxPooling2D"])


@case
def conv3d(r):
    m = keras.Sequential([L.Input((4, 5, 4, 2)), L.Conv3D(3, 3, strides=(1, 2, 1), padding="same", activation="relu"),
                          L.Conv3D(2, 2), L.Flatten(), L.Dense(2)])
    return trained(m, floats(r, 4, 5, 4, 2), floats(r, 2), optimizer=optimizers.SGD(0.02), covers=["Conv3D"])


@case
def separable_conv2d(r):
    m = keras.Sequential([L.Input((7, 7, 3)), L.SeparableConv2D(4, 3, depth_multiplier=2, padding="same", strides=2,
                                                                activation="relu"),
                          L.SeparableConv2D(3, 2), L.GlobalAveragePooling2D(), L.Dense(2)])
    return trained(m, floats(r, 7, 7, 3), floats(r, 2), covers=["SeparableConv2D", "GlobalAveragePooling2D"])


@case
def depthwise_conv2d(r):
    m = keras.Sequential([L.Input((7, 6, 3)), L.DepthwiseConv2D(3, strides=2, padding="same", activation="tanh"),
                          L.DepthwiseConv2D(2, depth_multiplier=2, use_bias=False), L.Flatten(), L.Dense(2)])
    return trained(m, floats(r, 7, 6, 3), floats(r, 2), covers=["DepthwiseConv2D"])


@case
def conv2d_transpose(r):
    m = keras.Sequential([L.Input((3, 4, 2)), L.Conv2DTranspose(3, 3, strides=2, padding="same", activation="relu"),
                          L.Conv2DTranspose(2, (2, 3), padding="valid")])
    return trained(m, floats(r, 3, 4, 2), floats(r, 7, 10, 2), optimizer=optimizers.SGD(0.2),
                   covers=["Conv2DTranspose"])


@case
def pooling1d(r):
    i = L.Input((10, 3))
    h = L.Conv1D(4, 2)(i)
    parts = [L.GlobalAveragePooling1D()(h), L.GlobalMaxPooling1D()(h),
             L.Flatten()(L.AveragePooling1D(3, strides=2, padding="same")(h)), L.Flatten()(L.MaxPooling1D(2)(h))]
    return trained(keras.Model(i, L.Dense(2)(L.Concatenate()(parts))), floats(r, 10, 3), floats(r, 2),
                   optimizer=optimizers.SGD(0.02),
                   covers=["AveragePooling1D", "MaxPooling1D", "GlobalAveragePooling1D", "GlobalMaxPooling1D"])


@case
def pooling2d(r):
    i = L.Input((7, 7, 2))
    h = L.Conv2D(3, 2, padding="same")(i)
    parts = [L.Flatten()(L.MaxPooling2D(3, strides=2, padding="same")(h)),
             L.Flatten()(L.AveragePooling2D((2, 3), padding="same")(h)), L.Flatten()(L.AveragePooling2D(2)(h)),
             L.GlobalAveragePooling2D()(h), L.Flatten()(L.GlobalMaxPooling2D(keepdims=True)(h))]
    return trained(keras.Model(i, L.Dense(2)(L.Concatenate()(parts))), floats(r, 7, 7, 2), floats(r, 2),
                   optimizer=optimizers.SGD(0.01), covers=["AveragePooling2D"])


@case
def reshaping(r):
    m = keras.Sequential([L.Input((6,)), L.Dense(4, "tanh"), L.RepeatVector(3), L.Permute((2, 1)), L.Dense(4),
                          L.Reshape((2, -1)), L.Dense(3), L.Flatten(), L.Dense(2)])
    return trained(m, floats(r, 6), floats(r, 2), covers=["Reshape", "Permute", "RepeatVector", "Flatten"])


@case
def padding_and_cropping(r):
    m = keras.Sequential([L.Input((5, 6, 2)), L.ZeroPadding2D(((1, 2), (0, 3))), L.Conv2D(3, 3, activation="relu"),
                          L.UpSampling2D((2, 3)), L.Cropping2D(((1, 0), (2, 3))), L.ZeroPadding2D(1),
                          L.UpSampling2D(2, interpolation="bilinear"), L.Cropping2D(3), L.AveragePooling2D(3),
                          L.Flatten(), L.Dense(2)])
    return trained(m, floats(r, 5, 6, 2), floats(r, 2), optimizer=optimizers.SGD(0.02),
                   covers=["ZeroPadding2D", "Cropping2D", "UpSampling2D"])


@case
def channels_first_permuted(r):
    m = keras.Sequential([L.Input((2, 6, 5)), L.Permute((2, 3, 1)), L.Conv2D(3, 3, use_bias=False), L.Permute((3, 1, 2)),
                          L.BatchNormalization(axis=1), L.Flatten(), L.Dense(2)])
    return trained(m, floats(r, 2, 6, 5), floats(r, 2), covers=["Permute", "BatchNormalization"])


@case
def dropouts_do_nothing_at_rate_0(r):
    m = keras.Sequential([L.Input((6, 4)), L.SpatialDropout1D(0.0), L.Dense(5, "relu"), L.Dropout(0.0),
                          L.GaussianNoise(0.0), L.GaussianDropout(0.0), L.AlphaDropout(0.0), L.Flatten(), L.Dense(2)])
    return trained(m, floats(r, 6, 4), floats(r, 2))


@case
def dropouts_at_rest(r):
    i = L.Input((4, 4, 3))
    h = L.SpatialDropout2D(0.4)(L.Conv2D(3, 2)(i))
    h = L.Reshape((9, 3))(h)
    h = L.SpatialDropout1D(0.3)(h)
    h = L.GaussianNoise(0.5)(L.Dropout(0.5)(L.Flatten()(h)))
    h = L.AlphaDropout(0.2)(L.GaussianDropout(0.2)(h))
    return dict(model=keras.Model(i, L.Dense(2)(h)), x=floats(r, 4, 4, 3), train=False,
                covers=["Dropout", "SpatialDropout1D", "SpatialDropout2D", "GaussianNoise", "GaussianDropout",
                        "AlphaDropout"])


@case
def random_images_at_rest(r):
    m = keras.Sequential([L.Input((6, 6, 3)), L.RandomFlip("horizontal"), L.RandomRotation(0.1), L.RandomZoom(0.2),
                          L.RandomContrast(0.2), L.RandomBrightness(0.2, value_range=(0, 1)),
                          L.RandomTranslation(0.1, 0.1), L.Conv2D(2, 3), L.Flatten(), L.Dense(2)])
    return dict(model=m, x=floats(r, 6, 6, 3, low=0, high=1), train=False,
                covers=["RandomFlip", "RandomRotation", "RandomZoom", "RandomContrast", "RandomBrightness"])


@case
def batch_normalization(r):
    m = keras.Sequential([L.Input((7, 7, 2)), L.Conv2D(4, 3, use_bias=False), L.BatchNormalization(), L.ReLU(),
                          L.Conv2D(3, 2, use_bias=False), L.BatchNormalization(momentum=0.9, epsilon=1e-5, scale=False),
                          L.Activation("relu"), L.GlobalAveragePooling2D(), L.Dense(3)])
    return classified(m, floats(r, 7, 7, 2), classes(r, 3), covers=["BatchNormalization"])


@case
def batch_normalization_frozen(r):
    m = keras.Sequential([L.Input((5,)), L.Dense(6, trainable=False), L.BatchNormalization(trainable=False),
                          L.Dense(6, "relu"), L.BatchNormalization(center=False), L.Dense(2)])
    return trained(m, floats(r, 5), floats(r, 2), covers=["trainable"])


@case
def layer_normalization(r):
    m = keras.Sequential([L.Input((4, 5)), L.LayerNormalization(), L.Dense(6, "tanh"),
                          L.LayerNormalization(axis=[1, 2], epsilon=1e-5), L.Dense(3),
                          L.LayerNormalization(scale=False), L.Dense(3), L.LayerNormalization(center=False),
                          L.Flatten(), L.Dense(2)])
    return trained(m, floats(r, 4, 5), floats(r, 2), optimizer=optimizers.SGD(0.02), covers=["LayerNormalization"])


@case
def group_normalization(r):
    m = keras.Sequential([L.Input((5, 4, 4)), L.GroupNormalization(2), L.Conv2D(6, 2, activation="tanh"),
                          L.GroupNormalization(groups=-1, epsilon=1e-2), L.Conv2D(6, 2),
                          L.GroupNormalization(3, scale=False), L.Flatten(), L.Dense(2)])
    return trained(m, floats(r, 5, 4, 4), floats(r, 2), optimizer=optimizers.SGD(0.01), covers=["GroupNormalization"])


@case
def unit_normalization(r):
    m = keras.Sequential([L.Input((3, 5)), L.Dense(4), L.UnitNormalization(), L.Dense(4),
                          L.UnitNormalization(axis=[1, 2]), L.Flatten(), L.Dense(2)])
    return trained(m, floats(r, 3, 5), floats(r, 2), covers=["UnitNormalization"])


@case
def rescaling_and_normalization(r):
    x = floats(r, 4, low=0, high=255)
    i = L.Input((4,))
    adapted = L.Normalization()
    adapted.adapt(x / 127.5 - 1)
    h = adapted(L.Rescaling(1 / 127.5, offset=-1)(i))
    given = L.Normalization(mean=[1.0, 2.0, 3.0, 4.0], variance=[1.0, 4.0, 2.0, 0.5])(i)
    whole = L.Normalization(axis=None, mean=120.0, variance=5000.0)(i)
    back = L.Normalization(invert=True, mean=[0.1, 0.2, 0.3, 0.4], variance=[1.0, 0.5, 2.0, 1.5])(h)
    given = L.Rescaling([0.02, 0.01, 0.03, 0.02])(given)
    return trained(keras.Model(i, L.Dense(2)(L.Concatenate()([h, given, whole, back]))), x, floats(r, 2),
                   optimizer=optimizers.SGD(0.01), covers=["Rescaling", "Normalization"])


@case
def merging(r):
    a, b = L.Input((4,)), L.Input((4,))
    p, q = L.Dense(3, "tanh")(a), L.Dense(3, "relu")(b)
    s = [layer([p, q]) for layer in (L.Add(), L.Subtract(), L.Multiply(), L.Average(), L.Maximum(), L.Minimum(),
                                     L.Concatenate(), L.Dot(axes=1), L.Dot(axes=-1, normalize=True))]
    three = L.Add()([p, q, L.Dense(3)(a)])
    return trained(keras.Model([a, b], L.Dense(2)(L.Concatenate(axis=-1)(s + [three]))),
                   [floats(r, 4), floats(r, 4)], floats(r, 2),
                   covers=["Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate", "Dot"])


@case
def merging_matrices(r):
    a, b = L.Input((3, 4)), L.Input((5, 4))
    p, q = L.Dense(4)(a), L.Dense(4, "tanh")(b)
    d = L.Dot(axes=2)([p, q])
    c = L.Concatenate(axis=1)([p, q])
    h = L.Concatenate()([L.Flatten()(d), L.Flatten()(c)])
    return trained(keras.Model([a, b], L.Dense(2)(h)), [floats(r, 3, 4), floats(r, 5, 4)], floats(r, 2),
                   optimizer=optimizers.SGD(0.01), covers=["Dot", "Concatenate"])


@case
def regularizers(r):
    reg = keras.regularizers
    m = keras.Sequential([
        L.Input((5,)), L.Dense(6, "tanh", kernel_regularizer=reg.L1(0.01), bias_regularizer=reg.L2(0.1)),
        L.Dense(4, "tanh", kernel_regularizer=reg.L1L2(0.02, 0.03)),
        L.Dense(4, "tanh", activity_regularizer=reg.L2(0.05)), L.Dense(2, kernel_regularizer="l2")])
    return trained(m, floats(r, 5), floats(r, 2), covers=["l1", "l2", "l1_l2", "activity_regularizer"])


@case
def constraints(r):
    con = keras.constraints
    m = keras.Sequential([
        L.Input((5,)), L.Dense(6, "tanh", kernel_constraint=con.MaxNorm(0.8), bias_constraint=con.NonNeg()),
        L.Dense(4, "tanh", kernel_constraint=con.UnitNorm(axis=0)),
        L.Dense(4, "tanh", kernel_constraint=con.MinMaxNorm(0.5, 0.9, rate=0.7)),
        L.Dense(2, kernel_constraint="non_neg")])
    return trained(m, floats(r, 5), floats(r, 2), covers=["max_norm", "non_neg", "unit_norm", "min_max_norm"])


@case
def two_inputs_two_outputs(r):
    a, b = L.Input((4,), name="left"), L.Input((3,), name="right")
    h = L.Concatenate()([L.Dense(4, "relu")(a), L.Dense(4, "relu")(b)])
    one, two = L.Dense(2, name="value")(h), L.Dense(3, name="kind")(L.Dense(5, "tanh")(h))
    return dict(model=keras.Model([a, b], [one, two]), x=[floats(r, 4), floats(r, 3)],
                y=[floats(r, 2), classes(r, 3)], loss_weights=[0.5, 2.0], optimizer=optimizers.SGD(0.05),
                loss=[losses.MeanSquaredError(), losses.SparseCategoricalCrossentropy(from_logits=True)],
                metrics=[[metrics.MeanAbsoluteError()], [metrics.SparseCategoricalAccuracy(name="accuracy")]],
                covers=["several inputs", "several outputs", "loss_weights"])


@case
def shared_layers(r):
    a, b = L.Input((4,)), L.Input((4,))
    dense, norm = L.Dense(5, "tanh", name="twin"), L.LayerNormalization()
    p, q = norm(dense(a)), norm(dense(b))
    m = keras.Model([a, b], L.Dense(1)(L.Concatenate()([L.Subtract()([p, q]), L.Multiply()([p, q])])))
    return trained(m, [floats(r, 4), floats(r, 4)], floats(r, 1), covers=["shared layers"])


@case
def nested_functional(r):
    i = L.Input((4,))
    block = keras.Model(i, L.Add()([L.Dense(4, "tanh", name="inner")(i), i]), name="block")
    j = L.Input((4,))
    m = keras.Model(j, L.Dense(2, name="head")(block(block(j))), name="outer")
    return trained(m, floats(r, 4), floats(r, 2), covers=["nested models", "shared models"])


@case
def nested_sequential(r):
    stem = keras.Sequential([L.Input((6, 6, 2)), L.Conv2D(3, 3, activation="relu"), L.BatchNormalization()], name="stem")
    j = L.Input((6, 6, 2))
    m = keras.Model(j, L.Dense(2, name="head")(L.Flatten()(stem(j))), name="outer")
    return trained(m, floats(r, 6, 6, 2), floats(r, 2), optimizer=optimizers.SGD(0.02), covers=["nested models"])


@case
def residual_network(r):
    i = L.Input((6, 6, 3))
    h = L.Conv2D(4, 3, padding="same", activation="relu")(i)
    for _ in range(2):
        k = L.Conv2D(4, 3, padding="same", activation="relu")(h)
        h = L.Add()([h, L.Conv2D(4, 3, padding="same")(k)])
    m = keras.Model(i, L.Dense(3)(L.GlobalAveragePooling2D()(L.Activation("relu")(h))))
    return classified(m, floats(r, 6, 6, 3), classes(r, 3))
