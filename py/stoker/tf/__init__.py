"""TensorFlow's names on Stoker's engine. Nothing is loaded before it is used; see _rooms.py and _symbols.py."""
from stoker import _hook as _hook
from stoker import _stoker as _stoker

_hook.install()
from stoker.tf import _rooms as _rooms  # noqa: E402

__stoker__ = True
__version__ = _hook.TENSORFLOW_VERSION
__git_version__ = "stoker " + _stoker.version
globals().update(_stoker.dtypes)
double, half = float64, float16  # noqa: F821
newaxis = None

_FILES = ("config", "data", "debugging", "distribute", "errors", "image", "io", "linalg", "lookup", "math", "nest", "nn",
          "random", "ragged", "sparse", "bitwise", "strings", "summary", "train", "audio")
_KERAS = {"losses": "losses", "metrics": "metrics", "optimizers": "optimizers", "initializers": "initializers"}
_lazy_getattr, _lazy_dir = _rooms.lazy("", globals())


def __getattr__(name):
    import importlib

    if name in _FILES:
        try:
            return importlib.import_module("stoker.tf." + name)
        except ModuleNotFoundError as error:
            if error.name != "stoker.tf." + name:
                raise
    if name == "keras":
        value = _keras()
    elif name in _KERAS:
        value = importlib.import_module("keras._tf_keras.keras." + _KERAS[name])
    else:
        return _lazy_getattr(name)
    globals()[name] = value
    return value


def _keras():
    import importlib

    try:
        return importlib.import_module("keras._tf_keras.keras")
    except ModuleNotFoundError as error:
        if error.name != "keras":
            raise
        raise ModuleNotFoundError("No module named 'keras': tf.keras is the Keras package running on Stoker. pip install keras",
                                  name="keras") from None


def __dir__():
    return sorted(set(_lazy_dir()) | set(_FILES) | set(_KERAS) | {"keras"})
