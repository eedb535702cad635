"""keras.random on Stoker. Initial values come from TensorFlow's generator, bit by bit, through Keras' own functions over
stoker.tf; dropout draws on the engine, from the same seed the same bits in eager calls and in programs."""
from keras.src.random.seed_generator import SeedGenerator  # noqa: F401
from keras.src.random.seed_generator import draw_seed
from keras.src.random.seed_generator import make_default_seed  # noqa: F401
from stoker.tf import random as _random
from stoker.tf._base import o as _o

from keras.src.backend.tensorflow import _own
from keras.src.backend.tensorflow.core import convert_to_tensor

__getattr__ = _own.fallback("random", globals())


def dropout(inputs, rate, noise_shape=None, seed=None):
    inputs = convert_to_tensor(inputs)
    if rate == 1.0:
        return _o.zeros_like(inputs)
    if rate == 0.0:
        return inputs
    sizes = inputs.shape.as_list()
    if noise_shape is not None:
        noise_shape = [size if given is None else int(given) for given, size in zip(noise_shape, sizes)]
    counter = _random._counter(draw_seed(seed))
    return _o.dropout(inputs, counter, float(rate), noise_shape, 0, 0)
