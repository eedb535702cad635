"""Clone a model under tf.device, give the clone the same weights, and check that both say the same."""
import numpy as np
import tensorflow as tf
from tensorflow import keras

rng = np.random.default_rng(3)

inputs = keras.Input((20,))
x = keras.layers.Dense(32, activation="relu")(inputs)
x = keras.layers.LayerNormalization()(x)
branch = keras.layers.Dense(32, activation="tanh")(x)
x = keras.layers.Add()([x, branch])
model = keras.Model(inputs, keras.layers.Dense(3, activation="softmax")(x))
model.set_weights([rng.normal(scale=0.3, size=w.shape) for w in model.get_weights()])

print("devices:", [device.device_type for device in tf.config.list_physical_devices()])
with tf.device("/CPU:0"):
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())

batch = rng.normal(size=(8, 20)).astype("float32")
with tf.device("/CPU:0"):
    first, second = model(batch), clone(batch)
difference = float(tf.reduce_max(tf.abs(first - second)))

# A step of the clone must leave the original alone.
before = [w.copy() for w in model.get_weights()]
clone.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")
loss = clone.train_on_batch(batch, rng.integers(0, 3, 8))
untouched = all(np.array_equal(a, b) for a, b in zip(before, model.get_weights()))

print("result: parameters", model.count_params())
print("result: difference", difference)
print("result: untouched", untouched)
print("result: loss", round(float(loss), 5))
print("result: first_row", np.round(first.numpy()[0], 5).tolist())
print("result: after_step", np.round(clone(batch).numpy()[0], 5).tolist())
