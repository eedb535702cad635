"""Golden models for numbers that are looked up: hashes, and vocabularies of whole numbers."""

import keras
import numpy as np
from keras import layers as L

from model import case
from models_layers import N, floats, trained

WORDS = [3, 5, 900000, -7, 12, 4611686018427387904]


def numbers(r):
    """Small, large and negative ones, known and unknown."""
    x = r.choice([0, 1, -1, 3, 5, -7, 12, 99, 123, 4567, 12345678, 900000, 1234567890123, -98765432109876543,
                  4611686018427387904, -9223372036854775808], (N, 6))
    return x.astype(np.int64)


def looked_up(r, layers, x=None):
    i = L.Input((6,), dtype="int64")
    parts = [layer(i) for layer in layers]
    parts = [L.Flatten()(L.Rescaling(0.1)(p)) for p in parts]
    return trained(keras.Model(i, L.Dense(2)(L.Concatenate()(parts))), numbers(r) if x is None else x, floats(r, 2),
                   optimizer=keras.optimizers.SGD(0.01), covers=[type(layer).__name__ for layer in layers])


@case
def hashing(r):
    return looked_up(r, [L.Hashing(7), L.Hashing(5, mask_value=12), L.Hashing(9, salt=133), L.Hashing(9, salt=[3, 4567]),
                         L.Hashing(4, output_mode="multi_hot"), L.Hashing(4, output_mode="count")])


@case
def integer_lookup(r):
    return looked_up(r, [L.IntegerLookup(vocabulary=WORDS), L.IntegerLookup(vocabulary=WORDS, num_oov_indices=3),
                         L.IntegerLookup(vocabulary=WORDS, mask_token=0),
                         L.IntegerLookup(vocabulary=WORDS, num_oov_indices=4, oov_method="farmhash"),
                         L.IntegerLookup(vocabulary=WORDS, num_oov_indices=4, oov_method="farmhash", salt=[5, 6]),
                         L.IntegerLookup(vocabulary=WORDS, output_mode="multi_hot", mask_token=1),
                         L.IntegerLookup(vocabulary=WORDS, output_mode="count", max_tokens=12, pad_to_max_tokens=True),
                         L.IntegerLookup(vocabulary=WORDS, output_mode="one_hot", num_oov_indices=2)])


@case
def integer_lookup_inverse(r):
    x = r.integers(0, 9, (N, 6)).astype(np.int64)
    return looked_up(r, [L.IntegerLookup(vocabulary=[3, 5, 90, -7, 12], invert=True),
                         L.IntegerLookup(vocabulary=[0, -1, 3, 5, 90, -7], mask_token=0, invert=True)], x)
