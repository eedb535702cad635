"""The input rows of the peers: the data and files (made from the same formulas as in bench/rows_records.c, by whoever
comes first, in $STOKER_BENCH_DATA, else /dev/shm/stoker-bench), the digests that show that all did the same work, and
TensorFlow's and pandas' ways.

Every way first does its work once without what is random and keeps a digest of what came out (common.Timed's `check`);
bench/run compares it with Stoker's before any time counts. What is random is checked for its range.
"""
import os
import pathlib
import zlib

import common
import numpy as np

IMAGES, SIDE, BATCH, PHOTOS, TARGET = 1000, 256, 32, 64, 224
PIXELS = SIDE * SIDE * 3
SCALARS = 10_000_000
PHOTO_H, PHOTO_W = 768, 1024
CSV_ROWS, CSV_COLUMNS, CSV_CHECKED, CSV_TIMED = 1_000_000, 20, 100_000, 20_000
WRITTEN_BYTES, LARGE_RECORD, SMALL_RECORD = 10_000_000, 10_000, 1000
CHECKED = 2  # batches in a digest
# Batches per iteration of Stoker's rows, more than anybody reads ahead. Peers that need seconds for
# them do a part, and the time is that of the whole.
IMAGE_STEP, SCALAR_STEP, PHOTO_STEP = 100, 10_000, 4


# ---- data -------------------------------------------------------------------------------------------

def folder():
    shared = "/dev/shm/stoker-bench" if os.access("/dev/shm", os.W_OK) else "/tmp/stoker-bench"
    path = pathlib.Path(os.environ.get("STOKER_BENCH_DATA", shared))
    path.mkdir(exist_ok=True)
    return path


def make_images():
    j = np.arange(PIXELS, dtype=np.int64)
    base = (j * 7 + (j >> 8)).astype(np.uint8)
    first = (np.arange(IMAGES, dtype=np.int64) * 131).astype(np.uint8)
    return (base[None] + first[:, None]).reshape(IMAGES, SIDE, SIDE, 3)


def images_file(tf):
    path = folder() / "images.tfrecord"
    if not path.exists():
        part = path.with_suffix(".part")
        with tf.io.TFRecordWriter(str(part)) as writer:
            for i, image in enumerate(make_images()):
                writer.write(tf.train.Example(features=tf.train.Features(feature={
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 10])),
                })).SerializeToString())
        part.rename(path)
    return str(path)


def photos(encode):
    """encode: uint8 array -> the bytes of a JPEG of quality 90."""
    root = folder() / "photos"
    y, x = np.mgrid[0:PHOTO_H, 0:PHOTO_W].astype(np.float64)
    for i in range(PHOTOS):
        path = root / f"class{i % 2}" / f"{i:03d}.jpg"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        rough = np.random.default_rng(i).integers(0, 32, (PHOTO_H, PHOTO_W))
        image = np.stack([120 + 90 * np.sin((x + i) / 17) * np.cos(y / 23) + rough,
                          x * 200 // PHOTO_W + rough,
                          120 + 90 * np.cos(x * y / 9000) + rough], -1)
        path.write_bytes(encode(image.astype(np.uint8)))
    return str(root)


