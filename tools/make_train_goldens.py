#!/usr/bin/env python3
"""Writes test/golden/train/*.npz: what the real Keras makes of small inputs, for the tests of optimizers, losses and metrics.

Run with a Python that has keras and tensorflow:  KERAS_BACKEND=tensorflow python3 tools/make_train_goldens.py
Each file holds arrays and a member "meta" with a JSON text (uint8) that lists the cases:

    optim.npz    start_a, start_b; gradients_a [steps, ...], gradients_b; per case i: a_<i> [steps, ...], b_<i>, rate_<i> [steps]
    losses.npz   per case i: true_<i>, pred_<i>, optionally weight_<i>; each_<i> (no reduction), mean_<i>, grad_<i>
    metrics.npz  per case i: true_<i> [batches, ...], pred_<i>, optionally weight_<i>; result_<i> [batches, ...]
"""
import json
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import keras
import numpy as np
import tensorflow as tf

OUT = pathlib.Path(__file__).resolve().parent.parent / "test" / "golden" / "train"
STEPS = 9


def save(name, cases, arrays):
    OUT.mkdir(parents=True, exist_ok=True)
    meta = json.dumps({"keras": keras.__version__, "cases": cases})
    np.savez_compressed(OUT / name, meta=np.frombuffer(meta.encode(), np.uint8), **arrays)
    print(f"{name}: {len(cases)} cases, {(OUT / name).stat().st_size} bytes")


def optimizers():
    o, s = keras.optimizers, keras.optimizers.schedules
    return [
        ("sgd", o.SGD()),
        ("sgd:lr=0.1,momentum=0.9", o.SGD(0.1, momentum=0.9)),
        ("sgd:lr=0.1,momentum=0.9,nesterov=true", o.SGD(0.1, momentum=0.9, nesterov=True)),
        ("sgd:lr=0.1,weight_decay=0.05", o.SGD(0.1, weight_decay=0.05)),
        ("sgd:lr=0.1,clipvalue=0.3", o.SGD(0.1, clipvalue=0.3)),
        ("sgd:lr=0.1,global_clipnorm=0.7", o.SGD(0.1, global_clipnorm=0.7)),
        ("adam", o.Adam()),
        ("adam:lr=0.02,beta_1=0.8,beta_2=0.95,amsgrad=true", o.Adam(0.02, 0.8, 0.95, amsgrad=True)),
        ("adam:lr=0.02,clipnorm=0.5", o.Adam(0.02, clipnorm=0.5)),
        ("adam:lr=0.02,accumulate=3", o.Adam(0.02, gradient_accumulation_steps=3)),
        ("adam:lr=0.02,use_ema=true,ema_momentum=0.8,ema_overwrite_frequency=4",
         o.Adam(0.02, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=4)),
        ("sgd:lr=0.1,accumulate=2,use_ema=true,ema_momentum=0.7,ema_overwrite_frequency=2",
         o.SGD(0.1, gradient_accumulation_steps=2, use_ema=True, ema_momentum=0.7, ema_overwrite_frequency=2)),
        ("adamw:lr=0.02", o.AdamW(0.02)),
        ("adamw:lr=0.02,weight_decay=0.1,global_clipnorm=1", o.AdamW(0.02, weight_decay=0.1, global_clipnorm=1.0)),
        ("adamax:lr=0.02", o.Adamax(0.02)),
        ("nadam:lr=0.02", o.Nadam(0.02)),
        ("nadam:lr=0.02,accumulate=2", o.Nadam(0.02, gradient_accumulation_steps=2)),
        ("rmsprop:lr=0.02", o.RMSprop(0.02)),
        ("rmsprop:lr=0.02,rho=0.8,momentum=0.5,centered=true", o.RMSprop(0.02, 0.8, 0.5, centered=True)),
        ("adagrad:lr=0.1", o.Adagrad(0.1)),
        ("adadelta:lr=1", o.Adadelta(1.0)),
        ("lion:lr=0.02,weight_decay=0.01", o.Lion(0.02, weight_decay=0.01)),
        ("sgd:lr=0.1,loss_scale_factor=8", o.SGD(0.1, loss_scale_factor=8.0)),
        ("sgd:lr=0.1,schedule=exponential/4/decay_rate=0.5", o.SGD(s.ExponentialDecay(0.1, 4, 0.5))),
        ("sgd:lr=0.1,schedule=exponential/4/decay_rate=0.5/staircase=true",
         o.SGD(s.ExponentialDecay(0.1, 4, 0.5, staircase=True))),
        ("sgd:lr=0.1,schedule=cosine/6/alpha=0.1", o.SGD(s.CosineDecay(0.1, 6, alpha=0.1))),
        ("sgd:lr=0.01,schedule=cosine/5/warmup_steps=3/warmup_target=0.2",
         o.SGD(s.CosineDecay(0.01, 5, warmup_steps=3, warmup_target=0.2))),
        ("sgd:lr=0.1,schedule=cosine_restarts/2/t_mul=2/m_mul=0.8/alpha=0.05",
         o.SGD(s.CosineDecayRestarts(0.1, 2, 2.0, 0.8, 0.05))),
        ("sgd:lr=0.1,schedule=cosine_restarts/3/t_mul=1/m_mul=0.5",
         o.SGD(s.CosineDecayRestarts(0.1, 3, 1.0, 0.5))),
        ("sgd:lr=0.1,schedule=polynomial/6/end=0.01/power=2", o.SGD(s.PolynomialDecay(0.1, 6, 0.01, 2.0))),
        ("sgd:lr=0.1,schedule=polynomial/3/end=0.01/cycle=true",
         o.SGD(s.PolynomialDecay(0.1, 3, 0.01, cycle=True))),
        ("sgd:lr=0.1,schedule=inverse_time/2/decay_rate=0.7", o.SGD(s.InverseTimeDecay(0.1, 2, 0.7))),
        ("sgd:schedule=piecewise/2:0.1/5:0.03/0.01", o.SGD(s.PiecewiseConstantDecay([2, 5], [0.1, 0.03, 0.01]))),
        ("adam:lr=0.02,dynamic_loss_scale=true,initial_scale=4,dynamic_growth_steps=2",
         o.LossScaleOptimizer(o.Adam(0.02), initial_scale=4.0, dynamic_growth_steps=2)),
    ]


