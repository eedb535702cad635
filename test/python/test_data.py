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


def test_function_that_assigns_keeps_its_state():
    v = tf.Variable(0, dtype=tf.int64)

    def count(x):
        v.assign_add(1)
        return x * 10 + v

    ds = D.range(4).map(count)
    assert values(ds) == [1, 12, 23, 34]
    assert int(v) == 4


def test_strings_are_moved_and_compared():
    s = tf.constant(["b", "a", "c"])
    assert tf.gather(s, [2, 0]).numpy().tolist() == [b"c", b"b"]
    assert tf.where([True, False, True], s, "x").numpy().tolist() == [b"b", b"x", b"c"]
    assert tf.boolean_mask(s, [False, True, True]).numpy().tolist() == [b"a", b"c"]
    assert tf.not_equal(s, "a").numpy().tolist() == [True, False, True]
    assert (s == tf.constant([["a"], ["c"]])).numpy().tolist() == [[False, True, False], [False, False, True]]


def test_set_shape_takes_a_tuple():
    x = tf.zeros((2, 3))
    x.set_shape((2, None))
    with pytest.raises(ValueError):
        x.set_shape((3, 3))


def test_bill_names_functions_that_need_the_lock():
    from stoker.tf.data import _function

    D.range(3).map(lambda v: tf.numpy_function(lambda a: a, [v], tf.int64))
    title, why, _ = _function.bill()[-1]
    assert "test_data.py" in title and "numpy_function" in why


def test_walks_are_counted_by_the_shuffle():
    ds = D.range(100).shuffle(100, seed=5)
    one, two = [[int(v) for v in ds.take(5)] for _ in range(2)]
    assert one != two  # another dataset of the same shuffle goes on with it
    again = D.range(100).shuffle(100, seed=5)
    assert [int(v) for v in again.take(5)] == one


def test_sizes_that_depend_on_values():
    ds = D.range(10).map(lambda x: tf.fill([tf.cast(x, tf.int32)], x))
    assert ds.element_spec.shape.as_list() == [None]
    assert [len(v) for v in values(ds)] == list(range(10))
    padded = values(ds.padded_batch(5, padded_shapes=(None,)))
    assert padded[0][4] == [4, 4, 4, 4] and padded[1][0] == [5] * 5 + [0] * 4


def test_missing_files_are_told_of_when_they_are_read():
    for ds in (tf.data.TextLineDataset("/nowhere"), tf.data.TFRecordDataset("/nowhere"),
               tf.data.experimental.CsvDataset("/nowhere", [tf.int32])):
        with pytest.raises(tf.errors.NotFoundError, match="/nowhere"):
            list(ds)


def test_empty_strings_keep_their_shape():
    assert tf.zeros([0, 1], tf.string).shape.as_list() == [0, 1]
    assert tf.concat([tf.zeros([0, 1], tf.string), [["a"]]], 0).numpy().tolist() == [[b"a"]]