def table():
    path = folder() / "table.csv"
    if not path.exists():
        part = path.with_suffix(".part")
        rng = np.random.default_rng(1)
        with open(part, "w") as file:
            file.write(",".join(f"c{i}" for i in range(CSV_COLUMNS)) + "\n")
            for _ in range(100):
                rows = rng.uniform(-21.47, 21.47, (CSV_ROWS // 100, CSV_COLUMNS))
                np.savetxt(file, rows, "%.6f", ",")
        part.rename(path)
    return path


def first_rows(path):
    """The same table, but only its first CSV_CHECKED rows."""
    head = path.with_name("table_head.csv")
    if not head.exists() or head.stat().st_mtime < path.stat().st_mtime:
        with open(path) as whole, open(head, "w") as file:
            file.writelines(line for _, line in zip(range(CSV_CHECKED + 1), whole))
    return str(head)


# ---- what came out -------------------------------------------------------------------------------------

class Digest:
    """Numbers in their order: how many, their sum, and their sum with the weights 1 .. 1009 in turn."""

    def __init__(self):
        self.count, self.sum, self.weighted = 0, 0.0, 0.0

    def add(self, numbers):
        numbers = np.asarray(numbers).reshape(-1).astype(np.float64)
        weights = (self.count + np.arange(numbers.size)) % 1009 + 1
        self.count += numbers.size
        self.sum += float(numbers.sum())
        self.weighted += float(numbers @ weights)

    def numbers(self):
        return [self.count, self.sum, self.weighted]


def digest_batches(iterator):
    """Of the first batches, part by part."""
    digests = []
    for _ in range(CHECKED):
        batch = next(iterator)
        parts = batch if isinstance(batch, (tuple, list)) else [batch]
        digests = digests or [Digest() for _ in parts]
        for digest, part in zip(digests, parts):
            digest.add(part)
    return [number for digest in digests for number in digest.numbers()]


def check_images(batch):
    """Each is an original / 255 plus one number within +-0.1, as it was or mirrored (channels last)."""
    batch = np.asarray(batch[0] if isinstance(batch, (tuple, list)) else batch)
    assert batch.shape == (BATCH, SIDE, SIDE, 3) and batch.dtype == np.float32, batch.shape
    for x, original in zip(batch, make_images()[:BATCH].astype(np.float32) / 255):
        rests = [x - original, x - original[:, ::-1]]
        rest = min(rests, key=lambda r: float(np.ptp(r)))
        assert np.ptp(rest) < 1e-4 and abs(rest.mean()) < 0.1001, "not the same work"


def check_shuffled(batches):
    """Many batches: no number twice, all in range, and spread over all of it."""
    numbers = np.concatenate([np.asarray(batch) for batch in batches]).astype(np.float64)
    assert len(np.unique(numbers)) == len(numbers) and np.all((0 <= numbers) & (numbers < SCALARS))
    error = abs(numbers.mean() / SCALARS - 0.5) * (12 * len(numbers)) ** 0.5
    assert error < 6, f"not shuffled: the mean is off by {error:.1f} sigma"


def stream(plain, iterator, step, part=1.0, check=None):
    """A way that hands out batches without end. plain: an iterator of the work without what is random. An iteration of
    `step` batches is timed over a part of them."""
    digest = digest_batches(plain)
    if check:
        check(iterator)
    batches = max(1, round(step * part))

    def run(count):
        for _ in range(count * batches):
            next(iterator)
        return count * batches / step

    return common.Timed(run, check=digest)


# ---- TensorFlow ------------------------------------------------------------------------------------------

def random_steps(tf, image):
    return tf.image.random_flip_left_right(tf.image.random_brightness(image, 0.1))


def tf_images(tf):
    source = tf.data.Dataset.from_tensor_slices(make_images()).repeat()

    def unit(image):
        return tf.cast(image, tf.float32) / 255

    def finish(load):
        data = source.map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH)
        return iter(data.prefetch(tf.data.AUTOTUNE))

    return stream(finish(unit), finish(lambda image: random_steps(tf, unit(image))), IMAGE_STEP, part=0.3,
                  check=lambda batches: check_images(next(batches)))


def tf_shuffle(tf):
    """Shuffling fills a buffer of all elements first; that is waited for and not timed."""
    scalars = tf.data.Dataset.from_tensor_slices(tf.range(SCALARS, dtype=tf.float32))
    data = scalars.shuffle(SCALARS).repeat().batch(BATCH).prefetch(tf.data.AUTOTUNE)
    return stream(iter(scalars.batch(BATCH)), iter(data), SCALAR_STEP, part=0.1,
                  check=lambda batches: check_shuffled([next(batches) for _ in range(1000)]))


def tf_record_pipeline(tf):
    spec = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def parse(record):
        one = tf.io.parse_single_example(record, spec)
        image = tf.reshape(tf.io.decode_raw(one["image"], tf.uint8), (SIDE, SIDE, 3))
        return tf.cast(image, tf.float32) / 255.0, one["label"]

    def parse_random(record):
        image, label = parse(record)
        return random_steps(tf, image), label

    def finish(load):
        data = tf.data.TFRecordDataset(images_file(tf)).repeat().map(load, tf.data.AUTOTUNE)
        return iter(data.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE))

    return stream(finish(parse), finish(parse_random), IMAGE_STEP, part=0.3,
                  check=lambda batches: check_images(next(batches)))


