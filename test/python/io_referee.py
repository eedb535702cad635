"""Small programs over files: tf.io, tf.train and the datasets of files, run by TensorFlow and by Stoker. What they print must be the same.

    python test/python/io_referee.py > test/python/io_referee.expected.txt    # the real TensorFlow
    python -m stoker test/python/io_referee.py                        # Stoker; test_data_referee.py compares
"""
import gzip
import os
import sys
import tempfile
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from referee import all_of, fails, main, program, spec  # noqa: E402

D = tf.data.Dataset


def feature(value):
    if isinstance(value[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
    if isinstance(value[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=value))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value))


def example(**features):
    return tf.train.Example(features=tf.train.Features(feature={k: feature(v) for k, v in features.items()}))


def records(folder, rows, options=None):
    path = os.path.join(folder, "r.tfrecord")
    with tf.io.TFRecordWriter(path, options) as writer:
        for row in rows:
            writer.write(row.SerializeToString())
    return path


ROWS = [dict(a=[1], v=[1.5, 2.5], s=[b"x"]), dict(a=[2], v=[3.5], s=[b"y", b"z"]), dict(a=[3], v=[], s=[b""])]


def rows():
    made = []
    for row in ROWS:
        e = example(a=row["a"], s=row["s"])
        e.features.feature["v"].float_list.value.extend(row["v"])
        made.append(e)
    return made


FEATURES = {"a": tf.io.FixedLenFeature([], tf.int64), "v": tf.io.VarLenFeature(tf.float32), "s": tf.io.VarLenFeature(tf.string),
            "d": tf.io.FixedLenFeature([2], tf.float32, default_value=[7.0, 8.0])}


@program
def records_round_trip():
    with tempfile.TemporaryDirectory() as folder:
        path = records(folder, rows())
        ds = tf.data.TFRecordDataset(path)
        parsed = ds.map(lambda r: tf.io.parse_single_example(r, FEATURES))
        return spec(ds), len(all_of(ds)), all_of(parsed), fails(lambda: len(ds))


@program
def records_in_batches():
    with tempfile.TemporaryDirectory() as folder:
        ds = tf.data.TFRecordDataset(records(folder, rows())).batch(2).map(lambda r: tf.io.parse_example(r, FEATURES))
        return all_of(ds)


@program
def records_compressed():
    with tempfile.TemporaryDirectory() as folder:
        path = records(folder, rows(), tf.io.TFRecordOptions(compression_type="GZIP"))
        return len(all_of(tf.data.TFRecordDataset(path, compression_type="GZIP")))


@program
def records_missing_file():
    return fails(lambda: all_of(tf.data.TFRecordDataset("/nowhere/x.tfrecord")))


@program
def records_damaged():
    with tempfile.TemporaryDirectory() as folder:
        path = records(folder, rows())
        with open(path, "r+b") as file:
            file.seek(20)
            file.write(b"\xff\xff")
        return fails(lambda: all_of(tf.data.TFRecordDataset(path)))


@program
def parse_eagerly():
    data = [r.SerializeToString() for r in rows()]
    seq = {"v": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True), "a": tf.io.FixedLenFeature([], tf.int64)}
    return [tf.io.parse_single_example(data[1], FEATURES), tf.io.parse_example(data, FEATURES), tf.io.parse_example(data, seq),
            tf.io.parse_single_example(data[0], seq), tf.io.parse_example(data, {"v": tf.io.RaggedFeature(tf.float32)})]


@program
def parse_errors():
    data = rows()[0].SerializeToString()
    return [fails(lambda: tf.io.parse_single_example(data, {"zz": tf.io.FixedLenFeature([], tf.int64)})),
            fails(lambda: tf.io.parse_single_example(data, {"a": tf.io.FixedLenFeature([2], tf.int64)})),
            fails(lambda: tf.io.parse_single_example(data, {"a": tf.io.FixedLenFeature([], tf.float32)})),
            fails(lambda: tf.io.parse_single_example(b"abc", FEATURES)),
            fails(lambda: tf.io.parse_single_example(data, {}))]


@program
def sequence_examples():
    s = tf.train.SequenceExample()
    s.context.feature["n"].int64_list.value.append(2)
    for n in (1, 2):
        s.feature_lists.feature_list["t"].feature.add().int64_list.value.extend([n, n * 10])
    data = s.SerializeToString()
    return [data, tf.io.parse_single_sequence_example(
        data, {"n": tf.io.FixedLenFeature([], tf.int64)}, {"t": tf.io.FixedLenSequenceFeature([2], tf.int64)}),
        tf.io.parse_single_sequence_example(data, None, {"t": tf.io.VarLenFeature(tf.int64)})[1]]


