"""A loop that calls a model with a layer of one's own, and that layer calls NumPy."""
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras

ROWS, BATCH = 6400, 64


class FourierFeatures(keras.layers.Layer):
    """sin and cos of random projections, computed by NumPy."""

    def __init__(self, count, **kwargs):
        super().__init__(**kwargs)
        self.count = count

    def build(self, input_shape):
        rng = np.random.default_rng(9)
        self.projection = rng.normal(size=(input_shape[-1], self.count)).astype("float32")

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], 2 * self.count)

    def call(self, x):
        angles = np.matmul(x, self.projection)
        return tf.convert_to_tensor(np.concatenate([np.sin(angles), np.cos(angles)], axis=-1))


rng = np.random.default_rng(10)
model = keras.Sequential([
    keras.layers.Input((8,)),
    FourierFeatures(32),
    keras.layers.Dense(16, activation="relu"),
    keras.layers.Dense(1),
])
model.set_weights([rng.normal(scale=0.2, size=w.shape) for w in model.get_weights()])

x = rng.normal(size=(ROWS, 8)).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices(x).batch(BATCH)

total, batches, start = 0.0, 0, time.perf_counter()
for batch in dataset:
    total += float(tf.reduce_mean(model(batch)))
    batches += 1
seconds = time.perf_counter() - start
print(f"{batches / seconds:.0f} calls per second")

print("result: calls", batches)
print("result: mean", round(total / batches, 4))
print("result: first", np.round(model(x[:2]).numpy().ravel(), 4).tolist())
