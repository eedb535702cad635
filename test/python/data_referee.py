"""Small programs over tf.data, run by TensorFlow and by Stoker. What they print must be the same.

    python test/python/data_referee.py > test/python/data_referee.expected.txt    # the real TensorFlow
    python -m stoker test/python/data_referee.py                        # Stoker; test_data_referee.py compares
"""
import collections
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from referee import all_of, fails, main, program, spec  # noqa: E402

D = tf.data.Dataset
Point = collections.namedtuple("Point", ["x", "y"])


# Sources and structures.

@program
def slices_of_tuple():
    return all_of(D.from_tensor_slices((np.arange(3), np.eye(3, dtype="float32"))))


@program
def slices_of_list_is_one_tensor():
    ds = D.from_tensor_slices([[1, 2], [3, 4]])
    return spec(ds), all_of(ds)


@program
def slices_of_dict_keeps_order():
    ds = D.from_tensor_slices({"b": [1, 2], "a": [3.0, 4.0]})
    return spec(ds), all_of(ds)


@program
def slices_of_namedtuple():
    return all_of(D.from_tensor_slices(Point([1, 2], [3, 4])))


@program
def slices_nested():
    ds = D.from_tensor_slices(({"a": [1, 2], "b": ([3, 4], [5, 6])}, [7, 8]))
    return spec(ds), all_of(ds)


@program
def slices_strings():
    ds = D.from_tensor_slices(["a", "bc", "d"])
    return spec(ds), all_of(ds), list(ds.as_numpy_iterator())


@program
def slices_errors():
    return [fails(lambda: D.from_tensor_slices(5)), fails(lambda: D.from_tensor_slices(([1, 2], [1, 2, 3]))),
            fails(lambda: D.from_tensor_slices(()))]


@program
def from_tensors_with_none():
    ds = D.from_tensors((1, None, "x"))
    return spec(ds), all_of(ds)


@program
def ranges():
    return [all_of(D.range(4)), all_of(D.range(2, 9, 3)), all_of(D.range(5, 0, -2)), all_of(D.range(3, output_type=tf.int32)),
            spec(D.range(3, output_type=tf.float32)), len(D.range(2, 9, 3))]


@program
def zips():
    a, b = D.range(3), D.range(10, 20)
    ds = D.zip((a, {"z": b, "y": a}))
    return spec(ds), all_of(ds), len(ds), all_of(D.zip(a, b))


@program
def zip_errors():
    return [fails(lambda: D.zip([D.range(2)])), fails(lambda: D.zip((D.range(2), 3)))]


@program
def concatenates():
    ds = D.range(2).concatenate(D.range(5, 7))
    return all_of(ds), len(ds), fails(lambda: D.range(2).concatenate(D.from_tensors(1.0)))


@program
def numpy_iterator():
    ds = D.from_tensor_slices({"a": np.arange(2), "s": ["x", "y"]}).batch(2)
    return list(ds.as_numpy_iterator())


@program
def iterator_protocol():
    it = iter(D.range(1))
    first = it.get_next()
    return first, fails(it.get_next), fails(lambda: next(it)), it.get_next_as_optional().has_value()


@program
def optional_has_value():
    o = iter(D.range(3)).get_next_as_optional()
    return o.has_value(), o.get_value()


# Order and number.

@program
def take_skip_repeat_shard():
    ds = D.range(10)
    return [all_of(ds.take(3)), all_of(ds.skip(8)), all_of(ds.repeat(2).skip(8).take(5)), all_of(ds.shard(3, 1)),
            all_of(ds.take(-1)), all_of(ds.skip(-1)), all_of(ds.take(0)), len(ds.repeat(3)), len(ds.shard(3, 2))]


@program
def cardinalities():
    ds = D.range(10)
    return [int(x.cardinality()) for x in (ds, ds.repeat(), ds.filter(lambda x: x > 1), ds.batch(3), ds.batch(3, True),
                                           ds.map(lambda x: x), ds.shuffle(3), ds.unbatch() if False else ds,
                                           ds.repeat().take(4), ds.flat_map(lambda x: D.range(2)), ds.enumerate(),
                                           ds.window(3), ds.padded_batch(4), ds.cache(), ds.prefetch(1), ds.skip(3))]


