"""Golden models for losses, metrics and optimizers: one small network each."""

import keras
import numpy as np
from keras import layers as L
from keras import losses, metrics, optimizers

from model import CASES, case
from models_layers import N, classes, floats


def network(outputs, activation=None, inputs=5):
    return keras.Sequential([L.Input((inputs,)), L.Dense(6, "tanh", name="hidden"),
                             L.Dense(outputs, activation, name="result")])


def add(name, build):
    build.__name__ = name
    case(build)


def loss_case(name, outputs, activation, target, loss, wanted=(), **more):
    def build(r):
        extra = {k: v(r) if callable(v) else v for k, v in more.items()}
        return dict(model=network(outputs, activation), x=floats(r, 5), y=target(r), loss=loss(),
                    optimizer=optimizers.SGD(extra.pop("rate", 0.1)), metrics=[m() for m in wanted],
                    covers=[name], **extra)
    add("loss_" + name, build)


def shares(r, n):
    p = r.uniform(0.1, 1, (N, n))
    return (p / p.sum(1, keepdims=True)).astype(np.float32)


def one_hot(r, n):
    return np.eye(n, dtype=np.float32)[r.integers(0, n, N)]


def bits(r, n=1):
    return r.integers(0, 2, (N, n)).astype(np.float32)


def signs(r, n=1):
    return bits(r, n) * 2 - 1


def weights(r):
    return r.uniform(0.2, 2, N).astype(np.float32)


loss_case("mse", 2, None, lambda r: floats(r, 2), losses.MeanSquaredError,
          [metrics.MeanSquaredError, metrics.MeanAbsoluteError, metrics.RootMeanSquaredError])
loss_case("mae", 2, None, lambda r: floats(r, 2), losses.MeanAbsoluteError, [metrics.MeanAbsoluteError])
loss_case("mape", 2, None, lambda r: floats(r, 2, low=1, high=3), losses.MeanAbsolutePercentageError,
          [metrics.MeanAbsolutePercentageError], rate=1e-4)
loss_case("msle", 2, "softplus", lambda r: floats(r, 2, low=1, high=3), losses.MeanSquaredLogarithmicError,
          [metrics.MeanSquaredLogarithmicError])
loss_case("huber", 2, None, lambda r: 2 * floats(r, 2), lambda: losses.Huber(delta=0.7))
loss_case("log_cosh", 2, None, lambda r: 2 * floats(r, 2), losses.LogCosh, [metrics.LogCoshError])
loss_case("binary_crossentropy", 1, "sigmoid", bits, losses.BinaryCrossentropy,
          [metrics.BinaryAccuracy, metrics.BinaryCrossentropy, metrics.AUC, metrics.Precision, metrics.Recall])
loss_case("binary_crossentropy_logits", 3, None, lambda r: bits(r, 3),
          lambda: losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.1),
          [lambda: metrics.BinaryAccuracy(threshold=0.0)], sample_weight=weights)
loss_case("categorical_crossentropy", 4, "softmax", lambda r: one_hot(r, 4),
          lambda: losses.CategoricalCrossentropy(label_smoothing=0.2),
          [metrics.CategoricalAccuracy, lambda: metrics.TopKCategoricalAccuracy(k=2),
           lambda: metrics.F1Score(average="macro"), metrics.CategoricalCrossentropy])
loss_case("categorical_crossentropy_logits", 4, None, lambda r: shares(r, 4),
          lambda: losses.CategoricalCrossentropy(from_logits=True), [metrics.CategoricalAccuracy])
loss_case("sparse_categorical_crossentropy", 4, "softmax", lambda r: classes(r, 4),
          losses.SparseCategoricalCrossentropy,
          [metrics.SparseCategoricalAccuracy, lambda: metrics.SparseTopKCategoricalAccuracy(k=3)],
          sample_weight=weights)
loss_case("class_weight", 3, None, lambda r: classes(r, 3),
          lambda: losses.SparseCategoricalCrossentropy(from_logits=True),
          [metrics.SparseCategoricalAccuracy], class_weight={0: 1.0, 1: 0.5, 2: 3.0})
loss_case("ignored_class", 3, None, lambda r: classes(r, 3),
          lambda: losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=1))
loss_case("hinge", 2, None, lambda r: signs(r, 2), losses.Hinge, [metrics.Hinge])
loss_case("squared_hinge", 2, None, lambda r: bits(r, 2), losses.SquaredHinge, [metrics.SquaredHinge])
loss_case("categorical_hinge", 3, None, lambda r: one_hot(r, 3), losses.CategoricalHinge, [metrics.CategoricalHinge])
loss_case("kl_divergence", 3, "softmax", lambda r: shares(r, 3), losses.KLDivergence, [metrics.KLDivergence])
loss_case("poisson", 2, "softplus", lambda r: r.poisson(2, (N, 2)).astype(np.float32), losses.Poisson,
          [metrics.Poisson])
