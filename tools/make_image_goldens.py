#!/usr/bin/env python3
"""Writes test/golden/image.npz: what TensorFlow's image operations give for small images.

    build/peers/bin/python tools/make_image_goldens.py [test/golden/image.npz]

The name of each result says what was asked, its fields parted by colons; test_image_golden.c asks the same:

    resize:<image>:<kind>:<height>:<width>:<antialias>
    project:<image>:<nearest|bilinear>:<fill>:<height>:<width>     transforms are in `transforms`, fill value 0.25
    <operation>:<image>:<amount>                                   colours and moves
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf

KINDS = {"nearest": "nearest", "bilinear": "bilinear", "bicubic": "bicubic", "area": "area",
         "lanczos3": "lanczos3", "lanczos5": "lanczos5", "gaussian": "gaussian",
         "mitchell": "mitchellcubic"}
SIZES = [(3, 4), (14, 11), (1, 1), (13, 2), (7, 9)]


def images():
    random = np.random.default_rng(7)
    return {
        "rgb": random.random((2, 7, 5, 3), dtype=np.float32),
        "grey": random.random((1, 9, 6, 1), dtype=np.float32),
        "bytes": random.integers(0, 256, (1, 6, 9, 3), dtype=np.uint8),
        "deep": random.random((1, 4, 6, 5), dtype=np.float32),
    }


def transforms():
    turn, shear = np.float32(np.cos(0.4)), np.float32(np.sin(0.4))
    return np.array([[turn, -shear, 1.3, shear, turn, -2.1, 0.01, -0.02],
                     [1.5, 0.2, -3.75, -0.1, 0.6, 9.4, 0, 0]], np.float32)


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        os.path.dirname(__file__), "..", "test", "golden", "image.npz")
    inputs, out = images(), {}
    for name, image in inputs.items():
        for kind, method in KINDS.items():
            for height, width in SIZES if name == "rgb" else SIZES[:2]:
                for antialias in (0, 1):
                    out[f"resize:{name}:{kind}:{height}:{width}:{antialias}"] = tf.image.resize(
                        image, (height, width), method=method, antialias=bool(antialias)).numpy()
    for fill in ("constant", "reflect", "wrap", "nearest"):
        for how in ("nearest", "bilinear"):
            for height, width in ((7, 5), (10, 12)):
                out[f"project:rgb:{how}:{fill}:{height}:{width}"] = \
                    tf.raw_ops.ImageProjectiveTransformV3(
                        images=inputs["rgb"], transforms=transforms(),
                        output_shape=np.array([height, width], np.int32), fill_value=0.25,
                        interpolation=how.upper(), fill_mode=fill.upper()).numpy()
    for name in ("rgb", "bytes"):
        image = inputs[name]
        for amount in (0.3, -0.2):
            out[f"brightness:{name}:{amount}"] = tf.image.adjust_brightness(image, amount).numpy()
            out[f"hue:{name}:{amount}"] = tf.image.adjust_hue(image, amount).numpy()
        for amount in (0.5, 1.75):
            out[f"contrast:{name}:{amount}"] = tf.image.adjust_contrast(image, amount).numpy()
            out[f"saturation:{name}:{amount}"] = tf.image.adjust_saturation(image, amount).numpy()
        out[f"grayscale:{name}:0"] = tf.image.rgb_to_grayscale(image).numpy()
        out[f"standardise:{name}:0"] = tf.image.per_image_standardization(image).numpy()
        out[f"flip_left_right:{name}:0"] = tf.image.flip_left_right(image).numpy()
        out[f"flip_up_down:{name}:0"] = tf.image.flip_up_down(image).numpy()
        for turns in (1, 2, 3):
            out[f"rot90:{name}:{turns}"] = tf.image.rot90(image, turns).numpy()
        for fraction in (0.5, 0.8):
            out[f"central_crop:{name}:{fraction}"] = tf.image.central_crop(image, fraction).numpy()
        for size in (4, 8, 11):
            out[f"crop_or_pad:{name}:{size}"] = tf.image.resize_with_crop_or_pad(image, size, size).numpy()
    hsv = tf.image.rgb_to_hsv(inputs["rgb"])
    out["rgb_to_hsv:rgb:0"] = hsv.numpy()
    out["hsv_to_rgb:rgb:0"] = tf.image.hsv_to_rgb(inputs["rgb"]).numpy()
    np.savez_compressed(path, transforms=transforms(), **inputs, **out)
    print(f"{path}: {len(out)} results, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
