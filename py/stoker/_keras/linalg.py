"""keras.ops' linalg functions on Stoker; those that are missing here are Keras' own, over stoker.tf."""
import numpy as _np

from keras.src.backend.tensorflow import _own
from keras.src.backend.tensorflow.core import convert_to_tensor
from stoker import tf as _tf

__getattr__ = _own.fallback("linalg", globals())


def lstsq(a, b, rcond=None):
    """The shortest x of those for which |a x - b| is smallest; singular values below rcond times the largest count as zero."""
    a, b = convert_to_tensor(a), convert_to_tensor(b)
    if a.shape.rank != 2 or b.shape.rank not in (1, 2):
        raise TypeError(f"`lstsq` takes a matrix and one or two-dimensional `b`, got shapes {tuple(a.shape)} and {tuple(b.shape)}")
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"Leading dimensions of input arrays must match, got shapes {tuple(a.shape)} and {tuple(b.shape)}")
    eps = float(_np.finfo(a.dtype.as_numpy_dtype).eps)
    rcond = eps * max(a.shape) if rcond is None else eps if rcond < 0 else rcond
    s, u, v = _tf.linalg.svd(a)
    used = s >= rcond * s[0]
    inverse = _tf.where(used, 1.0 / _tf.where(used, s, _tf.ones_like(s)), _tf.zeros_like(s))
    columns = b if b.shape.rank == 2 else b[:, None]
    x = v @ (inverse[:, None] * (_tf.transpose(u) @ columns))
    return x if b.shape.rank == 2 else x[:, 0]
