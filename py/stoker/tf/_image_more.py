"""tf.image: colour spaces of television, JPEG as a distortion, windows that are drawn, boxes that overlap."""
import collections
import random as _random

import numpy as np

from stoker import _stoker
from stoker.tf import errors
from stoker.tf._base import dims, host, is_symbolic, not_traceable, o, recording, static, tensor

_YUV = [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]]
_FROM_YUV = [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]]
_YIQ = [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]]
_FROM_YIQ = [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]]


def _mixed(images, matrix):
    x = tensor(images)
    shape = dims(x)
    if not shape or shape[-1] != 3:
        raise ValueError(f"images must have 3 channels in the last axis, got shape {tuple(shape)}")
    return o.reshape(o.matmul(o.reshape(x, [-1, 3]), tensor(np.array(matrix, x.dtype.as_numpy_dtype))), shape)


def rgb_to_yuv(images):
    return _mixed(images, _YUV)


def yuv_to_rgb(images):
    return _mixed(images, _FROM_YUV)


def rgb_to_yiq(images):
    return _mixed(images, _YIQ)


def yiq_to_rgb(images):
    return _mixed(images, _FROM_YIQ)


# JPEG.

def adjust_jpeg_quality(image, jpeg_quality, name=None, dct_method=""):
    from stoker.tf.image import convert_image_dtype

    x = tensor(image)
    kind, small = x.dtype, convert_image_dtype(x, "uint8", saturate=True)
    decode = _stoker.host_decode_image("DecodeJpeg", dims(x)[-1], "uint8", 2, False, False)

    def squeeze(pixels, quality):
        return decode(tensor(_stoker.encode_picture("jpeg", tensor(pixels), int(quality), False), "string"))[0].numpy()

    made = host("adjust_jpeg_quality", squeeze, [small, tensor(jpeg_quality)], "uint8", dims(small))
    return convert_image_dtype(made, kind, saturate=True)


def _between(low, high, seed):
    from stoker.tf import random

    return random.uniform((), low, high, "int32", seed)


def _check_quality(low, high):
    if not 0 <= low < high <= 100:
        raise ValueError(f"min_jpeg_quality and max_jpeg_quality must be in 0..100, rising, got {low}, {high}")


def random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, seed=None):
    _check_quality(min_jpeg_quality, max_jpeg_quality)
    return adjust_jpeg_quality(image, _between(min_jpeg_quality, max_jpeg_quality, seed))


def stateless_random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, seed):
    from stoker.tf import random

    _check_quality(min_jpeg_quality, max_jpeg_quality)
    return adjust_jpeg_quality(image, random.stateless_uniform((), seed, min_jpeg_quality, max_jpeg_quality, "int32"))


# Windows.

def sample_distorted_bounding_box(image_size, bounding_boxes, seed=0, min_object_covered=0.1, aspect_ratio_range=None,
                                  area_range=None, max_attempts=None, use_image_if_no_bounding_boxes=None, name=None):
    """A window of random place, size and proportions that holds enough of one of the boxes."""
    if recording():
        not_traceable("sample_distorted_bounding_box: the size of its window is drawn")
    draw = _random.Random(seed if seed else None)
    return _sample_window(draw, image_size, bounding_boxes, min_object_covered, aspect_ratio_range, area_range, max_attempts,
                          use_image_if_no_bounding_boxes)


def stateless_sample_distorted_bounding_box(image_size, bounding_boxes, seed, min_object_covered=0.1, aspect_ratio_range=None,
                                            area_range=None, max_attempts=None, use_image_if_no_bounding_boxes=None,
                                            name=None):
    if recording():
        not_traceable("stateless_sample_distorted_bounding_box: the size of its window is drawn")
    draw = _random.Random(str(static(seed).tolist()))
    return _sample_window(draw, image_size, bounding_boxes, min_object_covered, aspect_ratio_range, area_range, max_attempts,
                          use_image_if_no_bounding_boxes)