def tf_photo_folder(tf, ratio, same=True):
    """same: compared with Stoker's values. Scaled decoding and full decoding differ by design."""
    root = photos(lambda image: tf.io.encode_jpeg(image, quality=90).numpy())
    files = sorted(map(str, pathlib.Path(root).glob("*/*.jpg")))
    labels = [int(pathlib.Path(f).parent.name[-1]) for f in files]

    def load(path, label):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, ratio=ratio)
        return tf.image.resize(image, (TARGET, TARGET)), label

    def finish():
        data = tf.data.Dataset.from_tensor_slices((files, labels)).repeat().map(load, tf.data.AUTOTUNE)
        return iter(data.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE))

    timed = stream(finish(), finish(), PHOTO_STEP)
    if not same:
        timed.check = None
    return timed


def tf_csv_table(tf):
    """A part of the rows, and the time of the whole: that takes it half a minute."""
    path = first_rows(table())

    def columns(rows):
        data = tf.data.experimental.CsvDataset(path, [tf.float32] * CSV_COLUMNS, header=True)
        return list(data.take(rows).batch(4096).prefetch(tf.data.AUTOTUNE))

    def run(count):
        for _ in range(count):
            assert sum(int(batch[0].shape[0]) for batch in columns(CSV_TIMED)) == CSV_TIMED
        return count * CSV_TIMED / CSV_ROWS

    digest, batches = Digest(), columns(CSV_CHECKED)
    for c in range(CSV_COLUMNS):
        for batch in batches:
            digest.add(batch[c])
    return common.Timed(run, check=digest.numbers())


def tf_record_write(tf, size):
    path = pathlib.Path(os.environ.get("STOKER_BENCH_DISK", folder())) / "written_tf"
    records = [k.to_bytes(4, "little") + bytes(size - 4) for k in range(WRITTEN_BYTES // size)]

    def run(count):
        for _ in range(count):
            with tf.io.TFRecordWriter(str(path)) as writer:
                for record in records:
                    writer.write(record)
        return count

    run(1)
    written = path.read_bytes()
    return common.Timed(run, check=[len(written), zlib.crc32(written)])


def tf_record_verify(tf):
    dataset = tf.data.TFRecordDataset(images_file(tf))
    zero = np.int64(0)

    def run(count):
        for _ in range(count):
            assert int(dataset.reduce(zero, lambda n, _: n + 1)) == IMAGES
        return count

    size = dataset.reduce(zero, lambda n, record: n + tf.cast(tf.strings.length(record), tf.int64))
    return common.Timed(run, check=[IMAGES, int(size)])


def pandas_csv_table():
    import pandas
    path = table()

    def run(count):
        for _ in range(count):
            assert len(pandas.read_csv(path, engine="c")) == CSV_ROWS
        return count

    digest = Digest()
    digest.add(pandas.read_csv(path, engine="c", nrows=CSV_CHECKED).to_numpy().T)
    return common.Timed(run, check=digest.numbers())


def tf_rows(tf):
    way = common.Way
    rows = {
        "data_images": [way("tensorflow", "tf.data", lambda: tf_images(tf))],
        "data_shuffle": [way("tensorflow", "tf.data", lambda: tf_shuffle(tf))],
        "record_pipeline": [way("tensorflow", "tf.data", lambda: tf_record_pipeline(tf))],
        "photo_folder": [way("tensorflow", "tf.data", lambda: tf_photo_folder(tf, 1))],
        "photo_folder_scaled": [
            way("tensorflow", "tf.data", lambda: tf_photo_folder(tf, 1, same=False)),
            way("tensorflow_half", "tf.data ratio=2", lambda: tf_photo_folder(tf, 2))],
        "csv_table": [way("tensorflow", "CsvDataset", lambda: tf_csv_table(tf))],
        "record_write": [
            way("tensorflow", "TFRecordWriter", lambda: tf_record_write(tf, LARGE_RECORD))],
        "record_write_small": [
            way("tensorflow", "TFRecordWriter", lambda: tf_record_write(tf, SMALL_RECORD))],
        "record_verify": [way("tensorflow", "TFRecordDataset", lambda: tf_record_verify(tf))],
    }
    try:
        import pandas  # noqa: F401
    except ImportError:
        return rows
    rows["csv_table"].append(way("pandas", "read_csv", pandas_csv_table))
    return rows
