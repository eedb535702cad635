"""Golden models for sequences: embeddings, masks, recurrent layers, attention; and models of half precision."""

import keras
import numpy as np
from keras import layers as L
from keras import optimizers

from model import case, models_half
from models_layers import N, classes, classified, floats, trained


def words(r, vocabulary, length):
    """Sentences of different lengths, 0 behind them."""
    w = r.integers(1, vocabulary, (N, length))
    w[np.arange(length)[None, :] >= r.integers(1, length + 1, (N, 1))] = 0
    return w.astype(np.int32)


def gappy(r, length, features):
    """Sequences whose steps are missing (all 0) here and there, at the start as well."""
    x = floats(r, length, features)
    x[r.uniform(size=(N, length)) < 0.35] = 0
    x[0, :2] = 0
    return x


@case
def embedding(r):
    m = keras.Sequential([L.Input((5,), dtype="int32"), L.Embedding(7, 4), L.Flatten(), L.Dense(2)])
    return trained(m, classes(r, 7, 5), floats(r, 2), covers=["Embedding"])


@case
def embedding_masked_mean(r):
    m = keras.Sequential([L.Input((6,), dtype="int32"), L.Embedding(9, 4, mask_zero=True), L.Dropout(0.0),
                          L.GlobalAveragePooling1D(), L.Dense(3)])
    return classified(m, words(r, 9, 6), classes(r, 3), covers=["mask_zero", "GlobalAveragePooling1D"])


@case
def embedding_lstm(r):
    m = keras.Sequential([L.Input((6,), dtype="int32"), L.Embedding(9, 4, mask_zero=True), L.LSTM(5), L.Dense(3)])
    return classified(m, words(r, 9, 6), classes(r, 3), covers=["mask_zero", "LSTM"])


@case
def lstm_to_frames(r):
    m = keras.Sequential([L.Input((5, 3)), L.LSTM(4, return_sequences=True), L.Dense(2)])
    return trained(m, floats(r, 5, 3), floats(r, 5, 2), covers=["LSTM"])


@case
def lstm_stack(r):
    m = keras.Sequential([L.Input((5, 3)), L.LSTM(4, return_sequences=True, go_backwards=True),
                          L.LSTM(4, return_sequences=True, use_bias=False),
                          L.LSTM(3, activation="relu", recurrent_activation="hard_sigmoid"), L.Dense(2)])
    return trained(m, floats(r, 5, 3), floats(r, 2), covers=["LSTM"])


@case
def lstm_masked_frames(r):
    m = keras.Sequential([L.Input((6, 3)), L.Masking(0.0), L.LSTM(4, return_sequences=True), L.LSTM(3), L.Dense(2)])
    return trained(m, gappy(r, 6, 3), floats(r, 2), covers=["Masking", "LSTM"])


@case
def masked_loss(r):
    """The mask reaches the loss: masked frames do not count."""
    m = keras.Sequential([L.Input((6, 3)), L.Masking(0.0), L.LSTM(4, return_sequences=True), L.Dense(2)])
    return trained(m, gappy(r, 6, 3), floats(r, 6, 2), covers=["Masking"])


@case
def simple_rnn(r):
    m = keras.Sequential([L.Input((5, 3)), L.SimpleRNN(4, return_sequences=True),
                          L.SimpleRNN(4, activation="relu", go_backwards=True), L.Dense(2)])
    return trained(m, floats(r, 5, 3), floats(r, 2), covers=["SimpleRNN"])


@case
def simple_rnn_masked(r):
    m = keras.Sequential([L.Input((6,), dtype="int32"), L.Embedding(8, 3, mask_zero=True),
                          L.SimpleRNN(4, return_sequences=True), L.SimpleRNN(3), L.Dense(2)])
    return trained(m, words(r, 8, 6), floats(r, 2), covers=["SimpleRNN"])


@case
def gru(r):
    m = keras.Sequential([L.Input((5, 3)), L.GRU(4, return_sequences=True), L.GRU(3, go_backwards=True), L.Dense(2)])
    return trained(m, floats(r, 5, 3), floats(r, 2), covers=["GRU"])


