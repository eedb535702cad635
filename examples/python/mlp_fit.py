"""Fit a multilayer perceptron with shuffling and binary cross entropy, at batch 512."""
import numpy as np
import tensorflow as tf

ROWS, COLUMNS, BATCH, EPOCHS = 40_000, 28, 512, 4

tf.keras.utils.set_random_seed(7)
rng = np.random.default_rng(7)
x = rng.normal(size=(ROWS, COLUMNS)).astype("float32")
y = (x[:, :4].sum(axis=1) + x[:, 4] * x[:, 5] > 0).astype("float32")

model = tf.keras.Sequential([
    tf.keras.layers.Input((COLUMNS,)),
    tf.keras.layers.Dense(128, activation="relu"),
    tf.keras.layers.Dense(64, activation="relu"),
    tf.keras.layers.Dense(1, activation="sigmoid"),
])
model.set_weights([rng.normal(scale=0.1, size=w.shape) for w in model.get_weights()])
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy", tf.keras.metrics.AUC(name="auc")])

start_loss = model.evaluate(x, y, batch_size=BATCH, verbose=0)[0]
history = model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, shuffle=True, validation_split=0.1, verbose=2)
probability = model.predict(x[:1000], batch_size=BATCH, verbose=0)

print("result: start_loss", round(float(start_loss), 4))
print("result: keys", sorted(history.history))
print("result: predictions", probability.shape)
print("result: val_accuracy", round(history.history["val_accuracy"][-1], 2))
print("result: val_auc", round(history.history["val_auc"][-1], 2))