def _sample_window(draw, image_size, bounding_boxes, covered, ratios, areas, attempts, use_image):
    height, width, channels = (int(v) for v in static(image_size).ravel())
    boxes = np.asarray(static(bounding_boxes), np.float64).reshape(-1, 4)
    if not len(boxes):
        if not use_image:
            errors.invalid("No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to "
                           "not provide any bounding boxes.", "SampleDistortedBoundingBoxV2")
        boxes = np.array([[0.0, 0.0, 1.0, 1.0]])
    ratios, areas = ratios or (0.75, 1.33), areas or (0.05, 1.0)
    window = (0, 0, height, width)
    for _ in range(int(attempts or 100)):
        ratio, area = draw.uniform(*ratios), draw.uniform(*areas) * height * width
        h = int(round((area / ratio) ** 0.5))
        w = int(round(h * ratio))
        if not (0 < h <= height and 0 < w <= width):
            continue
        top, left = draw.randint(0, height - h), draw.randint(0, width - w)
        box = boxes[draw.randrange(len(boxes))] * [height, width, height, width]
        inside = (max(0.0, min(box[2], top + h) - max(box[0], top)) * max(0.0, min(box[3], left + w) - max(box[1], left)))
        if inside >= float(covered) * (box[2] - box[0]) * (box[3] - box[1]):
            window = (top, left, h, w)
            break
    top, left, h, w = window
    kind = static(image_size).dtype
    place = np.array([[[top / height, left / width, (top + h) / height, (left + w) / width]]], np.float32)
    return tensor(np.array([top, left, 0], kind)), tensor(np.array([h, w, -1], kind)), tensor(place)


# Boxes.

def _overlap(a, b):
    """Intersection over union of one box with many."""
    low, high = np.maximum(a[:2], b[:, :2]), np.minimum(a[2:], b[:, 2:])
    both = np.prod(np.clip(high - low, 0, None), -1)
    size = np.prod(np.abs(a[2:] - a[:2])) + np.prod(np.abs(b[:, 2:] - b[:, :2]), -1) - both
    return np.where(size > 0, both / np.where(size > 0, size, 1), 0)


def _sorted_box(boxes):
    boxes = np.asarray(boxes, np.float64)
    return np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], 1)


def _suppress(boxes, scores, most, threshold, least, sigma=0.0):
    """(numbers, scores) of the boxes that stay; with sigma > 0 overlapping ones lose score instead."""
    boxes, scores = _sorted_box(boxes), np.asarray(scores, np.float64).copy()
    kept, values = [], []
    alive = scores > least
    while len(kept) < most and alive.any():
        best = int(np.argmax(np.where(alive, scores, -np.inf)))
        kept.append(best)
        values.append(scores[best])
        alive[best] = False
        overlap = _overlap(boxes[best], boxes)
        if sigma > 0:
            scores = np.where(alive, scores * np.exp(-(overlap**2) / (2 * sigma)), scores)
            alive &= scores > least
        alive &= overlap <= threshold
    return kept, values


def non_max_suppression_with_scores(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=float("-inf"),
                                    soft_nms_sigma=0.0, name=None):
    if is_symbolic(tensor(boxes)) or is_symbolic(tensor(scores)):
        not_traceable("non_max_suppression_with_scores: how many boxes stay is only known when it runs")
    sigma = float(soft_nms_sigma)
    kept, values = _suppress(static(boxes), static(scores), int(static(max_output_size)),
                             1.0 if sigma > 0 else float(iou_threshold), float(score_threshold), sigma)
    return tensor(np.array(kept, np.int32)), tensor(np.array(values, np.float32))


def non_max_suppression_padded(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=float("-inf"),
                               pad_to_max_output_size=False, name=None, sorted_input=False, canonicalized_coordinates=False,
                               tile_size=512):
    most = int(static(max_output_size))
    if is_symbolic(tensor(boxes)) or is_symbolic(tensor(scores)):
        not_traceable("non_max_suppression_padded")
    kept, _ = _suppress(static(boxes), static(scores), most, float(iou_threshold), float(score_threshold))
    count = len(kept)
    if pad_to_max_output_size:
        kept = kept + [0] * (most - count)
    return tensor(np.array(kept, np.int32)), tensor(count, "int32")


