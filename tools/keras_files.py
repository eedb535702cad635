#!/usr/bin/env python3
"""Files of Keras: fixtures for the tests, and a comparison of both programs in both directions.

    keras_files.py make                 writes test/golden/train/keras_files.npz
    keras_files.py check STOKER [N]     models of test/golden/models (the first N): saved by Keras, read by STOKER, trained there,
                                        saved by it, read by Keras; predictions and optimizer state have to agree

Run with a Python that has keras and tensorflow. The fixture's members: keras, h5, weights_h5 (the bytes of three files of
one model), x, y, out (predict), losses (of three more steps on x and y), after (predict behind them).
"""

import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers as L  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parent.parent


def fixture_model():
    """Parts inside of parts: a nested model, both directions of a recurrent layer, a layer around a layer, attention."""
    x = keras.Input((5, 3), name="steps")
    h = L.Bidirectional(L.LSTM(2, return_sequences=True))(x)
    h = L.MultiHeadAttention(2, 2)(h, h)
    h = L.TimeDistributed(L.Dense(3, "tanh"))(h)
    h = L.Flatten()(h)
    inner = keras.Sequential([L.Input((15,)), L.Dense(4), L.BatchNormalization(), L.Dense(4, "relu")], name="inner")
    h = L.Dense(4)(h + L.Dense(15)(h))
    h = L.Concatenate()([h, inner(L.Flatten()(x))])
    return keras.Model(x, L.Dense(2)(h), name="parts")


def make():
    keras.utils.set_random_seed(3)
    r = np.random.default_rng(3)
    x, y = r.normal(size=(8, 5, 3)).astype("f"), r.integers(0, 2, (8, 2)).astype("f")
    m = fixture_model()
    m.compile(keras.optimizers.Adam(0.01, amsgrad=True), keras.losses.BinaryCrossentropy(from_logits=True), metrics=["mae"])
    for _ in range(3):
        m.train_on_batch(x, y)
    members = dict(x=x, y=y, out=m.predict(x, verbose=0))
    with tempfile.TemporaryDirectory() as folder:
        for name, save in (("keras", m.save), ("h5", m.save), ("weights.h5", m.save_weights)):
            path = f"{folder}/m.{name}"
            save(path)
            members[name.replace(".", "_")] = np.frombuffer(open(path, "rb").read(), np.uint8)
    losses = []
    for _ in range(3):
        m.reset_metrics()
        losses.append(m.train_on_batch(x, y)[0])
    members["losses"] = np.array(losses, np.float64)
    members["after"] = m.predict(x, verbose=0)
    path = TOP / "test" / "golden" / "train" / "keras_files.npz"
    np.savez_compressed(path, **members)
    print(path, path.stat().st_size, "bytes")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(" ".join(command) + ": " + done.stderr.strip())
    return done.stdout


def near(a, b):
    return float(np.max(np.abs(a - b)) / max(1e-6, np.max(np.abs(b)))) if np.size(b) else 0


def agree(stoker, path, folder):
    """Largest differences of one model, by way."""
    with np.load(path) as file:
        meta = json.loads(bytes(file["meta"]))
        if not meta["train"] or meta["sample_weight"] or "y1" in file.files or "x1" in file.files:
            return None
        model = keras.models.model_from_json(bytes(file["json"]).decode())
        for w, row in zip(model.weights, meta["weights"]):
            w.assign(file["w0/" + row["name"]])
        x, y = file["x0"], file["y0"]
    model.compile(keras.optimizers.deserialize(meta["optimizer"]),
                  keras.losses.deserialize(meta["losses"][0]))
    np.savez(f"{folder}/d.npz", x=x, y=y)
    np.save(f"{folder}/x.npy", x)
    model.train_on_batch(x[:meta["batch"]], y[:meta["batch"]])
    want, found = model.predict(x, verbose=0), {}
    for end in ("keras", "h5", "weights.h5"):
        (model.save_weights if end == "weights.h5" else model.save)(f"{folder}/m.{end}")
        open(f"{folder}/m.json", "w").write(model.to_json())
        source = ["m.json", "--weights", f"{folder}/m.{end}"] if end == "weights.h5" else [f"m.{end}"]
        run(stoker, "predict", f"{folder}/{source[0]}", f"{folder}/x.npy", *source[1:], "--out", f"{folder}/p.npy")
        found["read " + end] = near(np.load(f"{folder}/p.npy"), want)
    for end in ("keras", "h5", "weights.h5"):
        option = "--save-weights" if end == "weights.h5" else "--save"
        run(stoker, "train", f"{folder}/m.keras", f"{folder}/d.npz", "--epochs", "1", "--shuffle", "no",
            option, f"{folder}/s.{end}", "--save-weights" if option == "--save" else "--history", f"{folder}/other.h5")
        if end == "weights.h5":
            back = model
            back.load_weights(f"{folder}/s.{end}")
            run(stoker, "predict", f"{folder}/m.json", f"{folder}/x.npy", "--weights", f"{folder}/s.{end}", "--out",
                f"{folder}/p.npy")
        else:
            back = keras.models.load_model(f"{folder}/s.{end}")
            run(stoker, "predict", f"{folder}/s.{end}", f"{folder}/x.npy", "--out", f"{folder}/p.npy")
        found["written " + end] = near(back.predict(x, verbose=0), np.load(f"{folder}/p.npy"))
        steps = 1 + -(-len(x) // 32)
        if end != "h5":  # of the old layout Keras restores no state itself
            assert int(back.optimizer.iterations.numpy()) == steps, (end, back.optimizer.iterations.numpy(), steps)
    return found


def check(stoker, most):
    worst, bad = {}, 0
    paths = sorted(glob.glob(str(TOP / "test/golden/models/*.npz")))
    for path in paths[:most]:
        keras.backend.clear_session()
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = agree(stoker, path, folder)
            except Exception as reason:  # told, counted, and on to the next one
                print(pathlib.Path(path).stem, type(reason).__name__, str(reason)[-300:])
                bad += 1
                continue
        for way, value in (found or {}).items():
            worst[way] = max(worst.get(way, 0), value)
            if value > 1e-3:
                print(pathlib.Path(path).stem, way, value)
                bad += 1
    for way, value in worst.items():
        print(f"{way:20} {value:.1e}")
    return bad


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        make()
    else:
        sys.exit(1 if check(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else None) else 0)
