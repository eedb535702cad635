"""A peer of the zoo: Keras' fit on one backend. Reads lines `MODEL SECONDS` and answers each with one line of JSON:
{"model", "ms": median time of a step, "samples": [...], "rss_mb": peak of the process} or {"model", "error"}.
A model asked for again is trained on, without being built and compiled a second time.

    fit_keras.py BACKEND JIT          BACKEND tensorflow, torch or jax; JIT 0 or 1 (XLA, torch.compile)

A sample is one epoch over the model's data, divided by its steps."""
import json
import os
import pathlib
import resource
import statistics
import sys
import time

backend, jit = sys.argv[1], sys.argv[2] == "1"
os.environ["KERAS_BACKEND"] = backend
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import keras  # noqa: E402
import numpy  # noqa: E402

from models import ROWS, ZOO, arrays  # noqa: E402


class Clock(keras.callbacks.Callback):
    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.times, self.begin = seconds, [], 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self.begin = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.times.append(time.perf_counter() - self.begin)
        measured = self.measured()
        if sum(measured) >= self.seconds and (len(measured) >= 3 or max(measured) >= 1):
            self.model.stop_training = True

    def measured(self):
        """Without the first epoch (tracing, compiling) and, unless it is a long one, the second."""
        return self.times[1 if len(self.times) > 1 and self.times[1] >= 1 else 2:]


models = {}


def build(name):
    builder, batch = next((b, n) for row, b, n in ZOO if row == name)
    keras.utils.set_random_seed(1)
    model, inputs, classes = builder(keras)
    x, y = arrays(numpy, inputs, classes, model, ROWS * batch)
    loss = "mse" if classes is None else "sparse_categorical_crossentropy"
    model.compile("adam", loss, jit_compile=jit)
    return model, x if len(x) > 1 else x[0], y, batch


def measure(name, seconds):
    if name not in models:
        models[name] = build(name)
    model, x, y, batch = models[name]
    clock = Clock(seconds)
    model.fit(x, y, batch_size=batch, epochs=1000, verbose=0, callbacks=[clock])
    samples = [1e3 * t / ROWS for t in clock.measured()]
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"model": name, "ms": statistics.median(samples), "samples": samples, "rss_mb": rss}


print(json.dumps({"ready": f"{backend} {keras.__version__}"}), flush=True)
for line in sys.stdin:
    model_name, limit = line.split()
    try:
        answer = measure(model_name, float(limit))
    except Exception as error:  # noqa: BLE001 - one model that fails must not end the peer
        answer = {"model": model_name, "error": f"{type(error).__name__}: {str(error)[:200]}"}
    print(json.dumps(answer), flush=True)
