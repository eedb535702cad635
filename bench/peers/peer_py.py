#!/usr/bin/env python3
"""The rows py_*: programs for TensorFlow, run by TensorFlow itself and, as `python -m stoker`, by Stoker.

    operator     one operation after the other, eagerly; `numpy`: the same on arrays
    function     @tf.function step with GradientTape and the Keras Adam optimizer, called once per step
    fit          Keras' fit over shuffled arrays
    loop         for x, y in dataset, batches of 32 rows
    process      a new process from its start to its end: an import, or a first step of fit
"""
import os
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import common
import numpy as np
import tensorflow as tf

ENGINE = "stoker" if hasattr(tf, "__stoker__") else "tensorflow"


def repeat(call):
    def run(n):
        for _ in range(n):
            call()
        return n

    return common.Timed(run)


def pair(wrap):
    rng = np.random.default_rng(3)
    return [wrap(rng.standard_normal((10, 10), dtype=np.float32)) for _ in range(2)]


def add(wrap):
    a, b = pair(wrap)
    return repeat(lambda: a + b)


def matmul(wrap):
    a, b = pair(wrap)
    return repeat(lambda: a @ b)


def model_of(job):
    layers = [tf.keras.layers.Input(job.sizes[:1] if job.kind == "mlp" else job.sizes)]
    if job.kind == "cnn":
        layers += [tf.keras.layers.Conv2D(common.CNN_FILTERS, 3, activation="relu"), tf.keras.layers.MaxPooling2D(),
                   tf.keras.layers.Flatten(), tf.keras.layers.Dense(common.CNN_CLASSES)]
    else:
        layers += [tf.keras.layers.Dense(n, activation="relu") for n in job.sizes[1:-1]]
        layers += [tf.keras.layers.Dense(job.sizes[-1])]
    model = tf.keras.Sequential(layers)
    model.set_weights(common.make_parameters(job))
    return model


def loss_of(job):
    return "mse" if job.loss == "mse" else tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def step(job):
    x, y = common.make_data(job)
    batches = [(tf.constant(a), tf.constant(b)) for a, b in zip(x, y)]
    parameters = [tf.Variable(p) for p in common.make_parameters(job)]
    optimizer = tf.keras.optimizers.Adam(job.rate, common.BETA1, common.BETA2, common.EPSILON)
    optimizer.build(parameters)

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            h = tf.nn.relu(x @ parameters[0] + parameters[1])
            logits = h @ parameters[2] + parameters[3]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        optimizer.apply_gradients(zip(tape.gradient(loss, parameters), parameters))
        return loss

    def run(n):
        for k in range(n):
            last = train(*batches[k % job.ring])
        float(last)
        return n

    return common.Timed(run)


def fit(job):
    x, y = common.make_data(job)
    x, y = x.reshape((-1,) + x.shape[2:]), y.reshape((-1,) + y.shape[2:])
    model = model_of(job)
    model.compile(tf.keras.optimizers.Adam(job.rate), loss_of(job))
    model.fit(x, y, batch_size=job.batch, verbose=0)

    def run(n):
        epochs = max(1, round(n / job.ring))
        model.fit(x, y, batch_size=job.batch, epochs=epochs, verbose=0)
        return epochs * job.ring

    return common.Timed(run)


def batches():
    rng = np.random.default_rng(5)
    dataset = tf.data.Dataset.from_tensor_slices((rng.standard_normal((6400, 16), dtype=np.float32), np.arange(6400)))
    dataset = dataset.batch(32).prefetch(tf.data.AUTOTUNE)

    def run(n):
        done = 0
        while done < n:
            for x, y in dataset:
                done += 1
        return done

    return common.Timed(run)


FIRST_STEP = """
import numpy as np, tensorflow as tf
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input((100,)), layers.Dense(128, activation="relu"), layers.Dense(10)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(np.ones((10, 100), "f4"), np.arange(10), batch_size=10, verbose=0)
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")][0])
"""


def process(text):
    """-> seconds of a new process, and what it printed. Run twice: the first one brings the files into memory."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(text)
        file.flush()
        command = [sys.executable] + (["-m", "stoker"] if ENGINE == "stoker" else []) + [file.name]
        for _ in range(2):
            start = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            taken = time.perf_counter() - start
    return taken, done.stdout


ONCE = {
    "py_import": lambda: (ENGINE, "process", process("import tensorflow")[0] * 1e3),
    "py_first_step": lambda: (ENGINE, "process", process(FIRST_STEP)[0] * 1e3),
    "py_memory": lambda: (ENGINE, "process", int(process(FIRST_STEP)[1].split()[-1]) / 1024.0),
}


def way(variant, make, engine=ENGINE):
    return common.Way(engine, variant, make)


JOBS = common.JOBS
ROWS = {
    "py_add": [way("operator", lambda: add(tf.constant))],
    "py_matmul": [way("operator", lambda: matmul(tf.constant))],
    "py_step": [way("function", lambda: step(JOBS["tiny_step"]))],
    "py_fit_b32": [way("fit", lambda: fit(JOBS["tiny_step_b32"]))],
    "py_fit_b512": [way("fit", lambda: fit(JOBS["mlp_b512"]))],
    "py_fit_cnn": [way("fit", lambda: fit(JOBS["cnn_step"]))],
    "py_batches": [way("loop", batches)],
}
if ENGINE == "tensorflow":
    ROWS["py_add"].append(way("numpy", lambda: add(np.asarray), "numpy"))
    ROWS["py_matmul"].append(way("numpy", lambda: matmul(np.asarray), "numpy"))

if __name__ == "__main__":
    common.Peer(ROWS, ONCE).main({ENGINE: tf.__version__})
