"""Small programs over rare names, tf.compat.v1 and Keras' old backend functions, run by TensorFlow and by Stoker. What they print must be the same.

    python test/python/rare_referee.py > test/python/rare_referee.expected.txt    # the real TensorFlow
    python -m stoker test/python/rare_referee.py                        # Stoker; test_data_referee.py compares
"""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from referee import fails, main, program  # noqa: E402

K = tf.keras.backend


def rounded(x):
    return np.round(np.asarray(x), 3)


@program
def gradients_of_functions():
    v = tf.Variable([1.0, 2.0])

    @tf.custom_gradient
    def ten(x):
        return x * x, lambda d: d * 10

    @tf.function
    def step(a):
        y = tf.reduce_sum(v * v * a)
        of_v, of_a = tf.gradients(y, [v, a])
        v.assign_sub(0.1 * of_v)
        z = tf.reduce_sum(v * 3)
        return of_v, of_a, tf.gradients(z, v)[0], tf.gradients(of_v, v)[0]

    @tf.function
    def through_an_assignment():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(v * v)
            v.assign_sub(0.1 * v * v)
            z = tf.reduce_sum(v * 3) + y
        return tape.gradient(z, v)

    more = [tf.function(f)(tf.constant(2.0)) for f in (
        lambda a: tf.gradients(ten(a) + a, a)[0], lambda a: tf.gradients(tf.stop_gradient(a) * a, a)[0],
        lambda a: tf.hessians(a * a * a, a)[0])]
    return [step(tf.constant(2.0)), v, through_an_assignment(), v, more, fails(lambda: tf.gradients(tf.constant(1.0), tf.constant(1.0)))]


@program
def old_backend_functions():
    x = K.variable(np.arange(6.0).reshape(2, 3).astype("float32"))
    image = tf.reshape(tf.range(32.0), (1, 4, 4, 2))
    sums = K.rnn(lambda i, s: (i + s[0], [i + s[0]]), tf.ones((2, 3, 4)), [tf.zeros((2, 4))])
    return [K.switch(K.equal(K.sum(x), 15.0), lambda: x + 1, lambda: x), K.gather(x, [1]), K.foldl(lambda a, b: a + b, x), K.map_fn(lambda r: r * 2, x),
            K.pool2d(image, (2, 2), (2, 2)), K.pool2d(image, (2, 2), (1, 1), pool_mode="avg"), K.conv2d(image, tf.ones((2, 2, 2, 1))),
            K.conv2d_transpose(image, tf.ones((2, 2, 1, 2)), (1, 8, 8, 1), strides=(2, 2)), K.spatial_2d_padding(image).shape, K.temporal_padding(sums[1]).shape,
            sums[0], K.in_top_k(tf.constant([[0.1, 0.9], [0.8, 0.2]]), tf.constant([1, 1]), 1), K.update(x, x * 2), K.update_add(x, x),
            K.random_uniform_variable((2, 2), 0, 1).shape, tf.function(lambda a: K.gradients(a * a, [a]))(tf.constant(3.0))]


@program
def scores_of_alignments():
    y = tf.nn.softmax(tf.constant(np.random.RandomState(0).rand(2, 6, 5), tf.float32))
    labels = tf.constant([[1, 2, 3], [1, 2, 0]])
    time_major = tf.transpose(y, [1, 0, 2])

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.nn.ctc_loss(labels, x, [3, 2], [6, 5])
        return rounded(tape.gradient(loss, x))

    return [rounded(K.ctc_batch_cost(np.array([[1, 2, 3], [0, 2, 0]]), y, np.array([[6], [5]]), np.array([[3], [2]]))),
            K.ctc_decode(y, np.array([6, 5]))[0][0], rounded(tf.nn.ctc_loss(labels, time_major, [3, 2], [6, 5])),
            rounded(tf.nn.ctc_loss(tf.sparse.from_dense(labels), y, None, [6, 5], logits_time_major=False, blank_index=4)),
            rounded(tf.nn.ctc_loss(labels, time_major, [3, 2], [6, 5], blank_index=4)), slope(time_major)]


