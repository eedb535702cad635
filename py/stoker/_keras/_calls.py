"""model(x) outside of any function: after two calls alike, the third is a program.

Only for models whose layers are all Keras' own: code of a user may print, keep tensors, call NumPy, and would do so once
instead of every time. A model that draws other numbers than dropout's in training, one that adds losses, and one whose outputs
carry masks is called as it stands. So is every call while a tape records, inside of a function, or with anything but tensors.
"""
import weakref

import numpy as np
from keras.src.backend.common.stateless_scope import in_stateless_scope

from stoker import _stoker
from stoker.tf import _function

_PATIENCE = 2  # calls alike before a program is made
_Eager = _stoker.EagerTensor
_PLAIN = "keras.src."


class _Unfit(Exception):
    """The outputs cannot come from a program."""


class Calls:
    """The programs of one model, by training flag."""

    def __init__(self, model):
        self._model = weakref.ref(model)
        self._state, self._fit, self._functions, self._seen = None, False, {}, {}

    def find(self, training, x):
        """The function that stands for model(x), or None."""
        if self._state is None or not _unchanged(self._state):
            model = self._model()
            self._state = _state_of(model)
            self._fit = self._state is not None and _is_plain(model)
            self._draws = self._fit and _draws(model)
            self._functions, self._seen = {}, {}
        if not self._fit:
            return None
        if training and self._draws:
            return None
        key = training, x.dtype, tuple(x.shape), _stoker.device_key()
        seen = self._seen.get(key, 0)
        if seen < _PATIENCE:
            self._seen[key] = seen + 1
            return None
        if training not in self._functions:
            self._functions[training] = self._make(training)
        return self._functions[training]

    def _make(self, training):
        reference = self._model

        def call(x):
            made = reference()._call_plainly(x, training)
            if not isinstance(made, _stoker.Tensor) and not isinstance(made, (list, tuple, dict)):
                raise _Unfit
            if _has_mask(made):
                raise _Unfit
            return made

        return _function.Function(call, name="model", autograph=False)

    def give_up(self):
        self._fit = False


def _has_mask(made):
    leaves = made.values() if isinstance(made, dict) else made if isinstance(made, (list, tuple)) else [made]
    return any(getattr(leaf, "_keras_mask", None) is not None for leaf in leaves)


def _layers(model):
    return list(model._flatten_layers(include_self=True, recursive=True))


def _marks(layer):
    """What changes when a layer gets another layer inside, is frozen or quantised."""
    return layer._trainable, len(layer._trainable_variables), len(layer._non_trainable_variables), len(layer._layers)


def _state_of(model):
    """The layers and their marks; None while something is not built."""
    layers = _layers(model)
    return [(layer, _marks(layer)) for layer in layers] if all(layer.built for layer in layers) else None


def _unchanged(state):
    return all(_marks(layer) == marks for layer, marks in state)


def _is_plain(model):
    for layer in _layers(model):
        kind = type(layer)
        if not kind.__module__.startswith(_PLAIN) or kind.__name__ in ("Lambda", "TFSMLayer", "TorchModuleWrapper", "JaxLayer"):
            return False
        if getattr(layer, "activity_regularizer", None) is not None or getattr(layer, "stateful", False):
            return False
        if "preprocessing" in kind.__module__:
            return False
    return True


def _draws(model):
    """Does a layer draw numbers in training that are others in a program? Dropout's are the same."""
    for layer in _layers(model):
        kind = type(layer)
        same = kind.__name__ == "Dropout" or kind.__name__.startswith("Spatial") or ".rnn." in kind.__module__
        if not same and hasattr(layer, "seed_generator") and layer.seed_generator is not None:
            return True
    return False


def call(model, args, kwargs):
    """(True, outputs) when a program stood in for the call, else (False, None)."""
    if len(args) != 1 or _stoker.get_trace() is not None or _stoker.tapes_active() or in_stateless_scope():
        return False, None
    x = args[0]
    if type(x) is not _Eager:
        if type(x) is not np.ndarray or x.dtype.kind not in "fiub":
            return False, None
    elif x.dtype.name == "string" or getattr(x, "_keras_mask", None) is not None:
        return False, None
    training = kwargs.get("training")
    if len(kwargs) > ("training" in kwargs) or training not in (None, True, False) or _function.functions_run_eagerly():
        return False, None
    calls = model.__dict__.get("_stoker_calls")
    if calls is None:
        calls = Calls(model)
        object.__setattr__(model, "_stoker_calls", calls)
    function = calls.find(training, x)
    if function is None:
        return False, None
    try:
        made = function(x)
    except Exception:  # the plain call says what is wrong, or works
        calls.give_up()
        return False, None
    if function.why_eager() is not None:
        calls.give_up()
    return True, made
