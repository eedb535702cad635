"""tf.saved_model: what cannot be saved is refused with its place, damaged folders with a reason; saved_referee.py has the rest."""
import json
import os
import random
import re

import numpy as np
import pytest

import stoker.tf as tf
from stoker import _stoker

keras = pytest.importorskip("keras")


class Net(tf.Module):
    """A branch, a loop, a gradient, constants of sizes: something of everything that a file holds."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        self.steps = tf.Variable(0)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def __call__(self, x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum((x @ self.w) ** 2)
        (dw,) = tape.gradient(y, [self.w])
        if tf.reduce_sum(x) > 0:
            x = x + tf.cast(tf.range(tf.shape(x)[0]), tf.float32)[:, None]
        for _ in tf.range(3):
            x = x * 2
        self.steps.assign_add(1)
        return x @ dw


def test_keras_there_and_back(tmp_path):
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


class _Scaled(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.scale = tf.Variable(2.0)
        self.dense = tf.keras.layers.Dense(2)

    def call(self, inputs):
        return self.dense(inputs["a"]) * self.scale + inputs["b"]

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def rescale(self, to):
        self.scale.assign(to)


def test_subclassed_models_keep_their_functions_and_attributes(tmp_path):
    model, x = _Scaled(), {"a": tf.constant([[1.0, 2.0]]), "b": tf.constant([[3.0]])}
    want = model(x).numpy()
    tf.saved_model.save(model, str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    np.testing.assert_array_equal(loaded.signatures["serving_default"](inputs=x["a"], inputs_1=x["b"])["output_0"], want)
    loaded.rescale(1.0)
    assert float(loaded.scale) == 1.0 and float(model.scale) == 2.0
    np.testing.assert_allclose(loaded(x), (want - 3) / 2 + 3, rtol=1e-6)


def test_folders_that_are_none_of_ours(tmp_path):
    with pytest.raises(OSError, match="does not exist"):
        tf.saved_model.load(str(tmp_path / "nothing"))
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(NotImplementedError, match=".keras"):
        tf.saved_model.load(os.fspath(tmp_path))


def test_python_code_is_refused_with_its_place(tmp_path):
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def calls_python(x):
        return tf.numpy_function(lambda a: a + 1, [x], tf.TensorSpec([2], tf.float32))

    module.calls_python = calls_python
    with pytest.raises(NotImplementedError, match=r"calls_python .*PyFunc.*test_saved_model.py, line \d+"):
        tf.saved_model.save(module, str(tmp_path / "m"))
    assert not (tmp_path / "m").exists()


def test_other_code_for_other_sizes_is_refused(tmp_path):
    module = tf.Module()
    module.unrolls = tf.function(lambda x: sum(x[i] for i in range(x.shape[0])), input_signature=[tf.TensorSpec([None], tf.float32)])
    with pytest.raises(NotImplementedError, match="unrolls .* other sizes .*fixed sizes"):
        tf.saved_model.save(module, str(tmp_path / "m"))
    module.unrolls = tf.function(module.unrolls.python_function, input_signature=[tf.TensorSpec([4], tf.float32)])
    tf.saved_model.save(module, str(tmp_path / "m"))
    assert float(tf.saved_model.load(str(tmp_path / "m")).unrolls(tf.ones([4]))) == 4


def test_strings_are_refused(tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda s: tf.strings.length(s), input_signature=[tf.TensorSpec([None], tf.string)])
    with pytest.raises(NotImplementedError, match="strings"):
        tf.saved_model.save(module, str(tmp_path / "m"))


def test_sizes_that_round(tmp_path):
    """A formula is checked at sizes that no small number divides."""
    module = tf.Module()
    module.halves = tf.function(lambda x: (x[: x.shape[0] // 2], x[: -(-x.shape[0] // 3)], tf.zeros([x.shape[0] ** 2])),
                                input_signature=[tf.TensorSpec([None], tf.float32)])
    tf.saved_model.save(module, str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    for n in (1, 2, 3, 4, 5, 7, 9, 31):
        assert [y.shape.as_list() for y in loaded.halves(tf.ones([n]))] == [[n // 2], [-(-n // 3)], [n * n]]


def test_sizes_of_what_was_computed(tmp_path):
    """2 * ((n + 1) // 2) is no formula of n: it is one of the size of x[::2]."""
    module = tf.Module()
    module.twice = tf.function(lambda x: tf.repeat(x[::2], 2) + tf.ones([2 * x[::2].shape[0]]), input_signature=[tf.TensorSpec([None], tf.float32)])
    tf.saved_model.save(module, str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    for n in (1, 4, 7):
        x = tf.range(n, dtype=tf.float32)
        np.testing.assert_array_equal(loaded.twice(x), module.twice(x))


def test_prints_and_assertions_are_saved(tmp_path, capfd):
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def tells(x):
        tf.debugging.assert_positive(x, message="it must be more than nothing")
        tf.print("it is", x, output_stream="file://" + str(tmp_path / "out.txt"))
        return x

    module.tells = tells
    tf.saved_model.save(module, str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    loaded.tells(tf.constant(3.0))
    assert (tmp_path / "out.txt").read_text() == "it is 3\n"
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than nothing"):
        loaded.tells(tf.constant(-3.0))


def test_variables_are_a_checkpoint(tmp_path):
    tf.saved_model.save(Net(), str(tmp_path / "m"))
    reader = tf.train.load_checkpoint(str(tmp_path / "m" / "variables" / "variables"))
    np.testing.assert_array_equal(reader.get_tensor("w"), [[1, 2], [3, 4]])


def test_run_eagerly(tmp_path):
    net = Net()
    x = tf.ones([3, 2])
    want = net(x)
    tf.saved_model.save(net, str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    tf.config.run_functions_eagerly(True)
    try:
        np.testing.assert_allclose(loaded(x), want)
    finally:
        tf.config.run_functions_eagerly(False)


# Damaged folders.

def _broken(folder):
    """Loads and calls; what is damaged must be said, in an error of TensorFlow's."""
    try:
        loaded = tf.saved_model.load(str(folder))
        loaded(tf.ones([3, 2]))
        return None
    except (tf.errors.OpError, OSError, ValueError, TypeError, NotImplementedError, AttributeError, KeyError, IndexError) as error:
        return error


def test_damaged_files(tmp_path):
    tf.saved_model.save(Net(), str(tmp_path))
    path = tmp_path / "functions.stoker"
    good = path.read_bytes()
    for data, why in ((b"", "no file of functions"), (good[:-7], "bytes where"), (good[:-1] + b"!", "checksum"),
                      (good.replace(b"FUNCTIONS 2", b"FUNCTIONS 9", 1), "another version"), (b"PK\3\4" + good, "no file of functions")):
        path.write_bytes(data)
        with pytest.raises(tf.errors.OpError, match=why):
            tf.saved_model.load(str(tmp_path))
    path.unlink()
    with pytest.raises(tf.errors.DataLossError, match="cannot be read"):
        tf.saved_model.load(str(tmp_path))
    path.write_bytes(good)
    assert _broken(tmp_path) is None
    (tmp_path / "stoker.json").write_text("[]")
    with pytest.raises(tf.errors.DataLossError, match="stoker.json"):
        tf.saved_model.load(str(tmp_path))
    (tmp_path / "stoker.json").write_text('{"format": "stoker saved model", "version": 99}')
    with pytest.raises(tf.errors.UnimplementedError, match="form 99"):
        tf.saved_model.load(str(tmp_path))


def _places(part, found):
    """All (container, key) of a JSON value."""
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in items:
        found.append((part, key))
        _places(value, found)
    return found


def test_nonsense_with_a_good_checksum(tmp_path):
    """What a damaged or malicious file says is looked at before it reaches the engine: errors, never a crash."""
    from stoker.tf import _saved_file

    tf.saved_model.save(Net(), str(tmp_path))
    text = (tmp_path / "functions.stoker").read_bytes().partition(b"\n")[2]
    chance, said = random.Random(7), 0
    for n in range(int(os.environ.get("STOKER_TEST_CALLS", 400))):
        told = json.loads(text)
        for _ in range(chance.choice((1, 1, 1, 3))):
            part, key = chance.choice(_places(told, []))
            kind = chance.randrange(4)
            if kind == 0 and isinstance(part, list):
                del part[key]
            elif kind == 1 and isinstance(part, list):
                part.insert(key, part[key])
            elif kind == 2:
                part[key] = chance.choice((-1, 0, 1, 2, 7, 1 << 40, -(1 << 63), None, "", "matmul", "conv", [], {}, [1, 2, 3], 0.5))
            else:
                others = [(p, k) for p, k in _places(told, [])]
                other, k = chance.choice(others)
                part[key] = json.loads(json.dumps(other[k]))
        try:
            operations = {name: _stoker.ops[name].spec for name in told["operations"]}
            _saved_file.write_functions(str(tmp_path), {**json.loads(json.dumps(told)), "operations": operations})
        except Exception:  # not even JSON: nothing that a file could say
            continue
        said += _broken(tmp_path) is not None
    assert said > 50


def test_rows_by_name_are_checked():
    one = tf.constant([1.0, 2.0])
    np.testing.assert_array_equal(_stoker.run_row("add", [one, one], [], []), [2, 4])
    for name, inputs, ints, reals in (("add", [one], [], []), ("add", [one, one], [1], []), ("reshape", [one], [3, 2], []),
                                      ("reshape", [one], [-2], []), ("cast", [one], [99], []), ("concat", [one], [2, 0], []),
                                      ("nothing", [], [], []), ("_cut", [one], [1, 0, 2], []), ("_einsum", [one], [1, 3, 0, 1, 2], []),
                                      ("leaky_relu", [one], [], []), ("add", [one, tf.constant(1)], [], []), ("conv", [one, one], [0] * 9, [])):
        with pytest.raises((ValueError, tf.errors.OpError), match=re.compile("fit|no operation|conv|Conv", re.I)):
            _stoker.run_row(name, inputs, ints, reals)