@program
def names_of_version_1():
    v1 = tf.compat.v1
    return [v1.to_float(3), v1.log(2.0), v1.nn.relu(-1.0), v1.div(7, 2), v1.random_uniform((2,)).shape, v1.where([True, False], [[1, 2], [3, 4]], [[5, 6], [7, 8]]),
            v1.nn.max_pool(tf.ones([1, 4, 4, 1]), [1, 2, 2, 1], [1, 2, 2, 1], "VALID"), v1.nn.conv2d(tf.ones([1, 3, 3, 1]), filter=tf.ones([2, 2, 1, 1]), strides=[1, 1, 1, 1],
                                                                                                     padding="VALID"),
            v1.nn.softmax_cross_entropy_with_logits(labels=[[0.0, 1.0]], logits=[[1.0, 2.0]]), v1.matrix_inverse([[2.0, 0.0], [0.0, 4.0]]),
            v1.keras.layers.Dense is tf.keras.layers.Dense, v1.data.Dataset.range(2).reduce(np.int64(0), lambda a, b: a + b), v1.train.Example is tf.train.Example,
            v1.cond(tf.constant(True), lambda: 1, lambda: 2), v1.squared_difference(1.0, 3.0), tf.compat.v2.nn.relu(2.0), v1.FixedLenFeature([], tf.int64)]


@program
def parts_of_sparse_tensors():
    a = tf.sparse.from_dense([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 3, 0], tf.int64), [4, 2])
    weights = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [1.0, 3.0, 2.0], [4, 2])
    table = tf.reshape(tf.range(8.0), (4, 2))
    signed = tf.SparseTensor([[0, 0], [1, 0], [2, 0]], tf.constant([1, -1, 2], tf.int64), [4, 2])
    return [tf.sparse.softmax(a), tf.sparse.split(sp_input=a, num_split=2, axis=1), tf.sparse.to_indicator(ids, 5), tf.sparse.reset_shape(ids), tf.sparse.reset_shape(ids, [5, 5]),
            tf.sparse.segment_sum(table, [0, 1, 3], [0, 0, 2]), tf.sparse.segment_mean(table, [0, 1, 3], [0, 0, 1]), tf.sparse.segment_sqrt_n(table, [0, 1], [0, 0], 2),
            [tf.nn.embedding_lookup_sparse(table, ids, w, combiner=c) for w in (None, weights) for c in ("sum", "mean", "sqrtn")],
            tf.nn.safe_embedding_lookup_sparse(table, signed), tf.nn.safe_embedding_lookup_sparse(table, signed, default_id=3)]


@program
def moments_and_windows():
    x = tf.reshape(tf.range(24.0), (2, 3, 4)) % 7
    count, total, squares, shift = tf.nn.sufficient_statistics(x, [0, 1])
    image = tf.constant(np.random.RandomState(1).permutation(50).reshape(1, 5, 5, 2).astype("float32"))
    return [count, total, squares, tf.nn.normalize_moments(count, total, squares, shift), tf.nn.weighted_moments(x, [1], tf.constant([[[1.0], [2.0], [0.0]]])),
            tf.nn.max_pool_with_argmax(image, 2, 2, "VALID"), tf.nn.max_pool_with_argmax(image, 3, 2, "SAME"),
            tf.nn.max_pool_with_argmax(tf.concat([image, image - 99], 0), 2, 2, "SAME", include_batch_in_index=True),
            tf.nn.atrous_conv2d(image, tf.ones((2, 2, 2, 1)), 2, "SAME"), tf.image.image_gradients(image)]


@program
def rare_mathematics():
    return [tf.identity_n([1, 2.0]), tf.truncatediv([-7, 7, -6], [2, -2, 2]), tf.truncatemod([-7, 7], [2, -2]), tf.realdiv(1.0, 4.0),
            tf.strided_slice([[1, 2, 3], [4, 5, 6]], [0, 1], [2, 3]), tf.strided_slice([[1, 2, 3], [4, 5, 6]], [1, 0], [2, 3], [1, 2], shrink_axis_mask=1),
            tf.strided_slice([1, 2, 3], [2], [0], [-1], end_mask=1), tf.math.unsorted_segment_sqrt_n([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 0, 2], 3),
            tf.math.erfcinv([0.5, 1.0, 1.5]), tf.signal.idct(tf.signal.dct([1.0, 2.0, 3.0])), tf.signal.idct([1.0, 2.0, 3.0], norm="ortho")]


@program
def rare_matrices():
    a = tf.constant([[4.0, 3.0, 1.0], [6.0, 3.0, 2.0], [1.0, 5.0, 9.0]])
    lu, p = tf.linalg.lu(a)
    bands = tf.constant([[1.0, 2.0, 0.0], [4.0, 5.0, 6.0], [0.0, 1.0, 2.0]])
    return [rounded(tf.linalg.lu_reconstruct(lu, p)), rounded(tf.linalg.lu_solve(lu, p, tf.constant([[1.0], [2.0], [3.0]]))), rounded(tf.linalg.lu_matrix_inverse(lu, p)),
            tf.linalg.tridiagonal_matmul(bands, tf.constant([[1.0], [2.0], [3.0]])), rounded(tf.linalg.tridiagonal_solve(bands, tf.constant([1.0, 2.0, 3.0]))),
            rounded(tf.linalg.eigh_tridiagonal(tf.constant([1.0, 2.0, 3.0]), tf.constant([0.5, 0.5])))]


