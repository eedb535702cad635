"""data_referee.py, io_referee.py and names_referee.py under Stoker against what TensorFlow printed (*.expected.txt)."""
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = ("data_referee", "io_referee", "names_referee")
DIFFERENT = {  # name: why
    "padded_batches": "an element larger than its padded shape is InvalidArgumentError here, DataLossError there",
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
    assert printed[name] == _expected()[name]
