"""The Keras backend: training, abstract shapes, cached calls, random numbers, files that TensorFlow reads and writes."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import stoker.tf as tf

keras = pytest.importorskip("keras")
from keras import layers, ops  # noqa: E402


def _data(rows=256, columns=8):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, columns)).astype("float32")
    return x, (x.sum(1) > 0).astype("int32")


def _classifier():
    return keras.Sequential([keras.Input((8,)), layers.Dense(16, activation="relu"), layers.Dropout(0.1), layers.Dense(2)])


def test_fit_learns_and_evaluate_agrees_with_predict():
    x, y = _data()
    model = _classifier()
    model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    history = model.fit(x, y, epochs=30, batch_size=32, verbose=0, validation_split=0.25)
    assert history.history["loss"][-1] < 0.5 * history.history["loss"][0]
    assert set(history.history) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    loss, accuracy = model.evaluate(x, y, verbose=0)
    predicted = model.predict(x, verbose=0)
    assert accuracy == pytest.approx((predicted.argmax(1) == y).mean(), abs=1e-6)
    shifted = predicted - predicted.max(1, keepdims=True)
    mine = -(shifted - np.log(np.exp(shifted).sum(1, keepdims=True)))[np.arange(len(y)), y].mean()
    assert loss == pytest.approx(mine, rel=1e-4)


def test_a_step_by_program_is_the_step_by_hand():
    x, y = _data(64)
    model = keras.Sequential([keras.Input((8,)), layers.Dense(4, activation="tanh"), layers.Dense(1)])
    twin = keras.models.clone_model(model)
    twin.set_weights(model.get_weights())
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(x, y, batch_size=64, epochs=3, shuffle=False, verbose=0)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((twin(x, training=True)[:, 0] - y.astype("float32")) ** 2)
        for w, g in zip(twin.trainable_variables, tape.gradient(loss, twin.trainable_variables)):
            w.assign(w - 0.1 * g)
    for a, b in zip(model.get_weights(), twin.get_weights()):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_custom_train_step_and_run_eagerly():
    class Custom(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(1)
            self.steps = 0

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            self.steps += 1
            with tf.GradientTape() as tape:
                loss = self.compute_loss(y=y, y_pred=self(x, training=True))
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            return {"loss": loss, "twice": 2 * loss}

    x, y = _data(64)
    for eagerly in (False, True):
        model = Custom()
        model.compile("sgd", "mse", run_eagerly=eagerly)
        history = model.fit(x, y, batch_size=16, epochs=2, verbose=0).history
        assert history["twice"][-1] == pytest.approx(2 * history["loss"][-1], rel=1e-5)
        assert model.steps == (8 if eagerly else 1)  # traced once, or run every time


def test_train_on_batch():
    x, y = _data(64)
    model = _classifier()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    assert set(model.train_on_batch(x, y, return_dict=True)) == {"loss", "accuracy"}
    assert len(model.test_on_batch(x, y)) == 2
    assert model.predict_on_batch(x).shape == (64, 2)


def test_shapes_are_inferred_without_computing():
    x = keras.Input((None, 12))
    assert ops.reshape(x, (-1, 6)).shape == (None, 6)
    assert ops.concatenate([x, x], 1).shape == (None, None, 12)
    assert layers.LSTM(5, return_sequences=True)(x).shape == (None, None, 5)
    assert layers.Lambda(lambda t: ops.split(t, 3, axis=-1)[0] * 2)(x).shape == (None, None, 4)
    big = keras.Input((100000, 1000))  # would be gigabytes
    assert ops.matmul(big, np.ones((1000, 3), "float32")).shape == (None, 100000, 3)


def test_array_of_a_symbolic_value_is_not_implemented():
    class Bad(layers.Layer):
        def call(self, x):
            return np.asarray(x)

    with pytest.raises(NotImplementedError):
        keras.src.backend.compute_output_spec(lambda x: np.asarray(x), keras.KerasTensor((2, 3)))
    model = keras.Sequential([Bad()])
    assert model(np.ones((2, 3), "float32")).shape == (2, 3)


def test_branches_that_assign():
    counter, other = keras.Variable(0.0), keras.Variable(0.0)

    @tf.function
    def step(x):
        ops.cond(ops.sum(x) > 0, lambda: counter.assign(counter + 1), lambda: other.assign(other + 1))

    for value in (1.0, 1.0, -1.0):
        step(tf.constant([value]))
    assert (float(counter.numpy()), float(other.numpy())) == (2.0, 1.0)


def test_calls_become_a_program_and_see_new_weights():
    model = _classifier()
    x = np.random.default_rng(1).standard_normal((5, 8)).astype("float32")
    first = model(x).numpy()
    for _ in range(4):
        np.testing.assert_allclose(model(x).numpy(), first, rtol=1e-5, atol=1e-6)
    assert model._stoker_calls._functions, "five calls alike and no program"
    model.layers[0].kernel.assign(model.layers[0].kernel * 2.0)
    assert np.abs(model(x).numpy() - first).max() > 1e-3
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(x))
    assert all(g is not None for g in tape.gradient(loss, model.trainable_variables))
    model.layers[0].trainable = False
    assert model(x).shape == (5, 2)
    with pytest.raises(ValueError):
        model(np.ones((5, 9), "float32"))
    assert model(x[:3]).shape == (3, 2)


def test_code_of_a_user_runs_on_every_call():
    seen = []

    class Talks(layers.Layer):
        def call(self, x):
            seen.append(1)
            return x * 2

    model = keras.Sequential([keras.Input((8,)), Talks()])
    before = len(seen)
    for _ in range(6):
        model(np.ones((2, 8), "float32"))
    assert len(seen) == before + 6


def test_dropout_has_the_same_bits_in_a_program():
    generator = keras.random.SeedGenerator(3)
    x = np.ones((64, 64), "float32")
    eager = [keras.random.dropout(x, 0.3, seed=generator).numpy() for _ in range(2)]
    generator.state.assign(keras.random.SeedGenerator(3).state)
    function = tf.function(lambda t: keras.random.dropout(t, 0.3, seed=generator))
    for wanted in eager:
        np.testing.assert_array_equal(function(x).numpy(), wanted)
    assert not np.array_equal(*eager)
    assert np.mean(eager[0] == 0) == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("length", [1, 2, 7, 64, 97, 120, 1000])
def test_fourier_transforms(length):
    rng = np.random.default_rng(length)
    re, im = rng.standard_normal((2, 3, length))
    wanted = np.fft.fft(re + 1j * im)
    got = ops.fft((re, im))
    np.testing.assert_allclose(got[0].numpy() + 1j * got[1].numpy(), wanted, atol=1e-8)
    got = ops.rfft(re)
    np.testing.assert_allclose(got[0].numpy() + 1j * got[1].numpy(), np.fft.rfft(re), atol=1e-8)
    np.testing.assert_allclose(ops.irfft(ops.rfft(re), length).numpy(), re, atol=1e-8)


on_cpu = pytest.mark.skipif("STOKER_DEVICE" in os.environ, reason="other devices give zeros; to get it unset STOKER_DEVICE")


@on_cpu
@pytest.mark.parametrize("how", [{}, {"jit_compile": True}, {"run_eagerly": True}])
def test_an_embedding_refuses_numbers_outside_of_its_table(how):
    table = layers.Embedding(10, 4, name="words")
    model = keras.Sequential([keras.Input((3,), dtype="int32"), table, layers.Flatten(), layers.Dense(1)])
    model.compile("sgd", "mse", **how)
    good, bad, y = np.array([[0, 1, -1]]), np.array([[0, 1, 12]]), np.zeros((1, 1))
    before = table.get_weights()[0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[0,2\] = 12 is not in \[0, 10\)") as failure:
        model.fit(bad, y, verbose=0)
    assert how.get("run_eagerly") or "words" in str(failure.value)
    np.testing.assert_array_equal(table.get_weights()[0], before)  # nothing was trained with it
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in"):
        model.predict(bad, verbose=0)
    np.testing.assert_array_equal(np.asarray(table(good))[0, 2], before[9])  # from the end, as in Keras
    model.fit(good, y, verbose=0)


@on_cpu
def test_gathers_in_functions_refuse_indices_out_of_range():
    x = tf.reshape(tf.range(6.0), (2, 3))
    rows, cells = tf.function(lambda i: tf.gather(x, i)), tf.function(lambda i: tf.gather_nd(x, i))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1,0\] = -1 is not in \[0, 2\)"):
        rows(tf.constant([[1], [-1]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = \[0, 7\] does not index into"):
        cells(tf.constant([[1, 2], [0, 7]]))
    np.testing.assert_array_equal(rows(tf.constant([[1], [0]]))[1, 0], x[0])
    numbers = tf.data.Dataset.from_tensor_slices([1, 5]).map(rows)
    with pytest.raises(tf.errors.InvalidArgumentError, match="indices = 5 is not in"):
        list(numbers)


def test_ctc_loss_is_the_sum_over_alignments():
    rng = np.random.default_rng(0)
    steps, classes = 4, 3
    logits = rng.standard_normal((1, steps, classes)).astype("float32")
    p = np.exp(logits[0] - logits[0].max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    for label in ([1], [1, 2], [1, 1]):
        total = 0.0
        for path in np.ndindex(*[classes] * steps):
            merged = [c for n, c in enumerate(path) if n == 0 or c != path[n - 1]]
            if [c for c in merged if c != 0] == label:
                total += np.prod([p[t, c] for t, c in enumerate(path)])
        got = ops.ctc_loss(np.array([label]), logits, np.array([len(label)]), np.array([steps]), mask_index=0)
        assert float(got[0]) == pytest.approx(-np.log(total), rel=1e-4)


def test_ctc_loss_takes_the_number_of_the_blank_as_a_label_within_the_length():
    logits = (np.arange(24).reshape((2, 4, 3)).astype("float32") - 12) / 100
    labels = np.array([[1, 2, 1, 0], [1, 2, 0, 2]])
    assert float(keras.losses.CTC()(labels, logits)) == pytest.approx(2.448645, rel=1e-6)  # TensorFlow's answer


def test_recurrent_kernels_agree_with_the_steps():
    x = np.random.default_rng(2).standard_normal((3, 6, 4)).astype("float32")
    for kind in (layers.LSTM, layers.GRU):
        for back in (False, True):
            layer = kind(5, return_sequences=True, go_backwards=back)
            kernel = layer(x).numpy()
            layer.unroll = True
            np.testing.assert_allclose(kernel, layer(x).numpy(), rtol=1e-4, atol=1e-5)


def test_export_and_back(tmp_path):
    """model.export, ExportArchive with two endpoints, and both as a layer that is trained further."""
    model = _classifier()
    x = np.random.default_rng(0).normal(size=(5,) + model.input_shape[1:]).astype("float32")
    want = model(x, training=False).numpy()
    model.export(str(tmp_path / "a"), verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "a"))
    np.testing.assert_allclose(loaded.serve(x[:2]), want[:2], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(loaded.signatures["serving_default"](x)["output_0"], want, rtol=1e-5, atol=1e-6)
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("infer", lambda x: model(x, training=False), input_signature=[tf.TensorSpec((None,) + model.input_shape[1:])])
    archive.add_endpoint("twice", lambda x: 2 * model(x, training=False), input_signature=[tf.TensorSpec((None,) + model.input_shape[1:])])
    archive.write_out(str(tmp_path / "b"), verbose=False)
    np.testing.assert_allclose(tf.saved_model.load(str(tmp_path / "b")).twice(x), 2 * want, rtol=1e-5, atol=1e-6)
    layer = keras.layers.TFSMLayer(str(tmp_path / "b"), call_endpoint="infer")
    np.testing.assert_allclose(layer(x), want, rtol=1e-5, atol=1e-6)
    assert len(layer.trainable_variables) == len(model.trainable_variables)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loaded.serve(x) ** 2)
    assert [g.shape for g in tape.gradient(loss, loaded.trainable_variables)] == [tuple(v.shape) for v in model.trainable_variables]


# Files, both ways.

SCRIPT = """
import sys, numpy as np, keras
where, other = sys.argv[1:3]
x = np.load(where + "/x.npy")
for ending in ("keras", "h5"):
    model = keras.models.load_model(f"{where}/given.{ending}")
    np.save(f"{where}/{other}-{ending}.npy", model.predict(x, verbose=0))
    model.save(f"{where}/back.{ending}")
