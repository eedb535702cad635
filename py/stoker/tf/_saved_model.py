"""tf.saved_model for Keras models, in a folder of our own: the model as Keras writes it, and a note what the folder is.

    folder/
        model.keras           weights and configuration
        stoker.json           {"format": "stoker saved model", "version": 1, "signature": [[name, shape, dtype] ...]}

TensorFlow's own SavedModel holds graphs that only TensorFlow can run: such folders are neither read nor written.
"""
import json
import os

from stoker.tf import nest
from stoker.tf._base import tensor

NOTE = "stoker.json"


class SaveOptions:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)


LoadOptions = SaveOptions


def save(obj, export_dir, signatures=None, options=None):
    import keras

    if not isinstance(obj, keras.Model):
        raise NotImplementedError(f"tf.saved_model.save takes Keras models here, got {type(obj).__name__}: a SavedModel of other objects "
                                  "holds TensorFlow graphs, which Stoker does not write. tf.train.Checkpoint saves variables.")
    if signatures is not None:
        raise NotImplementedError("signatures of a SavedModel are TensorFlow graphs, which Stoker does not write; without them a Keras "
                                  "model is saved with its own call")
    if not obj.built:
        raise ValueError("the model has no weights yet; call it on data, or build it, before it is saved")
    folder = os.fspath(export_dir)
    os.makedirs(folder, exist_ok=True)
    obj.save(os.path.join(folder, "model.keras"))
    inputs = [[x.name, list(x.shape), x.dtype] for x in nest.flatten(getattr(obj, "inputs", None) or [])]
    with open(os.path.join(folder, NOTE), "w") as file:
        json.dump({"format": "stoker saved model", "version": 1, "signature": inputs}, file)


def contains_saved_model(export_dir):
    names = (NOTE, "saved_model.pb", "saved_model.pbtxt")
    return any(os.path.exists(os.path.join(os.fspath(export_dir), name)) for name in names)


def load(export_dir, tags=None, options=None):
    folder = os.fspath(export_dir)
    if not os.path.exists(os.path.join(folder, NOTE)):
        if contains_saved_model(folder):
            raise NotImplementedError(f"{folder} is a SavedModel of TensorFlow: it holds graphs that only TensorFlow runs. Save the Keras "
                                      "model there as .keras and load that file.")
        raise OSError(f"SavedModel file does not exist at: {folder}/{{saved_model.pbtxt|saved_model.pb}}")
    import keras

    with open(os.path.join(folder, NOTE)) as file:
        note = json.load(file)
    return Loaded(keras.models.load_model(os.path.join(folder, "model.keras")), note["signature"])


class Loaded:
    """What tf.saved_model.load gives: callable, with the model's variables and its one signature."""

    def __init__(self, model, inputs):
        self._model, self._inputs = model, inputs
        self.signatures = {"serving_default": self._signature}

    def __call__(self, *args, **kwargs):
        return self._model(*args, **kwargs)

    serve = __call__
    variables = property(lambda self: [v.value for v in self._model.variables])
    trainable_variables = property(lambda self: [v.value for v in self._model.trainable_variables])

    def _signature(self, *args, **kwargs):
        """Arguments by position or by the names of the model's inputs; results by position: output_0 ..."""
        given = list(args) or [kwargs[name] for name, _, _ in self._inputs if name in kwargs] or list(kwargs.values())
        given = [tensor(value) for value in given]
        made = self._model(given[0] if len(given) == 1 else given, training=False)
        return {f"output_{n}": value for n, value in enumerate(nest.flatten(made))}