loss_case("cosine_similarity", 3, None, lambda r: floats(r, 3), losses.CosineSimilarity, [metrics.CosineSimilarity])
loss_case("binary_focal", 2, "sigmoid", lambda r: bits(r, 2),
          lambda: losses.BinaryFocalCrossentropy(apply_class_balancing=True, gamma=1.5))
loss_case("binary_focal_logits", 2, None, lambda r: bits(r, 2),
          lambda: losses.BinaryFocalCrossentropy(from_logits=True, label_smoothing=0.1))
loss_case("categorical_focal", 3, "softmax", lambda r: one_hot(r, 3), losses.CategoricalFocalCrossentropy)
loss_case("reduction_sum", 2, None, lambda r: floats(r, 2), lambda: losses.MeanSquaredError(reduction="sum"),
          sample_weight=weights, rate=0.02)
loss_case("segmentation", 3, "softmax", lambda r: classes(r, 3), losses.SparseCategoricalCrossentropy,
          [lambda: metrics.MeanIoU(3, sparse_y_pred=False, name="mean_iou")])
loss_case("precision_recall", 4, "sigmoid", lambda r: bits(r, 4), losses.BinaryCrossentropy,
          [lambda: metrics.Precision(thresholds=0.4), lambda: metrics.Recall(class_id=1), lambda: metrics.AUC(curve="PR"),
           lambda: metrics.AUC(num_thresholds=20, summation_method="majoring", name="auc_major"),
           lambda: metrics.F1Score(average="micro", threshold=0.5)], sample_weight=weights)


def optimizer_case(name, optimizer, **more):
    def build(r):
        return dict(model=network(2), x=floats(r, 5), y=floats(r, 2), loss=losses.MeanSquaredError(),
                    optimizer=optimizer(), covers=[name], **more)
    add("optimizer_" + name, build)


O, S = optimizers, optimizers.schedules
optimizer_case("sgd", lambda: O.SGD(0.1))
optimizer_case("sgd_momentum", lambda: O.SGD(0.05, momentum=0.9))
optimizer_case("sgd_nesterov", lambda: O.SGD(0.05, momentum=0.9, nesterov=True, weight_decay=0.01))
optimizer_case("adam", lambda: O.Adam(0.01))
optimizer_case("adam_amsgrad", lambda: O.Adam(0.02, amsgrad=True, epsilon=1e-5, beta_1=0.8, beta_2=0.9))
optimizer_case("adamw", lambda: O.AdamW(0.01, weight_decay=0.1))
optimizer_case("adamax", lambda: O.Adamax(0.01))
optimizer_case("nadam", lambda: O.Nadam(0.01))
optimizer_case("rmsprop", lambda: O.RMSprop(0.01))
optimizer_case("rmsprop_centered", lambda: O.RMSprop(0.01, centered=True, momentum=0.8, rho=0.8, epsilon=1e-3))
optimizer_case("adagrad", lambda: O.Adagrad(0.1))
optimizer_case("adadelta", lambda: O.Adadelta(1.0))
optimizer_case("lion", lambda: O.Lion(0.001, weight_decay=0.1))
optimizer_case("clipnorm", lambda: O.SGD(0.5, clipnorm=0.1))
optimizer_case("global_clipnorm", lambda: O.Adam(0.01, global_clipnorm=0.2))
optimizer_case("clipvalue", lambda: O.SGD(0.5, clipvalue=0.05))
optimizer_case("ema", lambda: O.SGD(0.1, use_ema=True, ema_momentum=0.7, ema_overwrite_frequency=4))
optimizer_case("accumulation", lambda: O.Adam(0.01, gradient_accumulation_steps=2))
optimizer_case("accumulation_of_3", lambda: O.SGD(0.1, momentum=0.5, gradient_accumulation_steps=3, clipnorm=0.3))
optimizer_case("exponential_decay", lambda: O.SGD(S.ExponentialDecay(0.2, 3, 0.5)))
optimizer_case("exponential_stairs", lambda: O.Adam(S.ExponentialDecay(0.05, 3, 0.5, staircase=True)))
optimizer_case("cosine_decay", lambda: O.SGD(S.CosineDecay(0.2, 6, alpha=0.1)))
optimizer_case("cosine_warmup", lambda: O.SGD(S.CosineDecay(0.01, 5, warmup_target=0.2, warmup_steps=3)))
optimizer_case("cosine_restarts", lambda: O.SGD(S.CosineDecayRestarts(0.2, 3, t_mul=1.5, m_mul=0.8, alpha=0.05)))
optimizer_case("polynomial_decay", lambda: O.SGD(S.PolynomialDecay(0.2, 6, 0.01, power=2.0)))
optimizer_case("polynomial_cycle", lambda: O.SGD(S.PolynomialDecay(0.2, 4, 0.01, cycle=True)))
optimizer_case("piecewise_constant", lambda: O.SGD(S.PiecewiseConstantDecay([2, 5], [0.2, 0.1, 0.02])))
optimizer_case("inverse_time_decay", lambda: O.SGD(S.InverseTimeDecay(0.2, 2, 0.5, staircase=True)))
assert len(CASES) >= 45
