"""The same step over 100 000 samples that come from a pipeline: batch, map, prefetch, one pass."""
import time

import numpy as np
import tensorflow as tf

SAMPLES, FEATURES, BATCH = 100_000, 10, 100

rng = np.random.default_rng(5)
x_all = rng.normal(size=(SAMPLES, FEATURES)).astype("float32")
true_weights = rng.normal(size=(FEATURES, 1)).astype("float32")
y_all = x_all @ true_weights + 0.1 * rng.normal(size=(SAMPLES, 1)).astype("float32")

dataset = (
    tf.data.Dataset.from_tensor_slices((x_all, y_all))
    .batch(BATCH, drop_remainder=True)
    .map(lambda x, y: (x * 2.0, y), num_parallel_calls=tf.data.AUTOTUNE)
    .prefetch(tf.data.AUTOTUNE)
)

w = tf.Variable(tf.zeros((FEATURES, 1)), name="w")
b = tf.Variable(0.0, name="b")
steps = tf.Variable(0, dtype=tf.int64, trainable=False)


@tf.function
def train_step(x, y, rate):
    with tf.GradientTape() as tape:
        error = tf.matmul(x, w) + b - y
        loss = tf.reduce_mean(tf.square(error))
    dw, db = tape.gradient(loss, [w, b])
    w.assign_sub(rate * dw)
    b.assign_sub(rate * db)
    steps.assign_add(1)
    return loss


start, total = time.perf_counter(), tf.constant(0.0)
for x, y in dataset:
    total += train_step(x, y, tf.constant(0.05))
seconds = time.perf_counter() - start
print(f"{SAMPLES / seconds:.0f} samples per second")

print("result: steps", int(steps))
print("result: mean_loss", round(float(total) / int(steps), 4))
print("result: weight_error", bool(np.abs(w.numpy() * 2 - true_weights).max() < 0.05))
print("result: w0", round(float(w[0, 0]), 3))
print("result: b", round(float(b), 3))
