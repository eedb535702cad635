"""tf.train.Checkpoint: the state of objects, by the way that leads to it, in files that are Stoker's own.

    ckpt-1.index                   JSON: dtype, shape and place of every value
    ckpt-1.data-00000-of-00001     the bytes
    checkpoint                     which ones there are, as TensorFlow writes it

What does not exist yet when a checkpoint is restored (a model that was not built) gets its values when it is made.
"""
import functools
import glob
import json
import os
import re
import time

import numpy as np

from stoker.tf import errors
from stoker.tf._base import Variable, tensor

_DATA = ".data-00000-of-00001"


# Files.

def _write(prefix, values):
    os.makedirs(os.path.dirname(prefix) or ".", exist_ok=True)
    index, at = {}, 0
    with open(prefix + _DATA + ".tmp", "wb") as file:
        for key, value in values.items():
            data = value if isinstance(value, bytes) else np.ascontiguousarray(value).tobytes()
            kind = "bytes" if isinstance(value, bytes) else value.dtype.name
            index[key] = {"dtype": kind, "shape": [] if isinstance(value, bytes) else list(value.shape), "at": at,
                          "size": len(data)}
            file.write(data)
            at += len(data)
    with open(prefix + ".index.tmp", "w") as file:
        json.dump({"stoker": 1, "values": index}, file)
    os.replace(prefix + _DATA + ".tmp", prefix + _DATA)
    os.replace(prefix + ".index.tmp", prefix + ".index")


class CheckpointReader:
    """The values of a checkpoint, by key."""

    def __init__(self, prefix):
        prefix = os.fspath(prefix)
        if os.path.isdir(prefix):
            prefix = latest_checkpoint(prefix) or prefix
        self.prefix = prefix
        if not os.path.exists(prefix + ".index"):
            raise errors.by_code[5](None, None, f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files "
                                    f"for {prefix}", 5)
        with open(prefix + ".index", "rb") as file:
            text = file.read()
        try:
            self.index = json.loads(text)["values"]
        except (ValueError, KeyError, UnicodeDecodeError):
            raise errors.by_code[12](None, None, f"{prefix}: this checkpoint is in TensorFlow's own format, which is not read; "
                                     "save the weights as .keras or .weights.h5 there", 12) from None

    def has_tensor(self, key):
        return key in self.index

    def get_variable_to_shape_map(self):
        return {k: v["shape"] for k, v in self.index.items()}

    def get_variable_to_dtype_map(self):
        from stoker.tf._specs import DType

        return {k: DType(v["dtype"] if v["dtype"] != "bytes" else "string") for k, v in self.index.items()}

    def get_tensor(self, key):
        if key not in self.index:
            raise errors.by_code[5](None, None, f"Key {key} not found in checkpoint", 5)
        entry = self.index[key]
        with open(self.prefix + _DATA, "rb") as file:
            file.seek(entry["at"])
            data = file.read(entry["size"])
        if entry["dtype"] == "bytes":
            return data
        from stoker.tf._specs import DType

        return np.frombuffer(data, DType(entry["dtype"]).as_numpy_dtype).reshape(entry["shape"]).copy()


def load_checkpoint(ckpt_dir_or_file):
    return CheckpointReader(ckpt_dir_or_file)


