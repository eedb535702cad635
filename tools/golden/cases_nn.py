"""Norms, recurrent cells, losses and a few elementwise corners, with Keras' conventions."""
import keras
import numpy as np
import tensorflow as tf
from case import Case, Values


# ---- norms ---------------------------------------------------------------------------------------

def batch_norm(name, shape, training):
    """Statistics over all axes but the last; the batch's variance is the biased one, also in the
    moving average."""
    values, channels = Values(name), shape[-1]
    momentum, epsilon = 0.9, 1e-3

    def function(x, gamma, beta, mean, variance):
        if not training:
            return tf.nn.batch_normalization(x, mean, variance, beta, gamma, epsilon)
        now_mean, now_variance = tf.nn.moments(x, list(range(len(shape) - 1)))
        y = tf.nn.batch_normalization(x, now_mean, now_variance, beta, gamma, epsilon)
        # The moving averages are results, but no gradient flows through them.
        return {"y": y, "new_mean": tf.stop_gradient(momentum * mean + (1 - momentum) * now_mean),
                "new_variance": tf.stop_gradient(momentum * variance + (1 - momentum) * now_variance)}

    return Case(name, "batch_norm", {"training": training, "momentum": momentum, "epsilon": epsilon},
                {"x": values.normal(*shape), "gamma": values.uniform(channels, low=0.5, high=1.5),
                 "beta": values.normal(channels), "mean": values.normal(channels),
                 "variance": values.uniform(channels, low=0.5, high=2.0)},
                function, ("x", "gamma", "beta"))


def keras_norm(name, op, attributes, layer, shape, channels):
    values = Values(name)

    def function(x, gamma, beta):
        layer.build(x.shape)
        layer_call = keras.src.backend.common.stateless_scope.StatelessScope(
            [(layer.gamma, gamma), (layer.beta, beta)])
        with layer_call:
            return layer(x)

    return Case(name, op, attributes,
                {"x": values.normal(*shape), "gamma": values.uniform(channels, low=0.5, high=1.5),
                 "beta": values.normal(channels)}, function, ("x", "gamma", "beta"))


# ---- recurrent -------------------------------------------------------------------------------------

