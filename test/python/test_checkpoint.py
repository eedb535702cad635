"""tf.train.Checkpoint and CheckpointManager."""
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
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
    with pytest.raises(tf.errors.DataLossError, match="bad magic number"):
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


def test_damage_is_found(tmp_path):
    path = tf.train.Checkpoint(v=tf.Variable(np.arange(100.0))).write(tmp_path / "c")
    index, data = tmp_path / "c.index", tmp_path / "c.data-00000-of-00001"
    good, bytes_ = index.read_bytes(), data.read_bytes()
    for n in range(0, len(good), 7):
        index.write_bytes(good[:n] + bytes([good[n] ^ 4]) + good[n + 1:])
        v = tf.Variable(np.zeros(100))
        try:
            tf.train.Checkpoint(v=v).read(path).assert_consumed()
        except (tf.errors.OpError, AssertionError):
            continue
        assert v.numpy().tolist() == list(range(100)), n  # bytes of the table that nobody reads
    index.write_bytes(good)
    data.write_bytes(bytes_[:-1] + b"?")
    with pytest.raises(tf.errors.DataLossError, match="checksum"):
        tf.train.Checkpoint(v=tf.Variable(np.zeros(100))).read(path)
    data.write_bytes(bytes_[:-1])
    with pytest.raises(tf.errors.DataLossError, match="ends after"):
        tf.train.Checkpoint(v=tf.Variable(np.zeros(100))).read(path)


def test_many_values_fill_several_blocks(tmp_path):
    names = [tf.Variable(float(n)) for n in range(3000)]
    path = tf.train.Checkpoint(**{f"a_rather_long_name_of_a_variable_and_some_more_of_it_{n}": v for n, v in enumerate(names)}).write(tmp_path / "c")
    from stoker.tf import _bundle

    table = _bundle._Table(pathlib.Path(path + ".index").read_bytes(), path)
    assert len(list(table._entries(table._read(table.index)))) > 1
    assert float(tf.train.load_variable(path, "a_rather_long_name_of_a_variable_and_some_more_of_it_2999/.ATTRIBUTES/VARIABLE_VALUE")) == 2999.0
    assert len(tf.train.list_variables(path)) == 3001


def test_parts_that_come_later(tmp_path):
    saved = tf.train.Checkpoint(m=tf.Module())
    saved.listed = [tf.Variable(1.0)]
    saved.listed.append(tf.Variable(2.0))
    saved.mapped = {"one": saved.listed[0], "two": saved.listed[1]}
    saved.m.inner = tf.Module()
    saved.m.inner.w = [tf.Variable(3.0), {"k": tf.Variable(4.0)}]
    path = saved.save(tmp_path / "c")

    v2, m = tf.Variable(0.0), tf.Module()
    later = tf.train.Checkpoint(m=m)
    later.mapped = {"two": v2}
    status = later.restore(path)
    assert float(v2) == 2.0
    later.listed = []
    v1 = tf.Variable(0.0)
    later.listed.append(v1)
    assert float(v1) == 1.0
    with pytest.raises(AssertionError, match="m/inner"):
        status.assert_consumed()
    m.inner = tf.Module()
    m.inner.w = [tf.Variable(0.0)]
    m.inner.w.append({})
    m.inner.w[1] = {"k": tf.Variable(0.0)}
    assert float(m.inner.w[0]) == 3.0 and float(m.inner.w[1]["k"]) == 4.0
    later.mapped["one"] = v1
    status.assert_consumed()
    v1.assign(7.0)
    later.listed.append(v2)  # nothing is restored twice
    assert float(v1) == 7.0


def test_checkpoints_of_earlier_versions(tmp_path):
    keys = {"v/.ATTRIBUTES/VARIABLE_VALUE": np.array([1.0, 2.0], "f4"), "save_counter/.ATTRIBUTES/VARIABLE_VALUE": np.array(3, "i8")}
    index, data = {}, b""
    for key, value in keys.items():
        index[key] = {"dtype": value.dtype.name, "shape": list(value.shape), "at": len(data), "size": value.nbytes}
        data += value.tobytes()
    (tmp_path / "c.index").write_text(json.dumps({"stoker": 1, "values": index}))
    (tmp_path / "c.data-00000-of-00001").write_bytes(data)
    v = tf.Variable([0.0, 0.0])
    checkpoint = tf.train.Checkpoint(v=v)
    checkpoint.restore(tmp_path / "c").assert_consumed()
    assert v.numpy().tolist() == [1.0, 2.0] and int(checkpoint.save_counter) == 3


