"""Small programs over the rarer names of TensorFlow, run by TensorFlow and by Stoker. What they print must be the same.

    python test/python/names_referee.py > test/python/names_referee.expected.txt    # the real TensorFlow
    python -m stoker test/python/names_referee.py                        # Stoker; test_data_referee.py compares
"""
import glob
import os
import sys
import tempfile
import threading
from typing import List, Mapping, Optional, Tuple, Union

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from referee import fails, main, program  # noqa: E402


@program
def tensor_protos():
    values = [[1.0, 2.0], 3.0, [[1, 2], [3, 4]], 5, True, [True, False], "a", ["a", "b"], np.float16([1, 2]), np.float16(2), np.zeros((0, 2)),
              [], np.int8(3), np.uint64(5), np.int64([1]), np.uint32(7), 1 + 2j]
    made = [tf.make_tensor_proto(v) for v in values]
    return [(p.SerializeToString(), tf.make_ndarray(p).dtype.name, tf.make_ndarray(p).tolist(), list(tf.make_ndarray(p).shape)) for p in made]


@program
def tensor_protos_with_shapes():
    one = tf.make_tensor_proto(1, shape=[2, 2])
    return (one.SerializeToString(), tf.make_ndarray(one).tolist(), tf.make_tensor_proto([1, 2], dtype=tf.float32, shape=[1, 2]).SerializeToString(),
            tf.make_ndarray(tf.make_tensor_proto([1, 2], shape=[2, 2])).tolist(), fails(lambda: tf.make_tensor_proto([1.5], dtype=tf.int32)),
            fails(lambda: tf.make_tensor_proto([1, 2, 3], shape=[2])), str(tf.make_tensor_proto([1.0, 2.0])), str(tf.make_tensor_proto("x")))


@program
def drawn_classes():
    tf.random.set_seed(7)
    weights = tf.constant([[0.0, 1, 2], [2, 0, float("-inf")]])
    made = [tf.random.categorical(weights, 7, seed=3) for _ in range(3)] + [tf.random.categorical(weights, 2) for _ in range(2)]
    return made, tf.random.stateless_categorical(weights, 6, seed=[1, 2]), tf.random.categorical(tf.cast(weights, tf.float16), 5, tf.int32)


@program
def sparse_reductions():
    twice = tf.SparseTensor([[0, 0], [0, 0], [1, 1]], [1, 2, 3], [3, 2])
    below = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [-7.0, 4, 3], [3, 2])
    return [(reduce(x, axis, keepdims=keep)) for x in (twice, below) for reduce in (tf.sparse.reduce_sum, tf.sparse.reduce_max)
            for axis in (None, 0, -1, [0, 1]) for keep in (False, True)]


@program
def sparse_as_messages():
    one, rows = tf.sparse.from_dense([[1, 0], [0, 3]]), tf.sparse.from_dense([[1, 0, 2], [0, 0, 3]])
    single, many = tf.io.serialize_sparse(one), tf.io.serialize_many_sparse(rows)
    return (single, many, tf.io.deserialize_many_sparse(many, tf.int32), tf.io.deserialize_many_sparse(tf.stack([single, single]), tf.int32),
            fails(lambda: tf.io.deserialize_many_sparse(tf.stack([single]), tf.float32)))


def numbers(*values):
    return tf.train.Int64List(value=values).SerializeToString()


@program
def fields_of_messages():
    proto = tf.make_tensor_proto(3.5).SerializeToString()
    features = tf.train.Features(feature={"a": tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2]))}).SerializeToString()
    return [tuple(tf.io.decode_proto([numbers(1, 2, 3), b""], "tensorflow.Int64List", ["value"], [tf.int64])),
            tuple(tf.io.decode_proto([features], "tensorflow.Features", ["feature"], [tf.string])),
            tuple(tf.io.decode_proto([proto], "tensorflow.TensorProto", ["dtype", "tensor_content", "float_val", "version_number"],
                                     [tf.int32, tf.string, tf.float32, tf.int32])),
            tf.io.encode_proto([[3]], [tf.constant([[1, 2, 3]], tf.int64)], ["value"], "tensorflow.Int64List")]


