"""Golden models for layers that keep something between batches or inside of others: stateful recurrent layers, cells that stand on
each other, ConvLSTM, SpectralNormalization, batch renormalisation, attention over several axes."""

import keras
from keras import layers as L

from model import case
from models_layers import floats, trained
from models_sequence import gappy


@case
def stateful_lstm(r):
    m = keras.Sequential([L.Input(batch_shape=(4, 5, 3)), L.LSTM(4, stateful=True, return_sequences=True),
                          L.LSTM(3, stateful=True, activation="relu"), L.Dense(2)])
    return trained(m, floats(r, 5, 3), floats(r, 2), covers=["stateful", "LSTM"])


@case
def stateful_masked(r):
    m = keras.Sequential([L.Input(batch_shape=(4, 6, 3)), L.Masking(), L.GRU(4, stateful=True, return_sequences=True),
                          L.SimpleRNN(3, stateful=True, zero_output_for_mask=True), L.Dense(2)])
    return trained(m, gappy(r, 6, 3), floats(r, 2), covers=["stateful", "GRU", "SimpleRNN", "Masking"])


@case
def stateful_both_ways(r):
    m = keras.Sequential([L.Input(batch_shape=(4, 5, 3)), L.Bidirectional(L.LSTM(3, stateful=True)), L.Dense(2)])
    return trained(m, floats(r, 5, 3), floats(r, 2), covers=["stateful", "Bidirectional"])


@case
def stacked_cells(r):
    i = L.Input((5, 3))
    cells = [L.LSTMCell(4), L.GRUCell(3), L.SimpleRNNCell(5, activation="relu"), L.LSTMCell(2)]
    h = L.RNN(cells, return_sequences=True)(i)
    h = L.RNN([L.GRUCell(3, reset_after=False), L.GRUCell(4)], go_backwards=True)(h)
    return trained(keras.Model(i, L.Dense(2)(h)), floats(r, 5, 3), floats(r, 2), covers=["StackedRNNCells", "RNN"])


@case
def stacked_cells_states(r):
    i = L.Input((6, 3))
    h, (a, b), c = L.RNN([L.LSTMCell(3), L.GRUCell(4)], return_state=True)(L.Masking()(i))
    m = keras.Model(i, L.Dense(2)(L.Concatenate()([h, a, b, c])))
    return trained(m, gappy(r, 6, 3), floats(r, 2), covers=["StackedRNNCells", "return_state", "Masking"])


@case
def stacked_cells_stateful(r):
    m = keras.Sequential([L.Input(batch_shape=(4, 5, 3)), L.RNN([L.LSTMCell(3), L.GRUCell(4)], stateful=True), L.Dense(2)])
    return trained(m, floats(r, 5, 3), floats(r, 2), covers=["StackedRNNCells", "stateful"])


@case
def conv_lstm1d(r):
    m = keras.Sequential([L.Input((4, 9, 2)), L.ConvLSTM1D(3, 3, strides=2, padding="same", return_sequences=True),
                          L.ConvLSTM1D(2, 2, use_bias=False, go_backwards=True, return_sequences=True),
                          L.ConvLSTM1D(2, 3, padding="same", unit_forget_bias=False), L.Flatten(), L.Dense(2)])
    return trained(m, floats(r, 4, 9, 2), floats(r, 2), covers=["ConvLSTM1D"])


@case
def conv_lstm2d(r):
    m = keras.Sequential([L.Input((3, 7, 6, 2)), L.ConvLSTM2D(3, 3, dilation_rate=2, padding="same", return_sequences=True),
                          L.ConvLSTM2D(2, (3, 2), recurrent_activation="hard_sigmoid", activation="relu"), L.Flatten(),
                          L.Dense(2)])
    return trained(m, floats(r, 3, 7, 6, 2), floats(r, 2), covers=["ConvLSTM2D"])