@program
def length_errors():
    return fails(lambda: len(D.range(2).repeat())), fails(lambda: len(D.range(2).filter(lambda x: True))), bool(D.range(0))


@program
def shuffle_is_a_permutation():
    ds = D.range(50).shuffle(50, seed=1)
    a, b = [int(x) for x in ds], [int(x) for x in ds]
    c = D.range(50).shuffle(50, seed=1, reshuffle_each_iteration=False)
    e, f = [int(x) for x in c], [int(x) for x in c]
    return sorted(a) == list(range(50)), a != list(range(50)), a != b, e == f


@program
def shuffle_buffer_is_local():
    order = [int(x) for x in D.range(100).shuffle(5, seed=2)]
    return sorted(order) == list(range(100)), all(v <= n + 4 for n, v in enumerate(order))


@program
def shuffle_errors():
    return fails(lambda: D.range(3).shuffle(0))


@program
def enumerates():
    ds = D.from_tensor_slices(["a", "b"]).enumerate(start=5)
    return spec(ds), all_of(ds)


@program
def cache_remembers():
    calls = []

    def generate():
        calls.append(1)
        yield from range(3)

    ds = D.from_generator(generate, output_signature=tf.TensorSpec((), tf.int32)).cache()
    return all_of(ds, -1), all_of(ds, -1), len(calls)


@program
def cache_in_a_file():
    with tempfile.TemporaryDirectory() as folder:
        ds = D.range(5).map(lambda x: x * 3).cache(os.path.join(folder, "c"))
        return all_of(ds, -1), all_of(ds, -1)


@program
def uniques():
    return sorted(int(x) for x in D.from_tensor_slices([3, 1, 3, 2, 1]).unique()), sorted(
        x.numpy() for x in D.from_tensor_slices(["a", "b", "a"]).unique())


# Batches.

@program
def batches():
    ds = D.range(7).batch(3)
    drop = D.range(7).batch(3, drop_remainder=True)
    return spec(ds), all_of(ds), spec(drop), all_of(drop), len(ds), len(drop)


@program
def batch_of_structure():
    ds = D.from_tensor_slices({"x": np.arange(6).reshape(3, 2), "s": ["a", "b", "c"]}).batch(2)
    return spec(ds), all_of(ds)


@program
def batch_errors():
    ragged = D.range(1, 4).map(lambda n: tf.ones((n,)) if False else n)
    return fails(lambda: D.range(3).batch(0)), all_of(ragged)


@program
def batch_of_different_shapes_fails():
    ds = D.from_generator(lambda: iter([[1], [2, 3]]), output_signature=tf.TensorSpec((None,), tf.int32)).batch(2)
    return fails(lambda: all_of(ds))


@program
def unbatches():
    ds = D.range(6).batch(4).unbatch()
    return spec(ds), all_of(ds), fails(lambda: D.range(2).unbatch())


@program
def rebatches():
    ds = D.range(7).batch(2).rebatch(3)
    return all_of(ds)


@program
def padded_batches():
    gen = D.from_generator(lambda: iter([[1], [2, 3], [4, 5, 6]]), output_signature=tf.TensorSpec((None,), tf.int32))
    return [all_of(gen.padded_batch(2)), all_of(gen.padded_batch(2, padded_shapes=[4])), spec(gen.padded_batch(2, [4])),
            all_of(gen.padded_batch(3, padding_values=-1)), all_of(gen.padded_batch(2, drop_remainder=True)),
            spec(gen.padded_batch(2)), fails(lambda: all_of(gen.padded_batch(3, padded_shapes=[2])))]


@program
def padded_batch_of_tuple():
    gen = D.from_generator(lambda: iter([([1], 1.0), ([2, 3], 2.0)]),
                           output_signature=(tf.TensorSpec((None,), tf.int64), tf.TensorSpec((), tf.float32)))
    ds = gen.padded_batch(2, padded_shapes=([None], []), padding_values=(tf.constant(9, tf.int64), 0.0))
    return spec(ds), all_of(ds)


@program
def windows():
    ds = D.range(7).window(3, shift=2, drop_remainder=True)
    return [[int(x) for x in w] for w in ds], all_of(ds.flat_map(lambda w: w.batch(3)))


@program
def windows_of_tuples():
    ds = D.from_tensor_slices((np.arange(6), np.arange(6) * 10)).window(3, shift=1, drop_remainder=True)
    return all_of(ds.flat_map(lambda a, b: D.zip((a.batch(3), b.batch(3)))).take(2))


