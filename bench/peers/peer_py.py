#!/usr/bin/env python3
"""The rows py_*: programs for TensorFlow, run by TensorFlow itself and, as `python -m stoker`, by Stoker.

    operator     one operation after the other, eagerly; `numpy`: the same on arrays
    function     @tf.function step with GradientTape and the Keras Adam optimizer, called once per step
    fit          Keras' fit over shuffled arrays
    loop         for x, y in dataset, batches of 32 rows
"""
import os

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
    common.Peer(ROWS, {}).main({ENGINE: tf.__version__})
