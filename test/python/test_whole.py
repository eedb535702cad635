"""Whole epochs inside of the engine give what steps one by one give."""
import numpy as np
import pytest

import stoker.tf as tf

keras = pytest.importorskip("keras")
layers = keras.layers

rng = np.random.RandomState(0)
X, Y = rng.randn(103, 6).astype("float32"), rng.randint(0, 3, 103)


class EachBatch(keras.callbacks.Callback):
    """Wants to hear of every batch, so that steps are taken one by one."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append((batch, logs["loss"]))

    def on_test_batch_end(self, batch, logs=None):
        pass

    def on_predict_batch_end(self, batch, logs=None):
        pass


def model(cls=keras.Model, dropout=0.0, **compiled):
    keras.utils.set_random_seed(3)
    x = layers.Input((6,))
    h = layers.Dense(8, activation="relu")(x)
    h = layers.BatchNormalization()(h)
    if dropout:
        h = layers.Dropout(dropout, seed=5)(h)
    m = cls(x, layers.Dense(3)(h))
    m.compile(optimizer=compiled.pop("optimizer", "adam"), metrics=compiled.pop("metrics", ["accuracy"]),
              loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), **compiled)
    return m


def both(make, run):
    whole, steps = make(), make()
    a, b = run(whole, []), run(steps, [EachBatch()])
    assert whole.stoker_way and all(w.startswith("whole") for w in whole.stoker_way.values()), whole.stoker_way
    assert all(w.startswith("step by step: the callback") for w in steps.stoker_way.values())
    for u, v in zip(whole.get_weights(), steps.get_weights()):
        np.testing.assert_allclose(u, v, rtol=1e-6, atol=1e-6)
    return a, b


def same_history(a, b):
    assert a.history.keys() == b.history.keys() and a.epoch == b.epoch
    for key in a.history:
        np.testing.assert_allclose(a.history[key], b.history[key], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_fit_with_validation_and_a_smaller_last_batch(dropout):
    def run(m, callbacks):
        return m.fit(X, Y, batch_size=16, epochs=3, shuffle=False, validation_split=0.2, verbose=0, callbacks=callbacks)

    same_history(*both(lambda: model(dropout=dropout), run))


def test_fit_with_weights():
    def run(m, callbacks):
        return m.fit(X, Y, batch_size=16, epochs=2, shuffle=False, sample_weight=np.linspace(0, 1, 103), verbose=0,
                     callbacks=callbacks)

    same_history(*both(model, run))


def test_fit_of_a_dataset():
    def run(m, callbacks):
        ds = tf.data.Dataset.from_tensor_slices((X, Y)).batch(10).prefetch(2)
        return m.fit(ds, epochs=2, verbose=0, callbacks=callbacks, validation_data=ds)

    same_history(*both(model, run))


def test_steps_per_epoch_go_on_in_the_stream():
    def run(m, callbacks):
        ds = tf.data.Dataset.from_tensor_slices((X, Y)).batch(10, drop_remainder=True).repeat()
        return m.fit(ds, epochs=3, steps_per_epoch=7, verbose=0, callbacks=callbacks)

    same_history(*both(model, run))


def test_evaluate_and_predict():
    def run(m, callbacks):
        return m.evaluate(X, Y, batch_size=10, verbose=0, callbacks=callbacks), m.predict(X, 10, 0, callbacks=callbacks)

    (e, p), (f, q) = both(model, run)
    np.testing.assert_allclose(e, f, rtol=1e-6)
    np.testing.assert_allclose(p, q, rtol=1e-5, atol=1e-6)
    assert p.shape == (103, 3) and isinstance(p, np.ndarray)


def test_shuffle_visits_every_row_once():
    class Counter(keras.Model):
        def __init__(self):
            super().__init__()
            self.count = self.add_weight(shape=(50,), initializer="zeros", trainable=False)
            self.order = self.add_weight(shape=(), initializer="zeros", trainable=False)

        def train_step(self, data):
            x, _ = data
            self.count.assign_add(tf.reduce_sum(tf.one_hot(x, 50), 0))
            self.order.assign(self.order * 3 % 1001 + tf.cast(x[0], "float32"))
            return {"rows": tf.reduce_sum(self.count)}

    m = Counter()
    m.compile()
    orders = []
    for _ in range(2):
        m.order.assign(0.0)
        h = m.fit(np.arange(50), np.zeros(50), batch_size=7, epochs=1, verbose=0)
        orders.append(float(m.order))
    assert m.stoker_way["train"].startswith("whole")
    assert np.asarray(m.count).tolist() == [2.0] * 50 and orders[0] != orders[1] and h.history["rows"] == [100.0]


def test_learning_rate_is_live_and_callbacks_of_epochs_work():
    class Lower(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.optimizer.learning_rate = 0.0

    m = model(optimizer="sgd")
    m.fit(X, Y, epochs=1, verbose=0, callbacks=[Lower()])
    before = m.get_weights()[0]
    m.fit(X, Y, epochs=1, verbose=0)
    assert np.array_equal(before, m.get_weights()[0]) and m.stoker_way["train"].startswith("whole")
    assert int(m.optimizer.iterations) == 8
    stop = keras.callbacks.EarlyStopping("loss", patience=0)
    assert len(m.fit(X, Y, epochs=9, verbose=0, callbacks=[stop], shuffle=False).epoch) < 9


def test_custom_train_step_and_eager_one():
    class Own(keras.Model):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(y=y, y_pred=self(x, training=True))
            g = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply(g, self.trainable_variables)
            return {"loss": loss}

    def run(m, callbacks):
        return m.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0, callbacks=callbacks)

    same_history(*both(lambda: model(Own, metrics=None), run))
    eager = model(Own, metrics=None, run_eagerly=True)
    eager.fit(X, Y, batch_size=16, epochs=1, verbose=0)
    assert "run_eagerly" in eager.stoker_way["train"]


def test_trainable_toggles():
    m = model(metrics=None)
    m.fit(X, Y, epochs=1, verbose=0)
    m.layers[1].trainable = False
    m.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = m.layers[1].get_weights()[0]
    m.fit(X, Y, epochs=1, verbose=0)
    assert np.array_equal(before, m.layers[1].get_weights()[0])


def test_a_wrong_batch_is_refused_and_training_goes_on():
    m = model()
    with pytest.raises(Exception):
        m.fit(X[:, :5], Y, epochs=1, verbose=0)
    m.fit(X, Y, epochs=1, verbose=0)


def test_progress_bar(capsys):
    m = model()
    m.fit(X, Y, batch_size=10, epochs=2, verbose=1)
    m.fit(X, Y, batch_size=10, epochs=1, verbose=2)
    text = capsys.readouterr().out
    assert "Epoch 1/2" in text and "11/11" in text and "accuracy" in text and "loss" in text
