"""Functions that few programs use, held to NumPy or to a sum over all cases."""
import itertools

import numpy as np
import pytest

import stoker.tf as tf


def test_bessel_functions_and_their_gradients():
    x = np.array([-40.0, -30, -2, 0.5, 8, 29.9, 30.1, 90])
    assert np.allclose(tf.math.bessel_i0(x), np.i0(x), rtol=1e-14)
    steps = np.linspace(0, np.pi, 20001)  # I_n(x) is the mean of e^(x cos t) cos(n t)
    one = [np.mean(np.exp(abs(v) * (np.cos(steps[:-1] + steps[1] / 2) - 1)) * np.cos(steps[:-1] + steps[1] / 2)) for v in x]
    assert np.allclose(tf.math.bessel_i1e(x), np.sign(x) * one, rtol=1e-12)
    v = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(v)
        y = tf.math.bessel_i0(v)
    assert np.allclose(tape.gradient(y, v), tf.math.bessel_i1(v), rtol=1e-12)


def test_beam_search_finds_the_most_probable_labels():
    logits = np.random.default_rng(3).normal(size=(4, 2, 3)).astype("float32")
    chance = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    decoded, scores = tf.nn.ctc_beam_search_decoder(logits, [4, 3], beam_width=50, top_paths=2)
    for row, length in enumerate([4, 3]):
        total = {}
        for path in itertools.product(range(3), repeat=length):  # every path, folded
            labels = tuple(k for k, _ in itertools.groupby(path) if k != 2)
            total[labels] = total.get(labels, 0.0) + np.prod([chance[t, row, c] for t, c in enumerate(path)])
        best = sorted(total, key=total.get)[::-1][:2]
        for n in range(2):
            dense = tf.sparse.to_dense(decoded[n], default_value=-1).numpy()[row]
            assert tuple(dense[dense >= 0]) == best[n]
            assert np.isclose(scores[row, n], np.log(total[best[n]]), rtol=1e-5)
    with pytest.raises(ValueError, match="3 paths of a beam of 2"):
        tf.nn.ctc_beam_search_decoder(logits, [4, 3], beam_width=2, top_paths=3)


def test_gathers_with_ragged_places_along_an_inner_axis():
    x = np.arange(60.0).reshape(3, 4, 5)
    places = [[2], [0, 3, 1]]
    made = tf.gather(x, tf.ragged.constant(places), axis=1).to_list()
    assert made == [[[x[i, j].tolist() for j in row] for row in places] for i in range(3)]
    made = tf.gather(x, tf.ragged.constant(places), axis=-1).to_list()
    assert made == [[[[x[i, j, k] for k in row] for row in places] for j in range(4)] for i in range(3)]


def test_reductions_of_sparse_tensors_count_what_is_stored():
    """A place that is stored twice counts twice; places that are not stored are no zeros."""
    twice = tf.SparseTensor([[0, 0], [0, 0], [1, 1]], [1, 2, 3], [3, 2])
    below = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [-7.0, 4, 3], [3, 2])
    assert tf.sparse.reduce_sum(twice, 1).numpy().tolist() == [3, 3, 0]
    assert tf.sparse.reduce_sum(twice, keepdims=True).numpy().tolist() == [[6]]
    assert tf.sparse.reduce_max(below, -1).numpy().tolist() == [-7, 4, 0]
    values = tf.constant([1.0, 2, 3])
    with tf.GradientTape() as tape:
        tape.watch(values)
        rows = tf.sparse.reduce_sum(tf.SparseTensor(below.indices, values, [3, 2]), 1)
        total = tf.reduce_sum(rows**2)
    assert tape.gradient(total, values).numpy().tolist() == [2, 10, 10]


def test_sums_of_sparse_tensors_keep_their_zeros():
    a = tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])
    b = tf.SparseTensor([[0, 1], [1, 1]], [-1.0, 0.0], [2, 2])
    made = tf.sparse.add(a, b)
    assert made.indices.numpy().tolist() == [[0, 1], [1, 0], [1, 1]] and made.values.numpy().tolist() == [0, 2, 0]
    assert tf.sparse.add(a, b, 0.5).values.numpy().tolist() == [2]
    assert tf.size(a).numpy() == 4


def test_counts_of_one_row_have_one_dimension():
    assert tf.math.bincount([1, 1, 3], axis=-1).numpy().tolist() == [0, 2, 0, 1]
    sparse = tf.SparseTensor([[1], [5]], [3, 3], [9])
    assert tf.sparse.to_dense(tf.sparse.bincount(sparse, axis=-1)).numpy().tolist() == [0, 0, 0, 2]


