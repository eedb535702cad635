"""Golden models for layers that are met less often: attention of other kinds, equations, adaptive windows, categories, ConvNeXt."""

import keras
import numpy as np
from keras import layers as L
from keras import losses, optimizers
from keras.src.applications.convnext import ConvNeXt, LayerScale

from model import case

N = 20


def floats(r, *shape):
    return r.normal(0, 1, (N,) + shape).astype(np.float32)


def trained(m, x, y, **more):
    return dict(model=m, x=x, y=y, loss=losses.MeanSquaredError(), optimizer=optimizers.SGD(0.02), **more)


def simple(name, shape, layers, **more):
    def build(r):
        m = keras.Sequential([L.Input(shape)] + layers() + [L.Flatten(), L.Dense(2)])
        return trained(m, floats(r, *shape), floats(r, 2), **more)
    build.__name__ = name
    case(build)


simple("layer_scale", (4, 4, 3), lambda: [L.Conv2D(4, 3), LayerScale(0.5, 4)])
simple("einsum_dense", (3, 4), lambda: [L.EinsumDense("abc,cd->abd", (3, 5), activation="tanh", bias_axes="d"),
                                        L.EinsumDense("...x,xy->...y", 3, bias_axes="y"), L.EinsumDense("abc,cde->abde", (3, 2, 4), bias_axes="e"),
                                        L.EinsumDense("abde,de->ab", 3), L.Reshape((3, 1)), L.EinsumDense("ab...,bc->ac...", 2, bias_axes="c")])
simple("rms_normalization", (3, 4), lambda: [L.Dense(4), L.RMSNormalization(), L.RMSNormalization(axis=(1, 2), epsilon=1e-3)])
simple("adaptive_pooling", (7, 5, 2), lambda: [L.Conv2D(3, 1), L.AdaptiveAveragePooling2D((3, 2)), L.AdaptiveMaxPooling2D(2)])
simple("adaptive_pooling_1d", (9, 2), lambda: [L.Dense(3), L.AdaptiveMaxPooling1D(4), L.AdaptiveAveragePooling1D(3)])
simple("resizing", (7, 6, 2), lambda: [L.UpSampling2D(2, interpolation="area"), L.Conv2D(3, 1), L.Resizing(5, 8), L.Resizing(4, 4, crop_to_aspect_ratio=True),
                                       L.CenterCrop(3, 2)])
simple("center_crop_grows", (4, 6, 2), lambda: [L.Conv2D(2, 1), L.CenterCrop(6, 5)])


@case
def category_encoding(r):
    i = L.Input((3,), dtype="int32")
    j = L.Input((2,))
    parts = [L.CategoryEncoding(5, output_mode="multi_hot")(i), L.CategoryEncoding(5, output_mode="count")(i),
             L.Flatten()(L.CategoryEncoding(5, output_mode="one_hot")(i)),
             L.Flatten()(L.Embedding(4, 2)(L.Discretization(bin_boundaries=[-0.5, 0.0, 0.7])(j))),
             L.Discretization(bin_boundaries=[-0.5, 0.3], output_mode="multi_hot")(j)]
    m = keras.Model([i, j], L.Dense(2)(L.Concatenate()(parts)))
    return trained(m, [r.integers(0, 5, (N, 3)).astype(np.int32), floats(r, 2)], floats(r, 2))


@case
def attention_kinds(r):
    i, j = L.Input((4, 3)), L.Input((5, 3))
    a = L.Attention(score_mode="concat", use_scale=True)([i, j])
    b, scores = L.Attention(use_scale=True)([i, j], return_attention_scores=True)
    c = L.AdditiveAttention()([i, j])
    d = L.AdditiveAttention(use_scale=False)([i, j, j], use_causal_mask=True)
    m = keras.Model([i, j], L.Dense(2)(L.Flatten()(L.Concatenate()([a, b, c, d, scores]))))
    return trained(m, [floats(r, 4, 3), floats(r, 5, 3)], floats(r, 2))


@case
def attention_grouped(r):
    i, j = L.Input((4, 6)), L.Input((5, 6))
    a = L.GroupQueryAttention(3, 4, 2)(i, j)
    b = L.GroupQueryAttention(2, 4, 1, use_gate=True, use_bias=False)(i, i, use_causal_mask=True)
    c = L.MultiHeadAttention(2, 3, use_gate=True)(i, j)
    d = L.MultiHeadAttention(2, 3, sliding_window=2)(i, i)
    m = keras.Model([i, j], L.Dense(2)(L.Flatten()(L.Concatenate()([a, b, c, d]))))
    return trained(m, [floats(r, 4, 6), floats(r, 5, 6)], floats(r, 2))


@case
def bidirectional_apart(r):
    i = L.Input((4, 3))
    a, b = L.Bidirectional(L.LSTM(3, return_sequences=True), merge_mode=None)(i)
    c = L.Bidirectional(L.LSTM(3), backward_layer=L.GRU(3, go_backwards=True))(i)
    m = keras.Model(i, L.Dense(2)(L.Concatenate()([L.Flatten()(a), L.Flatten()(b), c])))
    return trained(m, floats(r, 4, 3), floats(r, 2))


@case
def convnext(r):
    m = ConvNeXt(depths=[1, 1, 1, 1], projection_dims=[4, 6, 8, 8], include_preprocessing=False,
                                             weights=None, input_shape=(32, 32, 3), classes=2, classifier_activation=None)
    return dict(model=m, x=floats(r, 32, 32, 3)[:8], y=floats(r, 2)[:8], loss=losses.MeanSquaredError(),
                optimizer=optimizers.SGD(0.01), batch=4, batches=2, steps=2)


@case
def rnn_over_cells(r):
    i = L.Input((4, 3))
    a = L.RNN(L.LSTMCell(3), return_sequences=True)(i)
    b = L.RNN(L.GRUCell(2, reset_after=False), go_backwards=True)(i)
    c, state = L.RNN(L.SimpleRNNCell(3, activation="relu"), return_state=True)(a)
    m = keras.Model(i, L.Dense(2)(L.Concatenate()([L.Flatten()(a), b, c, state])))
    return trained(m, floats(r, 4, 3), floats(r, 2))