@case
def gru_reset_before(r):
    m = keras.Sequential([L.Input((5, 3)), L.GRU(4, reset_after=False, return_sequences=True),
                          L.GRU(3, activation="softsign", use_bias=False), L.Dense(2)])
    return trained(m, floats(r, 5, 3), floats(r, 2), covers=["GRU"])


@case
def gru_masked(r):
    m = keras.Sequential([L.Input((6, 3)), L.Masking(0.0), L.GRU(4, return_sequences=True),
                          L.GRU(3, reset_after=False), L.Dense(2)])
    return trained(m, gappy(r, 6, 3), floats(r, 2), covers=["GRU", "Masking"])


@case
def bidirectional(r):
    m = keras.Sequential([L.Input((5, 3)), L.Bidirectional(L.LSTM(3, return_sequences=True)),
                          L.Bidirectional(L.GRU(3), merge_mode="sum"), L.Dense(2)])
    return trained(m, floats(r, 5, 3), floats(r, 2), covers=["Bidirectional"])


@case
def bidirectional_masked(r):
    m = keras.Sequential([L.Input((6,), dtype="int32"), L.Embedding(8, 3, mask_zero=True),
                          L.Bidirectional(L.LSTM(3, return_sequences=True), merge_mode="ave"),
                          L.Bidirectional(L.SimpleRNN(3), merge_mode="mul",
                                          backward_layer=L.SimpleRNN(3, activation="relu", go_backwards=True)),
                          L.Dense(2)])
    return trained(m, words(r, 8, 6), floats(r, 2), covers=["Bidirectional"])


@case
def encoder_decoder(r):
    source, target = L.Input((5,), dtype="int32"), L.Input((4,), dtype="int32")
    _, h, c = L.LSTM(4, return_state=True, name="encoder")(L.Embedding(8, 3, mask_zero=True)(source))
    d = L.LSTM(4, return_sequences=True, name="decoder")(L.Embedding(6, 3)(target), initial_state=[h, c])
    m = keras.Model([source, target], L.Dense(6)(d))
    return classified(m, [words(r, 8, 5), classes(r, 6, 4)], classes(r, 6, 4), covers=["return_state", "initial_state"])


@case
def time_distributed(r):
    m = keras.Sequential([L.Input((3, 5, 5, 2)), L.TimeDistributed(L.Conv2D(3, 3, activation="relu")),
                          L.TimeDistributed(L.Flatten()), L.TimeDistributed(L.Dense(4)), L.GRU(3), L.Dense(2)])
    return trained(m, floats(r, 3, 5, 5, 2), floats(r, 2), covers=["TimeDistributed"])


@case
def conv_lstm_text(r):
    m = keras.Sequential([L.Input((8,), dtype="int32"), L.Embedding(10, 4), L.Conv1D(5, 3, activation="relu"),
                          L.MaxPooling1D(2), L.LSTM(4), L.Dense(3)])
    return classified(m, classes(r, 10, 8), classes(r, 3))


@case
def attention_self(r):
    i = L.Input((5, 6))
    h = L.MultiHeadAttention(2, 3)(i, i)
    h = L.LayerNormalization()(L.Add()([i, h]))
    return trained(keras.Model(i, L.Dense(2)(L.GlobalAveragePooling1D()(h))), floats(r, 5, 6), floats(r, 2),
                   covers=["MultiHeadAttention"])


@case
def attention_causal(r):
    i = L.Input((5, 4))
    h = L.MultiHeadAttention(2, 3, value_dim=2, output_shape=6, use_bias=False)(i, i, use_causal_mask=True)
    return trained(keras.Model(i, L.Dense(2)(h)), floats(r, 5, 4), floats(r, 5, 2), covers=["use_causal_mask"])


