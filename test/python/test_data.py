"""tf.data: sources, transforms, specifications, iteration."""
import numpy as np
import pytest

import stoker.tf as tf

D = tf.data.Dataset


def values(dataset):
    return [v.tolist() if hasattr(v, "tolist") else v for v in dataset.as_numpy_iterator()]


def test_slices_map_shuffle_batch_prefetch():
    x = np.arange(20, dtype="float32").reshape(10, 2)
    ds = D.from_tensor_slices((x, np.arange(10))).map(lambda a, b: (a * 2, b + 1)).shuffle(10, seed=3).batch(4).prefetch(1)
    assert ds.element_spec == (tf.TensorSpec((None, 2), tf.float32), tf.TensorSpec((None,), tf.int64))
    assert len(ds) == 3
    orders = []
    for _ in range(2):
        seen = [(a.numpy(), b.numpy()) for a, b in ds]
        assert [len(b) for _, b in seen] == [4, 4, 2]
        order = np.concatenate([b for _, b in seen])
        rows = np.concatenate([a for a, _ in seen])
        assert sorted(order) == list(range(1, 11))
        np.testing.assert_array_equal(rows, 2 * x[order - 1])
        orders.append(order.tolist())
    assert orders[0] != orders[1]


def test_batch_then_map_handles_the_remainder():
    ds = D.range(10).batch(4).map(lambda v: v * 2)
    assert ds.element_spec == tf.TensorSpec((None,), tf.int64)
    assert values(ds) == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18]]


def test_lengths_and_cardinality():
    assert int(D.range(5).cardinality()) == 5
    with pytest.raises(TypeError, match="infinite"):
        len(D.range(5).repeat())
    with pytest.raises(TypeError, match="unknown"):
        len(D.range(5).filter(lambda x: x > 2))


def test_iterator_protocol():
    it = iter(D.range(2))
    assert int(next(it)) == 0 and int(it.get_next()) == 1
    with pytest.raises(tf.errors.OutOfRangeError):
        it.get_next()
    assert not bool(it.get_next_as_optional().has_value())
