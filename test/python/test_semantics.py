"""TensorFlow's answers to some 150 questions, when the file with them is beside the work tree, and the most telling ones always."""
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import stoker.tf as tf

SHARED = os.environ.get("STOKER_SHARED") or os.path.join(os.path.dirname(__file__), "..", "..", "..", "shared")

# What differs on purpose, by the beginning of the line.
DIFFERENT = {
    "concat bad": "other words about the same mistake",
    "t[[0,1]]": "TensorFlow takes a list for coordinates; ours says what an index may be",
    "t[0]=1": "assignment is refused in both; ours by the operator, not by a missing method",
    "Variable assign dtype": "assign gives the variable itself, not a type of its own",
    "unknown tf.sym": "ours names what is near",
    "complex": "no complex tensors",
    "grad gather type": "gradients are dense; tf.IndexedSlices exists for those who make one",
    "map None dim mult": "shapes are concrete, so this works",
    "map np.sin": "NumPy functions of recorded tensors work",
    "py_function exception": "other words before the traceback",
    "fn None dim": "shapes are concrete, so this works",
    "shape change in while": "the line inside of the loop is named, not the loop's",
    "Tensor mro": "fewer classes",
    "tensorflow.python.framework.tensor ": "the variable's module",
    "read_file": "the order of the words",
    "ds repr": "class names of sources",
    "gen exception": "where the text is cut",
    "shuffle seeded": "orders are our own", "no reshuffle": "orders are our own", "set_seed shuffle": "orders are our own",
}


def lines(text):
    text = re.sub(r"\{\{function_node [^}]*\}\} ?", "", text)
    text = re.sub(r'File "[^"]*tf-semantics.py"', 'File "tf-semantics.py"', text)
    noise = ("Cause:", "Match ", "lambda ", "To silence", "WARNING")
    return [line[:130] for line in text.splitlines() if line.strip() and not line.startswith(noise)]


@pytest.mark.skipif(not os.path.exists(os.path.join(SHARED, "tf-semantics.py")), reason="no file of answers here")
def test_answers_of_tensorflow():
    done = subprocess.run([sys.executable, "-m", "stoker", "tf-semantics.py"], cwd=SHARED, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    with open(os.path.join(SHARED, "tf-semantics.expected.txt")) as file:
        wanted = lines(file.read())
    ours = lines(done.stdout)
    different = [*DIFFERENT, *(["device "] if os.environ.get("STOKER_DEVICE") else [])]  # the answers are the processor's
    assert len(ours) == len(wanted)
    bad = [(a, b) for a, b in zip(ours, wanted) if a != b and not any(a.startswith(name) for name in different)]
    assert not bad, "\n".join(f"ours {a}\ntf   {b}" for a, b in bad)


@pytest.mark.parametrize("make, dtype", [
    (lambda: tf.constant([1.0, np.float64(2)]), "float32"), (lambda: tf.constant([np.float64(2), 1.0]), "float64"),
    (lambda: tf.constant([np.int64(2), 1]), "int32"), (lambda: tf.constant(2**40), "int64"),
    (lambda: tf.constant(1) / tf.constant(2), "float64"), (lambda: tf.constant([200], tf.uint8) / 255, "float32"),
    (lambda: tf.constant(2) ** 3, "int32"), (lambda: tf.matmul([[1]], [[2]]), "int32"),
    (lambda: np.ones(2) + tf.constant(1.0), "float32"), (lambda: tf.argmax([1, 2]), "int64"),
    (lambda: tf.constant([1, 2]) == tf.constant([1, 2, 3]), "bool")])
def test_dtypes(make, dtype):
    assert make().dtype.name == dtype


@pytest.mark.parametrize("value, dtype, wanted", [
    (300.0, "uint8", 44), (float("nan"), "int32", -2**31), (1e20, "int32", -2**31), ([1.9, -1.9], "int32", [1, -1])])
def test_casts(value, dtype, wanted):
    assert tf.cast(value, dtype).numpy().tolist() == wanted


@pytest.mark.parametrize("wrong, error, text", [
    (lambda: tf.constant(1) + tf.constant(1.0), tf.errors.InvalidArgumentError, "expected to be a int32 tensor"),
    (lambda: tf.constant([1], tf.uint8) / 255.0, TypeError, "must have the same dtype"),
    (lambda: tf.constant(1) // 0, tf.errors.InvalidArgumentError, "division by zero"),
    (lambda: tf.pow(2, -1), tf.errors.InvalidArgumentError, "negative integer powers"),
    (lambda: tf.gather([1.0, 2.0], [5]), tf.errors.InvalidArgumentError, r"indices\[0\] = 5 is not in \[0, 2\)"),
    (lambda: tf.matmul(tf.ones((2, 3)), tf.ones((2, 3))), tf.errors.InvalidArgumentError, "Matrix size-incompatible"),
    (lambda: tf.ones(2) + tf.ones(3), tf.errors.InvalidArgumentError, r"Incompatible shapes: \[2\] vs. \[3\]"),
    (lambda: tf.reshape(tf.ones(6), (4, 2)), tf.errors.InvalidArgumentError, "Input to reshape is a tensor with 6 values")])
def test_mistakes(wrong, error, text):
    with pytest.raises(error, match=text):
        wrong()


def test_range_of_a_program():
    @tf.function
    def f(n):
        s = 0
        for i in tf.range(n):
            if i > 5:
                break
            s += i
        return s

    assert f(tf.constant(4)).numpy() == 6 and f(tf.constant(100)).numpy() == 15


def test_unknown_names_say_what_is_near():
    with pytest.raises(AttributeError, match="reduce_sum"):
        tf.reduce_summ
    assert not hasattr(tf, "no_such_thing")


@pytest.mark.skipif(not os.path.exists(os.path.join(SHARED, "tf-symbols.tsv")), reason="no list of symbols here")
def test_the_most_used_names_are_there():
    with open(os.path.join(SHARED, "tf-symbols.tsv")) as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    names = list(dict.fromkeys(row[3] or row[1] for row in rows if row[4] == "in"))[:200]
    missing = []
    for name in names:
        value = tf
        for part in name.split(".")[1:]:
            value = getattr(value, part, None)
        if value is None and name != "tf.newaxis":
            missing.append(name)
    assert not missing


def test_wav_files_go_there_and_back():
    sound = np.linspace(-1, 1, 40, dtype="float32").reshape(20, 2)
    back = tf.audio.decode_wav(tf.audio.encode_wav(sound, 8000))
    assert back.sample_rate.numpy() == 8000 and np.allclose(back.audio.numpy(), sound, atol=1e-4)
    assert tf.audio.decode_wav(tf.audio.encode_wav(sound, 8000), 1, 25).audio.shape == (25, 1)