@case
def attention_masked_cross(r):
    q, k = L.Input((4, 5)), L.Input((6,), dtype="int32")
    e = L.Embedding(9, 5, mask_zero=True)(k)
    h = L.MultiHeadAttention(2, 4)(q, e, e)
    return trained(keras.Model([q, k], L.Dense(2)(L.Flatten()(h))), [floats(r, 4, 5), words(r, 9, 6)], floats(r, 2),
                   covers=["MultiHeadAttention", "mask_zero"])


@case
def transformer_block(r):
    i = L.Input((6,), dtype="int32")
    e = L.Embedding(10, 8)(i)
    a = L.LayerNormalization()(L.Add()([e, L.MultiHeadAttention(2, 4, dropout=0.0, use_bias=False)(e, e, use_causal_mask=True)]))
    f = L.LayerNormalization()(L.Add()([a, L.Dense(8)(L.Dense(12, "gelu")(a))]))
    return classified(keras.Model(i, L.Dense(10)(f)), classes(r, 10, 6), classes(r, 10, 6), optimizers.Adam(0.002))


# ---- half precision: variables stay float32, layers compute in the half type -----------------------------------------


def half(policy):
    keras.config.set_dtype_policy("float32" if models_half["off"] else policy)


@case
def mixed_bfloat16_mlp(r):
    half("mixed_bfloat16")
    m = keras.Sequential([L.Input((6,)), L.Dense(8, "relu"), L.Dense(8, "tanh"), L.Dense(3, dtype="float32")])
    return classified(m, floats(r, 6), classes(r, 3), half=True, covers=["mixed_bfloat16"])


@case
def mixed_bfloat16_cnn(r):
    half("mixed_bfloat16")
    m = keras.Sequential([L.Input((7, 7, 2)), L.BatchNormalization(), L.Conv2D(4, 3, activation="relu"),
                          L.MaxPooling2D(2), L.Flatten(), L.Dense(3, dtype="float32")])
    return classified(m, floats(r, 7, 7, 2), classes(r, 3), optimizers.SGD(0.02), half=True, covers=["mixed_bfloat16"])


@case
def mixed_bfloat16_lstm(r):
    half("mixed_bfloat16")
    m = keras.Sequential([L.Input((6,), dtype="int32"), L.Embedding(9, 4), L.LSTM(5), L.Dense(3, dtype="float32")])
    return classified(m, classes(r, 9, 6), classes(r, 3), optimizers.SGD(0.05), half=True, covers=["mixed_bfloat16"])


@case
def mixed_float16_mlp(r):
    half("mixed_float16")
    m = keras.Sequential([L.Input((6,)), L.Dense(8, "relu"), L.LayerNormalization(), L.Dense(3, dtype="float32")])
    return classified(m, floats(r, 6), classes(r, 3), half=True, covers=["mixed_float16", "loss scaling"])


@case
def mixed_float16_cnn(r):
    half("mixed_float16")
    m = keras.Sequential([L.Input((7, 7, 2)), L.Conv2D(4, 3, activation="relu"), L.MaxPooling2D(2),
                          L.Conv2D(4, 2, activation="relu"), L.Flatten(), L.Dense(3), L.Activation("linear", dtype="float32")])
    return classified(m, floats(r, 7, 7, 2), classes(r, 3), optimizers.SGD(0.05), half=True, covers=["mixed_float16"])


@case
def mixed_float16_overflow(r):
    """Targets so large that the scaled gradients overflow: the first steps are left out and the scale is halved."""
    half("mixed_float16")
    m = keras.Sequential([L.Input((4,)), L.Dense(5, "tanh"), L.Dense(1, dtype="float32")])
    return trained(m, floats(r, 4), 30 * floats(r, 1) + 100, optimizer=optimizers.SGD(1e-4), half=True, skips=True,
                   covers=["mixed_float16", "loss scaling"])


@case
def mixed_float16_attention(r):
    half("mixed_float16")
    i = L.Input((5, 4))
    h = L.MultiHeadAttention(2, 3)(i, i)
    m = keras.Model(i, L.Dense(2, dtype="float32")(L.GlobalAveragePooling1D()(h)))
    return trained(m, floats(r, 5, 4), floats(r, 2), half=True, covers=["mixed_float16"])


