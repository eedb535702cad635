"""Whole epochs inside of the engine: the recorded step runs over a stream of batches without Python in between.

Python looks in ten times a second, for the progress bar and for signals. `refusal` says when that is not possible;
then the steps are taken one by one. Which way was taken and why stands in `trainer.stoker_way`.
"""

import time

import numpy as np
from keras.src import callbacks as callbacks_module
from keras.src import tree
from keras.src import utils
from keras.src.trainers.data_adapters import array_data_adapter, array_slicing

from stoker import _host_books, _stoker
from stoker import tf as _tf
from stoker.tf import _function
from stoker.tf import random as _random
from stoker.tf.data import _structure

ways = {}  # of the last model, for reports
LOOK = 0.1  # seconds between two looks of Python


def _per_batch(callback, mode):
    """Does this callback want to hear of every batch?"""
    if type(callback) in (callbacks_module.History, callbacks_module.ProgbarLogger):
        return False
    if getattr(callback, "save_freq", None) == "epoch" and isinstance(
            callback, (callbacks_module.ModelCheckpoint, callbacks_module.BackupAndRestore)):
        return False
    hooks = [f"on_{mode}_batch_begin", f"on_{mode}_batch_end"]
    if mode == "train":
        hooks += ["on_batch_begin", "on_batch_end"]
    return not all(utils.is_default(getattr(callback, hook)) for hook in hooks)


def refusal(trainer, batches, callbacks, mode, function):
    """None, or why the steps have to be taken one by one."""
    if not hasattr(function, "one_step"):
        return f"the model brings a {mode} function of its own"
    if trainer.run_eagerly:
        return "the model runs eagerly (run_eagerly)"
    if trainer._distribute_strategy is not None:
        return "a distribution strategy is used"
    for callback in callbacks.callbacks:
        if _per_batch(callback, mode):
            return f"the callback {type(callback).__name__} looks at every batch"
    if source_of(batches) is None:
        return f"batches come from Python ({type(batches.data_adapter).__name__})"
    return None


class _Arrays:
    """Rows of arrays, as a stream of batches."""

    def __init__(self, adapter, sliceables):
        self.structure = adapter._inputs
        flat = tree.flatten(sliceables)
        self.places = [n for n, s in enumerate(flat) if s is not None]
        self.flat = [None] * len(flat)
        arrays = [np.ascontiguousarray(flat[n].array) for n in self.places]
        seed = _random._program_seed(None)[0] if adapter._shuffle else 0
        self._given = arrays, bool(adapter._shuffle), seed
        self.epochs = self.in_batches(adapter._batch_size)
        self.samples = adapter._num_samples
        self.count = 0

    def in_batches(self, rows):
        arrays, shuffle, seed = self._given
        return _stoker.Epochs(arrays, rows, shuffle, seed)

    def begin(self):
        self.epochs.begin(self.count)
        self.count += 1

    def pack(self, parts):
        flat = list(self.flat)
        for n, part in zip(self.places, parts):
            flat[n] = part
        return tree.pack_sequence_as(self.structure, flat)


class _Dataset:
    """A tf.data.Dataset, as the stream it is."""

    samples = in_batches = None

    def __init__(self, dataset):
        self.dataset = dataset
        self.epochs = _stoker.Epochs(dataset._pipe)

    def begin(self):
        self.epochs.begin(self.dataset._next_epoch())

    def pack(self, parts):
        return _structure.pack(self.dataset.element_spec, parts)


def source_of(batches):
    """The stream of an EpochIterator's batches, made once; None when they come from Python."""
    if not hasattr(batches, "_stoker_source"):
        batches._stoker_source = _make_source(batches.data_adapter)
    return batches._stoker_source


