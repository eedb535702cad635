"""Keras models through tf.saved_model; other objects and TensorFlow's own folders are refused with a way out."""
import os

import numpy as np
import pytest

import stoker.tf as tf

keras = pytest.importorskip("keras")


def test_there_and_back(tmp_path):
    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(2, activation=tf.nn.relu)])
    x = np.random.default_rng(1).normal(size=(4, 3)).astype("float32")
    want = model(x).numpy()
    tf.saved_model.save(model, str(tmp_path / "m"))
    assert tf.saved_model.contains_saved_model(str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    np.testing.assert_array_equal(loaded(x), want)
    assert list(loaded.signatures) == ["serving_default"]
    np.testing.assert_array_equal(loaded.signatures["serving_default"](tf.constant(x))["output_0"], want)
    assert len(loaded.trainable_variables) == 2


def test_refusals(tmp_path):
    with pytest.raises(NotImplementedError, match="Checkpoint"):
        tf.saved_model.save(tf.Module(), str(tmp_path))
    with pytest.raises(OSError, match="does not exist"):
        tf.saved_model.load(str(tmp_path / "nothing"))
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(NotImplementedError, match=".keras"):
        tf.saved_model.load(os.fspath(tmp_path))
