"""The programs of *_referee.py under Stoker against what TensorFlow printed (*.expected.txt)."""
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = ("data_referee", "io_referee", "names_referee", "rare_referee", "guide_referee", "autograph_referee", "function_referee", "saved_referee")
DIFFERENT = {  # name: why
    "padded_batches": "an element larger than its padded shape is InvalidArgumentError here, DataLossError there",
}
BEYOND = {  # TensorFlow refuses these programs, or names another error; here they give
    "break_while": "((int32:8, int32:16), (int32:1, int32:0))",
    "for_break_else": "(float32:3.0)",
    "return_in_loop": "(int32:2, int32:-1)",
    "return_in_while": "(int32:4, int32:2, int32:4)",
    "nested_loops": "int32:243",
    "nonlocal_in_branch": "int32:6",
    "dataset_return": "(int64:3, int64:-1)",
    "assert_ok": "(int32:2, 'InvalidArgument True')",
    "super_call": "(int32:2, int32:-1)",
    "list_append_tensor": "'TypeError'",
    "struct_mismatch": "'ValueError'",
    "recursion": "'RecursionError'",
    "zip_enumerate": "(int32:23, int32:9)",
    "enumerate_tensor": "int32:8",
    "ternary_nested": "(int32:1, int32:0, int32:-1)",
    "walrus": "(int32:6, int32:1)",
    "int_tensor_cond": "(int32:1, int32:0)",
    "py_func_in_loop": "float32:12.0",
    "match_stmt": "(int32:2, int32:0)",
}


def _read(lines):
    return dict(line.split(" = ", 1) for line in lines if " = " in line)


def _expected():
    found = {}
    for name in SCRIPTS:
        with open(os.path.join(HERE, name + ".expected.txt")) as file:
            found |= _read(file.read().splitlines())
    return found


@pytest.fixture(scope="module")
def printed():
    found = {}
    for name in SCRIPTS:
        done = subprocess.run([sys.executable, "-m", "stoker", os.path.join(HERE, name + ".py")], capture_output=True, text=True,
                              timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        found |= _read(done.stdout.splitlines())
    return found


@pytest.mark.parametrize("name", sorted(_expected()))
def test_same_as_tensorflow(printed, name):
    if name in DIFFERENT:
        pytest.skip(DIFFERENT[name])
    assert printed[name] == BEYOND.get(name, _expected()[name])
