"""The rows about files, TensorFlow's and torch's side, and the files themselves: made from the same formulas as in
bench/rows_records.c by whoever comes first, in $STOKER_BENCH_DATA, else /dev/shm/stoker-bench."""
import os
import pathlib

import numpy as np

IMAGES, SIDE, BATCH, PHOTOS, TARGET = 1000, 256, 32, 64, 224
PHOTO_H, PHOTO_W = 768, 1024
CSV_ROWS, CSV_COLUMNS = 1000000, 20
SMALL_RECORDS, SMALL_BYTES = 1000, 10000


def folder():
    shared = "/dev/shm/stoker-bench" if os.access("/dev/shm", os.W_OK) else "/tmp/stoker-bench"
    path = pathlib.Path(os.environ.get("STOKER_BENCH_DATA", shared))
    path.mkdir(exist_ok=True)
    return path


def images(tf):
    path = folder() / "images.tfrecord"
    if not path.exists():
        j = np.arange(SIDE * SIDE * 3, dtype=np.int64)
        part = path.with_suffix(".part")
        with tf.io.TFRecordWriter(str(part)) as writer:
            for i in range(IMAGES):
                pixels = (i * 131 + j * 7 + (j >> 8)).astype(np.uint8).tobytes()
                writer.write(tf.train.Example(features=tf.train.Features(feature={
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[pixels])),
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
    return str(path)


def batches(dataset):
    """run(count) over whole batches of a tf.data dataset, epoch after epoch."""
    state = {"iterator": iter(dataset)}

    def run(count):
        done = 0
        while done < count:
            try:
                next(state["iterator"])
                done += 1
            except StopIteration:
                state["iterator"] = iter(dataset)
        return done

    return run


def tf_record_pipeline(tf, common):
    spec = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def parse(record):
        one = tf.io.parse_single_example(record, spec)
        image = tf.reshape(tf.io.decode_raw(one["image"], tf.uint8), (SIDE, SIDE, 3))
        image = tf.image.random_brightness(tf.cast(image, tf.float32) / 255.0, 0.1)
        return tf.image.random_flip_left_right(image), one["label"]

    dataset = tf.data.TFRecordDataset(images(tf)).map(parse, tf.data.AUTOTUNE)
    return common.Timed(batches(dataset.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)))


def tf_photo_folder(tf, common, ratio):
    root = photos(lambda image: tf.io.encode_jpeg(image, quality=90).numpy())
    files = sorted(map(str, pathlib.Path(root).glob("*/*.jpg")))
    labels = [int(pathlib.Path(f).parent.name[-1]) for f in files]

    def load(path, label):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, ratio=ratio)
        return tf.image.resize(image, (TARGET, TARGET)), label

    dataset = tf.data.Dataset.from_tensor_slices((files, labels)).map(load, tf.data.AUTOTUNE)
    return common.Timed(batches(dataset.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)))


def tf_csv_table(tf, common):
    path = table()

    def run(count):
        for _ in range(count):
            dataset = tf.data.experimental.CsvDataset(path, [tf.float32] * CSV_COLUMNS, header=True)
            rows = 0
            for batch in dataset.batch(4096).prefetch(tf.data.AUTOTUNE):
                rows += int(batch[0].shape[0])
            assert rows == CSV_ROWS
        return count

    return common.Timed(run)


def pandas_csv_table(common):
    import pandas
    path = table()

    def run(count):
        for _ in range(count):
            assert len(pandas.read_csv(path, engine="c")) == CSV_ROWS
        return count

    return common.Timed(run)


def tf_record_write(tf, common):
    record, path = bytes(SMALL_BYTES), str(folder() / "written_tf")

    def run(count):
        for _ in range(count):
            with tf.io.TFRecordWriter(path) as writer:
                for _ in range(SMALL_RECORDS):
                    writer.write(record)
        return count

    return common.Timed(run)


def tf_record_verify(tf, common):
    dataset = tf.data.TFRecordDataset(images(tf))

    def run(count):
        for _ in range(count):
            assert int(dataset.reduce(np.int64(0), lambda n, _: n + 1)) == IMAGES
        return count

    return common.Timed(run)


def tf_rows(tf, common):
    way = common.Way
    rows = {
        "record_pipeline": [way("tensorflow", "tf.data", lambda: tf_record_pipeline(tf, common))],
        "photo_folder": [way("tensorflow", "tf.data", lambda: tf_photo_folder(tf, common, 1))],
        "photo_folder_scaled": [way("tensorflow", "tf.data", lambda: tf_photo_folder(tf, common, 2))],
        "csv_table": [way("tensorflow", "CsvDataset", lambda: tf_csv_table(tf, common))],
        "record_write": [way("tensorflow", "TFRecordWriter", lambda: tf_record_write(tf, common))],
        "record_verify": [way("tensorflow", "TFRecordDataset", lambda: tf_record_verify(tf, common))],
    }
    try:
        import pandas  # noqa: F401
    except ImportError:
        return rows
    rows["csv_table"].append(way("pandas", "read_csv", lambda: pandas_csv_table(common)))
    return rows
