"""The files of a saved model.

    folder/
        stoker.json              {"format": "stoker saved model", "version": 2 ...}: what the folder is
        functions.stoker         a line "STOKER FUNCTIONS version bytes sha256", then JSON: objects, functions, signatures
        variables/variables.*    values of the variables, as TensorFlow's checkpoints have them (tf.train.load_checkpoint reads them)
        constants/constants.*    arrays that functions use, likewise
        assets/                  files of tf.saved_model.Asset

Version 1 is a Keras model alone (model.keras); it is still read. TensorFlow's own SavedModel is neither read nor written.
"""
import hashlib
import json
import os

import numpy as np

from stoker import _stoker
from stoker.tf import errors
from stoker.tf._base import DType, TensorShape, tensor
from stoker.tf._specs import TensorSpec

NOTE, FUNCTIONS = "stoker.json", "functions.stoker"
VARIABLES, CONSTANTS = os.path.join("variables", "variables"), os.path.join("constants", "constants")
FORMAT, VERSION = "stoker saved model", 2
_LEAD = b"STOKER FUNCTIONS"


def damaged(folder, why):
    errors.raise_(15, f"{folder}: the saved model is damaged: {why}")


def write_note(folder, **more):
    with open(os.path.join(folder, NOTE), "w") as file:
        json.dump({"format": FORMAT, **more, "about": "Written by Stoker. tf.saved_model.load of Stoker reads this folder; TensorFlow does not "
                   "(it can read variables/ with tf.train.load_checkpoint)."}, file)


def write_functions(folder, told):
    told["operations"] = {name: _stoker.ops[name].spec for name in sorted(_names_of(told))}
    told["dtypes"] = list(_stoker.dtypes)
    text = json.dumps(told, separators=(",", ":")).encode()
    path = os.path.join(folder, FUNCTIONS)
    with open(path + ".tmp", "wb") as file:
        file.write(_LEAD + b" %d %d %s\n" % (VERSION, len(text), hashlib.sha256(text).hexdigest().encode()) + text)
    os.replace(path + ".tmp", path)


def _names_of(part):
    """Names of the operations that functions call."""
    if isinstance(part, dict):
        return set().union(*[_names_of(v) for v in part.values()]) if part else set()
    if isinstance(part, list) and len(part) == 6 and part[0] == "op":
        return {part[4][0]}
    return set().union(*[_names_of(v) for v in part]) if isinstance(part, list) and part else set()


def read_functions(folder):
    path = os.path.join(folder, FUNCTIONS)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        damaged(folder, f"{FUNCTIONS} cannot be read ({error.strerror})")
    head, _, text = data.partition(b"\n")
    words = head[len(_LEAD):].split()
    if not head.startswith(_LEAD) or len(words) != 3 or not words[0].isdigit() or not words[1].isdigit():
        damaged(folder, f"{FUNCTIONS} is no file of functions")
    if int(words[0]) != VERSION:
        errors.raise_(12, f"{folder} was written by another version of Stoker (form {int(words[0])}; this one reads {VERSION})")
    if len(text) != int(words[1]):
        damaged(folder, f"{FUNCTIONS} has {len(text)} bytes where {int(words[1])} were written")
    if hashlib.sha256(text).hexdigest().encode() != words[2]:
        damaged(folder, f"the checksum of {FUNCTIONS} does not fit")
    told = json.loads(text)
    for name, spec in told["operations"].items():
        if name not in _stoker.ops or _stoker.ops[name].spec != spec:
            errors.raise_(12, f"{folder} was written by another version of Stoker: its operation '{name}' is not the one of this version")
    if told["dtypes"] != list(_stoker.dtypes):
        errors.raise_(12, f"{folder} was written by another version of Stoker, which has other types of elements")
    return told


class Constants:
    """Arrays by key: stored once each, read when they are asked for."""

    def __init__(self):
        self.arrays, self._known = {}, {}
        self.memo, self.names = {}, {}  # functions that were described already, and what they are called

    def keep(self, array):
        what = (array.dtype.str, array.shape, hashlib.sha256(array.tobytes() if array.dtype != object else repr(array.tolist()).encode()).digest())
        if what not in self._known:
            self._known[what] = key = f"c{len(self.arrays)}"
            self.arrays[key] = array
        return self._known[what]


class Reader:
    """Constants of a folder, as tensors; each is read once."""

    def __init__(self, folder):
        from stoker.tf._checkpoint import CheckpointReader

        path = os.path.join(folder, CONSTANTS)
        self._reader = CheckpointReader(path) if os.path.exists(path + ".index") else None
        self._known, self._folder = {}, folder

    def __call__(self, key, dtype):
        if (key, dtype) not in self._known:
            if self._reader is None or not self._reader.has_tensor(key):
                damaged(self._folder, f"constant '{key}' is missing")
            array = self._reader.get_tensor(key)
            from stoker.tf._base import eager_scope

            with eager_scope():
                self._known[key, dtype] = tensor(array, dtype)
        return self._known[key, dtype]


# Structures of arguments and results.

def pack(value, leaf):
    """A structure as JSON; leaf(x) describes what is none."""
    if isinstance(value, dict):
        return {"dict": [[k, pack(v, leaf)] for k, v in value.items()]}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {"named": [type(value).__name__, list(value._fields), [pack(v, leaf) for v in value]]}
    if isinstance(value, (list, tuple)):
        return {"tuple" if isinstance(value, tuple) else "list": [pack(v, leaf) for v in value]}
    return leaf(value)


def unpack(told, leaf):
    if "dict" in told:
        return {k: unpack(v, leaf) for k, v in told["dict"]}
    if "named" in told:
        import collections

        name, fields, values = told["named"]
        return collections.namedtuple(name, fields)(*[unpack(v, leaf) for v in values])
    if "tuple" in told:
        return tuple(unpack(v, leaf) for v in told["tuple"])
    if "list" in told:
        return [unpack(v, leaf) for v in told["list"]]
    return leaf(told)


class Opaque:
    """In the place of an argument that a file cannot hold: equal to nothing."""


def pack_argument(x):
    if isinstance(x, TensorSpec):
        return {"spec": [None if x.shape.rank is None else x.shape.as_list(), x.dtype.name, x.name]}
    if x is None or isinstance(x, (bool, int, float, str)):
        return {"value": x}
    return {"opaque": str(type(x).__name__)}


def unpack_argument(told):
    if "spec" in told:
        shape, dtype, name = told["spec"]
        return TensorSpec(TensorShape(shape), DType(dtype), name)
    return told["value"] if "value" in told else Opaque()


def write_values(prefix, arrays):
    from stoker.tf import _bundle

    _bundle.write(prefix, {k: np.asarray(a) if not isinstance(a, bytes) else a for k, a in arrays.items()})


