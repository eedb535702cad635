"""A training step of one's own with tf.function and GradientTape, on batches of ten."""
import time

import numpy as np
import tensorflow as tf

STEPS, BATCH = 2000, 10

rng = np.random.default_rng(4)
images = rng.normal(size=(STEPS * BATCH, 32)).astype("float32")
targets = np.argmax(images @ rng.normal(size=(32, 5)), axis=1)

model = tf.keras.Sequential([
    tf.keras.layers.Input((32,)),
    tf.keras.layers.Dense(64, activation="relu"),
    tf.keras.layers.Dense(5),
])
model.set_weights([rng.normal(scale=0.1, size=w.shape) for w in model.get_weights()])
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(1e-3)
mean_loss = tf.keras.metrics.Mean()
accuracy = tf.keras.metrics.SparseCategoricalAccuracy()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = loss_fn(y, logits)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    mean_loss.update_state(loss)
    accuracy.update_state(y, logits)
    return loss


losses, start = [], time.perf_counter()
for step in range(STEPS):
    rows = slice(step * BATCH, (step + 1) * BATCH)
    loss = train_step(tf.constant(images[rows]), tf.constant(targets[rows]))
    if step % 500 == 0:
        losses.append(round(float(loss), 3))
        print(f"step {step}: loss {float(loss):.4f}")
seconds = time.perf_counter() - start
print(f"{STEPS / seconds:.0f} steps per second")

print("result: losses", losses)
print("result: mean_loss", round(float(mean_loss.result()), 4))
print("result: accuracy", round(float(accuracy.result()), 4))
print("result: traces", train_step.experimental_get_tracing_count())
print("result: iterations", int(optimizer.iterations))
