"""Keras' backend on Stoker: what `keras.src.backend.tensorflow` is while stoker/_hook.py is installed.

A module that is not here is Keras' own, running over stoker.tf; a function that one of our modules lacks comes from
Keras' own file of that name (see _own.py). No file of Keras is changed.
"""
from keras.src.backend.tensorflow import _contract
from keras.src.backend.tensorflow import core
from keras.src.backend.tensorflow import distribution_lib
from keras.src.backend.tensorflow import image
from keras.src.backend.tensorflow import linalg
from keras.src.backend.tensorflow import math
from keras.src.backend.tensorflow import nn
from keras.src.backend.tensorflow import numpy
from keras.src.backend.tensorflow import random
from keras.src.backend.tensorflow import tensorboard
from keras.src.backend.tensorflow.core import IS_THREAD_SAFE
from keras.src.backend.tensorflow.core import SUPPORTS_COMPLEX_DTYPES
from keras.src.backend.tensorflow.core import SUPPORTS_RAGGED_TENSORS
from keras.src.backend.tensorflow.core import SUPPORTS_SPARSE_TENSORS
from keras.src.backend.tensorflow.core import Variable
from keras.src.backend.tensorflow.core import cast
from keras.src.backend.tensorflow.core import compute_output_spec
from keras.src.backend.tensorflow.core import cond
from keras.src.backend.tensorflow.core import convert_to_numpy
from keras.src.backend.tensorflow.core import convert_to_tensor
from keras.src.backend.tensorflow.core import device_scope
from keras.src.backend.tensorflow.core import is_tensor
from keras.src.backend.tensorflow.core import name_scope
from keras.src.backend.tensorflow.core import random_seed_dtype
from keras.src.backend.tensorflow.core import scatter
from keras.src.backend.tensorflow.core import shape
from keras.src.backend.tensorflow.core import stop_gradient
from keras.src.backend.tensorflow.core import vectorized_map
from keras.src.backend.tensorflow.rnn import bidirectional_gru
from keras.src.backend.tensorflow.rnn import bidirectional_lstm
from keras.src.backend.tensorflow.rnn import cudnn_ok
from keras.src.backend.tensorflow.rnn import gru
from keras.src.backend.tensorflow.rnn import lstm
from keras.src.backend.tensorflow.rnn import rnn

_contract.check()
