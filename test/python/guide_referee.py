"""Small programs in the manner of guides and courses, run by TensorFlow and by Stoker. What they print must be the same.

    python test/python/guide_referee.py > test/python/guide_referee.expected.txt    # the real TensorFlow
    python -m stoker test/python/guide_referee.py                        # Stoker; test_data_referee.py compares
"""
import logging
import os
import sys
from typing import List, Union

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from referee import fails, main, program  # noqa: E402

logging.getLogger("tensorflow").setLevel(logging.ERROR)


# ---- columns of tables ---------------------------------------------------------------------------------------------

TABLE = {"age": [[20.0], [35.0], [61.0]], "job": ["cook", "smith", "cook"], "n": [[1], [-1], [3]],
         "color": [["r", ""], ["g", "b"], ["x", "r"]], "w": [[1.0, 2.0], [0.5, 0.5], [3.0, 1.0]]}


def columns():
    fc = tf.feature_column
    age = fc.numeric_column("age")
    bucket = fc.bucketized_column(age, [30.0, 60.0])
    color = fc.categorical_column_with_vocabulary_list("color", ["r", "g", "b"])
    return {"age": age, "bucket": bucket, "job": fc.categorical_column_with_hash_bucket("job", 5), "color": color,
            "outside": fc.categorical_column_with_vocabulary_list("color", ["r", "g"], num_oov_buckets=2),
            "n": fc.categorical_column_with_identity("n", 4, default_value=0), "crossed": fc.crossed_column([bucket, "job"], 7),
            "more": fc.crossed_column([bucket, color, "job"], 11), "weighted": fc.weighted_categorical_column(color, "w")}


@program
def feature_columns_are_described():
    fc, made = tf.feature_column, columns()
    told = [[c.name, str(c), str(c.parse_example_spec)] for c in made.values()]
    dense = [fc.indicator_column(made["color"]), fc.embedding_column(made["job"], 3), made["bucket"]]
    return told + [[c.name, c.variable_shape.as_list()] for c in dense] + [
        str(fc.make_parse_example_spec([fc.indicator_column(made["more"]), fc.embedding_column(made["weighted"], 2), made["age"]])),
        [c.num_buckets for k, c in made.items() if k != "age"], made["age"] == fc.numeric_column("age"), len({made["age"], fc.numeric_column("age")}),
        str(fc.sequence_categorical_column_with_hash_bucket("color", 5)), str(fc.sequence_numeric_column("w")), made["age"].get_config()]


@program
def feature_columns_as_tensors():
    fc, made, layer = tf.feature_column, columns(), tf.compat.v1.feature_column.input_layer
    half = tf.compat.v1.constant_initializer(0.5)
    return [layer(TABLE, c) for c in (made["age"], made["bucket"], fc.numeric_column("w", shape=(2,)))] + [
        layer(TABLE, fc.indicator_column(made[k])) for k in ("job", "color", "outside", "n", "crossed", "more")] + [
        layer(TABLE, [fc.indicator_column(made["color"]), made["bucket"], made["age"], fc.indicator_column(made["crossed"])]),
        layer(TABLE, fc.embedding_column(made["job"], 3, initializer=half)),
        layer(TABLE, fc.numeric_column("age", normalizer_fn=lambda x: (x - 30) / 10)),
        fails(lambda: layer(TABLE, made["job"])), fails(lambda: layer(TABLE, fc.numeric_column("nothing"))),
        fails(lambda: layer(TABLE, fc.indicator_column(made["weighted"])))]


