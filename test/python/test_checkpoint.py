"""tf.train.Checkpoint and CheckpointManager."""
import os

import pytest

import stoker.tf as tf


def test_values_come_back(tmp_path):
    v, m = tf.Variable([1.0, 2.0]), tf.Module()
    m.inner = [tf.Variable(3, dtype=tf.int64), {"k": tf.Variable(True)}]
    checkpoint = tf.train.Checkpoint(v=v, m=m)
    path = checkpoint.save(tmp_path / "c")
    assert os.path.basename(path) == "c-1" and tf.train.latest_checkpoint(tmp_path) == path
    v.assign([5.0, 6.0])
    m.inner[0].assign(9)
    checkpoint.restore(path).assert_consumed()
    assert v.numpy().tolist() == [1.0, 2.0] and int(m.inner[0]) == 3
    names = dict(tf.train.list_variables(path))
    assert names["v/.ATTRIBUTES/VARIABLE_VALUE"] == [2]


def test_manager_keeps_the_last(tmp_path):
    v = tf.Variable(0.0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), tmp_path, max_to_keep=2)
    for n in range(4):
        v.assign(n)
        manager.save()
    assert [os.path.basename(p) for p in manager.checkpoints] == ["ckpt-3", "ckpt-4"]
    assert sorted(f.name for f in tmp_path.glob("*.index")) == ["ckpt-3.index", "ckpt-4.index"]
    again = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), tmp_path, max_to_keep=2)
    v.assign(-1.0)
    again.restore_or_initialize()
    assert float(v) == 3.0


def test_position_of_an_iterator(tmp_path):
    ds = tf.data.Dataset.range(10).shuffle(10, seed=1)
    it = iter(ds)
    [next(it) for _ in range(4)]
    checkpoint = tf.train.Checkpoint(it=it)
    path = checkpoint.write(tmp_path / "c")
    rest = [int(v) for v in it]
    other = iter(ds)
    tf.train.Checkpoint(it=other).read(path)
    assert [int(v) for v in other] == rest


def test_mistakes(tmp_path):
    v = tf.Variable([1.0, 2.0])
    path = tf.train.Checkpoint(v=v).write(tmp_path / "c")
    with pytest.raises(tf.errors.NotFoundError):
        tf.train.Checkpoint(v=v).restore(tmp_path / "none")
    with pytest.raises(ValueError, match="incompatible"):
        tf.train.Checkpoint(v=tf.Variable([1.0])).restore(path)
    with pytest.raises(AssertionError):
        tf.train.Checkpoint(w=v).restore(path).assert_consumed()
    (tmp_path / "t.index").write_bytes(b"\x00\x00\x06\x08\x00\x12\xff")
    with pytest.raises(tf.errors.UnimplementedError, match="TensorFlow's own format"):
        tf.train.Checkpoint(v=v).restore(tmp_path / "t")


def test_model_that_is_built_later(tmp_path):
    keras = pytest.importorskip("keras")
    import numpy as np

    x = np.ones((2, 3), "float32")
    one, two = keras.Sequential([keras.layers.Dense(4)]), keras.Sequential([keras.layers.Dense(4)])
    want = one(x)
    path = tf.train.Checkpoint(model=one).write(tmp_path / "c")
    tf.train.Checkpoint(model=two).read(path)
    np.testing.assert_array_equal(two(x).numpy(), want.numpy())
