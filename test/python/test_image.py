"""tf.image: values that TensorFlow 2.21 gave, also inside of maps."""
import numpy as np
import pytest

import stoker.tf as tf

PICTURE = np.random.default_rng(0).integers(0, 256, (3, 9, 7, 3)).astype("uint8")[0]
SUMS = {  # of a picture of bytes: function, dtype, shape, sum, first values
    "yuv": (lambda x: tf.image.rgb_to_yuv(tf.image.convert_image_dtype(x, tf.float32)), (9, 7, 3), 32.7, [0.69, -0.09, 0.14]),
    "yiq": (lambda x: tf.image.rgb_to_yiq(tf.image.convert_image_dtype(x, tf.float32)), (9, 7, 3), 33.0, [0.69, 0.17, 0.0]),
    "rot90": (lambda x: tf.image.rot90(x, 3), (7, 9, 3), 25319.0, [19.0, 106.0, 72.0]),
}


@pytest.mark.parametrize("name", SUMS)
def test_as_tensorflow(name):
    function, shape, total, first = SUMS[name]
    for made in (function(tf.constant(PICTURE)), next(iter(tf.data.Dataset.from_tensors(PICTURE).map(function)))):
        made = made.numpy().astype("float64")
        assert made.shape == shape and abs(made.sum() - total) < 0.06
        np.testing.assert_allclose(made.ravel()[:3], first, atol=0.006)


def test_colour_spaces_there_and_back():
    x = tf.constant(PICTURE / 255, tf.float32)
    np.testing.assert_allclose(tf.image.yuv_to_rgb(tf.image.rgb_to_yuv(x)), x, atol=1e-5)
    np.testing.assert_allclose(tf.image.yiq_to_rgb(tf.image.rgb_to_yiq(x)), x, atol=2e-3)  # the published matrices are rounded


def test_jpeg_as_distortion_in_a_map():
    flat = np.full((16, 16, 3), 100, "uint8")
    ds = tf.data.Dataset.from_tensors(flat).map(lambda x: tf.image.random_jpeg_quality(x, 80, 95))
    made = next(iter(ds)).numpy()
    assert made.shape == (16, 16, 3) and abs(made.astype(int) - 100).max() <= 2


def test_boxes():
    boxes, scores = tf.constant([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3.0]]), tf.constant([0.9, 0.8, 0.3])
    kept, values = tf.image.non_max_suppression_with_scores(boxes, scores, 3, 0.5)
    assert kept.numpy().tolist() == [0, 2] and np.allclose(values, [0.9, 0.3])
    kept, count = tf.image.non_max_suppression_padded(boxes, scores, 5, 0.5, pad_to_max_output_size=True)
    assert kept.numpy().tolist() == [0, 2, 0, 0, 0] and int(count) == 2
    found = tf.image.combined_non_max_suppression(boxes[None, :, None, :], scores[None, :, None], 2, 3, iou_threshold=0.5)
    assert found[0].numpy()[0, :2].tolist() == [[0, 0, 1, 1], [1, 1, 1, 1]] and found[3].numpy().tolist() == [2]


def test_window_that_is_drawn():
    for _ in range(20):
        begin, size, box = tf.image.sample_distorted_bounding_box((40, 60, 3), [[[0.2, 0.2, 0.6, 0.6]]], min_object_covered=0.5)
        top, left, _ = begin.numpy()
        h, w, c = size.numpy()
        assert c == -1 and 0 < h <= 40 - top and 0 < w <= 60 - left and box.shape == (1, 1, 4)
