"""A loop over an input pipeline: map, batch, prefetch, and a little arithmetic on every batch."""
import time

import numpy as np
import tensorflow as tf

ROWS, COLUMNS, BATCH, EPOCHS = 20_000, 16, 32, 3

rng = np.random.default_rng(1)
features = rng.normal(size=(ROWS, COLUMNS)).astype("float32")
labels = (features.sum(axis=1) > 0).astype("int32")


def prepare(x, y):
    x = (x - tf.reduce_mean(x)) / (tf.math.reduce_std(x) + 1e-6)
    return tf.clip_by_value(x, -2.0, 2.0), tf.one_hot(y, 2)


dataset = (
    tf.data.Dataset.from_tensor_slices((features, labels))
    .map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
    .batch(BATCH)
    .prefetch(tf.data.AUTOTUNE)
)
print(dataset.element_spec)

total, positive, batches = 0.0, 0.0, 0
start = time.perf_counter()
for epoch in range(EPOCHS):
    for x, y in dataset:
        total += float(tf.reduce_sum(tf.abs(x)))
        positive += float(tf.reduce_sum(y[:, 1]))
        batches += 1
seconds = time.perf_counter() - start
print(f"{batches / seconds:.0f} batches per second")

print("result: batches", batches)
print("result: mean_abs", round(total / (EPOCHS * ROWS * COLUMNS), 5))
print("result: positive", positive / EPOCHS)
