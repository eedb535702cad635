"""data_referee.py under Stoker against what TensorFlow printed (data_referee.expected.txt)."""
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
DIFFERENT = {  # name: why
    "padded_batches": "an element larger than its padded shape is InvalidArgumentError here, DataLossError there",
}


def _read(lines):
    return dict(line.split(" = ", 1) for line in lines if " = " in line)


def _expected():
    with open(os.path.join(HERE, "data_referee.expected.txt")) as file:
        return _read(file.read().splitlines())


@pytest.fixture(scope="module")
def printed():
    done = subprocess.run([sys.executable, "-m", "stoker", os.path.join(HERE, "data_referee.py")], capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return _read(done.stdout.splitlines())


@pytest.mark.parametrize("name", sorted(_expected()))
def test_same_as_tensorflow(printed, name):
    if name in DIFFERENT:
        pytest.skip(DIFFERENT[name])
    assert printed[name] == _expected()[name]