CombinedNonMaxSuppression = collections.namedtuple(
    "CombinedNonMaxSuppression", "nmsed_boxes nmsed_scores nmsed_classes valid_detections")


def combined_non_max_suppression(boxes, scores, max_output_size_per_class, max_total_size, iou_threshold=0.5,
                                 score_threshold=float("-inf"), pad_per_class=False, clip_boxes=True, name=None):
    """Per class, then the best of all classes, for every picture of a batch."""
    per_class, total = int(static(max_output_size_per_class)), int(static(max_total_size))
    shape, number = dims(tensor(boxes)), dims(tensor(scores))[2]
    size = min(total, per_class * number) if pad_per_class else total
    threshold, least = float(iou_threshold), float(score_threshold)

    def run(all_boxes, all_scores):
        batch = all_boxes.shape[0]
        made = (np.zeros((batch, size, 4), np.float32), np.zeros((batch, size), np.float32), np.zeros((batch, size), np.float32),
                np.zeros(batch, np.int32))
        for n in range(batch):
            found = []
            for c in range(number):
                mine = all_boxes[n, :, c if all_boxes.shape[2] > 1 else 0]
                kept, values = _suppress(mine, all_scores[n, :, c], per_class, threshold, least)
                found += [(v, c, mine[k]) for k, v in zip(kept, values)]
            found.sort(key=lambda f: -f[0])
            found = found[:size]
            made[3][n] = len(found)
            for k, (value, c, box) in enumerate(found):
                made[0][n, k] = np.clip(box, 0, 1) if clip_boxes else box
                made[1][n, k], made[2][n, k] = value, c
        return made

    return CombinedNonMaxSuppression(*host(
        "combined_non_max_suppression", run, [boxes, scores], ["float32", "float32", "float32", "int32"],
        [[shape[0], size, 4], [shape[0], size], [shape[0], size], [shape[0]]]))


def image_gradients(image):
    """(dy, dx): each pixel's difference to the next one; zeros in the last row and column."""
    image = tensor(image)
    if len(dims(image)) != 4:
        raise ValueError(f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {image.shape}.")
    dy, dx = image[:, 1:] - image[:, :-1], image[:, :, 1:] - image[:, :, :-1]
    return o.pad(dy, [[0, 0], [0, 1], [0, 0], [0, 0]]), o.pad(dx, [[0, 0], [0, 0], [0, 1], [0, 0]])


def ssim_multiscale(img1, img2, max_val, power_factors=(0.0448, 0.2856, 0.3001, 0.2363, 0.1333), filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03):
    """The likeness of structures at five sizes, each half of the one before, and that of light at the smallest."""
    from stoker.tf.image import convert_image_dtype, _ssim_parts

    x, y = convert_image_dtype(img1, "float32"), convert_image_dtype(img2, "float32")
    if len(dims(x)) == 3:
        return ssim_multiscale(o.expand_dims(x, 0), o.expand_dims(y, 0), max_val, power_factors, filter_size, filter_sigma, k1, k2)[0]
    if any(size // 2 ** (len(power_factors) - 1) < filter_size for size in dims(x)[1:3]):
        errors.invalid(f"ssim_multiscale: pictures of {dims(x)[1:3]} are too small to be halved {len(power_factors) - 1} times for a filter of {filter_size}", "Assert")
    made, whole = None, None
    for n, power in enumerate(power_factors):
        if n:
            x, y = (_halved(v) for v in (x, y))
        whole, structure = _ssim_parts(x, y, max_val, filter_size, filter_sigma, k1, k2)
        part = o.pow(o.maximum(whole if n == len(power_factors) - 1 else structure, 0.0), power)
        made = part if made is None else made * part
    return o.reduce_mean(made, axis=[-1])


def _halved(x):
    """Means of 2 x 2 pixels; an odd row or column meets its mirror image."""
    from stoker.tf import _nn

    odd = [d % 2 for d in dims(x)]
    if odd[1] or odd[2]:
        x = o.pad(x, [[0, 0], [0, odd[1]], [0, odd[2]], [0, 0]], "SYMMETRIC")
    return _nn.avg_pool(x, 2, 2, "VALID")
