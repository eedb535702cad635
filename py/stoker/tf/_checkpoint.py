"""tf.train.Checkpoint: the state of objects in TensorFlow's own files, read and written.

    ckpt-1.index                   where the bytes of each value are, and the graph of objects (_bundle.py, _trackables.py)
    ckpt-1.data-00000-of-00001     the bytes
    checkpoint                     which ones there are

Checkpoints whose index is JSON are those of earlier versions of Stoker; they are still read (_checkpoint_old.py).
"""
import glob
import os
import re
import time

from stoker.tf import errors
from stoker.tf._base import Variable
from stoker.tf._trackables import GRAPH_KEY, ObjectGraph, Restoration, arrived, children, collect, is_keras, is_trackable
from stoker.tf._wrappers import wrapped


# Files.

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
        if text.startswith(b'{"stoker"'):
            from stoker.tf._checkpoint_old import Values
        else:
            from stoker.tf._bundle import Bundle as Values
        self._values = Values(prefix, text)

    def has_tensor(self, key):
        return key in self._values.entries

    def get_variable_to_shape_map(self):
        return {k: self._values.shape(k) for k in self._values.entries}

    def get_variable_to_dtype_map(self):
        from stoker.tf._specs import DType

        return {k: DType(self._values.dtype(k)) for k in self._values.entries}

    def get_tensor(self, key):
        if key not in self._values.entries:
            raise errors.by_code[5](None, None, f"Key {key} not found in checkpoint", 5)
        return self._values.read(key)

    def debug_string(self):
        return "\n".join(f"{k} (DT_{self._values.dtype(k).upper()}) {self._values.shape(k)}" for k in self._values.entries).encode()


def load_checkpoint(ckpt_dir_or_file):
    return CheckpointReader(ckpt_dir_or_file)


def list_variables(ckpt_dir_or_file):
    return sorted((k, s) for k, s in CheckpointReader(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file, name):
    return CheckpointReader(ckpt_dir_or_file).get_tensor(name)


class CheckpointLoadStatus:
    """What restore gives. It looks at the objects when it is asked: what came later counts."""

    def __init__(self, checkpoint, restoration):
        self._checkpoint, self._restoration = checkpoint, restoration

    def assert_consumed(self):
        left, missing = self._restoration.unused(), self._restoration.unmatched(self._checkpoint)
        if left or missing:
            raise AssertionError(f"Some Python objects were not bound to checkpointed values, or the other way round: values "
                                 f"without object {left[:5]}, objects without value {missing[:5]}")
        return self

    def assert_existing_objects_matched(self):
        missing = self._restoration.unmatched(self._checkpoint)
        if missing:
            raise AssertionError(f"No checkpointed value for {missing[:5]}")
        return self

    def assert_nontrivial_match(self):
        if not self._restoration.used:
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
            if not is_trackable(value) and not hasattr(value, "__dict__"):
                raise ValueError(f"`Checkpoint` was expecting {name} to be a trackable object (an object derived from "
                                 f"`Trackable`), got {value}.")
            setattr(self, name, value)
        self._save_counter = None

    def __setattr__(self, name, value):
        """An object that comes after a restore gets its values when it comes."""
        if not name.startswith("_"):
            value = arrived(self, name, wrapped(value))
        object.__setattr__(self, name, value)

    def _checkpoint_parts(self):
        parts = {}
        if self._root is not None:  # its parts stand beside those that have names here
            parts.update(children(self._root))
        parts.update({k: v for k, v in vars(self).items() if not k.startswith("_") and (is_trackable(v) or is_keras(v))})
        if self._save_counter is not None:
            parts["save_counter"] = self._save_counter
        return parts

    @property
    def built(self):
        """A root that was not built yet is waited for."""
        return getattr(self._root, "built", True)

    @property
    def save_counter(self):
        if self._save_counter is None:
            self._save_counter = Variable(0, dtype="int64", trainable=False, name="save_counter")
        return self._save_counter

    def write(self, file_prefix, options=None):
        from stoker.tf import _bundle

        prefix = os.fspath(file_prefix)
        _bundle.write(prefix, collect(self))
        return prefix

    def save(self, file_prefix, options=None):
        self.save_counter.assign_add(1)
        prefix = self.write(f"{os.fspath(file_prefix)}-{int(self.save_counter)}")
        update_checkpoint_state(os.path.dirname(prefix) or ".", prefix, [prefix])
        return prefix

    def read(self, save_path, options=None):
        reader = CheckpointReader(save_path)
        if not reader.has_tensor(GRAPH_KEY):
            from stoker.tf import _checkpoint_old

            return CheckpointLoadStatus(self, _checkpoint_old.restore(reader, self))
        restoration = Restoration(reader, ObjectGraph.FromString(reader.get_tensor(GRAPH_KEY)).nodes)
        restoration.bind(self, 0)
        if self._root is not None:
            restoration.bind(self._root, 0)
        return CheckpointLoadStatus(self, restoration)

    def restore(self, save_path, options=None):
        if save_path is None:
            return _Nothing()
        self.save_counter  # noqa: B018  (it is restored as well)
        return self.read(save_path, options)

    def sync(self):
        pass


Checkpoint.__module__ = "tensorflow.python.checkpoint.checkpoint"


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