@program
def messages():
    e = example(b=[1, -2, 300], a=[1.5, 2.0], zz=[b"hi"])
    again = tf.train.Example.FromString(e.SerializeToString())
    return [e.SerializeToString(deterministic=True), str(e), again == e, sorted(again.features.feature),
            list(again.features.feature["b"].int64_list.value), again.features.feature["a"].WhichOneof("kind"),
            e.ByteSize(), "q" in e.features.feature, e.features.feature["b"].HasField("float_list"),
            fails(lambda: example(a=["x"])), fails(lambda: tf.train.Int64List(value=[1.5])),
            fails(lambda: tf.train.Example.FromString(b"\xff"))]


@program
def text_lines():
    with tempfile.TemporaryDirectory() as folder:
        for n in range(2):
            with open(os.path.join(folder, f"{n}.txt"), "w") as file:
                file.write(f"one {n}\ntwo\n\nlast")
        paths = [os.path.join(folder, f"{n}.txt") for n in range(2)]
        ds = tf.data.TextLineDataset(paths)
        files = D.list_files(os.path.join(folder, "*.txt"), shuffle=False)
        inner = files.interleave(lambda f: tf.data.TextLineDataset(f).skip(1), cycle_length=2)
        return [all_of(ds), spec(ds), [os.path.basename(f.numpy()) for f in files], all_of(inner),
                fails(lambda: D.list_files(os.path.join(folder, "*.none")))]


@program
def fixed_records():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f")
        with open(path, "wb") as file:
            file.write(b"HHaabbccF")
        ds = tf.data.FixedLengthRecordDataset(path, 2, header_bytes=2, footer_bytes=1)
        return all_of(ds), all_of(ds.map(lambda s: tf.io.decode_raw(s, tf.uint8)))


@program
def csv_files():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.csv")
        with open(path, "w") as file:
            file.write("a,b,c\n1,2.5,x\n3,,\"y,z\"\n5,6.5,w\n")
        plain = tf.data.experimental.CsvDataset(path, [tf.int32, [0.0], tf.string], header=True)
        some = tf.data.experimental.CsvDataset(path, [tf.int32, tf.string], header=True, select_cols=[0, 2])
        made = tf.data.experimental.make_csv_dataset(path, 2, label_name="c", num_epochs=1, shuffle=False)
        return spec(plain), all_of(plain), all_of(some), spec(made), all_of(made)


@program
def csv_lines():
    return [tf.io.decode_csv("1,2.5,abc", [[0], [0.0], [""]]), tf.io.decode_csv(["1,a", "2,"], [tf.constant([], tf.int64), ["none"]]),
            fails(lambda: tf.io.decode_csv("x,1", [[0], [0]])), fails(lambda: tf.io.decode_csv("1", [[0], [0]]))]


@program
def csv_lines_in_map():
    ds = D.from_tensor_slices(["1,2.5", "3,4.5"]).map(lambda s: tf.io.decode_csv(s, [[0], [0.0]]))
    return spec(ds), all_of(ds)


@program
def raw_bytes():
    data = np.arange(6, dtype="<i2").tobytes()
    ds = D.from_tensor_slices([data, data]).map(lambda s: tf.reshape(tf.io.decode_raw(s, tf.int16), (2, 3)))
    return [tf.io.decode_raw(data, tf.int16), tf.io.decode_raw([b"ab", b"cd"], tf.uint8), spec(ds), all_of(ds),
            fails(lambda: tf.io.decode_raw(b"abc", tf.int16))]


@program
def pictures():
    image = (np.arange(4 * 5 * 3) * 4 % 256).reshape(4, 5, 3).astype("uint8")
    png = tf.io.encode_png(image)
    jpeg = tf.io.encode_jpeg(tf.constant(np.full((8, 8, 3), 100, "uint8")))
    gray = tf.io.decode_png(png, channels=1)
    ds = D.from_tensor_slices([png.numpy()]).map(lambda s: tf.io.decode_png(s, channels=3))
    return [tf.io.decode_png(png), gray.shape.as_list(), tf.io.decode_jpeg(jpeg).shape.as_list(), spec(ds), all_of(ds),
            tf.io.decode_image(png, channels=3).numpy().sum(), fails(lambda: tf.io.decode_jpeg(b"nothing")),
            tf.io.decode_image(png, dtype=tf.float32).dtype.name, tf.image.extract_jpeg_shape(jpeg)]