@program
def feature_columns_refuse():
    fc, made = tf.feature_column, columns()
    return [fails(f) for f in (
        lambda: fc.bucketized_column(made["color"], [1, 2]), lambda: fc.bucketized_column(made["age"], [2, 1]),
        lambda: fc.categorical_column_with_vocabulary_list("x", []), lambda: fc.categorical_column_with_vocabulary_list("x", ["a", "a"]),
        lambda: fc.numeric_column(3), lambda: fc.crossed_column(["a"], 3), lambda: fc.crossed_column(["a", made["age"]], 3),
        lambda: fc.crossed_column([made["job"], "a"], 3), lambda: fc.embedding_column(made["job"], 0), lambda: fc.indicator_column(made["age"]),
        lambda: fc.make_parse_example_spec(["a"]), lambda: fc.categorical_column_with_hash_bucket("a", 0),
        lambda: fc.categorical_column_with_identity("a", 3, 5), lambda: fc.numeric_column("a", shape=(0,)), lambda: fc.numeric_column("a", dtype=tf.string),
        lambda: fc.numeric_column("a", default_value="q"), lambda: fc.shared_embeddings([made["job"], made["color"]], 2))]


@program
def columns_of_a_file():
    example = tf.train.Example(features=tf.train.Features(feature={
        "age": tf.train.Feature(float_list=tf.train.FloatList(value=[41.0])),
        "color": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"g", b"r"]))})).SerializeToString()
    made = columns()
    wanted = [made["age"], tf.feature_column.indicator_column(made["color"])]
    parsed = tf.io.parse_example([example, example], tf.feature_column.make_parse_example_spec(wanted))
    return tf.compat.v1.feature_column.input_layer(parsed, wanted)


# ---- functions -----------------------------------------------------------------------------------------------------

class Kind(tf.types.experimental.TraceType):
    def __init__(self, fruit):
        self.kind, self.fruit = type(fruit), fruit

    def is_subtype_of(self, other):
        return type(other) is Kind and self.kind is other.kind

    def most_specific_common_supertype(self, others):
        return self if all(self == other for other in others) else None

    def placeholder_value(self, placeholder_context=None):
        return self.fruit

    def __eq__(self, other):
        return type(other) is Kind and self.kind == other.kind

    def __hash__(self):
        return hash(self.kind)


class HalfAKind(tf.types.experimental.TraceType):
    def is_subtype_of(self, other):
        return True


@program
def a_kind_that_lacks_methods():
    return fails(HalfAKind)


class Fruit:
    def __init__(self, *flavor):
        self.flavor = tf.constant(flavor)

    def __tf_tracing_type__(self, context):
        return Kind(self)


class Apple(Fruit):
    pass


@program
def objects_with_a_trace_type():
    traced = []

    @tf.function
    def mix(a, b):
        traced.append(1)
        return a.flavor + b.flavor

    return [mix(Apple(1, 2), Fruit(3, 4)), mix(Apple(1, 2), Fruit(3, 4)), mix(Apple(1, 2), Apple(1, 2)), len(traced)]


@program
def concrete_functions_check_arguments():
    @tf.function
    def double(a):
        return a + a

    @tf.function
    def power(a, b):
        return a**b

    texts = double.get_concrete_function(tf.TensorSpec(None, tf.string))
    numbers = double.get_concrete_function(tf.TensorSpec([None], tf.float32))
    square = power.get_concrete_function(a=tf.TensorSpec(None, tf.float32), b=2)
    return [texts(tf.constant("a")), texts(a=tf.constant("b")), fails(lambda: texts(tf.constant(1))), numbers(tf.constant([1.0, 2.0])),
            fails(lambda: numbers(tf.constant([1]))), fails(lambda: numbers(tf.constant([1.0]), tf.constant([2.0]))),
            fails(lambda: numbers(b=tf.constant([1.0]))), square(tf.constant(10.0)), fails(lambda: square(tf.constant(10.0), b=3)),
            texts.inference_fn is not None, list(numbers.function_type.parameters)]


@program
def signatures_and_defaults():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def add(x, delta=1.0):
        return x + delta

    return [add(tf.constant([1.0])), add([1.0, 2.0]), add(tf.constant([1.0]), delta=1.0), fails(lambda: add(tf.constant([1]))),
            add.get_concrete_function()(tf.constant([5.0]))]