def list_variables(ckpt_dir_or_file):
    return sorted((k, s) for k, s in CheckpointReader(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file, name):
    return CheckpointReader(ckpt_dir_or_file).get_tensor(name)


# Objects.

def _is_variable(x):
    return isinstance(x, Variable) or (hasattr(x, "assign") and hasattr(x, "shape") and hasattr(x, "dtype"))


def _is_keras(x):
    return any(c.__module__.startswith("keras.") for c in type(x).__mro__)


def _is_iterator(x):
    return hasattr(x, "_save") and hasattr(x, "_restore")


def _keras_parts(x):
    """(own variables, inner objects) of a layer, model, optimizer or metric."""
    if hasattr(x, "_layers"):
        own = list(getattr(x, "_trainable_variables", ())) + list(getattr(x, "_non_trainable_variables", ()))
        names = {id(v): k for k, v in vars(x).items() if not k.startswith("_")}
        inner = [(names.get(id(layer), f"layer-{n}"), layer) for n, layer in enumerate(x._layers)]
        inner += [(f"seed-{n}", g.state) for n, g in enumerate(getattr(x, "_seed_generators", ()))]
        return own, inner
    return list(getattr(x, "variables", ())), []


def _children(x):
    """Named parts of any other object."""
    if isinstance(x, dict):
        return [(str(k), v) for k, v in x.items()]
    if isinstance(x, (list, tuple)):
        return [(str(n), v) for n, v in enumerate(x)]
    parts = dict(getattr(x, "__dict__", {}))
    if hasattr(x, "_checkpoint_parts"):
        parts = x._checkpoint_parts()
    return [(k, v) for k, v in sorted(parts.items()) if not k.startswith("__")]


def _is_worth(x):
    return (_is_variable(x) or _is_iterator(x) or isinstance(x, (dict, list, tuple)) or _is_keras(x)
            or hasattr(x, "_checkpoint_parts") or hasattr(x, "trainable_variables") or isinstance(x, Checkpoint))


def _walk(root, visit, path="", above=()):
    """visit(key, leaf) for every variable and iterator, by every way that leads there; visit(path, object) is told of Keras
    objects and inner checkpoints, too."""
    if id(root) in above:
        return
    if _is_variable(root) or _is_iterator(root):
        visit(path + "/.ATTRIBUTES/VARIABLE_VALUE" if _is_variable(root) else path + "/.ATTRIBUTES/ITERATOR_STATE", root)
        return
    if not _is_worth(root) and path:
        return
    above = (*above, id(root))
    join = path + "/" if path else ""
    if _is_keras(root) and not isinstance(root, (dict, list, tuple)):
        own, inner = _keras_parts(root)
        visit(path, root)
        used = set()
        for n, v in enumerate(own):
            name = getattr(v, "name", n)
            _walk(v, visit, join + (f"{name}-{n}" if name in used else str(name)), above)
            used.add(name)
        for name, child in inner:
            _walk(child, visit, join + name, above)
        return
    if isinstance(root, Checkpoint):
        visit(path, root)
    for name, child in _children(root):
        _walk(child, visit, join + name, above)


def _array(variable):
    value = variable.numpy()
    return np.asarray(value)


class _Status:
    """What restore gives."""

    def __init__(self, checkpoint, reader, used, missing):
        self._checkpoint, self._reader, self._used, self._missing = checkpoint, reader, used, missing

    def _left(self):
        return [k for k in self._reader.index if k not in self._used]

    def assert_consumed(self):
        if self._left() or self._missing:
            raise AssertionError(f"Some Python objects were not bound to checkpointed values, or the other way round: values "
                                 f"without object {self._left()[:5]}, objects without value {self._missing[:5]}")
        return self

    def assert_existing_objects_matched(self):
        if self._missing:
            raise AssertionError(f"No checkpointed value for {self._missing[:5]}")
        return self

    def assert_nontrivial_match(self):
        if not self._used:
            raise AssertionError("Nothing except the root object matched a checkpointed value.")
        return self

    def expect_partial(self):
        return self

    def initialize_or_restore(self, session=None):
        return None

    run_restore_ops = initialize_or_restore


class _Nothing:
    def __getattr__(self, name):
        return lambda *args, **kwargs: self


class CheckpointOptions:
    def __init__(self, **options):
        self.__dict__.update(options)


class Checkpoint:
    """Objects by name; save() numbers the files, write() does not."""

    def __init__(self, root=None, **kwargs):
        self._root = root
        for name, value in kwargs.items():
            if not _is_worth(value) and not hasattr(value, "__dict__"):
                raise ValueError(f"`Checkpoint` was expecting {name} to be a trackable object (an object derived from "
                                 f"`Trackable`), got {value}.")
            setattr(self, name, value)
        self._names = list(kwargs)
        self._save_counter = None

    def __setattr__(self, name, value):
        """An object that comes after a restore gets its values when it comes."""
        object.__setattr__(self, name, value)
        if self._pending is None or name.startswith("_"):
            return
        path, reader, used = self._pending

        def visit(key, leaf):
            if _is_variable(leaf) and reader.has_tensor(key):
                _assign(leaf, reader.get_tensor(key), key)
                used.add(key)

        _walk(value, visit, f"{path}/{name}" if path else name)

    _pending = None

    def _checkpoint_parts(self):
        parts = {k: v for k, v in vars(self).items() if not k.startswith("_")}
        if self._root is not None:
            if _is_keras(self._root) or isinstance(self._root, (dict, list, tuple)):
                parts["_root"] = self._root
            else:
                parts.update(_children(self._root))
        if self._save_counter is not None:
            parts["save_counter"] = self._save_counter
        return parts

    @property
    def save_counter(self):
        if self._save_counter is None:
            self._save_counter = Variable(0, dtype="int64", trainable=False, name="save_counter")
        return self._save_counter

    def _values(self):
        found = {}

        def visit(key, leaf):
            if _is_variable(leaf):
                found[key] = _array(leaf)
            elif _is_iterator(leaf):
                found[key] = leaf._save()

        _walk(self, visit)
        return found

    def write(self, file_prefix, options=None):
        prefix = os.fspath(file_prefix)
        _write(prefix, self._values())
        return prefix

    def save(self, file_prefix, options=None):
        self.save_counter.assign_add(1)
        prefix = f"{os.fspath(file_prefix)}-{int(self.save_counter)}"
        _write(prefix, self._values())
        update_checkpoint_state(os.path.dirname(prefix) or ".", prefix, [prefix])
        return prefix

    def read(self, save_path, options=None):
        reader = CheckpointReader(save_path)
        used, missing, waiting = set(), [], []
        self.save_counter  # noqa: B018  (it is restored as well)

        def visit(key, leaf):
            if _is_variable(leaf):
                if not reader.has_tensor(key):
                    if not key.startswith("save_counter"):
                        missing.append(key)
                    return
                _assign(leaf, reader.get_tensor(key), key)
                used.add(key)
            elif _is_iterator(leaf):
                if reader.has_tensor(key):
                    leaf._restore(reader.get_tensor(key))
                    used.add(key)
            elif isinstance(leaf, Checkpoint):
                object.__setattr__(leaf, "_pending", (key, reader, used))
            elif not getattr(leaf, "built", True):
                waiting.append((key, leaf))

        _walk(self, visit)
        for path, leaf in waiting:
            _restore_when_built(path, leaf, reader, used)
        return _Status(self, reader, used, missing)

    def restore(self, save_path, options=None):
        if save_path is None:
            return _Nothing()
        return self.read(save_path, options)

    def sync(self):
        pass


Checkpoint.__module__ = "tensorflow.python.checkpoint.checkpoint"


def _assign(variable, value, key):
    if list(variable.shape) != list(value.shape):
        raise ValueError(f"Received incompatible tensor with shape {value.shape} when attempting to restore variable with shape "
                         f"{tuple(variable.shape)} and name {key}.")
    variable.assign(tensor(value) if not _is_keras(variable) else value)


def _restore_when_built(path, leaf, reader, used):
    """A Keras object without variables yet: they are set as soon as build has made them."""
    build = leaf.build
    if getattr(build, "_is_default", False):  # makes nothing of its own; inner layers are waited for by themselves
        return

    @functools.wraps(build)
    def build_and_restore(*args, **kwargs):
        result = build(*args, **kwargs)
        object.__setattr__(leaf, "build", build)

        def visit(key, inner):
            if _is_variable(inner) and reader.has_tensor(key) and key not in used:
                _assign(inner, reader.get_tensor(key), key)
                used.add(key)

        _walk(leaf, visit, path)
        return result

    object.__setattr__(leaf, "build", build_and_restore)


# The file that lists checkpoints.

class CheckpointState:
    def __init__(self, model_checkpoint_path, all_model_checkpoint_paths):
        self.model_checkpoint_path = model_checkpoint_path
        self.all_model_checkpoint_paths = all_model_checkpoint_paths


def update_checkpoint_state(save_dir, model_checkpoint_path, all_model_checkpoint_paths=None, latest_filename=None):
    lines = [f'model_checkpoint_path: "{os.path.basename(model_checkpoint_path)}"']
    lines += [f'all_model_checkpoint_paths: "{os.path.basename(p)}"' for p in all_model_checkpoint_paths or ()]
    path = os.path.join(save_dir, latest_filename or "checkpoint")
    with open(path + ".tmp", "w") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(path + ".tmp", path)


def get_checkpoint_state(checkpoint_dir, latest_filename=None):
    path = os.path.join(checkpoint_dir, latest_filename or "checkpoint")
    if not os.path.exists(path):
        return None
    with open(path) as file:
        text = file.read()

    def whole(name):
        return name if os.path.isabs(name) else os.path.join(checkpoint_dir, name)

    last = re.findall(r'^model_checkpoint_path: "(.*)"$', text, re.M)
    every = re.findall(r'^all_model_checkpoint_paths: "(.*)"$', text, re.M)
    return CheckpointState(whole(last[0]), [whole(p) for p in every]) if last else None


def latest_checkpoint(checkpoint_dir, latest_filename=None):
    state = get_checkpoint_state(os.fspath(checkpoint_dir), latest_filename)
    if state is None or not glob.glob(glob.escape(state.model_checkpoint_path) + ".index"):
        return None
    return state.model_checkpoint_path


def checkpoints_iterator(checkpoint_dir, min_interval_secs=0, timeout=None, timeout_fn=None):
    last, start = None, time.time()
    while True:
        found = latest_checkpoint(checkpoint_dir)
        if found is not None and found != last:
            last, start = found, time.time()
            yield found
            time.sleep(min_interval_secs)
            continue
        if timeout is not None and time.time() - start >= timeout:
            if timeout_fn is None or timeout_fn():
                return
            start = time.time()
        time.sleep(0.1)


class CheckpointManager:
    """Keeps the last checkpoints of a folder."""

    def __init__(self, checkpoint, directory, max_to_keep, keep_checkpoint_every_n_hours=None, checkpoint_name="ckpt",
                 step_counter=None, checkpoint_interval=None, init_fn=None):
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        self._checkpoint, self._directory, self._most = checkpoint, os.fspath(directory), max_to_keep
        self._name, self._step, self._interval, self._init = checkpoint_name, step_counter, checkpoint_interval, init_fn
        self._saved_at = None
        os.makedirs(self._directory, exist_ok=True)
        state = get_checkpoint_state(self._directory)
        self._paths = [p for p in state.all_model_checkpoint_paths if os.path.exists(p + ".index")] if state else []

    directory = property(lambda self: self._directory)
    checkpoint = property(lambda self: self._checkpoint)
    checkpoints = property(lambda self: list(self._paths))
    checkpoint_interval = property(lambda self: self._interval)
    latest_checkpoint = property(lambda self: self._paths[-1] if self._paths else None)

    def save(self, checkpoint_number=None, check_interval=True, options=None):
        if self._interval is not None and check_interval and self._saved_at is not None:
            if int(self._step) - self._saved_at < self._interval:
                return None
        if self._step is not None:
            self._saved_at = int(self._step)
        if checkpoint_number is None:
            path = self._checkpoint.save(os.path.join(self._directory, self._name))
        else:
            path = self._checkpoint.write(os.path.join(self._directory, f"{self._name}-{int(checkpoint_number)}"))
        if path in self._paths:
            self._paths.remove(path)
        self._paths.append(path)
        while self._most is not None and len(self._paths) > self._most:
            old = self._paths.pop(0)
            for file in glob.glob(glob.escape(old) + ".*"):
                os.remove(file)
        update_checkpoint_state(self._directory, path, self._paths)
        return path

    def restore_or_initialize(self):
        if self.latest_checkpoint is not None:
            self._checkpoint.restore(self.latest_checkpoint)
            return self.latest_checkpoint
        if self._init is not None:
            self._init()
        return None

    def sync(self):
        pass