@program
def pictures_of_files():
    with tempfile.TemporaryDirectory() as folder:
        for n, size in enumerate(((4, 6), (5, 5), (7, 3))):
            tf.io.write_file(os.path.join(folder, f"{n}.png"), tf.io.encode_png(np.full(size + (3,), 10 * n, "uint8")))

        def load(path):
            image = tf.io.decode_png(tf.io.read_file(path), channels=3)
            image = tf.image.resize(image, [4, 4])
            return image / 255.0, tf.strings.length(path) * 0

        def load_only(path):
            return tf.image.resize(tf.io.decode_png(tf.io.read_file(path), channels=3), [4, 4])

        files = D.list_files(os.path.join(folder, "*.png"), shuffle=False)
        plain = files.map(load_only, num_parallel_calls=2)
        return [spec(files.map(load)), all_of(files.map(load).batch(3)), spec(plain),
                [float(tf.reduce_mean(x)) for x in plain]]


@program
def files_read_and_written():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sub", "x.bin")
        tf.io.write_file(path, b"abc")
        g = tf.io.gfile
        g.makedirs(os.path.join(folder, "m", "n"))
        with g.GFile(os.path.join(folder, "t.txt"), "w") as file:
            file.write("one\ntwo\n")
        with g.GFile(os.path.join(folder, "t.txt")) as file:
            lines = [line for line in file]
        g.copy(path, path + ".copy")
        g.rename(path + ".copy", path + ".moved")
        return [tf.io.read_file(path), fails(lambda: tf.io.read_file("/nowhere")), lines, sorted(g.listdir(folder)),
                g.exists(path), g.isdir(folder), g.stat(path).length, fails(lambda: g.remove("/nowhere/x")),
                [os.path.basename(p) for p in g.glob(os.path.join(folder, "*.txt"))], fails(lambda: g.copy(path, path)),
                fails(lambda: g.GFile("/nowhere/x").read()), fails(lambda: g.listdir("/nowhere")),
                [os.path.basename(p.numpy()) for p in tf.io.matching_files(os.path.join(folder, "*.txt"))],
                [(os.path.relpath(a, folder), sorted(b), sorted(c)) for a, b, c in g.walk(folder)], g.rmtree(folder + "/m")]


@program
def compressed_lines_and_no_files():
    with tempfile.TemporaryDirectory() as folder:
        packed, squeezed = os.path.join(folder, "a.gz"), os.path.join(folder, "b.z")
        with gzip.open(packed, "wb") as file:
            file.write(b"a,1\r\nb,2\n\nlast")
        with open(squeezed, "wb") as file:
            file.write(zlib.compress(b"x\ny\n"))
        lines = tf.data.TextLineDataset
        return [list(lines(packed, compression_type="GZIP")), list(lines([squeezed], compression_type="ZLIB").skip(1)),
                fails(lambda: list(lines(packed + "x", compression_type="GZIP"))), list(lines([])),
                list(tf.data.TFRecordDataset([])), list(tf.data.FixedLengthRecordDataset([], 4)),
                list(lines([]).map(lambda line: (line, 0)).concatenate(lines([]).map(lambda line: (line, 1))).batch(2))]


@program
def files_that_break_when_they_are_read():
    """map() looks at the first elements; that they cannot be read is the iterator's affair."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.tfrecord")
        with open(path, "wb") as file:
            file.write(b"this is not a file of records, not at all")
        made = tf.data.TFRecordDataset(path).map(lambda record: tf.reshape(tf.io.parse_tensor(record, tf.uint8), [2]))
        return fails(lambda: list(made)).split(":")[0]


@program
def tensors_as_bytes():
    values = [tf.constant([[1.5, 2.0]]), tf.constant([1, 2], tf.int64), tf.constant(["a", "bc"]), tf.constant(True),
              tf.constant(3, tf.uint8)]
    data = [tf.io.serialize_tensor(v) for v in values]
    return data, [tf.io.parse_tensor(d, v.dtype) for d, v in zip(data, values)], fails(
        lambda: tf.io.parse_tensor(data[0], tf.int32))


if __name__ == "__main__":
    main(sys.argv[1:])