model.load_weights(where + "/given.weights.h5")
np.save(f"{where}/{other}-weights.npy", model.predict(x, verbose=0))
"""


def _picture_model():
    return keras.Sequential([keras.Input((8, 8, 3)), layers.Conv2D(4, 3, activation="relu"), layers.BatchNormalization(),
                             layers.MaxPooling2D(), layers.Flatten(), layers.Dense(3, activation="softmax")])


def test_files_round_trip_here(tmp_path):
    model = _picture_model()
    model.compile("adam", "sparse_categorical_crossentropy")
    x = np.random.default_rng(0).standard_normal((16, 8, 8, 3)).astype("float32")
    model.fit(x, np.arange(16) % 3, verbose=0)
    wanted = model.predict(x, verbose=0)
    for ending in ("keras", "h5"):
        model.save(tmp_path / f"m.{ending}")
        again = keras.models.load_model(tmp_path / f"m.{ending}")
        np.testing.assert_allclose(again.predict(x, verbose=0), wanted, rtol=1e-5, atol=1e-6)
        assert int(again.optimizer.iterations.numpy()) == 1
    model.save_weights(tmp_path / "m.weights.h5")
    other = _picture_model()
    other.load_weights(tmp_path / "m.weights.h5")
    np.testing.assert_allclose(other.predict(x, verbose=0), wanted, rtol=1e-5, atol=1e-6)


def test_files_round_trip_with_tensorflow(tmp_path):
    peers = pathlib.Path(os.environ.get("STOKER_PEERS", pathlib.Path(__file__).parents[2] / "build" / "peers"))
    python = peers / "bin" / "python"
    if not python.exists():
        pytest.skip("no environment with TensorFlow (bench/setup-peers makes one)")
    model = _picture_model()
    model.compile("adam", "sparse_categorical_crossentropy")
    x = np.random.default_rng(0).standard_normal((16, 8, 8, 3)).astype("float32")
    model.fit(x, np.arange(16) % 3, verbose=0)
    wanted = model.predict(x, verbose=0)
    np.save(tmp_path / "x.npy", x)
    for name in ("given.keras", "given.h5"):
        model.save(tmp_path / name)
    model.save_weights(tmp_path / "given.weights.h5")
    env = dict(os.environ, KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3")
    subprocess.run([python, "-c", SCRIPT, tmp_path, "tf"], check=True, env=env, capture_output=True)
    for kind in ("keras", "h5", "weights"):
        np.testing.assert_allclose(np.load(tmp_path / f"tf-{kind}.npy"), wanted, rtol=1e-4, atol=1e-5)
    for ending in ("keras", "h5"):
        back = keras.models.load_model(tmp_path / f"back.{ending}")
        np.testing.assert_allclose(back.predict(x, verbose=0), wanted, rtol=1e-5, atol=1e-6)


def test_it_refuses_beside_the_real_tensorflow():
    code = "import sys, types; sys.modules['tensorflow'] = types.ModuleType('tensorflow'); import stoker.tf"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode and "already imported" in ran.stderr


def test_table_of_positions_behind_an_unknown_length():
    """The length of a text is unknown when the model is made: no guess of it may run over the table of positions."""
    class Positions(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.words, self.places = keras.layers.Embedding(50, 4), keras.layers.Embedding(20, 4)

        def call(self, x):
            return self.words(x) + self.places(tf.range(start=0, limit=tf.shape(x)[-1], delta=1))

    x = keras.Input((None,), dtype="int32")
    model = keras.Model(x, Positions()(x))
    assert model.output_shape == (None, None, 4)
    assert model.predict(np.ones((2, 7), "int32"), verbose=0).shape == (2, 7, 4)


def _built(rows, how="fit", data=lambda x, y: (x, y), **options):
    """The input shape of a model that one loop over the data built."""
    x, y = _data(rows)
    model = keras.Sequential([layers.Dense(2)])
    model.compile("sgd", "mse", run_eagerly=options.pop("eager", False))
    args = data(x, np.float32(y[:, None]))
    getattr(model, how)(*(args if how != "predict" else args[:1]), verbose=0, **options)
    return model.input_shape


def test_loops_build_models_for_the_rows_that_tensorflow_knows():
    pairs = lambda x, y: (tf.data.Dataset.from_tensor_slices((x, y)).batch(20),)
    assert [_built(rows) for rows in (96, 100, 20)] == [(32, 8), (None, 8), (None, 8)]
    assert [_built(rows, "evaluate") for rows in (96, 100)] == [(32, 8), (None, 8)]
    assert [_built(rows, "predict") for rows in (96, 100, 20)] == [(32, 8), (32, 8), (20, 8)]
    assert _built(100, data=pairs) == (None, 8) and _built(100, eager=True) == (32, 8)
    assert _built(100, data=lambda x, y: (((x, y) for _ in range(2)),)) == (None, 8)