def rate_of(opt):
    inner = getattr(opt, "inner_optimizer", opt)
    return float(keras.ops.convert_to_numpy(inner.learning_rate))


def make_optim():
    rng = np.random.default_rng(11)
    shapes = {"a": (3, 4), "b": (5,)}
    start = {k: rng.normal(size=n).astype(np.float32) for k, n in shapes.items()}
    gradients = {k: rng.normal(size=(STEPS, *n)).astype(np.float32) for k, n in shapes.items()}
    arrays = {f"start_{k}": v for k, v in start.items()}
    arrays |= {f"gradients_{k}": v for k, v in gradients.items()}
    cases = []
    for i, (text, opt) in enumerate(optimizers()):
        scaled = hasattr(opt, "inner_optimizer")
        weights = {k: keras.Variable(v, name=k) for k, v in start.items()}
        seen = {k: [] for k in shapes}
        rates = []
        for step in range(STEPS):
            rates.append(rate_of(opt))
            grads = [gradients[k][step] for k in shapes]
            if scaled:  # the test feeds gradients of the scaled loss; the fifth step overflows
                if not opt.built:
                    opt.build(list(weights.values()))
                scale = float(opt.dynamic_scale.numpy())
                grads = [g * np.float32(scale) for g in grads]
                if step == 4:
                    grads[0] = grads[0].copy()
                    grads[0][1, 2] = np.inf
            opt.apply([tf.constant(g) for g in grads], list(weights.values()))
            for k, v in weights.items():
                seen[k].append(v.numpy())
        case = {"text": text, "json": keras.optimizers.serialize(opt), "scaled": scaled}
        if scaled:
            arrays[f"scale_{i}"] = np.float32(opt.dynamic_scale.numpy())
        cases.append(case)
        arrays |= {f"{k}_{i}": np.stack(v) for k, v in seen.items()}
        arrays[f"rate_{i}"] = np.array(rates, np.float32)
    save("optim.npz", cases, arrays)