@program
def window_stride():
    return [[int(x) for x in w] for w in D.range(10).window(3, shift=2, stride=2)]


@program
def buckets():
    gen = D.from_generator(lambda: ([1] * n for n in (1, 4, 2, 5, 3, 1)), output_signature=tf.TensorSpec((None,), tf.int32))
    ds = gen.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 5], [2, 2, 1])
    return spec(ds), sorted(str(e.numpy().tolist()) for e in ds)


@program
def groups():
    ds = D.range(8).group_by_window(lambda x: x % 2, lambda k, w: w.batch(3), window_size=3)
    return sorted(str(e.numpy().tolist()) for e in ds)


@program
def ragged_batches():
    gen = D.from_generator(lambda: iter([[1], [2, 3], [4]]), output_signature=tf.TensorSpec((None,), tf.int32))
    return spec(gen.ragged_batch(2)), all_of(gen.ragged_batch(2))


@program
def ragged_slices():
    rt = tf.ragged.constant([[1, 2], [], [3]])
    ds = D.from_tensor_slices(rt)
    return all_of(ds), all_of(ds.map(lambda x: tf.reduce_sum(x)))


@program
def sparse_slices_and_batch():
    st = tf.sparse.from_dense([[1, 0, 2], [0, 0, 3]])
    ds = D.from_tensor_slices(st)
    return all_of(ds), all_of(ds.batch(2))


# Functions.

@program
def maps():
    ds = D.range(4)
    return [all_of(ds.map(lambda x: x * 2)), all_of(ds.map(lambda x: (x, x + 1))), all_of(ds.map(lambda x: [x, x])),
            all_of(ds.map(lambda x: {"a": x, "b": tf.cast(x, tf.float32) / 2})), spec(ds.map(lambda x: [x, 1.5])),
            all_of(ds.map(lambda x: Point(x, x)).take(1)), all_of(ds.map(lambda x: 7).take(1)),
            all_of(ds.map(lambda x: (x, None)).take(1)), all_of(ds.map(lambda x: "s").take(1))]


@program
def map_unpacks():
    ds = D.from_tensor_slices((np.arange(2), {"k": [5, 6]}))
    return all_of(ds.map(lambda a, d: a + tf.cast(d["k"], tf.int64))), all_of(
        D.from_tensor_slices({"k": [1, 2]}).map(lambda d: d["k"] * 2))


@program
def map_specs():
    ds = D.from_tensor_slices(np.zeros((10, 4), "float32")).batch(3)
    return [spec(ds.map(lambda x: x + 1)), spec(ds.map(lambda x: tf.reduce_sum(x))), spec(ds.map(lambda x: x[:, :2])),
            spec(ds.map(lambda x: tf.transpose(x))), spec(ds.map(lambda x: tf.reduce_mean(x, 0))),
            spec(ds.map(lambda x: tf.zeros((2, 3)))), spec(ds.map(lambda x: tf.cast(x, tf.int32)))]


@program
def map_runs_python_once():
    calls = []

    def f(x):
        calls.append(1)
        return x

    ds = D.range(5).map(f)
    return all_of(ds), len(calls)


@program
def map_with_tensor_if():
    def f(x):
        if x % 2 == 0:
            return x * 10
        return -x

    return all_of(D.range(5).map(f))


@program
def map_with_loop():
    def f(x):
        total = tf.constant(0, tf.int64)
        for i in tf.range(x):
            total += i
        return total

    return all_of(D.range(5).map(f))


@program
def map_reads_variable():
    v = tf.Variable(10, dtype=tf.int64)
    ds = D.range(2).map(lambda x: x + v)
    before = all_of(ds)
    v.assign(20)
    return before, all_of(ds)


@program
def map_tf_function():
    @tf.function
    def f(x):
        return x * x

    return all_of(D.range(4).map(f))


@program
def map_parallel_keeps_order():
    return [int(x) for x in D.range(200).map(lambda x: x + 1, num_parallel_calls=tf.data.AUTOTUNE)] == list(range(1, 201))