@program
def variables_of_functions():
    traced = []

    @tf.function
    def ever_new(x):
        return tf.Variable(1.0) * x

    class Lazy(tf.Module):
        def __init__(self):
            self.w = None

        @tf.function
        def __call__(self, x):
            traced.append(1)
            if self.w is None:
                self.w = tf.Variable(2.0)
            return x * self.w

    lazy = Lazy()
    return [fails(lambda: ever_new(1.0)), lazy(tf.constant(3.0)), lazy(tf.constant(4.0)), len(traced)]


@program
def what_nobody_uses_does_not_fail():
    @tf.function
    def unused(x):
        tf.gather(x, [1])
        return x

    @tf.function
    def used(x):
        return tf.gather(x, [1])

    return [unused(tf.constant([0.0])), fails(lambda: used(tf.constant([0.0]))), used(tf.constant([0.0, 5.0]))]


@program
def no_gradient_is_told():
    with tf.GradientTape() as tape:
        image = tf.Variable([[[0.5, 0.0, 0.0]]])
        changed = tf.image.adjust_contrast(image, 0.1)
    return fails(lambda: tape.gradient(changed, image))


# ---- objects made of tensors ---------------------------------------------------------------------------------------

class Masked(tf.experimental.ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor

    def with_values(self, values):
        return Masked(values, self.mask)


@program
def branches_and_loops_of_objects():
    @tf.function
    def choose(x, positive):
        if positive:
            x = Masked(x, tf.greater(x, 0))
        else:
            x = Masked(x, tf.less(x, 0))
        for _ in tf.range(5 if positive else 7):
            x = x.with_values(x.values + 1 / 2)
        return x

    @tf.function
    def doubled(rows, n):
        for _ in tf.range(n):
            rows = rows * 2
        return rows

    made = [choose(tf.constant([1.0, -2.0, 3.0]), tf.constant(b)) for b in (True, False)]
    return [[m.values, m.mask] for m in made] + [doubled(tf.ragged.constant([[1, 2], [3]]), tf.constant(3))]


class Marked(tf.experimental.ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor

    class Spec:
        def __init__(self, shape, dtype=tf.float32):
            self.values = tf.TensorSpec(shape, dtype)
            self.mask = tf.TensorSpec(shape, tf.bool)

        def __repr__(self):
            return f"Marked.Spec(shape={self.shape}, dtype={self.dtype})"

        shape = property(lambda self: self.values.shape)
        dtype = property(lambda self: self.values.dtype)


@program
def specifications_of_ones_own():
    spec = Marked.Spec([None, 2])

    @tf.function(input_signature=[spec])
    def double(x):
        return Marked(x.values * 2, x.mask)

    made = double(Marked([[1.0, 2.0]], [[True, False]]))
    return [str(spec), str(spec.mask), spec == Marked.Spec([None, 2], tf.float32), made.values, made.mask, str(tf.type_spec_from_value(made))]


@program
def nothing_is_no_value():
    return [fails(f) for f in (
        lambda: tf.constant([None, 2]), lambda: tf.constant([[1], [None]]), lambda: tf.constant(np.array([None, 1], object)),
        lambda: tf.constant(["a", None]), lambda: tf.constant([{}]), lambda: tf.constant([None, 2.0], tf.float32), lambda: tf.constant([object()]))]


@program
def sizes_of_parsed_rows():
    example = tf.train.Example(features=tf.train.Features(feature={
        "v": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5] * 3))})).SerializeToString()
    rows = tf.data.Dataset.from_tensors(example).repeat(2).map(lambda r: tf.io.parse_single_example(r, {"v": tf.io.VarLenFeature(tf.float32)}))
    return [str(rows.element_spec), [r["v"] for r in rows]]