def _make_source(adapter):
    if isinstance(adapter, array_data_adapter.ArrayDataAdapter):
        if adapter._shuffle not in (True, False):
            return None
        sliceables = array_slicing.convert_to_sliceable(adapter._inputs, target_backend="numpy")
        for s in tree.flatten(sliceables):
            array = getattr(s, "array", None)
            if isinstance(array, _tf.Tensor) and array.dtype.name != "string":
                array = s.array = array.numpy()
            if s is not None and (not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub" or not array.ndim):
                return None
        return _Arrays(adapter, sliceables)
    dataset = getattr(adapter, "_dataset", None)
    if dataset is not None and getattr(dataset, "_pipe", None) is not None and _is_plain(dataset):
        return _Dataset(dataset)
    return None


def _is_plain(dataset):
    """Are all parts of an element dense tensors of numbers?"""
    return all(isinstance(s, _tf.TensorSpec) and s.dtype.name != "string"
               for s in _structure.leaves(dataset.element_spec))


class Steps:
    """The programs of one step function, by the shapes of batches."""

    def __init__(self, function):
        self.function = function  # tf.function over one batch
        self.made = {}

    def program_for(self, source):
        """(concrete, leaf numbers) for the batch at hand; None when no program can hold the step."""
        parts = source.epochs.peek()
        if parts is None:
            return "end"
        key = _stoker.device_key(), tuple((p.dtype.name, tuple(p.shape.as_list())) for p in parts)
        known = self.made.get(key)
        if known is None:
            call = _function._Call((source.pack(parts),), {})
            concrete = self.function._traces.get(call.key) or self.function._trace(call)
            if not isinstance(concrete, _function.Concrete):
                return None
            place = {id(p): n for n, p in enumerate(parts)}
            known = self.made[key] = concrete, [place[id(t)] for t in call.tensors]
        return known


def run(source, steps, most, results, look):
    """Up to `most` steps (0: all there are). Gives (how it ended, steps, last results of the step).

    look(steps so far, last results) is called ten times a second; true ends the run. results(concrete) may give
    tensors that collect what the steps give.
    """
    done, last = 0, None
    while True:
        found = steps.program_for(source)
        if found == "end":
            return "data", done, last
        if found is None:
            return "eager", done, last
        concrete, leaf = found
        given = [None] * len(leaf)
        kept = results(concrete) if results is not None else None
        end, done, values = source.epochs.run(concrete._program, leaf, given, most, LOOK, kept)
        if values is not None and done:
            last = concrete.pack(values)
        if end in ("data", "steps"):
            return end, done, last
        if look is not None and look(done, last):
            return "stopped", done, last


def epoch(trainer, batches, function, progress):
    """One pass over the batches. Gives the last results, or None when the steps have to be taken one by one."""
    source = source_of(batches)
    if not hasattr(function, "stoker_steps"):
        function.stoker_steps = Steps(function.one_step.function)
    most = batches.steps_per_epoch or 0
    if not most or not getattr(batches, "_stoker_open", False):
        source.begin()
    begun = time.perf_counter()
    end, done, last = run(source, function.stoker_steps, most, None, progress)
    if end == "eager":
        return None
    if _host_books.on:
        _note_epoch(trainer, source, function, done, time.perf_counter() - begun)
    if end == "data" and most and done < most:
        batches._interrupted_warning()
    if batches._num_batches is None and end == "data":
        batches._num_batches = done
    batches._stoker_open = bool(most) and end == "steps"
    if batches._stoker_open:
        source.epochs.again()
    else:
        source.epochs.end()
    return (last if last is not None else {}), done


def _note_epoch(trainer, source, function, steps, seconds):
    """For the doctor, who runs the longest of them once more, bit by bit."""
    row = _host_books.fits.setdefault((id(source), id(function)), {
        "source": source, "steps": function.stoker_steps, "model": trainer.name, "epochs": 0, "count": 0, "seconds": 0.0})
    row["epochs"] += 1
    row["count"] += steps
    row["seconds"] += seconds


def predict(trainer, batches, function, progress):
    """All outputs as arrays, or None when the steps have to be taken one by one."""
    source = source_of(batches)
    if source.samples is None or batches.steps_per_epoch:
        return None
    if not hasattr(function, "stoker_steps"):
        function.stoker_steps = Steps(function.one_step.function)
    collected = {}

    def results(concrete):
        outputs = concrete._source[3]
        if "tensors" not in collected:
            rows = [[source.samples] + y.shape.as_list()[1:] for y in outputs]
            with _tf.device("/device:CPU:0"):  # rows come down as they are made
                collected["tensors"] = [_tf.zeros(r, y.dtype) for r, y in zip(rows, outputs)]
            collected["concrete"] = concrete
        return collected["tensors"]

    source.begin()
    first = function.stoker_steps.program_for(source)
    if not isinstance(first, tuple) or not _by_rows(first[0], source.epochs.peek()):
        source.epochs.end()
        return None
    end, done, _ = run(source, function.stoker_steps, 0, results, progress)
    source.epochs.end()
    if end != "data" or not done:
        return None
    return collected["concrete"].pack(collected["tensors"])


def _by_rows(concrete, parts):
    """Has every output one row per row of the batch?"""
    rows = parts[0].shape.as_list()[0]
    return all(y.shape.rank and y.shape.as_list()[0] == rows and y.dtype.name != "string" for y in concrete._source[3])


def why_not(function):
    return function.one_step.function.why_eager() or "the batches end where no program could be made for them"


def note(trainer, mode, reason):
    """Remembers, for the profile, how the epochs of this mode are run."""
    way = "whole epochs in the engine" if reason is None else f"step by step: {reason}"
    if not hasattr(trainer, "stoker_way"):
        object.__setattr__(trainer, "stoker_way", {})
    trainer.stoker_way[mode] = ways[mode] = way
