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


if __name__ == "__main__":
    make_optim()
