"""Does the Keras that is installed ask for more than we have? Logged once, never an error.

What Keras' own TensorFlow backend defines is read from its files, not imported. A function that we lack works as long as
Keras' own one runs over stoker.tf; a function that nobody has shows up here.
"""
import ast
import logging
import os

_log = logging.getLogger("stoker.keras")
_MODULES = ("core", "numpy", "nn", "math", "linalg", "image", "random", "rnn", "tensorboard", "distribution_lib")


def _public(file):
    with open(file, encoding="utf-8") as source:
        tree = ast.parse(source.read())
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


def differences():
    """module -> names that Keras' own file has and ours does not."""
    import importlib.util

    folder = os.path.dirname(importlib.util.find_spec("keras").origin)
    found = {}
    for module in _MODULES:
        theirs = os.path.join(folder, "src", "backend", "tensorflow", module + ".py")
        ours = os.path.join(os.path.dirname(os.path.abspath(__file__)), module + ".py")
        if os.path.exists(theirs) and os.path.exists(ours):
            missing = _public(theirs) - _public(ours)
            if missing:
                found[module] = sorted(missing)
    return found


def check():
    if not _log.isEnabledFor(logging.INFO):
        return
    for module, names in differences().items():
        _log.info("keras.%s: %d functions are Keras' own over stoker.tf: %s", module, len(names), " ".join(names))
