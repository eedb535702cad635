"""keras.ops' random functions on Stoker; those that are missing here are Keras' own, over stoker.tf."""
from keras.src.backend.tensorflow import _own

__getattr__ = _own.fallback("random", globals())
from keras.src.random.seed_generator import SeedGenerator  # noqa: E402,F401
from keras.src.random.seed_generator import draw_seed  # noqa: E402,F401
from keras.src.random.seed_generator import make_default_seed  # noqa: E402,F401
