"""Write pictures and labels to TFRecord files, read them back, augment them, and look at what arrives."""
import os
import tempfile
import time

import numpy as np
import tensorflow as tf

IMAGES, SIDE, FILES, BATCH = 1024, 32, 4, 64

rng = np.random.default_rng(2)
pictures = rng.integers(0, 256, size=(IMAGES, SIDE, SIDE, 3), dtype=np.uint8)
labels = rng.integers(0, 10, size=IMAGES)


def to_example(picture, label):
    return tf.train.Example(features=tf.train.Features(feature={
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[picture.tobytes()])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)])),
        "mean": tf.train.Feature(float_list=tf.train.FloatList(value=[float(picture.mean())])),
    }))


FEATURES = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
    "mean": tf.io.FixedLenFeature([], tf.float32),
}


def parse(record):
    example = tf.io.parse_single_example(record, FEATURES)
    image = tf.reshape(tf.io.decode_raw(example["image"], tf.uint8), (SIDE, SIDE, 3))
    return tf.cast(image, tf.float32) / 255.0, example["label"], example["mean"]


def augment(image, label, mean):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.adjust_contrast(image, 0.8)
    return tf.image.central_crop(image, 0.75), label, mean


with tempfile.TemporaryDirectory() as folder:
    start = time.perf_counter()
    paths = [os.path.join(folder, f"part-{n}.tfrecord") for n in range(FILES)]
    for n, path in enumerate(paths):
        with tf.io.TFRecordWriter(path) as writer:
            for k in range(n, IMAGES, FILES):
                writer.write(to_example(pictures[k], labels[k]).SerializeToString())
    size = sum(os.path.getsize(path) for path in paths)

    dataset = (
        tf.data.Dataset.from_tensor_slices(paths)
        .interleave(tf.data.TFRecordDataset, cycle_length=FILES, num_parallel_calls=tf.data.AUTOTUNE)
        .map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        .map(augment, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(BATCH, drop_remainder=True)
        .prefetch(tf.data.AUTOTUNE)
    )
    pixel_sum, label_sum, mean_sum, rows, shape = 0.0, 0, 0.0, 0, None
    for image, label, mean in dataset:
        pixel_sum += float(tf.reduce_sum(image))
        label_sum += int(tf.reduce_sum(label))
        mean_sum += float(tf.reduce_sum(mean))
        rows += image.shape[0]
        shape = image.shape
    seconds = time.perf_counter() - start

print(f"{rows / seconds:.0f} records per second, written and read")
print("result: bytes", size)
print("result: rows", rows)
print("result: shape", shape)
print("result: label_sum", label_sum)
print("result: mean_sum", round(mean_sum, 1))
print("result: pixel_sum", round(pixel_sum, -1))
