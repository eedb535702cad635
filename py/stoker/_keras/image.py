"""keras.ops' functions for pictures on Stoker; those that are missing here are Keras' own, over stoker.tf."""
import numpy as _np
from keras.src import backend
from stoker.tf._base import o as _o

from keras.src.backend.tensorflow import _own
from keras.src.backend.tensorflow.core import convert_to_tensor


def __getattr__(name):
    """Keras' own functions call our version of those that are here."""
    _own.replace("image", gaussian_blur=gaussian_blur)
    return _fallback(name)


_fallback = _own.fallback("image", globals())


def _bell(size, sigma, dtype):
    x = convert_to_tensor(_np.arange(size) - (size - 1) / 2, dtype)
    bell = _o.exp(-0.5 * _o.square(x / sigma))
    return bell / _o.reduce_sum(bell)


def gaussian_blur(images, kernel_size=(3, 3), sigma=(1.0, 1.0), data_format=None):
    images = convert_to_tensor(images)
    data_format = backend.standardize_data_format(data_format)
    dtype, rank = images.dtype.name, len(images.shape)
    if rank not in (3, 4):
        raise ValueError("Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). Received input with "
                         f"shape: images.shape={images.shape}")
    sizes = [int(s) for s in kernel_size]
    sigma = convert_to_tensor(sigma, dtype)
    x = _o.expand_dims(images, 0) if rank == 3 else images
    if data_format == "channels_first":
        x = _o.transpose(x, [0, 2, 3, 1])
    kernel = _o.expand_dims(_bell(sizes[1], sigma[1], dtype), 1) * _o.expand_dims(_bell(sizes[0], sigma[0], dtype), 0)
    channels = x.shape.as_list()[-1]
    kernel = _o.tile(_o.reshape(kernel, [sizes[0], sizes[1], 1, 1]), [1, 1, channels, 1])
    x = _o.depthwise_conv(x, kernel, [1, 1], "SAME", [1, 1])
    if data_format == "channels_first":
        x = _o.transpose(x, [0, 3, 1, 2])
    return _o.squeeze(x, axis=[0]) if rank == 3 else x
