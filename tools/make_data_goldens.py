#!/usr/bin/env python3
"""Writes test/data/golden: small files made by TensorFlow that Stoker's readers and writers are
compared with. Run it with a Python that has tensorflow and numpy; the results are committed.

    records.tfrecord      5 records of 0, 1, 13, 300 and 5000 bytes: byte i of record r is (i * 7 + r) % 256
    records.gz, .zlib     the same, compressed
    examples.tfrecord     3 Examples, see EXAMPLES; serialized with sorted names
    sequences.tfrecord    2 SequenceExamples
    photo.jpg, photo420.jpg, gray.jpg, photo.png, gray.png, alpha.png, wide.png, palette.png,
    photo.bmp, photo.gif  pictures, and decoded.npz with what tf.io.decode_image makes of them
    image_ops.npz         tf.image results for the image operations of the input pipeline
"""
import os
import pathlib
import struct
import sys
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
import tensorflow as tf

OUT = pathlib.Path(__file__).resolve().parent.parent / "test" / "data" / "golden"


def ints(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def texts(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


EXAMPLES = [
    {"label": ints(3), "weights": floats(0.5, -1.25, 3e-8), "words": texts(b"one", b"", b"three"),
     "pixels": texts(bytes(range(12))), "big": ints(-1, 1 << 62, -(1 << 63))},
    {"label": ints(0), "weights": floats(1, 2, 3), "words": texts(b"solo"),
     "pixels": texts(bytes(range(12, 24))), "big": ints(), "optional": floats(7.5)},
    {"label": ints(-7), "weights": floats(float("inf"), 0, -0.0), "words": texts(),
     "pixels": texts(bytes(range(24, 36))), "big": ints(300, 128, 127)},
]


def write_records():
    records = [bytes((i * 7 + r) % 256 for i in range(n)) for r, n in enumerate((0, 1, 13, 300, 5000))]
    for name, kind in (("records.tfrecord", ""), ("records.gz", "GZIP"), ("records.zlib", "ZLIB")):
        with tf.io.TFRecordWriter(str(OUT / name), kind) as writer:
            for record in records:
                writer.write(record)


def write_examples():
    with tf.io.TFRecordWriter(str(OUT / "examples.tfrecord")) as writer:
        for features in EXAMPLES:
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString(deterministic=True))
    with tf.io.TFRecordWriter(str(OUT / "sequences.tfrecord")) as writer:
        for steps in ([[1, 2], [3, 4], [5, 6]], []):
            lists = {"tokens": tf.train.FeatureList(feature=[ints(*s) for s in steps]),
                     "ragged": tf.train.FeatureList(feature=[floats(*range(i)) for i in range(len(steps))])}
            example = tf.train.SequenceExample(
                context=tf.train.Features(feature={"length": ints(len(steps)), "id": texts(b"s%d" % len(steps))}),
                feature_lists=tf.train.FeatureLists(feature_list=lists))
            writer.write(example.SerializeToString(deterministic=True))


def scene(height, width):
    """Smooth colours, one hard edge, some texture."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    r = 128 + 100 * np.sin(x / 9) * np.cos(y / 7)
    g = 255 * x / (width - 1)
    b = np.where((x - width / 2) ** 2 + (y - height / 2) ** 2 < (height / 3) ** 2, 220, 30)
    noise = np.random.default_rng(5).integers(-12, 13, (height, width))
    return np.clip(np.stack([r, g, b], -1) + noise[..., None], 0, 255).astype(np.uint8)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def palette_png(index, colours):
    height, width = index.shape
    rows = b"".join(b"\0" + bytes(row) for row in index)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
            + chunk(b"PLTE", colours.tobytes()) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def bmp(image):
    height, width, _ = image.shape
    pad = (-width * 3) % 4
    rows = b"".join(image[y, :, ::-1].tobytes() + b"\0" * pad for y in range(height - 1, -1, -1))
    head = struct.pack("<2sIHHI", b"BM", 54 + len(rows), 0, 0, 54)
    return head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(rows), 2835, 2835, 0, 0) + rows


def gif(index, colours):
    """GIF89a; LZW with growing codes."""
    height, width = index.shape
    out, bits, nbits = bytearray(), 0, 0

    def emit(code, size):
        nonlocal bits, nbits
        bits |= code << nbits
        nbits += size
        while nbits >= 8:
            out.append(bits & 255)
            bits >>= 8
            nbits -= 8

    clear, size = 256, 9
    table = {bytes([i]): i for i in range(256)}
    emit(clear, size)
    current = b""
    for value in index.tobytes():
        longer = current + bytes([value])
        if longer in table:
            current = longer
            continue
        emit(table[current], size)
        if len(table) + 2 < 4096:
            table[longer] = len(table) + 2
            if len(table) + 1 == 1 << size and size < 12:
                size += 1
        else:
            emit(clear, size)
            table, size = {bytes([i]): i for i in range(256)}, 9
        current = bytes([value])
    emit(table[current], size)
    emit(clear + 1, size)
    if nbits:
        out.append(bits & 255)
    blocks = b"".join(bytes([len(out[i:i + 255])]) + out[i:i + 255] for i in range(0, len(out), 255))
    return (b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF7, 0, 0) + colours.tobytes() + b"\x2c"
            + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x08" + blocks + b"\0\x3b")


def write_pictures():
    photo, small = scene(61, 83), scene(40, 50)
    gray = photo[..., :1]
    alpha = np.concatenate([photo, np.arange(61 * 83, dtype=np.uint32).reshape(61, 83, 1).astype(np.uint8)], -1)
    wide = (photo.astype(np.uint16) * 257 + np.arange(83, dtype=np.uint16)[None, :, None])
    index = small[..., 0]
    colours = np.stack([np.arange(256), 255 - np.arange(256), np.arange(256) * 3 % 256], -1).astype(np.uint8)
    files = {
        "photo.jpg": tf.io.encode_jpeg(photo, quality=90, chroma_downsampling=False).numpy(),
        "photo420.jpg": tf.io.encode_jpeg(photo, quality=85).numpy(),
        "gray.jpg": tf.io.encode_jpeg(gray, format="grayscale", quality=90).numpy(),
        "photo.png": tf.io.encode_png(photo).numpy(),
        "gray.png": tf.io.encode_png(gray).numpy(),
        "alpha.png": tf.io.encode_png(alpha).numpy(),
        "wide.png": tf.io.encode_png(wide).numpy(),
        "palette.png": palette_png(index, colours),
        "photo.bmp": bmp(photo),
        "photo.gif": gif(index, colours),
    }
    decoded = {}
    for name, data in files.items():
        (OUT / name).write_bytes(data)
        image = tf.io.decode_image(data, expand_animations=False)
        decoded[name] = image.numpy()
    decoded["wide.png/uint16"] = tf.io.decode_png(files["wide.png"], dtype=tf.uint16).numpy()
    decoded["gray.jpg/3"] = tf.io.decode_jpeg(files["gray.jpg"], channels=3).numpy()
    decoded["photo420.jpg/1"] = tf.io.decode_jpeg(files["photo420.jpg"], channels=1).numpy()
    decoded["photo420.jpg/crop"] = tf.io.decode_and_crop_jpeg(files["photo420.jpg"], [17, 23, 30, 41]).numpy()
    np.savez_compressed(OUT / "decoded.npz", **decoded)


def write_image_ops():
    image = scene(23, 31)
    unit = image.astype(np.float32) / 255
    ops = {"image": image}
    for kind in ("nearest", "bilinear", "bicubic", "area", "lanczos3", "mitchellcubic"):
        for size in ((12, 9), (40, 57)):
            for antialias in (False, True):
                if antialias and kind in ("nearest", "area"):
                    continue
                name = f"resize_{kind}_{size[0]}x{size[1]}" + ("_antialias" if antialias else "")
                ops[name] = tf.image.resize(image, size, method=kind, antialias=antialias).numpy()
    ops["brightness"] = tf.image.adjust_brightness(unit, 0.25).numpy()
    ops["contrast"] = tf.image.adjust_contrast(unit, 1.6).numpy()
    ops["saturation"] = tf.image.adjust_saturation(unit, 0.4).numpy()
    ops["saturation_up"] = tf.image.adjust_saturation(unit, 2.0).numpy()
    ops["hue"] = tf.image.adjust_hue(unit, 0.2).numpy()
    ops["hue_down"] = tf.image.adjust_hue(unit, -0.35).numpy()
    ops["gray"] = tf.image.rgb_to_grayscale(unit).numpy()
    ops["gray_u8"] = tf.image.rgb_to_grayscale(image).numpy()
    ops["standard"] = tf.image.per_image_standardization(image).numpy()
    ops["central"] = tf.image.central_crop(image, 0.6).numpy()
    for k in range(1, 4):
        ops[f"rot{k}"] = tf.image.rot90(image, k).numpy()
    ops["pad"] = tf.image.pad_to_bounding_box(image, 2, 5, 30, 40).numpy()
    np.savez_compressed(OUT / "image_ops.npz", **ops)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    write_records()
    write_examples()
    write_pictures()
    write_image_ops()
    print(f"{sum(f.stat().st_size for f in OUT.iterdir())} bytes in {OUT}", file=sys.stderr)


if __name__ == "__main__":
    main()
