"""Image ops: where sample points lie when resizing, what antialiasing widens, and colour in HSV."""
import keras
import tensorflow as tf
from case import Case, Values


def resize(method, antialias, source, target):
    way = "up" if target[0] > source[0] else "down"
    name = f"resize_{method}_{way}" + ("_antialias" if antialias else "")
    return Case(
        name, "resize",
        {"method": method, "antialias": antialias, "size": list(target), "half_pixel_centers": True},
        {"x": Values(name).uniform(2, *source, 2)},
        lambda x: tf.image.resize(x, target, method=method, antialias=antialias),
        # Area has no gradient there; the others are linear maps with one.
        () if method == "area" else ("x",))


def colour(name, op, attributes, function, gradients=()):
    x = Values(name).uniform(2, 3, 4, 3)
    # Greys, black, white and pure colours are the corners of the colour cylinder.
    x[0, 0] = [[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.5], [1, 0, 0]]
    x[0, 1] = [[0, 1, 0], [0, 0, 1], [1, 1, 0], [0.25, 0.75, 0.75]]
    return Case(name, op, attributes, {"x": x}, function, gradients)


def affine(name, interpolation, fill, matrix):
    return Case(name, "affine",
                {"interpolation": interpolation, "fill_mode": fill, "fill_value": 0.25,
                 "transform": "output to input, x' = (a x + b y + c, d x + e y + f)"},
                {"x": Values(name).uniform(1, 6, 5, 2),
                 "transform": tf.constant([matrix], tf.float32).numpy()},
                lambda x, t: keras.ops.image.affine_transform(
                    x, t, interpolation=interpolation, fill_mode=fill, fill_value=0.25))


def cases():
    small, large = (5, 7), (9, 11)
    for method in ("nearest", "bilinear", "bicubic", "area"):
        yield resize(method, False, small, large)
        yield resize(method, False, large, small)
    for method in ("bilinear", "bicubic", "lanczos3"):
        yield resize(method, True, small, large)
        yield resize(method, True, large, (4, 3))
    for delta in (0.1, -0.35, 0.5):
        yield colour(f"hue_{'minus' if delta < 0 else 'plus'}_{abs(delta) * 100:.0f}", "adjust_hue",
                     {"delta": delta}, lambda x, d=delta: tf.image.adjust_hue(x, d))
    for factor in (0.0, 0.5, 2.5):
        yield colour(f"saturation_{factor * 100:.0f}", "adjust_saturation", {"factor": factor},
                     lambda x, f=factor: tf.image.adjust_saturation(x, f))
    yield colour("contrast_150", "adjust_contrast", {"factor": 1.5},
                 lambda x: tf.image.adjust_contrast(x, 1.5))
    yield colour("brightness_minus_20", "adjust_brightness", {"delta": -0.2},
                 lambda x: tf.image.adjust_brightness(x, -0.2), ("x",))
    yield colour("rgb_to_hsv", "rgb_to_hsv", {}, tf.image.rgb_to_hsv)
    yield colour("rgb_to_grayscale", "rgb_to_grayscale", {}, tf.image.rgb_to_grayscale, ("x",))
    turn = [0.8, -0.6, 1.3, 0.6, 0.8, -0.9, 0, 0]
    yield affine("affine_bilinear_constant", "bilinear", "constant", turn)
    yield affine("affine_nearest_reflect", "nearest", "reflect", turn)
    yield affine("affine_bilinear_wrap", "bilinear", "wrap", turn)