def loss_cases(rng):
    """(text, loss, true, predictions, weights or None, what makes the predictions: None, "softmax" or "sigmoid")"""
    L = keras.losses
    n, c, t = 6, 4, 5
    real = rng.normal(size=(n, c)).astype(np.float32)
    pred = rng.normal(size=(n, c)).astype(np.float32)
    weight = rng.uniform(0, 2, size=n).astype(np.float32)
    weight[2] = 0
    share = rng.dirichlet(np.ones(c), size=n).astype(np.float32)
    probability = rng.uniform(0.02, 0.98, size=(n, c)).astype(np.float32)
    binary = rng.integers(0, 2, size=(n, c)).astype(np.float32)
    sign = (2 * binary - 1).astype(np.float32)
    hot = np.eye(c, dtype=np.float32)[rng.integers(0, c, size=n)]
    label = rng.integers(0, c, size=n).astype(np.int32)
    sequence = rng.normal(size=(n, t, c)).astype(np.float32)
    sequence_label = rng.integers(0, c, size=(n, t)).astype(np.int32)
    ignored = sequence_label.copy()
    ignored[0, :2] = 3
    column = rng.normal(size=(n, 1)).astype(np.float32)
    vector = rng.normal(size=n).astype(np.float32)
    extreme = (30 * pred).astype(np.float32)
    rows = [
        ("mse", L.MeanSquaredError(), real, pred, None, None),
        ("mse", L.MeanSquaredError(), real, pred, weight, None),
        ("mse", L.MeanSquaredError(), vector, column, weight, None),
        ("mse:reduction=sum", L.MeanSquaredError(reduction="sum"), real, pred, weight, None),
        ("mse:reduction=mean_with_sample_weight", L.MeanSquaredError(reduction="mean_with_sample_weight"),
         real, pred, weight, None),
        ("mse", L.MeanSquaredError(), np.roll(sequence, 1, 0), sequence, None, None),
        ("mean_absolute_error", L.MeanAbsoluteError(), real, pred, weight, None),
        ("mape", L.MeanAbsolutePercentageError(), real, pred, None, None),
        ("msle", L.MeanSquaredLogarithmicError(), real, pred, None, None),
        ("huber", L.Huber(), real, pred, None, None),
        ("huber:delta=0.3", L.Huber(delta=0.3), real, pred, weight, None),
        ("log_cosh", L.LogCosh(), real, pred, None, None),
        ("hinge", L.Hinge(), binary, pred, None, None),
        ("hinge", L.Hinge(), sign, pred, weight, None),
        ("squared_hinge", L.SquaredHinge(), binary, pred, None, None),
        ("categorical_hinge", L.CategoricalHinge(), hot, pred, None, None),
        ("kl_divergence", L.KLDivergence(), share, probability, None, None),
        ("poisson", L.Poisson(), np.abs(real), probability, None, None),
        ("cosine_similarity", L.CosineSimilarity(), real, pred, weight, None),
        ("binary_crossentropy", L.BinaryCrossentropy(), binary, probability, None, None),
        ("binary_crossentropy:from_logits=true", L.BinaryCrossentropy(from_logits=True), binary, pred, weight, None),
        ("binary_crossentropy:label_smoothing=0.1", L.BinaryCrossentropy(label_smoothing=0.1), binary, pred, None,
         "sigmoid"),
        ("binary_crossentropy", L.BinaryCrossentropy(), binary, extreme, None, "sigmoid"),
        ("categorical_crossentropy", L.CategoricalCrossentropy(), hot, probability, None, None),
        ("categorical_crossentropy", L.CategoricalCrossentropy(), hot, pred, weight, "softmax"),
        ("categorical_crossentropy", L.CategoricalCrossentropy(), hot, extreme, None, "softmax"),
        ("categorical_crossentropy:from_logits=true,label_smoothing=0.2",
         L.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2), hot, pred, None, None),
        ("sparse_categorical_crossentropy", L.SparseCategoricalCrossentropy(), label, probability, None, None),
        ("sparse_categorical_crossentropy", L.SparseCategoricalCrossentropy(), label, pred, weight, "softmax"),
        ("sparse_categorical_crossentropy", L.SparseCategoricalCrossentropy(), label[:, None], extreme, None,
         "softmax"),
        ("sparse_categorical_crossentropy:from_logits=true", L.SparseCategoricalCrossentropy(from_logits=True),
         sequence_label, sequence, None, None),
        ("sparse_categorical_crossentropy:from_logits=true,ignore_class=3",
         L.SparseCategoricalCrossentropy(from_logits=True, ignore_class=3), ignored, sequence, None, None),
        ("binary_focal_crossentropy", L.BinaryFocalCrossentropy(), binary, probability, None, None),
        ("binary_focal_crossentropy:from_logits=true,apply_class_balancing=true,gamma=1.5,alpha=0.4",
         L.BinaryFocalCrossentropy(from_logits=True, apply_class_balancing=True, gamma=1.5, alpha=0.4), binary, pred,
         weight, None),
        ("categorical_focal_crossentropy", L.CategoricalFocalCrossentropy(), hot, probability, None, None),
        ("categorical_focal_crossentropy:from_logits=true,label_smoothing=0.1",
         L.CategoricalFocalCrossentropy(from_logits=True, label_smoothing=0.1), hot, pred, None, None),
    ]
    return rows


