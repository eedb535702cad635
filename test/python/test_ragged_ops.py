"""Operations of dense tensors on ragged ones: what TensorFlow gives for the same rows."""
import numpy as np
import pytest

import stoker.tf as tf

ROWS = [[3.0, 1.0, 4.0, 1.0], [], [5.0, 9.0, 2.0], [6.0], []]


@pytest.fixture
def ragged():
    return tf.ragged.constant(ROWS)


def test_elementwise(ragged):
    assert tf.add(ragged, 3.0).to_list() == [[x + 3 for x in row] for row in ROWS]
    assert tf.maximum(ragged, ragged * 0.5).to_list() == ROWS
    column = tf.constant([[1.0], [2.0], [3.0], [4.0], [5.0]])
    assert tf.multiply(ragged, column).to_list() == [[x * (n + 1) for x in row] for n, row in enumerate(ROWS)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="same lengths"):
        tf.add(ragged, tf.ragged.constant([[1.0], [], [], [], []]))


def test_reductions(ragged):
    assert float(tf.reduce_sum(ragged)) == 31
    np.testing.assert_allclose(tf.reduce_sum(ragged, axis=1), [9, 0, 16, 6, 0])
    np.testing.assert_allclose(tf.reduce_mean(ragged, axis=1)[:1], [2.25])
    np.testing.assert_allclose(tf.reduce_max(ragged, axis=0), [6, 9, 4, 1])


def test_rows(ragged):
    assert tf.reverse(ragged, axis=[1]).to_list() == [row[::-1] for row in ROWS]
    assert tf.tile(ragged, [1, 2]).to_list() == [row * 2 for row in ROWS]
    assert tf.sort(ragged).to_list() == [sorted(row) for row in ROWS]
    assert tf.map_fn(tf.math.square, ragged).to_list() == [[x * x for x in row] for row in ROWS]
    assert tf.where(ragged > 2.0, ragged, 0.0).to_list() == [[x if x > 2 else 0 for x in row] for row in ROWS]
    assert int(tf.rank(ragged)) == 2 and int(tf.size(ragged)) == 8
    with pytest.raises(ValueError, match="RaggedTensor"):
        tf.matmul(ragged, ragged)


def test_functions_know_the_rows():
    twice = tf.function(lambda x: tf.concat([x, tf.reverse(x, [1])], 1))
    assert twice(tf.ragged.constant([[1, 2], [3]])).to_list() == [[1, 2, 2, 1], [3, 3]]
    assert twice(tf.ragged.constant([[1], [2, 3]])).to_list() == [[1, 1], [2, 3, 3, 2]]
