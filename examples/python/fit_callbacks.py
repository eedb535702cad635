"""fit with validation, EarlyStopping, ModelCheckpoint, ReduceLROnPlateau and TensorBoard; then resume from the file."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.keras import callbacks

rng = np.random.default_rng(11)
x = rng.normal(size=(2000, 12)).astype("float32")
y = (np.sin(x[:, :1]) + 0.3 * x[:, 1:2] * x[:, 2:3]).astype("float32")
train, valid = (x[:1600], y[:1600]), (x[1600:], y[1600:])


def make_model():
    model = tf.keras.Sequential([
        tf.keras.layers.Input((12,)),
        tf.keras.layers.Dense(32, activation="tanh"),
        tf.keras.layers.Dense(1),
    ])
    numbers = np.random.default_rng(12)
    model.set_weights([numbers.normal(scale=0.2, size=w.shape) for w in model.get_weights()])
    model.compile(tf.keras.optimizers.SGD(0.2, momentum=0.9), "mse", metrics=["mae"])
    return model


with tempfile.TemporaryDirectory() as folder:
    best = os.path.join(folder, "best.keras")
    logs = os.path.join(folder, "logs")
    model = make_model()
    history = model.fit(
        *train, validation_data=valid, epochs=12, batch_size=100, shuffle=False, verbose=2,
        callbacks=[
            callbacks.EarlyStopping(monitor="val_loss", patience=4, restore_best_weights=True),
            callbacks.ModelCheckpoint(best, monitor="val_loss", save_best_only=True),
            callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=1, min_lr=0.01),
            callbacks.TensorBoard(logs),
        ])
    events = sum(len(files) for _, _, files in os.walk(logs))
    best_loss = min(history.history["val_loss"])
    resumed = tf.keras.models.load_model(best)
    reloaded = resumed.evaluate(*valid, batch_size=100, verbose=0)[0]
    again = resumed.fit(*train, validation_data=valid, epochs=len(history.epoch) + 2, initial_epoch=len(history.epoch),
                        batch_size=100, shuffle=False, verbose=2)

print("result: epochs", len(history.epoch))
print("result: first_loss", round(history.history["loss"][0], 4))
print("result: best_loss", round(best_loss, 4))
print("result: learning_rates", [round(float(r), 4) for r in history.history["learning_rate"]])
print("result: reloaded", round(float(reloaded), 4))
print("result: resumed_epochs", again.epoch)
print("result: resumed_loss", round(again.history["loss"][-1], 4))
print("result: has_event_files", events > 0)
