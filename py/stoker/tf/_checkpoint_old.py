"""Checkpoints in the form that Stoker wrote before it had TensorFlow's: a JSON index, keys by ways of its own. They are read only, and
into objects that are there."""
import json

import numpy as np

from stoker.tf import errors
from stoker.tf._trackables import STATE, VALUE, assign, children, is_iterator, is_keras, is_variable


class Values:
    """The arrays of such a checkpoint."""

    def __init__(self, prefix, text):
        self.prefix, self.entries = prefix, json.loads(text)["values"]

    def shape(self, key):
        return self.entries[key]["shape"]

    def dtype(self, key):
        kind = self.entries[key]["dtype"]
        return "string" if kind == "bytes" else kind

    def read(self, key):
        from stoker.tf._specs import DType

        entry = self.entries[key]
        with open(self.prefix + ".data-00000-of-00001", "rb") as file:
            file.seek(entry["at"])
            data = file.read(entry["size"])
        if entry["dtype"] == "bytes":
            return data
        return np.frombuffer(data, DType(entry["dtype"]).as_numpy_dtype).reshape(entry["shape"]).copy()


def _keras_parts(x):
    """{name: part} of a layer, model, optimizer or metric, as the keys have them."""
    parts, inner = {}, []
    own = list(getattr(x, "variables", ()))
    if hasattr(x, "_layers"):
        own = list(getattr(x, "_trainable_variables", ())) + list(getattr(x, "_non_trainable_variables", ()))
        names = {id(v): k for k, v in vars(x).items() if not k.startswith("_")}
        inner = [(names.get(id(layer), f"layer-{n}"), layer) for n, layer in enumerate(x._layers)]
        inner += [(f"seed-{n}", g.state) for n, g in enumerate(getattr(x, "_seed_generators", ()))]
    for n, v in enumerate(own):
        name = str(getattr(v, "name", n))
        parts[f"{name}-{n}" if name in parts else name] = v
    return {**parts, **dict(inner)}


class Restored:
    """What such a checkpoint gave to whom."""

    def __init__(self, reader):
        self.reader, self.used, self.missing = reader, set(), []

    def walk(self, x, way, above=()):
        if id(x) in above:
            return
        if is_variable(x) or is_iterator(x):
            key = f"{way}/.ATTRIBUTES/{VALUE if is_variable(x) else STATE}"
            if not self.reader.has_tensor(key):
                self.missing += [way] if is_variable(x) and way != "save_counter" else []
                return
            value = self.reader.get_tensor(key)
            assign(x, value, key) if is_variable(x) else x._restore(value)
            self.used.add(key)
            return
        plain = isinstance(x, (list, tuple, dict))
        if is_keras(x) and not plain and not getattr(x, "built", True):
            raise ValueError(f"{way}: {type(x).__name__} has no variables yet; build it before this checkpoint, of an earlier version of "
                             "Stoker, is restored")
        for name, part in (_keras_parts(x) if is_keras(x) and not plain else children(x)).items():
            self.walk(part, f"{way}/{name}" if way else name, (*above, id(x)))

    def unused(self):
        return [k for k in self.reader.get_variable_to_shape_map() if k not in self.used and not k.startswith("save_counter/")]

    def unmatched(self, root):
        return self.missing


def restore(reader, checkpoint):
    if not isinstance(reader._values, Values):
        raise errors.by_code[12](None, None, f"{reader.prefix}: the checkpoint has names of variables but no graph of objects (TensorFlow 1 "
                                 "wrote such); tf.train.load_checkpoint reads its values", 12)
    restored = Restored(reader)
    root = checkpoint._root
    if root is not None and is_keras(root):
        restored.walk(root, "_root")
    for name, part in checkpoint._checkpoint_parts().items():
        if root is None or not is_keras(root) or name in vars(checkpoint) or name == "save_counter":
            restored.walk(part, name)
    return restored
