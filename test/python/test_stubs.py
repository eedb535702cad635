"""Type stubs say what the package has: the generator finds nothing to change, and every stub is Python."""
import ast
import pathlib
import subprocess
import sys

import stoker.tf as tf

TOP = pathlib.Path(__file__).resolve().parents[2]


def test_stubs_are_what_the_package_has():
    done = subprocess.run([sys.executable, str(TOP / "tools" / "make-stubs"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stubs_are_python_and_name_what_exists():
    for path in (TOP / "py" / "stoker" / "tf").glob("*.pyi"):
        module = tf if path.stem == "__init__" else getattr(tf, path.stem)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                assert hasattr(module, node.name), (path.name, node.name)


def test_arguments_of_operations_are_named():
    text = (TOP / "py" / "stoker" / "tf" / "__init__.pyi").read_text()
    assert "def matmul(a: Any, b: Any, transpose_a: Any = ..." in text and "class Variable:" in text and "def __enter__(self" in text
    assert (TOP / "py" / "stoker" / "py.typed").exists()