@program
def map_strings():
    ds = D.from_tensor_slices(["A b", "C"])
    return all_of(ds.map(tf.strings.lower)), all_of(ds.map(lambda s: tf.strings.length(s))), all_of(
        ds.map(lambda s: tf.strings.join([s, "!"]))), spec(ds.map(tf.strings.lower))


@program
def map_string_to_number():
    return all_of(D.from_tensor_slices(["1", "2.5"]).map(lambda s: tf.strings.to_number(s)))


@program
def map_py_function():
    ds = D.range(3).map(lambda x: tf.py_function(lambda v: v.numpy() * 2, [x], tf.int64))
    return all_of(ds)


@program
def map_numpy_function():
    ds = D.range(3).map(lambda x: tf.numpy_function(lambda v: np.float32(v) / 2, [x], tf.float32))
    return all_of(ds)


@program
def py_function_errors():
    found = []
    for kind in (ValueError, TypeError, KeyError, RuntimeError, NotImplementedError, MemoryError):
        def f(v, kind=kind):
            raise kind("boom")

        found.append(fails(lambda: all_of(D.range(3).map(lambda x: tf.py_function(f, [x], tf.int64)))))
    return found


@program
def map_errors():
    return [fails(lambda: D.range(3).map(lambda x: x.foo)), fails(lambda: D.range(3).map(lambda x, y: x)),
            fails(lambda: D.range(3).map(lambda x: x + tf.constant(1.5)))]


@program
def random_in_map():
    ds = D.range(4).map(lambda x: tf.random.uniform(()))
    a, b = [float(v) for v in ds], [float(v) for v in ds]
    return len(set(a)), a != b


@program
def filters():
    ds = D.range(6)
    return [all_of(ds.filter(lambda x: x % 2 == 0)), all_of(ds.filter(lambda x: tf.math.equal(x, 3))),
            fails(lambda: ds.filter(lambda x: x)), all_of(D.from_tensor_slices(["a", "bb"]).filter(
                lambda s: tf.strings.length(s) > 1)), all_of(D.zip((ds, ds)).filter(lambda a, b: a + b > 7))]


@program
def take_whiles():
    return all_of(D.range(9).take_while(lambda x: x < 4))


@program
def scans():
    return all_of(D.range(5).scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s * 10)))


@program
def reduces():
    return [D.range(5).reduce(np.int64(0), lambda s, x: s + x),
            D.range(5).reduce((np.int64(0), 0.0), lambda s, x: (s[0] + x, s[1] + 1.0))]


@program
def reduce_of_tuple():
    ds = D.zip((D.range(3), D.range(3, 6)))
    return ds.reduce(np.int64(0), lambda s, e: s + e[0] * e[1])


@program
def flat_maps():
    return all_of(D.range(1, 4).flat_map(lambda x: D.range(x))), all_of(
        D.from_tensor_slices([[1, 2], [3, 4]]).flat_map(D.from_tensor_slices))


@program
def interleaves():
    ds = D.range(1, 4)
    return [all_of(ds.interleave(lambda x: D.from_tensors(x).repeat(3), cycle_length=2, block_length=2)),
            all_of(ds.interleave(lambda x: D.from_tensors(x).repeat(2), cycle_length=3, num_parallel_calls=2))]


@program
def applies():
    return all_of(D.range(3).apply(lambda ds: ds.map(lambda x: -x))), fails(lambda: D.range(3).apply(lambda ds: 3))


@program
def samples():
    ds = D.sample_from_datasets([D.from_tensors(0).repeat(100), D.from_tensors(1).repeat(100)], weights=[1.0, 0.0], seed=1)
    return len([0 for _ in ds]) in (100, 200), [int(x) for x in ds.take(3)]


@program
def chooses():
    a, b = D.from_tensors("a").repeat(), D.from_tensors("b").repeat()
    return all_of(D.choose_from_datasets([a, b], D.from_tensor_slices(np.array([0, 1, 1, 0], np.int64))))


@program
def ignores_errors():
    ds = D.from_tensor_slices([1.0, 2.0, 0.0, 4.0]).map(lambda x: tf.debugging.check_numerics(1.0 / x, "bad"))
    return all_of(ds.ignore_errors())


@program
def single_element():
    return D.from_tensors(5).get_single_element(), fails(lambda: D.range(2).get_single_element()), fails(
        lambda: D.range(0).get_single_element())