def test_bands_and_splits_whose_places_are_computed():
    x = np.arange(12.0).reshape(3, 4)
    band = tf.function(lambda a, k: tf.linalg.band_part(a, -1, k))
    for k in (-1, 0, 1):
        assert np.array_equal(band(x, tf.constant(k)), np.tril(x, k) if k >= 0 else x)
    assert band.why_eager() is None
    split = tf.function(lambda a, sizes: tf.split(a, sizes, axis=1))
    assert [p.shape[1] for p in split(x, tf.constant([1, 3]))] == [1, 3]
    assert "num_or_size_splits" in split.why_eager()


def test_unique_rows():
    x = tf.constant([[2, 1], [0, 5], [2, 1]])
    y, places, counts = tf.raw_ops.UniqueWithCountsV2(x=x, axis=[0])
    assert y.numpy().tolist() == [[2, 1], [0, 5]] and places.numpy().tolist() == [0, 1, 0] and counts.numpy().tolist() == [2, 1]


def test_products_of_small_numbers_in_a_wider_type():
    a = np.random.default_rng(0).integers(-127, 127, (2, 3, 4)).astype("int8")
    b = np.random.default_rng(1).integers(-127, 127, (4, 5)).astype("int8")
    made = tf.matmul(a, b, output_type=tf.int32)
    assert made.dtype == tf.int32 and np.array_equal(made, a.astype("int32") @ b.astype("int32"))
    assert tf.matmul(a, b).dtype == tf.int8
    half = tf.constant([[1.0, 2.0]], tf.bfloat16)
    assert tf.matmul(half, half, transpose_b=True, output_type=tf.float32).dtype == tf.float32


def test_reductions_over_no_axes():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert np.array_equal(tf.reduce_sum(x, axis=[]), x) and np.array_equal(tf.math.reduce_variance(x, axis=[]), np.zeros((2, 2)))
    assert np.array_equal(tf.math.reduce_std(x, axis=[], keepdims=True), np.zeros((2, 2)))
    assert tf.linspace([0.0, 1.0], [1.0, 2.0], 0, axis=1).shape == (2, 0)


def test_ragged_rows_are_cut_behind_an_ellipsis():
    ragged = tf.ragged.constant([[1, 2, 3], [4], [5, 6]])
    assert ragged[..., :2].to_list() == [[1, 2], [4], [5, 6]] and ragged[1:, ..., :1].to_list() == [[4], [5]]


def test_searches_in_and_for_nothing():
    assert tf.searchsorted([1.0, 2.0], np.zeros(0, "f4")).shape == (0,)
    assert tf.searchsorted(np.zeros(0, "f4"), [1.0, 2.0]).numpy().tolist() == [0, 0]


def test_sizes_of_nothing_are_found():
    """As in TensorFlow: sizes of 0 on both sides are left out, the others decide; what does not divide is a mistake here."""
    assert tf.reshape(tf.zeros((0, 3)), [0, -1]).shape == (0, 3)
    assert tf.reshape(tf.zeros((2, 0, 6)), [4, 0, -1]).shape == (4, 0, 3)
    assert tf.reshape(tf.zeros((2, 0)), [-1]).shape == (0,)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.reshape(tf.zeros((0, 3)), [0, 2, -1])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.reshape(tf.zeros((2, 3)), [0, -1])


def test_fake_quantisation_has_a_place_for_zero_and_gradients_of_its_bounds():
    x, low, high = tf.constant([-4.0, -0.3, 0.11, 2.6, 7.0]), tf.Variable(-0.1), tf.Variable(5.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.quantization.fake_quant_with_min_max_vars(x, low, high, num_bits=4, narrow_range=True)
        loss = tf.reduce_sum(y * [1.0, 2.0, 3.0, 4.0, 5.0])
    assert np.allclose(y, [0, 0, 0, 2.55, 5.1])
    dx, dlow, dhigh = tape.gradient(loss, [x, low, high])
    assert dx.numpy().tolist() == [0, 0, 3, 4, 0] and (float(dlow), float(dhigh)) == (3.0, 5.0)


def test_a_session_carries_options_and_does_not_run():
    """Programs of TensorFlow 2 ask for a GPU's memory this way; those of TensorFlow 1 are told."""
    config = tf.compat.v1.ConfigProto(gpu_options=tf.compat.v1.GPUOptions(per_process_gpu_memory_fraction=0.3))
    config.gpu_options.allow_growth = True
    with tf.compat.v1.Session(config=config) as session, pytest.raises(NotImplementedError, match="TensorFlow 2"):
        session.run(None)
    with pytest.raises(NotImplementedError, match="sessions of TensorFlow 1"):
        tf.compat.v1.InteractiveSession()