@program
def characters():
    words = ["Hello", "你好 мир", "aé€😀"]
    return [tf.strings.unicode_decode_with_offsets(words, "UTF-8"), tf.strings.unicode_split_with_offsets(words, "UTF-8"),
            tf.strings.unicode_decode_with_offsets("é", "UTF-8"), tf.strings.unicode_script([33464, 1041, 65, 48, 32, 0x3042, 0x30A2, 0x0905, 0xAC00, 0x301]),
            tf.strings.unicode_script(tf.ragged.constant([[0x05D0, 0x0627], [0x0E01]]))]


@program
def averages_that_move():
    w = tf.Variable([1.0, 2.0], name="w")
    average = tf.train.ExponentialMovingAverage(0.9)
    seen = []
    for _ in range(3):
        average.apply([w])
        w.assign_add([1.0, 1.0])
        seen.append(average.average(w).numpy())
    late = tf.train.ExponentialMovingAverage(0.99, num_updates=3)
    late.apply([w])
    w.assign([0.0, 0.0])
    late.apply([w])
    return [seen, late.average(w), average.name]


@program
def strategies_without_a_cluster():
    made = [tf.distribute.experimental.CentralStorageStrategy, lambda: tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.HierarchicalCopyAllReduce())]
    looks = [fails(lambda: tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")), tf.distribute.InputOptions().experimental_fetch_to_device]
    return [[m().num_replicas_in_sync for m in made], looks]


@program
def more_of_numpy():
    n = tf.experimental.numpy
    n.experimental_enable_numpy_behavior()  # the last program: this stays
    a, v = n.reshape(n.arange(6.0), (2, 3)), n.array([1.0, -2.0, 3.5])
    whole = n.array([[3, 1], [2, 6]])
    ones = [n.around(2.567, 1), n.cbrt(-8.0), n.exp2(3.0), n.deg2rad(180.0), n.rad2deg(v), n.fix(n.array([-1.5, 1.5])), n.isposinf(n.array([np.inf, 1.0])), n.isneginf(n.array([-np.inf, 1.0])),
            n.heaviside(v, 0.5), n.float_power(2.0, 3), n.logaddexp(1.0, 2.0), n.logaddexp2(1.0, 2.0), n.sinc(n.array([0.0, 0.5])), n.divmod(7, 2), n.logical_xor(True, [False, True]),
            n.bitwise_and(6, 3), n.bitwise_or(6, 3), n.bitwise_xor(6, 3), n.bitwise_not(whole), n.gcd(12, 18), n.lcm(4, 6), n.signbit(v), n.real(v), n.imag(v), n.conj(v),
            n.isreal(v), n.iscomplex(v), n.positive(v)]
    alike = [n.isclose(1.0, 1.0 + 1e-9), n.allclose(v, v), n.array_equal(whole, whole), n.isscalar(3.0)]
    made = [n.logspace(0, 2, 3), n.geomspace(1.0, 8.0, 4), n.tri(3), n.diag(v), n.diag(a), n.diagflat(v), n.diagonal(a, 1), n.trace(a), n.diag_indices(2), n.vander(v),
            n.ix_(n.array([0, 1]), n.array([2]))]
    shapes = [n.atleast_1d(3.0), n.atleast_2d(v), n.atleast_3d(v).shape, n.append(v, 4.0), n.dstack([v, v]), n.hsplit(a, 3), n.vsplit(a, 2), n.broadcast_arrays(v, a),
              n.flatten(a), n.fliplr(a), n.flipud(a), [n.rot90(a, k) for k in range(4)], n.pad(a, [[1, 1], [0, 1]], "constant"), n.take_along_axis(a, n.array([[0], [2]]), 1), n.compress(n.array([True, False, True]), a, 1),
              n.nonzero(whole), n.select([v > 0, v < 0], [v, -v])]
    sums = [n.count_nonzero(a, 0), n.nansum(n.array([1.0, np.nan])), n.nanprod(n.array([2.0, np.nan])), n.nanmean(n.array([2.0, np.nan, 4.0])), n.ptp(a, 1), n.cumprod(v), n.diff(a), n.diff(v, 2),
            n.polyval(n.array([1.0, 2.0, 3.0]), v), n.vdot(v, v), n.kron(whole, n.ones((1, 2))), n.cross(v, n.array([1.0, 0.0, 2.0])), n.cross(v[:2], n.array([1.0, 3.0]))]
    return [ones, alike, made, shapes, sums]


if __name__ == "__main__":
    main(sys.argv[1:])