PROGRAM = """
    import sys
    import numpy as np, keras, tensorflow as tf

    class Twice(keras.Model):
        def __init__(self):
            super().__init__()
            self.a, self.b = keras.layers.Dense(3), keras.layers.LSTM(2)

        def call(self, x):
            return self.b(self.a(x)[:, None, :])

    def objects(value):
        keras.utils.set_random_seed(int(value))
        m = tf.Module()
        m.l = [tf.Variable([value, value]), tf.Variable(int(value))]
        m.d, m.h, m.inner = {"k": tf.Variable(value > 1), "a/b": tf.Variable(value)}, tf.Variable(tf.constant([value], tf.bfloat16)), tf.Module()
        m.inner.w = m.l[0]
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.BatchNormalization(), keras.layers.Dense(2)])
        model.compile("adam", "mse", metrics=["mae"])
        model.fit(np.ones((8, 3)), np.ones((8, 2)), verbose=0)
        twice = Twice()
        twice(np.ones((1, 3)))
        return dict(m=m, step=tf.Variable(int(value), dtype=tf.int64), model=model, optimizer=model.optimizer, twice=twice)

    def told(o):
        all = [*o["m"].variables, o["step"], *o["model"].variables, *o["optimizer"].variables, *o["twice"].trainable_variables]
        return [round(float(np.sum(np.asarray(v.numpy()).astype("f8"))), 4) for v in all]

    if sys.argv[1] == "write":
        made = objects(2.0)
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(**made), sys.argv[2], 2)
        for _ in range(3):
            manager.save()
        tf.train.Checkpoint(made["model"]).write(sys.argv[2] + "/root")
        print("TOLD", told(made))
    else:
        made = objects(5.0)
        checkpoint = tf.train.Checkpoint(**made)
        status = checkpoint.restore(tf.train.latest_checkpoint(sys.argv[2]))
        status.assert_consumed().assert_existing_objects_matched()
        assert int(checkpoint.save_counter) == 3
        tf.train.Checkpoint(objects(7.0)["model"]).read(sys.argv[2] + "/root").assert_consumed()
        late = keras.Sequential([keras.layers.Dense(4), keras.layers.BatchNormalization(), keras.layers.Dense(2)])
        tf.train.Checkpoint(model=late).restore(tf.train.latest_checkpoint(sys.argv[2])).expect_partial()
        late(np.ones((1, 3)))
        assert [float(np.sum(v.numpy())) for v in late.variables] == [float(np.sum(v.numpy())) for v in made["model"].variables]
        print("TOLD", told(made))
"""


def _run(command, program, *arguments):
    done = subprocess.run([*command, program, *map(str, arguments)], capture_output=True, text=True, env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3"))
    assert done.returncode == 0, done.stderr[-2000:]
    return [line for line in done.stdout.splitlines() if line.startswith("TOLD")]


def test_both_ways_with_tensorflow(tmp_path):
    """Checkpoints of modules, models and optimizers: written by one engine, read by the other. Without TensorFlow by Stoker alone."""
    pytest.importorskip("keras")
    peers = pathlib.Path(os.environ.get("STOKER_PEERS", pathlib.Path(__file__).parents[2] / "build" / "peers")) / "bin" / "python"
    engines = {"stoker": [sys.executable, "-m", "stoker"]} | ({"tensorflow": [str(peers)]} if peers.exists() else {})
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    for name, command in engines.items():
        folder = tmp_path / name
        written = _run(command, program, "write", folder)
        assert sorted(p.name for p in folder.glob("ckpt*.index")) == ["ckpt-2.index", "ckpt-3.index"]
        for reader in engines.values():
            assert _run(reader, program, "read", folder) == written, (name, reader)