@program
def mistakes_of_messages():
    def decode(data, kind="tensorflow.Int64List", name="value", dtype=tf.int64):
        return fails(lambda: tf.io.decode_proto([data], kind, [name], [dtype]))

    return [decode(numbers(1), name="nope"), decode(numbers(1), kind="tensorflow.Nope"), decode(numbers(1), dtype=tf.string), decode(b"\xff")]


def described():
    """FileDescriptorSet of `message m.P { int32 a = 1; repeated string b = 2; sint64 c = 3; bytes d = 4; }`, by hand."""
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data

    def one(name, number, label, kind):
        return field(2, field(1, name) + bytes([3 << 3, number, 4 << 3, label, 5 << 3, kind]))

    message = field(1, b"P") + one(b"a", 1, 1, 5) + one(b"b", 2, 3, 9) + one(b"c", 3, 1, 18) + one(b"d", 4, 1, 12)
    file = field(1, b"m.proto") + field(2, b"m") + field(4, message) + field(12, b"proto3")
    return b"bytes://" + field(1, file)


@program
def messages_of_a_description():
    data = [b"\x08\x96\x01\x12\x01x\x12\x02yz\x18\x03\x22\x02\x08\x01", b"\x18\x04"]
    return tuple(tf.io.decode_proto(data, "m.P", ["b", "a", "c", "d"], [tf.string, tf.int32, tf.int64, tf.string], descriptor_source=described()))


@program
def queues():
    q = tf.queue.FIFOQueue(3, [tf.int32, tf.float32], shapes=[[], [2]])
    q.enqueue([1, [1.0, 2.0]])
    q.enqueue_many([[2, 3], [[1.0, 2.0], [3.0, 4.0]]])
    found = [q.size(), q.dequeue(), q.dequeue_many(2), q.is_closed()]
    q.close()
    return found + [q.is_closed(), fails(q.dequeue), fails(lambda: q.enqueue([1, [1.0, 2.0]])), fails(lambda: q.dequeue_up_to(3)), q.dtypes, q.names]


@program
def queues_of_other_kinds():
    named, plain = tf.queue.FIFOQueue(3, [tf.int32], names=["a"]), tf.queue.FIFOQueue(3, tf.int32)
    named.enqueue({"a": 5})
    plain.enqueue(5)
    padded, first = tf.queue.PaddingFIFOQueue(3, [tf.int32], shapes=[[None]]), tf.queue.PriorityQueue(3, [tf.string], shapes=[[]])
    padded.enqueue([[1]])
    padded.enqueue([[1, 2]])
    first.enqueue([tf.constant(5, tf.int64), "a"])
    first.enqueue([tf.constant(2, tf.int64), "b"])
    shuffled = tf.queue.RandomShuffleQueue(10, 1, [tf.int32], shapes=[[]])
    shuffled.enqueue_many([[1, 2, 3]])
    shuffled.close()
    return [named.dequeue(), plain.dequeue(), fails(lambda: plain.dequeue_many(1)), fails(lambda: plain.enqueue(5.5)), padded.dequeue_many(2),
            first.dequeue(), sorted(shuffled.dequeue_many(3).numpy().tolist())]


@program
def queue_between_threads():
    q, got = tf.queue.FIFOQueue(2, tf.int32, shapes=[[]]), []

    def give():
        for n in range(20):
            q.enqueue(n)
        q.close()

    thread = threading.Thread(target=give)
    thread.start()
    try:
        while True:
            got.append(int(q.dequeue()))
    except tf.errors.OutOfRangeError:
        thread.join()
    return got


WEIGHTS = tf.constant(np.linspace(-1, 1, 20).reshape(5, 4).astype("float32"))
INPUTS = tf.constant(np.linspace(0, 1, 12).reshape(3, 4).astype("float32"))
LABELS = tf.constant([[0], [1], [2]], tf.int64)
BIAS = tf.constant([0.1, 0.2, 0.3, 0.4, 0.5])
SAMPLE = (tf.constant([1, 3], tf.int64), tf.constant([[0.5], [0.6], [0.7]]), tf.constant([0.4, 0.3]))