@program
def save_and_load():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "d")
        D.range(5).map(lambda x: {"x": x, "y": tf.cast(x, tf.float32)}).save(path)
        ds = D.load(path)
        return spec(ds), all_of(ds)


@program
def counters():
    return all_of(D.counter(start=3, step=2).take(3)), all_of(tf.data.experimental.Counter().take(2))


@program
def random_dataset():
    a = [int(x) for x in D.random(seed=4).take(3)]
    return len(set(a)), spec(D.random(seed=4)), fails(lambda: len(D.random(seed=4)))


@program
def options_are_kept():
    options = tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = 2
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    ds = D.range(3).with_options(options).map(lambda x: x)
    return sorted(int(x) for x in ds), ds.options().deterministic, ds.options().threading.private_threadpool_size, fails(
        lambda: setattr(options, "foo", 1))


@program
def rejection():
    ds = D.from_tensor_slices(np.array([0, 1] * 200, np.int64)).rejection_resample(lambda x: x, [0.5, 0.5], [0.5, 0.5], seed=3)
    return spec(ds), len([0 for _ in ds]) > 300


# Generators.

@program
def generator_with_signature():
    ds = D.from_generator(lambda: ((n, [float(n)] * n) for n in range(3)),
                          output_signature=(tf.TensorSpec((), tf.int32), tf.TensorSpec((None,), tf.float32)))
    return spec(ds), all_of(ds), int(ds.cardinality())


@program
def generator_legacy():
    ds = D.from_generator(lambda: iter([1, 2]), tf.int64)
    two = D.from_generator(lambda: iter([(1, [2, 3])]), (tf.int64, tf.float32), (tf.TensorShape([]), tf.TensorShape([None])))
    return spec(ds), all_of(ds), spec(two), all_of(two)


@program
def generator_with_arguments():
    def count(stop, name):
        for n in range(stop):
            yield n, name

    return all_of(D.from_generator(count, args=[2, "k"], output_signature=(tf.TensorSpec((), tf.int32),
                                                                          tf.TensorSpec((), tf.string))))


@program
def generator_of_dicts():
    ds = D.from_generator(lambda: iter([{"a": 1, "b": "x"}]), output_signature={"a": tf.TensorSpec((), tf.int32),
                                                                              "b": tf.TensorSpec((), tf.string)})
    return spec(ds), all_of(ds)


@program
def generator_errors():
    def bad():
        yield 1
        raise KeyError("boom")

    sig = tf.TensorSpec((), tf.int32)
    return [fails(lambda: all_of(D.from_generator(bad, output_signature=sig))),
            fails(lambda: all_of(D.from_generator(lambda: iter([[1, 2]]), output_signature=sig))),
            fails(lambda: all_of(D.from_generator(lambda: iter(["x"]), output_signature=sig))),
            fails(lambda: D.from_generator([1, 2], output_signature=sig)),
            fails(lambda: D.from_generator(lambda: iter([1])))]


@program
def generator_of_ragged():
    ds = D.from_generator(lambda: iter([tf.ragged.constant([[1, 2], [3]])]),
                          output_signature=tf.RaggedTensorSpec((2, None), tf.int32))
    return all_of(ds)


@program
def snapshots():
    with tempfile.TemporaryDirectory() as folder:
        ds = D.range(4).snapshot(os.path.join(folder, "s"))
        return sorted(int(x) for x in ds), sorted(int(x) for x in ds)


@program
def dataset_in_tf_function():
    @tf.function
    def total(ds):
        s = tf.constant(0, tf.int64)
        for x in ds:
            s += x
        return s

    return total(D.range(5))


@program
def element_specs_of_kinds():
    ds = D.from_tensors({"r": tf.ragged.constant([[1], [2, 3]]), "s": tf.sparse.from_dense([0, 1])})
    return sorted(str(k) for k in ds.element_spec), repr(tf.data.DatasetSpec(tf.TensorSpec((), tf.int32)))


@program
def reprs():
    ds = D.range(3)
    return [str(x) for x in (ds, ds.batch(2), ds.map(lambda x: x), ds.prefetch(1), ds.shuffle(2), ds.repeat(), ds.take(1),
                             D.from_tensor_slices([1]), ds.cache(), ds.skip(1), D.zip((ds, ds)), ds.filter(lambda x: True))]


if __name__ == "__main__":
    main(sys.argv[1:])