def make_losses():
    arrays, cases = {}, []
    for i, (text, loss, true, pred, weight, maker) in enumerate(loss_cases(np.random.default_rng(5))):
        made = {None: lambda x: x, "softmax": keras.activations.softmax, "sigmoid": keras.activations.sigmoid}[maker]
        x = tf.Variable(pred)
        with tf.GradientTape() as tape:
            value = loss(true, made(x), sample_weight=weight)
        arrays |= {f"true_{i}": true, f"pred_{i}": pred, f"mean_{i}": np.float32(value),
                   f"grad_{i}": tape.gradient(value, x).numpy()}
        if weight is not None:
            arrays[f"weight_{i}"] = weight
        cases.append({"text": text, "json": keras.losses.serialize(loss), "maker": maker or ""})
    save("losses.npz", cases, arrays)


def metric_cases(rng):
    """(text, metric, true [batches, ...], predictions, weights or None)"""
    M = keras.metrics
    b, n, c = 3, 7, 5
    pred = rng.dirichlet(np.ones(c), size=(b, n)).astype(np.float32)
    label = rng.integers(0, c, size=(b, n)).astype(np.int32)
    hot = np.eye(c, dtype=np.float32)[label]
    weight = rng.uniform(0, 2, size=(b, n)).astype(np.float32)
    weight[0, 1] = 0
    score = rng.uniform(0, 1, size=(b, n, 1)).astype(np.float32)
    yes = rng.integers(0, 2, size=(b, n, 1)).astype(np.float32)
    flat = yes[..., 0]
    real = rng.normal(size=(b, n, 3)).astype(np.float32)
    guess = (real + 0.3 * rng.normal(size=(b, n, 3))).astype(np.float32)
    many = rng.uniform(0, 1, size=(b, n, c)).astype(np.float32)
    labels = rng.integers(0, 2, size=(b, n, c)).astype(np.float32)
    sequence = rng.dirichlet(np.ones(c), size=(b, n, 4)).astype(np.float32)
    steps = rng.integers(0, c, size=(b, n, 4)).astype(np.int32)
    found = rng.integers(0, 3, size=(b, n)).astype(np.int32)  # classes 3 and 4 never occur
    here = rng.integers(0, 3, size=(b, n)).astype(np.int32)
    tied = np.round(pred * 4).astype(np.float32)
    never = np.zeros_like(yes)
    return [
        ("binary_accuracy", M.BinaryAccuracy(), yes, score, None),
        ("binary_accuracy:threshold=0.7", M.BinaryAccuracy(threshold=0.7), flat, score, weight),
        ("accuracy", M.BinaryAccuracy(), yes, score, None),
        ("accuracy", M.CategoricalAccuracy(), hot, pred, weight),
        ("accuracy", M.SparseCategoricalAccuracy(), label, pred, None),
        ("acc", M.SparseCategoricalAccuracy(), label[..., None], pred, None),
        ("accuracy", M.SparseCategoricalAccuracy(), steps, sequence, weight),
        ("categorical_accuracy", M.CategoricalAccuracy(), hot, pred, None),
        ("sparse_categorical_accuracy", M.SparseCategoricalAccuracy(), label, pred, weight),
        ("top_k_categorical_accuracy:k=2", M.TopKCategoricalAccuracy(k=2), hot, pred, weight),
        ("sparse_top_k_categorical_accuracy:k=3", M.SparseTopKCategoricalAccuracy(k=3), label, tied, None),
        ("precision", M.Precision(), yes, score, None),
        ("precision:thresholds=0.3", M.Precision(thresholds=0.3), yes, score, weight),
        ("precision", M.Precision(), never, never, None),
        ("recall", M.Recall(), yes, score, weight),
        ("recall:class_id=2", M.Recall(class_id=2), labels, many, None),
        ("precision:top_k=2", M.Precision(top_k=2), labels, many, None),
        ("recall:top_k=3,thresholds=0.4", M.Recall(top_k=3, thresholds=0.4), labels, many, weight),
        ("true_positives", M.TruePositives(), yes, score, None),
        ("true_negatives", M.TrueNegatives(), yes, score, weight),
        ("false_positives", M.FalsePositives(), yes, score, None),
        ("false_negatives", M.FalseNegatives(), yes, score, None),
        ("f1_score", M.F1Score(), hot, pred, None),
        ("f1_score:average=macro", M.F1Score(average="macro"), hot, pred, weight),
        ("f1_score:average=micro,threshold=0.5", M.F1Score(average="micro", threshold=0.5), labels, many, None),
        ("fbeta_score:average=weighted,beta=2,threshold=0.4",
         M.FBetaScore(average="weighted", beta=2.0, threshold=0.4), labels, many, None),
        ("auc", M.AUC(), yes, score, None),
        ("auc:num_thresholds=50", M.AUC(num_thresholds=50), yes, score, weight),
        ("auc:curve=PR", M.AUC(curve="PR"), yes, score, weight),
        ("auc:curve=PR,summation_method=majoring", M.AUC(curve="PR", summation_method="majoring"), yes, score, None),
        ("auc:summation_method=minoring,from_logits=true", M.AUC(summation_method="minoring", from_logits=True), yes,
         (8 * score - 4).astype(np.float32), None),
        ("auc", M.AUC(), never, score, None),
        ("mean_io_u:num_classes=5", M.MeanIoU(num_classes=5), found, here, None),
        ("mean_io_u:num_classes=5,sparse_y_pred=false", M.MeanIoU(num_classes=5, sparse_y_pred=False), label, pred,
         np.round(weight)),  # Keras would cut fractions off here
        ("mean_io_u:num_classes=5,sparse_y_true=false,sparse_y_pred=false,ignore_class=1",
         M.MeanIoU(num_classes=5, sparse_y_true=False, sparse_y_pred=False, ignore_class=1), hot, pred, None),
        ("mae", M.MeanAbsoluteError(), real, guess, weight),
        ("mse", M.MeanSquaredError(), real, guess, None),
        ("root_mean_squared_error", M.RootMeanSquaredError(), real, guess, weight),
        ("cosine_similarity", M.CosineSimilarity(), real, guess, None),
        ("sparse_categorical_crossentropy", M.SparseCategoricalCrossentropy(), label, pred, weight),
        ("kl_divergence", M.KLDivergence(), pred, np.roll(pred, 1, 1), None),
        ("poisson", M.Poisson(), np.abs(real), np.abs(guess), None),
        ("hinge", M.Hinge(), yes, score, None),
    ]


def make_metrics():
    arrays, cases = {}, []
    for i, (text, metric, true, pred, weight) in enumerate(metric_cases(np.random.default_rng(17))):
        results = []
        for k in range(len(true)):
            metric.update_state(true[k], pred[k], sample_weight=None if weight is None else weight[k])
            results.append(np.asarray(metric.result(), np.float32))
        arrays |= {f"true_{i}": true, f"pred_{i}": pred, f"result_{i}": np.stack(results)}
        if weight is not None:
            arrays[f"weight_{i}"] = weight
        cases.append({"text": text, "json": keras.metrics.serialize(metric)})
    save("metrics.npz", cases, arrays)


if __name__ == "__main__":
    make_optim()
    make_losses()
    make_metrics()