@program
def sampled_losses():
    made = []
    for loss in (tf.nn.nce_loss, tf.nn.sampled_softmax_loss):
        for hits in (True, False):
            made.append(loss(WEIGHTS, BIAS, LABELS, INPUTS, 2, 5, sampled_values=SAMPLE, remove_accidental_hits=hits))
    w = tf.Variable(WEIGHTS)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(tf.nn.nce_loss(w, BIAS, LABELS, INPUTS, 2, 5, sampled_values=SAMPLE))
    return [np.round(m, 4) for m in made] + [np.round(tf.convert_to_tensor(tape.gradient(total, w)), 4)]


@program
def candidates():
    every = tf.random.all_candidate_sampler(LABELS, 1, 5, True)
    uniform = tf.random.uniform_candidate_sampler(LABELS, 1, 5, False, 5)
    fixed = tf.random.fixed_unigram_candidate_sampler(LABELS, 1, 2, False, 5, unigrams=[1.0, 2.0, 3.0, 4.0, 5.0])
    words = tf.random.log_uniform_candidate_sampler(LABELS, 1, 3, False, 5)
    hits = tf.nn.compute_accidental_hits(LABELS, [1, 3], 1)
    return [tuple(every), uniform.true_expected_count, fixed.true_expected_count, words.true_expected_count, words.sampled_candidates.shape,
            hits.indices, hits.ids, hits.weights]


def about(operator, x):
    vector = tf.constant(x)
    made = [operator.to_dense(), operator.matvec(vector), operator.matvec(vector, adjoint=True), operator.diag_part(), operator.trace(),
            operator.shape.as_list(), operator.is_square, operator.domain_dimension_tensor()]
    if operator.is_non_singular is not False:
        made += [operator.solvevec(vector), operator.solvevec(vector, adjoint=True), operator.determinant(), operator.log_abs_determinant()]
    return [np.round(m, 4) + 0.0 if isinstance(m, tf.Tensor) and m.dtype == tf.float32 else m for m in made]


@program
def linear_operators():
    L = tf.linalg
    lower, diag = L.LinearOperatorLowerTriangular([[2.0, 5.0], [1.0, 3.0]]), L.LinearOperatorDiag([2.0, -3.0])
    full = L.LinearOperatorFullMatrix([[4.0, 1.0], [2.0, 3.0]])
    kinds = [lower, diag, full, L.LinearOperatorIdentity(2), L.LinearOperatorScaledIdentity(2, 3.0), lower.adjoint(), full.inverse(),
             L.LinearOperatorComposition([lower, full]), L.LinearOperatorZeros(2), L.LinearOperatorLowRankUpdate(diag, [[1.0], [2.0]], [0.5]),
             L.LinearOperatorHouseholder([0.6, 0.8]), L.LinearOperatorPermutation([1, 0]), L.LinearOperatorToeplitz([1.0, 2.0], [1.0, 3.0]),
             L.LinearOperatorTridiag([[1.0, 0.0], [4.0, 5.0], [0.0, 2.0]])]
    return [about(k, [1.0, 2.0]) for k in kinds]


@program
def larger_operators():
    L = tf.linalg
    lower, diag = L.LinearOperatorLowerTriangular([[2.0, 5.0], [1.0, 3.0]]), L.LinearOperatorDiag([2.0, -3.0])
    kinds = [L.LinearOperatorBlockDiag([lower, diag]), L.LinearOperatorKronecker([lower, diag]),
             L.LinearOperatorBlockLowerTriangular([[lower], [diag, lower]])]
    return [about(k, [1.0, 2.0, 3.0, 4.0])[:4] for k in kinds]