@program
def dispatch_again():
    @tf.experimental.dispatch_for_api(tf.stack)
    def first(values: List[Masked], axis=0):
        return Masked(tf.stack([v.values for v in values], axis), tf.stack([v.mask for v in values], axis))

    one = Masked([1, 2], [True, False])
    pair = tf.stack([one, one])
    tf.experimental.unregister_dispatch_for(first)

    @tf.experimental.dispatch_for_api(tf.stack)
    def second(values: List[Union[Masked, tf.Tensor]], axis=0):
        values = [v if isinstance(v, Masked) else Masked(v, tf.ones_like(v, tf.bool)) for v in values]
        return Masked(tf.stack([v.values for v in values], axis), tf.stack([v.mask for v in values], axis))

    both = tf.stack([one, tf.constant([3, 4]), one])
    tf.experimental.unregister_dispatch_for(second)
    return [pair.values, both.values, both.mask, tf.stack([tf.constant(1), tf.constant(2)])]


# ---- ragged rows and texts -----------------------------------------------------------------------------------------

@program
def ragged_operands_meet():
    x = tf.ragged.constant([[1, 2], [3]])
    deep = tf.ragged.constant([[[1, 2], [3, 4]], [[7, 8]]], ragged_rank=1)
    deeper = tf.ragged.constant([[[[1], [2]], [], [[3]]], [[[4], [5], [6]]]], ragged_rank=2)
    return [x + tf.constant([[10], [20]]), x * 2, x + x, 5 - x, x + tf.constant([7]), x == x, x > 1, x / 2, tf.add(x, [[1], [2]]), tf.maximum(x, 2),
            deep + tf.constant([[[10]], [[20]]]), deep + tf.constant([100, 200]), deeper + tf.constant([10, 20, 30]),
            fails(lambda: x + tf.ragged.constant([[1], [2, 3]])), tf.one_hot(x, 4)]


@program
def texts_in_rows():
    rows = tf.ragged.constant([["who", "is", "dan"], ["pause"], ["will", "it", "rain"]])
    mark = tf.fill([rows.nrows(), 1], "#")
    padded = tf.concat([mark, rows, mark], axis=1)
    pairs = tf.strings.join([padded[:, :-1], padded[:, 1:]], separator="+")
    table = tf.Variable(tf.reshape(tf.range(64.0), (16, 4)))
    return [padded, pairs, tf.strings.join([rows, "x"]), tf.nn.embedding_lookup(table, tf.strings.to_hash_bucket_fast(pairs, 16))]


@program
def ragged_rows_in_datasets():
    rows = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1, 2], [3], [], [4, 5, 6]]))
    table = tf.data.Dataset.from_tensor_slices({"t": tf.ragged.constant([["a", "b"], ["c"]]), "y": [1, 2]})
    both = tf.data.Dataset.zip((rows, tf.data.Dataset.range(4))).batch(2)
    return [str(rows.element_spec), str(rows.batch(2).element_spec), list(rows), list(rows.batch(3)), list(rows.map(lambda x: x * 2)),
            str(rows.map(lambda x: x * 2).element_spec), list(rows.filter(lambda x: tf.size(x) > 1)), list(rows.ragged_batch(3)), list(table),
            list(table.batch(2)), list(rows.batch(2).unbatch().batch(3)), list(both), fails(lambda: rows.padded_batch(2))]


@program
def likeness_of_pictures():
    a = tf.reshape(tf.range(180 * 177 * 3, dtype=tf.float32) % 251, (1, 180, 177, 3)) / 251
    b = tf.clip_by_value(a * 0.8 + 0.1, 0, 1)
    return [np.round(tf.image.ssim_multiscale(a, b, 1.0), 3), np.round(tf.image.ssim_multiscale(a[0], b[0], 1.0), 3),
            tf.image.ssim(a, b, 1.0, return_index_map=True).shape.as_list(), fails(lambda: tf.image.ssim_multiscale(a[:, :100], b[:, :100], 1.0))]