@case
def conv_lstm3d(r):
    i = L.Input((2, 4, 3, 4, 1))
    y, h, c = L.ConvLSTM3D(2, (2, 3, 2), return_state=True)(i)
    m = keras.Model(i, L.Dense(2)(L.Flatten()(L.Concatenate()([y, h, c]))))
    return trained(m, floats(r, 2, 4, 3, 4, 1), floats(r, 2), covers=["ConvLSTM3D", "return_state"])


@case
def conv_lstm_stateful(r):
    m = keras.Sequential([L.Input(batch_shape=(4, 3, 5, 4, 2)), L.ConvLSTM2D(2, 3, stateful=True), L.Flatten(), L.Dense(2)])
    return trained(m, floats(r, 3, 5, 4, 2), floats(r, 2), covers=["ConvLSTM2D", "stateful"])


@case
def spectral_norm(r):
    m = keras.Sequential([L.Input((6, 6, 2)), L.SpectralNormalization(L.Conv2D(3, 3, activation="relu")),
                          L.SpectralNormalization(L.Conv2D(2, 2, use_bias=False), power_iterations=3), L.Flatten(),
                          L.SpectralNormalization(L.Dense(4, kernel_regularizer="l2")), L.Dense(2)])
    return trained(m, floats(r, 6, 6, 2), floats(r, 2), covers=["SpectralNormalization"])


@case
def spectral_norm_adam(r):
    m = keras.Sequential([L.Input((5,)), L.SpectralNormalization(L.Embedding(7, 4)), L.Flatten(),
                          L.SpectralNormalization(L.Dense(5, activation="tanh")), L.Dense(2)])
    return trained(m, r.integers(0, 7, (20, 5)).astype("float32"), floats(r, 2),
                   optimizer=keras.optimizers.Adam(0.01), covers=["SpectralNormalization", "Embedding"])


@case
def batch_renorm(r):
    i = L.Input((5, 4, 3))
    h = L.BatchNormalization(renorm=True, momentum=0.8, renorm_momentum=0.7)(i)
    h = L.Conv2D(4, 3, padding="same")(h)
    h = L.BatchNormalization(renorm=True, momentum=0.6, renorm_momentum=0.5, scale=False,
                             renorm_clipping={"rmin": 0.6, "rmax": 1.5, "dmax": 0.3})(h)
    h = L.BatchNormalization(axis=1, renorm=True, center=False, scale=False, moving_variance_initializer="ones",
                             renorm_clipping={"dmax": 0.5})(h)
    return trained(keras.Model(i, L.Dense(2)(L.Flatten()(h))), floats(r, 5, 4, 3), floats(r, 2),
                   covers=["BatchNormalization", "renorm"])


@case
def attention_axes(r):
    i = L.Input((3, 4, 5))
    a = L.MultiHeadAttention(2, 3)(i, i)
    b = L.MultiHeadAttention(2, 3, attention_axes=(2,), value_dim=2, use_gate=True)(i, i)
    c = L.MultiHeadAttention(1, 2, attention_axes=(1,), output_shape=(2, 3))(a, b)
    m = keras.Model(i, L.Dense(2)(L.Concatenate()([L.Flatten()(v) for v in (a, b, c)])))
    return trained(m, floats(r, 3, 4, 5), floats(r, 2), covers=["attention_axes", "use_gate", "output_shape"])


@case
def attention_axes_mask(r):
    i, k = L.Input((3, 4, 5)), L.Input((2, 4, 5))
    mask = L.Input((3, 4, 2, 4), dtype="bool")
    a = L.MultiHeadAttention(2, 3)(i, k, attention_mask=mask)
    m = keras.Model([i, k, mask], L.Dense(2)(L.Flatten()(a)))
    seen = r.uniform(size=(20, 3, 4, 2, 4)) < 0.7
    return trained(m, [floats(r, 3, 4, 5), floats(r, 2, 4, 5), seen], floats(r, 2),
                   covers=["attention_axes", "attention_mask"])