@program
def operators_together():
    L = tf.linalg
    lower, eye = L.LinearOperatorLowerTriangular([[2.0, 5.0], [1.0, 3.0]]), L.LinearOperatorIdentity(2)
    good = L.LinearOperatorFullMatrix([[4.0, 1.0], [1.0, 3.0]], is_self_adjoint=True, is_positive_definite=True)
    both = L.LinearOperatorDiag([1.0, 2.0]) @ L.LinearOperatorDiag([3.0, 4.0])
    names = [type(v).__name__ for v in (lower @ lower, eye @ lower, lower.adjoint(), lower.inverse(), both, good.cholesky())]
    v = tf.Variable([[2.0, 0.0], [1.0, 3.0]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(L.LinearOperatorLowerTriangular(v).solve([[1.0], [2.0]]))
    return [names, np.round(good.cholesky().to_dense(), 4), np.round(good.eigvals(), 4), np.round(good.cond(), 4), lower.add_to_tensor(tf.eye(2)),
            fails(lower.cholesky), fails(lambda: L.LinearOperatorLowerTriangular([[1.0, 0.0], [1.0, 0.0]]).assert_non_singular()),
            fails(lambda: lower.matmul(tf.eye(3))), np.round(tape.gradient(y, v), 4), lower.name, [w.shape.as_list() for w in lower.trainable_variables]]


@program
def clips_of_sound():
    with tempfile.TemporaryDirectory() as folder:
        writer = tf.summary.create_file_writer(folder)
        with writer.as_default():
            told = [tf.summary.audio("a", np.linspace(-1, 1, 8).reshape(1, 8, 1).astype("f"), 8000, step=1),
                    tf.summary.audio("b", np.zeros((4, 8, 2), "f"), 8000, step=1, max_outputs=2, encoding="wav", description="d"),
                    fails(lambda: tf.summary.audio("c", np.zeros((8, 1)), 8000, step=1))]
        writer.close()
        for record in tf.data.TFRecordDataset(glob.glob(folder + "/*")[0]).skip(1):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for v in event.summary.value:
                told += [v.tag, str(v.metadata), [d.size for d in v.tensor.tensor_shape.dim], list(v.tensor.string_val)]
    return told


def record(**features):
    made = {k: tf.train.Feature(int64_list=tf.train.Int64List(value=v)) for k, v in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


@program
def rows_inside_of_records():
    F = tf.io.RaggedFeature
    a = record(v=[1, 2, 3, 4, 5, 6], sp=[0, 2, 2, 6], ln=[1, 5], st=[0, 3], li=[3, 6], ri=[0, 0, 2, 2, 2, 3])
    b = record(v=[7, 8], sp=[0, 2], ln=[2], st=[0], li=[2], ri=[1, 1])
    made = []
    for p in (F.RowSplits("sp"), F.RowLengths("ln"), F.RowStarts("st"), F.RowLimits("li"), F.ValueRowIds("ri"), F.UniformRowLength(2)):
        wanted = {"v": F(tf.int64, partitions=[p])}
        made += [str(p), tf.io.parse_single_example(a, wanted)["v"], tf.io.parse_example([a, b], wanted)["v"]]
    wanted = {"w": F(tf.int64, value_key="v", partitions=[F.UniformRowLength(3), F.UniformRowLength(2)])}
    return made + [tf.io.parse_single_example(a, wanted)["w"]]


@program
def ragged_shapes():
    D = tf.experimental.DynamicRaggedShape
    s, two = D.from_lengths([2, (3, 1), 2]), tf.ragged.constant([[1, 2], [3]])
    return [str(s), s.rank, s.num_row_partitions, s.inner_rank, s.inner_shape, s.static_lengths(), str(D.from_tensor(two)), str(D.from_tensor(tf.zeros([2, 3]))),
            s[0], fails(lambda: s[1]), s[2], s[-1], str(s[:2]), s.is_uniform(1), s.is_uniform(2), tf.broadcast_to(tf.constant([[1], [2]]), D.from_lengths([2, (3, 1)])),
            tf.reshape([1, 2, 3, 4], D.from_lengths([2, (3, 1)])), tf.ones(D.from_lengths([2, (3, 1)])), str(tf.shape(two)), tf.zeros(tf.shape(two)),
            tf.reshape(tf.range(3), tf.shape(two)), bool(D.from_lengths([2, (3, 1)]) == D.from_lengths([2, (3, 1)]))]


class Masked(tf.experimental.ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor
    name: str = "x"
    shape = property(lambda self: self.values.shape)

    def __validate__(self):
        self.values.shape.assert_is_compatible_with(self.mask.shape)


class Mixed(tf.experimental.ExtensionType):
    a: Union[tf.Tensor, tf.RaggedTensor]
    b: Mapping[str, tf.Tensor]
    c: Tuple[tf.Tensor, ...]
    d: tf.TensorShape
    e: tf.DType
    f: Optional[Masked] = None


class Pair(tf.experimental.BatchableExtensionType):
    x: tf.Tensor
    y: tf.Tensor


class Doubled(tf.experimental.ExtensionType):
    v: tf.Tensor

    def __init__(self, v):
        self.v = tf.convert_to_tensor(v) * 2


ONE = Masked([1, 2, 3], [True, False, True])


@program
def extension_types():
    mixed = Mixed([1.0], {"k": 3}, (1, 2), [None, 2], tf.int32)
    return [str(ONE), str(tf.type_spec_from_value(ONE)), tf.nest.flatten(ONE, expand_composites=True), bool(ONE == Masked([1, 2, 3], [True, False, True])),
            str(mixed), str(Doubled(3)), fails(lambda: setattr(ONE, "values", 3)), fails(lambda: Masked([1, 2], [True])), fails(lambda: Masked([1, 2])),
            fails(lambda: Mixed([1.0], {"k": 3}, 3, [1], tf.int32)), fails(lambda: mixed.b.update(k=1))]


@program
def extension_types_in_functions():
    count = []

    @tf.function
    def double(m):
        count.append(1)
        return Masked(m.values * 2, m.mask, m.name)

    made = [str(double(m)) for m in (ONE, Masked([4, 5, 6], [True] * 3), Masked([4, 5, 6], [True] * 3, "y"))]
    return made + [len(count)]


@program
def extension_types_in_datasets():
    ds = tf.data.Dataset.from_tensor_slices(Pair(tf.range(4), tf.range(4) * 2))
    return [str(ds.element_spec), [str(v) for v in ds.batch(2)], list(ds.map(lambda b: b.x + b.y)),
            tf.map_fn(lambda b: b.x + b.y, Pair(tf.range(4), tf.range(4)), fn_output_signature=tf.int32),
            str(tf.data.Dataset.from_tensors(ONE).element_spec)]


@program
def dispatched():
    @tf.experimental.dispatch_for_unary_elementwise_apis(Masked)
    def one(api, x):
        return Masked(api(x.values), x.mask)

    @tf.experimental.dispatch_for_binary_elementwise_apis(Masked, Masked)
    def two(api, x, y):
        return Masked(api(x.values, y.values), x.mask & y.mask)

    @tf.experimental.dispatch_for_api(tf.stack, {"values": List[Masked]})
    def stacked(values, axis=0):
        return Masked(tf.stack([v.values for v in values], axis), tf.stack([v.mask for v in values], axis))

    @tf.experimental.dispatch_for_api(tf.concat)
    def joined(values: List[Masked], axis=0, name="concat"):
        return Masked(tf.concat([v.values for v in values], axis), tf.concat([v.mask for v in values], axis))

    made = [tf.abs(ONE), tf.math.square(ONE), tf.nn.relu(ONE), tf.cast(ONE, tf.float32), tf.ones_like(ONE), tf.add(ONE, ONE), tf.stack([ONE, ONE]),
            tf.concat([ONE, ONE], 0), tf.concat([[1], [2]], 0), tf.abs(tf.constant(-1)), tf.add(1, 2)]
    tf.experimental.unregister_dispatch_for(joined)
    return [str(m) for m in made] + [fails(lambda: tf.concat([ONE, ONE], 0)), fails(lambda: tf.reduce_sum(ONE))]


def slices(value):
    if isinstance(value, tf.IndexedSlices):
        return ["IndexedSlices", value.indices, value.values, value.dense_shape]
    return value


@program
def gradients_by_rows():
    v, made = tf.Variable(np.arange(8.0).reshape(4, 2).astype("f")), []
    losses = [lambda: tf.reduce_sum(tf.gather(v, [[0, 0], [2, 1]]) ** 2), lambda: tf.reduce_sum(tf.nn.embedding_lookup(v, [1, 1]) * 3) + tf.reduce_sum(v),
              lambda: tf.reduce_sum(tf.gather(v, [1])) + tf.reduce_sum(tf.gather(v, [2, 3]) * 2), lambda: tf.reduce_sum(tf.gather(v, [0], axis=1)),
              lambda: tf.reduce_sum(v) * 0]
    for loss in losses:
        with tf.GradientTape() as tape:
            y = loss()
        made.append(slices(tape.gradient(y, v)))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.gather(v, [1, 2]) ** 3)
        z = tf.reduce_sum(tf.convert_to_tensor(inner.gradient(y, v)))
    return made + [slices(outer.gradient(z, v))]


@program
def what_takes_rows():
    v = tf.Variable(np.arange(8.0).reshape(4, 2).astype("f"))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(v, [0, 0, 2]) ** 2)
    g = tape.gradient(y, v)
    return [tf.convert_to_tensor(g), g.shape.as_list(), tf.norm(g), tf.linalg.global_norm([g]), slices(tf.clip_by_global_norm([g], 1.0)[0][0]),
            slices(tf.clip_by_norm(g, 1.0)), slices(tf.clip_by_value(g, -1.0, 1.0)), tf.add_n([g, g]), slices(tf.cast(g, tf.float64)), tf.reduce_sum(g),
            tf.zeros_like(g), fails(lambda: g + 1), fails(lambda: 0.1 * g), v.scatter_sub(g).numpy().tolist()]


@program
def optimizers_take_rows():
    made = []
    for optimizer in (tf.keras.optimizers.SGD(0.1), tf.keras.optimizers.Adam(0.1), tf.keras.optimizers.SGD(0.1, clipnorm=1.0)):
        w = tf.keras.Variable(np.ones((4, 2), "f"))
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(w.value, [0, 2]) ** 2)
        optimizer.apply_gradients([(tape.gradient(y, w), w)])
        made.append(np.round(w.numpy(), 4).tolist())
    return made


@program
def signatures_of_ragged_tensors():
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
    def rows(r):
        return tf.reduce_sum(r, axis=1)

    one = tf.ragged.constant([[1, 2], [3]])
    concrete = rows.get_concrete_function()
    return [rows(one), rows(tf.ragged.constant([[1, 2, 4], [3]])), fails(lambda: rows(tf.ragged.constant([[1.0]]))),
            fails(lambda: rows(tf.ragged.constant([[[1]]]))), concrete(one), concrete(tf.ragged.constant([[5], [6], [7, 8]]))]


@program
def concrete_functions_of_open_sizes():
    double = tf.function(lambda x: x * 2)
    square = tf.function(lambda x, k, b=3: tf.matmul(x, x) * k + b)
    join = tf.function(lambda x: tf.strings.join([x, "a"]))
    some, any_rank = double.get_concrete_function(tf.TensorSpec([None], tf.float32)), double.get_concrete_function(tf.TensorSpec(None, tf.float32))
    matrix, named = square.get_concrete_function(tf.TensorSpec(None, tf.float32), 2.0), square.get_concrete_function(x=tf.TensorSpec([None, None]), k=2.0)
    return [any_rank(tf.constant([[1.0, 2.0]])), any_rank(tf.constant(3.0)), some(tf.constant([1.0, 2.0])), some(tf.constant([1.0])),
            str(some.structured_input_signature[0][0].shape), matrix(tf.eye(2)), named(x=tf.eye(2)),
            join.get_concrete_function(tf.TensorSpec([], tf.string))(tf.constant("z"))]


if __name__ == "__main__":
    main(sys.argv[1:])
