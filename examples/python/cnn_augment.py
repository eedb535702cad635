"""Fit a small convolutional network on drawn pictures; the augmentation is in the pipeline's map."""
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

SIDE, TRAIN, TEST, EPOCHS = 20, 2000, 500, 4

tf.keras.utils.set_random_seed(6)
rng = np.random.default_rng(6)


def draw(count):
    """Discs, crosses and bars at random places, with noise."""
    labels = rng.integers(0, 3, count)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    pictures = np.zeros((count, SIDE, SIDE, 1), "float32")
    for n, label in enumerate(labels):
        cy, cx = rng.integers(6, SIDE - 6, 2)
        if label == 0:
            shape = (yy - cy) ** 2 + (xx - cx) ** 2 < 16
        elif label == 1:
            shape = ((abs(yy - cy) < 1) | (abs(xx - cx) < 1)) & (abs(yy - cy) < 5) & (abs(xx - cx) < 5)
        else:
            shape = (abs(yy - cy) < 2) & (abs(xx - cx) < 5)
        pictures[n, ..., 0] = shape
    return pictures + rng.normal(scale=0.2, size=pictures.shape).astype("float32"), labels


def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(image, 0.1)
    image = tf.image.random_crop(tf.pad(image, [[2, 2], [2, 2], [0, 0]]), (SIDE, SIDE, 1))
    return image, label


train = (
    tf.data.Dataset.from_tensor_slices(draw(TRAIN))
    .shuffle(TRAIN)
    .map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    .batch(50)
    .prefetch(tf.data.AUTOTUNE)
)
test = tf.data.Dataset.from_tensor_slices(draw(TEST)).batch(100)

model = tf.keras.Sequential([
    layers.Input((SIDE, SIDE, 1)),
    layers.Conv2D(16, 3, activation="relu"),
    layers.MaxPooling2D(),
    layers.Conv2D(32, 3, activation="relu"),
    layers.BatchNormalization(momentum=0.9),
    layers.GlobalAveragePooling2D(),
    layers.Dropout(0.1),
    layers.Dense(3, activation="softmax"),
])
model.compile(tf.keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(train, epochs=EPOCHS, verbose=2)
loss, accuracy = model.evaluate(test, verbose=0)

print("result: epochs", len(history.history["loss"]))
print("result: parameters", model.count_params())
print("result: learns", history.history["loss"][-1] < 0.6 * history.history["loss"][0])
print("result: accuracy_above_0.8", accuracy > 0.8)