def lstm(name, backwards=False):
    """Gates in the order input, forget, cell, output. go_backwards gives its sequence in the order
    it was computed, last input first."""
    values, batch, steps, inside, units = Values(name), 2, 5, 3, 4

    def function(x, kernel, recurrent, bias):
        h = c = tf.zeros((batch, units))
        out = []
        for t in reversed(range(steps)) if backwards else range(steps):
            i, f, g, o = tf.split(x[:, t] @ kernel + h @ recurrent + bias, 4, 1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
            out.append(h)
        return {"sequence": tf.stack(out, 1), "state_h": h, "state_c": c}

    case = Case(name, "lstm", {"units": units, "go_backwards": backwards, "gates": "i f g o"},
                {"x": values.normal(batch, steps, inside), "kernel": values.normal(inside, 4 * units),
                 "recurrent": values.normal(units, 4 * units), "bias": values.normal(4 * units)},
                function, ("x", "kernel", "recurrent", "bias"))
    layer = keras.layers.LSTM(units, return_sequences=True, return_state=True,
                              go_backwards=backwards)
    return confirmed(case, layer)


def gru(name, reset_after):
    """Gates in the order update, reset, candidate. reset_after applies the reset gate to the
    recurrent product (with a bias of its own, row 1), otherwise to the state before it."""
    values, batch, steps, inside, units = Values(name), 2, 5, 3, 4

    def function(x, kernel, recurrent, bias):
        h = tf.zeros((batch, units))
        out = []
        input_bias = bias[0] if reset_after else bias
        for t in range(steps):
            xz, xr, xh = tf.split(x[:, t] @ kernel + input_bias, 3, 1)
            if reset_after:
                rz, rr, rh = tf.split(h @ recurrent + bias[1], 3, 1)
                z, r = tf.sigmoid(xz + rz), tf.sigmoid(xr + rr)
                candidate = tf.tanh(xh + r * rh)
            else:
                wz, wr, wh = tf.split(recurrent, 3, 1)
                z, r = tf.sigmoid(xz + h @ wz), tf.sigmoid(xr + h @ wr)
                candidate = tf.tanh(xh + (r * h) @ wh)
            h = z * h + (1 - z) * candidate
            out.append(h)
        return {"sequence": tf.stack(out, 1), "state_h": h}

    bias_shape = (2, 3 * units) if reset_after else (3 * units,)
    case = Case(name, "gru", {"units": units, "reset_after": reset_after, "gates": "z r h"},
                {"x": values.normal(batch, steps, inside), "kernel": values.normal(inside, 3 * units),
                 "recurrent": values.normal(units, 3 * units), "bias": values.normal(*bias_shape)},
                function, ("x", "kernel", "recurrent", "bias"))
    layer = keras.layers.GRU(units, return_sequences=True, return_state=True, reset_after=reset_after)
    return confirmed(case, layer)


def confirmed(case, layer):
    """The cell is written out above so that its gradient is plain; the layer must agree with it."""
    x, *weights = case.inputs.values()
    layer.build(x.shape)
    layer.set_weights(weights)
    mine = case.function(*(tf.constant(v) for v in case.inputs.values()))
    for ours, theirs in zip(mine.values(), layer(x)):
        if not np.allclose(ours, theirs, atol=1e-5):
            raise ValueError(f"{case.name}: the written-out cell is not the Keras layer")
    return case


# ---- losses ------------------------------------------------------------------------------------------

def softmax_ce(name, smoothing, sparse, scale):
    values, classes = Values(name), 5
    labels = values.integers(classes, 6)
    dense = values.uniform(6, classes)
    dense /= dense.sum(1, keepdims=True)

    def function(logits, target):
        target = tf.one_hot(target, classes) if sparse else target
        target = target * (1 - smoothing) + smoothing / classes
        return tf.nn.softmax_cross_entropy_with_logits(target, logits)

    return Case(name, "softmax_cross_entropy", {"smoothing": smoothing, "sparse": sparse},
                {"logits": scale * values.normal(6, classes), "target": labels if sparse else dense},
                function, ("logits",))


def sigmoid_ce(name, smoothing, scale):
    values = Values(name)

    def function(logits, target):
        target = target * (1 - smoothing) + 0.5 * smoothing
        return tf.nn.sigmoid_cross_entropy_with_logits(target, logits)

    return Case(name, "sigmoid_cross_entropy", {"smoothing": smoothing},
                {"logits": scale * values.normal(6, 4), "target": np.round(values.uniform(6, 4))},
                function, ("logits",))


# ---- corners --------------------------------------------------------------------------------------------

def elementwise(name, op, function, x, other=None, gradients=("x",)):
    inputs = {"x": x} if other is None else {"x": x, "other": other}
    return Case(name, op, {}, inputs, function, gradients)


def corner_cases():
    halves = np.arange(-3.5, 4.0, 0.5, dtype=np.float32)
    wide = np.array([-100, -20, -1, -1e-3, 0, 1e-3, 1, 20, 100], np.float32)
    signs = np.array([7, -7, 7, -7, 6, -6, 0], np.float32)
    divisors = np.array([3, 3, -3, -3, 3, 3, 3], np.float32)
    yield elementwise("round_half_even", "round", tf.round, halves, gradients=())
    yield elementwise("floor_mod_signs", "floor_mod", tf.math.floormod, signs, divisors, ())
    yield elementwise("floor_div_signs", "floor_div", tf.math.floordiv, signs, divisors, ())
    yield elementwise("floor_mod_int_signs", "floor_mod", tf.math.floormod,
                      signs.astype(np.int32), divisors.astype(np.int32), ())
    yield elementwise("softplus_wide", "softplus", tf.nn.softplus, wide)
    yield elementwise("log_sigmoid_wide", "log_sigmoid", tf.math.log_sigmoid, wide)
    yield elementwise("gelu_exact", "gelu_erf", tf.nn.gelu, wide)
    yield elementwise("gelu_tanh", "gelu_tanh", lambda v: tf.nn.gelu(v, approximate=True), wide)
    yield elementwise("elu_wide", "elu", tf.nn.elu, wide)
    yield elementwise("selu_wide", "selu", tf.nn.selu, wide)
    for exclusive in (False, True):
        for reverse in (False, True):
            name = "cumsum" + ("_exclusive" if exclusive else "") + ("_reverse" if reverse else "")
            yield Case(name, "cumsum", {"axis": 1, "exclusive": exclusive, "reverse": reverse},
                       {"x": Values(name).normal(3, 5, 2)},
                       lambda v, e=exclusive, r=reverse: tf.cumsum(v, 1, e, r), ("x",))
    repeated = np.array([[2, 0, 2], [5, 2, 0]], np.int32)
    yield Case("embedding_repeated_index", "embedding", {},
               {"table": Values("embedding").normal(6, 3), "index": repeated},
               lambda table, index: tf.gather(table, index), ("table",))
    yield Case("reduce_max_ties", "reduce_max", {"axes": [1]},
               {"x": Values("ties").integers(3, 4, 6).astype(np.float32)},
               lambda v: tf.reduce_max(v, 1), ("x",))


def cases():
    yield batch_norm("batch_norm_training", (4, 3, 2, 3), True)
    yield batch_norm("batch_norm_training_2d", (7, 4), True)
    yield batch_norm("batch_norm_inference", (4, 3, 2, 3), False)
    yield keras_norm("layer_norm", "layer_norm", {"axis": -1, "epsilon": 1e-3},
                     keras.layers.LayerNormalization(epsilon=1e-3), (3, 4, 6), 6)
    yield keras_norm("group_norm", "group_norm", {"groups": 2, "axis": -1, "epsilon": 1e-3},
                     keras.layers.GroupNormalization(groups=2, epsilon=1e-3), (2, 3, 4, 6), 6)
    yield lstm("lstm")
    yield lstm("lstm_go_backwards", True)
    yield gru("gru_reset_after", True)
    yield gru("gru_reset_before", False)
    yield softmax_ce("softmax_ce_sparse", 0.0, True, 1.0)
    yield softmax_ce("softmax_ce_dense_smoothing", 0.1, False, 1.0)
    yield softmax_ce("softmax_ce_sparse_smoothing", 0.1, True, 2.0)
    yield softmax_ce("softmax_ce_extreme", 0.0, True, 60.0)
    yield sigmoid_ce("sigmoid_ce", 0.0, 1.0)
    yield sigmoid_ce("sigmoid_ce_smoothing_extreme", 0.2, 40.0)
    yield from corner_cases()
