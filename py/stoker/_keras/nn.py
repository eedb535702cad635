"""keras.ops' nn functions on Stoker; those that are missing here are Keras' own, over stoker.tf."""
from keras.src.backend.tensorflow import _own

__getattr__ = _own.fallback("nn", globals())