@program
def moved_texts_keep_what_they_say():
    made = []
    for n in (1, 30):
        column = tf.fill([3, 1], "#" * n)
        row = tf.reshape(column, [3])
        del column
        made += [tf.gather(row, [0, 2]), tf.tile(tf.constant(["x" * n]), [2]), tf.stack(["y" * n, "z"]), tf.transpose(tf.constant([["a" * n, "b"]])),
                 tf.reverse(tf.constant(["u" * n, "v"]), [0]), tf.split(tf.concat([["q" * n], ["r"]], 0), 2), tf.broadcast_to("w" * n, [2, 1])]
    return made


@program
def formats():
    return [tf.strings.format("{}", ("a",)), tf.strings.format("{} {}", (tf.constant(1), tf.constant("q"))), tf.strings.format("x {} y", tf.constant(["a"]))]


@program
def slices_of_sparse_tensors():
    x = tf.SparseTensor([[0, 1], [2, 3]], [1, 2], [3, 4])
    return [tf.sparse.slice(x, [0, 0], [2, 2]), tf.sparse.slice(x, [1, 1], [9, 9]), tf.sparse.slice(x, [0, 8], [2, 5]).indices.shape.as_list()]


@program
def rows_of_images():
    return np.round(tf.image.adjust_contrast(tf.reshape(tf.range(12.0), (2, 2, 3)), 1.7), 3)


@program
def ragged_tensors_as_text():
    words = tf.ragged.constant([["who is dan".split() * 4, ["a"]], [["pause"], [], ["later", "today"] * 5]])
    even, none = tf.RaggedTensor.from_tensor([[1.5, 2.0], [3.0, 4.0]]), tf.ragged.constant([[], []])
    return [repr(words), str(tf.ragged.range(tf.range(14))), repr(even), even.numpy(), repr(none),
            repr(tf.RaggedTensor.from_row_splits(tf.reshape(tf.range(6.0), [2, 3]) / 3, [0, 2, 2]))]


@program
def random_crops_are_tensorflows():
    x = tf.reshape(tf.range(5 * 7 * 3), [5, 7, 3])
    tf.random.set_seed(3)
    return [tf.image.stateless_random_crop(x, (3, 4, 3), seed=(n, 2))[0, 0] for n in range(4)] + [tf.image.random_crop(x, (2, 2, 3), seed=4)[0, 0]]


@program
def types_meet_as_in_numpy():  # the last one: tensors keep NumPy's methods
    numpy, made = tf.experimental.numpy, []
    whole, real = tf.constant(10, tf.int32), tf.constant(5.0, tf.float32)

    def note(*functions):
        made.extend(fails(lambda f=f: (r := f()).dtype.name + str(np.asarray(r).tolist())) for f in functions)

    note(lambda: whole + real)
    numpy.experimental_enable_numpy_behavior(dtype_conversion_mode="all")
    note(lambda: whole + real, lambda: tf.constant(10, tf.int8) + tf.constant(5, tf.uint32), lambda: tf.constant(1, tf.int64) + tf.constant(3.0, tf.float16),
         lambda: tf.constant(5, tf.int16) - real, lambda: real * 2, lambda: 2 * real, lambda: real / tf.constant(2, tf.float64))
    numpy.experimental_enable_numpy_behavior(dtype_conversion_mode="safe")
    note(lambda: whole + real, lambda: tf.constant(10, tf.int8) + tf.constant(5, tf.uint32), lambda: tf.constant(10, tf.int8) + whole,
         lambda: real + tf.constant(2, tf.float64))
    numpy.experimental_enable_numpy_behavior(dtype_conversion_mode="legacy")
    note(lambda: np.array(3.5, np.float16) + tf.constant(1, tf.int8) + whole, lambda: whole + real, lambda: tf.constant([1, 2]) + [3, 4],
         lambda: tf.Variable(2.0) * whole, lambda: whole + 2.5, lambda: real + 2, lambda: tf.constant([1, 2]) == tf.constant([1.0, 3.0]), lambda: whole // real)
    numpy.experimental_enable_numpy_behavior(dtype_conversion_mode="off")
    return made + [fails(lambda: whole + real)]


if __name__ == "__main__":
    main(sys.argv[1:])
