"""Random calls of TensorFlow's functions; prints one line per call. Run by two engines, the lines are compared:

    tools/compare-symbols --tensorflow PYTHON --stoker PYTHON
"""
import sys
import warnings

import numpy as np
import tensorflow as tf

warnings.filterwarnings("ignore")
CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 6


class Draw:
    """Random arguments, the same for both engines."""

    def __init__(self, seed):
        self.r = np.random.RandomState(seed)

    def shape(self, least=1, most=3):
        return [int(n) for n in self.r.randint(1, 5, self.r.randint(least, most + 1))]

    def f(self, shape=None, low=-2.0, high=2.0):
        return tf.constant(self.r.uniform(low, high, self.shape() if shape is None else shape).astype("float32"))

    def i(self, shape=None, low=-5, high=6):
        return tf.constant(self.r.randint(low, high, self.shape() if shape is None else shape).astype("int32"))

    def b(self, shape=None):
        return tf.constant(self.r.rand(*(self.shape() if shape is None else shape)) > 0.5)

    def axis(self, x):
        return int(self.r.randint(-len(x.shape), len(x.shape)))

    def keep(self):
        return bool(self.r.randint(2))


def unary(low=-2.0, high=2.0):
    return lambda d, f: f(d.f(None, low, high))


def binary(low=-2.0, high=2.0):
    def call(d, f):
        shape = d.shape()
        return f(d.f(shape, low, high), d.f(shape[-1:] if d.keep() else shape, low, high))

    return call


def either(d, f):
    shape = d.shape()
    return f(d.i(shape), d.i(shape)) if d.keep() else f(d.f(shape), d.f(shape))


def logic(d, f):
    shape = d.shape()
    return f(d.b(shape), d.b(shape))


def reduction(d, f):
    x = d.f()
    return f(x, axis=None if d.keep() else d.axis(x), keepdims=d.keep())


def with_axis(d, f):
    x = d.f()
    return f(x, axis=d.axis(x))


def image(d, f, *rest):
    return f(d.f([2, 6, 8, 3], 0, 1), *rest)


T = {}
for name in "abs ceil cos cosh exp floor round sign sin sinh square tan tanh erf negative".split():
    T["math." + name] = unary()
for name in "sigmoid softplus reciprocal_no_nan expm1 atan asinh softsign".split():
    T["math." + name] = unary()
for name in "relu relu6 elu selu leaky_relu softmax log_softmax silu gelu tanh l2_loss crelu".split():
    T["nn." + name] = unary()
for name in "log sqrt rsqrt log1p lgamma digamma reciprocal acosh".split():
    T["math." + name] = unary(1.1, 4)
for name in "acos asin atanh erfinv".split():
    T["math." + name] = unary(-0.9, 0.9)
for name in "add subtract multiply maximum minimum squared_difference floordiv floormod divide_no_nan atan2".split():
    T["math." + name] = binary()
for name in "divide pow xlogy xdivy truediv".split():
    T["math." + name] = binary(0.5, 3)
for name in "equal not_equal less less_equal greater greater_equal".split():
    T["math." + name] = either
for name in "logical_and logical_or logical_xor".split():
    T["math." + name] = logic
for name in ("reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_logsumexp reduce_std reduce_variance "
             "reduce_euclidean_norm").split():
    T["math." + name] = reduction
for name in "cumsum cumprod cumulative_logsumexp".split():
    T["math." + name] = with_axis
for name in "bitwise_and bitwise_or bitwise_xor".split():
    T["bitwise." + name] = lambda d, f: f(d.i([5], 0, 99), d.i([5], 0, 99))
T.update({
    "math.logical_not": lambda d, f: f(d.b()),
    "math.reduce_all": lambda d, f: f(d.b(), axis=0), "math.reduce_any": lambda d, f: f(d.b(), axis=-1),
    "math.argmax": lambda d, f: f(d.f([3, 4]), axis=int(d.r.randint(2))), "math.argmin": lambda d, f: f(d.f([3, 4]), axis=0),
    "math.top_k": lambda d, f: f(d.f([3, 6]), k=int(d.r.randint(1, 6))),
    "math.in_top_k": lambda d, f: f(d.i([3], 0, 5), d.f([3, 5]), 2),
    "math.add_n": lambda d, f: f([d.f([2, 3]) for _ in range(3)]),
    "math.is_nan": lambda d, f: f(tf.constant([1.0, np.nan, np.inf])), "math.is_inf": lambda d, f: f(tf.constant([1.0, np.inf])),
    "math.is_finite": lambda d, f: f(tf.constant([1.0, np.nan, np.inf])),
    "math.count_nonzero": lambda d, f: f(d.i()), "math.bincount": lambda d, f: f(d.i([9], 0, 5)),
    "math.confusion_matrix": lambda d, f: f(d.i([9], 0, 4), d.i([9], 0, 4), num_classes=4),
    "math.l2_normalize": with_axis, "math.segment_sum": lambda d, f: f(d.f([4, 2]), tf.constant([0, 0, 1, 2])),
    "math.segment_mean": lambda d, f: f(d.f([4, 2]), tf.constant([0, 0, 1, 2])),
    "math.unsorted_segment_sum": lambda d, f: f(d.f([4, 2]), tf.constant([2, 0, 1, 2]), 4),
    "math.unsorted_segment_max": lambda d, f: f(d.f([4, 2]), tf.constant([2, 0, 1, 2]), 3),
    "math.polyval": lambda d, f: f([d.f([3]), d.f([3])], d.f([3])), "math.zero_fraction": lambda d, f: f(d.i()),
    "math.invert_permutation": lambda d, f: f(tf.constant(d.r.permutation(5).astype("int32"))),
    "cast": lambda d, f: f(d.f(None, -300, 300), ["int32", "uint8", "float64", "bool", "int16"][d.r.randint(5)]),
    "saturate_cast": lambda d, f: f(d.f(None, -300, 300), "uint8"),
    "reshape": lambda d, f: f(d.f([2, 6]), [[3, -1], [12], [2, 2, 3]][d.r.randint(3)]),
    "transpose": lambda d, f: f(d.f([2, 3, 4]), list(d.r.permutation(3))), "expand_dims": with_axis,
    "squeeze": lambda d, f: f(d.f([2, 1, 3, 1])), "concat": lambda d, f: f([d.f([2, 3]), d.f([2, 3])], int(d.r.randint(-2, 2))),
    "stack": lambda d, f: f([d.f([2, 3]), d.f([2, 3])], int(d.r.randint(-3, 3))),
    "unstack": lambda d, f: f(d.f([2, 3]), axis=int(d.r.randint(2))),
    "split": lambda d, f: f(d.f([4, 6]), [2, 1, 3] if d.keep() else 3, axis=1),
    "tile": lambda d, f: f(d.f([2, 3]), [2, 1]), "repeat": lambda d, f: f(d.f([3, 2]), [1, 0, 2], axis=0),
    "gather": lambda d, f: f(d.f([5, 4]), d.i([2, 3], 0, 4), axis=int(d.r.randint(2))),
    "gather_nd": lambda d, f: f(d.f([4, 4, 2]), d.i([3, 2], 0, 4)),
    "where": lambda d, f: f(d.b([3, 4]), d.f([3, 4]), d.f([4])), "one_hot": lambda d, f: f(d.i([2, 3], -1, 4), 4),
    "pad": lambda d, f: f(d.f([3, 4]), [[1, 2], [0, 1]], ["CONSTANT", "REFLECT", "SYMMETRIC"][d.r.randint(3)]),
    "slice": lambda d, f: f(d.f([4, 5]), [1, 2], [2, -1]), "reverse": lambda d, f: f(d.f([3, 4]), [int(d.r.randint(2))]),
    "roll": lambda d, f: f(d.f([3, 5]), shift=[1, -2], axis=[0, 1]), "sort": with_axis, "argsort": with_axis,
    "range": lambda d, f: f(int(d.r.randint(5)), int(d.r.randint(5, 20)), int(d.r.randint(1, 4))),
    "linspace": lambda d, f: f(0.0, float(d.r.rand()), int(d.r.randint(2, 7))), "eye": lambda d, f: f(3, int(d.r.randint(2, 5))),
    "fill": lambda d, f: f(d.shape(), 3.5), "ones_like": unary(), "zeros_like": unary(), "shape": unary(), "size": unary(),
    "rank": unary(), "clip_by_value": lambda d, f: f(d.f(), -1.0, 0.5), "clip_by_norm": lambda d, f: f(d.f(), 1.0),
    "clip_by_global_norm": lambda d, f: f([d.f([2, 2]), d.f([3])], 1.0), "norm": reduction,
    "matmul": lambda d, f: f(d.f([2, 3, 4]), d.f([2, 5, 4]), transpose_b=True),
    "tensordot": lambda d, f: f(d.f([2, 3, 4]), d.f([4, 3, 5]), [[1, 2], [1, 0]]),
    "einsum": lambda d, f: f(["bij,bjk->bik", "bij,bjk->ik", "bij,bjk->b"][d.r.randint(3)], d.f([2, 3, 4]), d.f([2, 4, 5])),
    "broadcast_to": lambda d, f: f(d.f([1, 3]), [4, 3]), "meshgrid": lambda d, f: f(d.f([3]), d.f([2])),
    "searchsorted": lambda d, f: f(tf.sort(d.f([7])), d.f([4]), side="right" if d.keep() else "left"),
    "sequence_mask": lambda d, f: f(d.i([3], 0, 5), 5), "unique": lambda d, f: f(d.i([9], 0, 4)),
    "boolean_mask": lambda d, f: f(d.f([4, 3]), d.b([4])), "tensor_scatter_nd_update":
        lambda d, f: f(d.f([5, 2]), [[1], [3]], d.f([2, 2])), "tensor_scatter_nd_add":
        lambda d, f: f(d.f([5, 2]), [[1], [1]], d.f([2, 2])), "scatter_nd": lambda d, f: f([[1], [3]], d.f([2, 2]), [5, 2]),
    "dynamic_partition": lambda d, f: f(d.f([6]), d.i([6], 0, 3), 3), "reverse_sequence":
        lambda d, f: f(d.f([3, 5]), d.i([3], 1, 5), seq_axis=1, batch_axis=0), "identity": unary(),
    "math.reduce_mean": reduction, "linalg.matvec": lambda d, f: f(d.f([2, 3, 4]), d.f([2, 4])),
    "linalg.band_part": lambda d, f: f(d.f([4, 5]), 1, -1), "linalg.diag": lambda d, f: f(d.f([2, 3])),
    "linalg.diag_part": lambda d, f: f(d.f([2, 3, 3])), "linalg.trace": lambda d, f: f(d.f([2, 3, 3])),
    "linalg.det": lambda d, f: f(d.f([2, 3, 3])), "linalg.inv": lambda d, f: f(d.f([3, 3]) + 4 * tf.eye(3)),
    "linalg.solve": lambda d, f: f(d.f([3, 3]) + 4 * tf.eye(3), d.f([3, 2])), "linalg.cross": lambda d, f: f(d.f([2, 3]), d.f([2, 3])),
    "linalg.normalize": lambda d, f: f(d.f([3, 4]), axis=1), "linalg.cholesky":
        lambda d, f: f(tf.linalg.matmul(*[d.f([3, 3])] * 2, transpose_b=True) + 3 * tf.eye(3)),
    "linalg.svd": lambda d, f: f(d.f([4, 3]), compute_uv=False), "linalg.global_norm": lambda d, f: f([d.f([2]), d.f([3])]),
    "nn.conv2d": lambda d, f: f(d.f([2, 7, 6, 3]), d.f([3, 2, 3, 4]), [1, 2, 1, 1], "SAME" if d.keep() else "VALID"),
    "nn.conv1d": lambda d, f: f(d.f([2, 7, 3]), d.f([3, 3, 4]), 2, "SAME"),
    "nn.conv2d_transpose": lambda d, f: f(d.f([2, 4, 4, 3]), d.f([3, 3, 5, 3]), [2, 8, 8, 5], 2, "SAME"),
    "nn.depthwise_conv2d": lambda d, f: f(d.f([2, 7, 6, 3]), d.f([3, 2, 3, 2]), [1, 1, 1, 1], "SAME"),
    "nn.max_pool2d": lambda d, f: f(d.f([2, 7, 6, 3]), 2, 2, "SAME" if d.keep() else "VALID"),
    "nn.avg_pool2d": lambda d, f: f(d.f([2, 7, 6, 3]), 3, 2, "SAME" if d.keep() else "VALID"),
    "nn.bias_add": lambda d, f: f(d.f([2, 3, 4]), d.f([4])), "nn.moments": lambda d, f: f(d.f([4, 3]), [0]),
    "nn.batch_normalization": lambda d, f: f(d.f([4, 3]), d.f([3]), d.f([3], 0.5, 1), d.f([3]), d.f([3]), 1e-3),
    "nn.softmax_cross_entropy_with_logits": lambda d, f: f(tf.nn.softmax(d.f([4, 3])), d.f([4, 3])),
    "nn.sparse_softmax_cross_entropy_with_logits": lambda d, f: f(d.i([4], 0, 3), d.f([4, 3])),
    "nn.sigmoid_cross_entropy_with_logits": lambda d, f: f(d.f([4, 3], 0, 1), d.f([4, 3])),
    "nn.weighted_cross_entropy_with_logits": lambda d, f: f(d.f([4], 0, 1), d.f([4]), 2.0),
    "nn.embedding_lookup": lambda d, f: f(d.f([5, 3]), d.i([2, 2], 0, 5)), "nn.local_response_normalization": image,
    "nn.space_to_depth": lambda d, f: f(d.f([1, 4, 4, 2]), 2), "nn.depth_to_space": lambda d, f: f(d.f([1, 2, 2, 8]), 2),
    "image.resize": lambda d, f: f(d.f([2, 6, 8, 3], 0, 1), [5, 9], ["bilinear", "nearest", "bicubic", "area"][d.r.randint(4)]),
    "image.flip_left_right": image, "image.flip_up_down": image, "image.rot90": lambda d, f: f(d.f([2, 4, 5, 3]), int(d.r.randint(4))),
    "image.rgb_to_grayscale": image, "image.rgb_to_hsv": image, "image.hsv_to_rgb": image, "image.transpose": image,
    "image.adjust_brightness": lambda d, f: image(d, f, 0.2), "image.adjust_contrast": lambda d, f: image(d, f, 1.7),
    "image.adjust_saturation": lambda d, f: image(d, f, 0.6), "image.adjust_hue": lambda d, f: image(d, f, 0.1),
    "image.central_crop": lambda d, f: image(d, f, 0.5), "image.crop_to_bounding_box": lambda d, f: image(d, f, 1, 2, 3, 4),
    "image.pad_to_bounding_box": lambda d, f: image(d, f, 1, 2, 9, 12), "image.resize_with_pad": lambda d, f: image(d, f, 7, 7),
    "image.resize_with_crop_or_pad": lambda d, f: image(d, f, 4, 10), "image.per_image_standardization": image,
    "image.psnr": lambda d, f: f(d.f([2, 6, 6, 3], 0, 1), d.f([2, 6, 6, 3], 0, 1), 1.0), "image.sobel_edges": image,
    "image.convert_image_dtype": lambda d, f: f(d.f([2, 4, 4, 3], 0, 1), "uint8"), "image.total_variation": image,
    "image.ssim": lambda d, f: f(d.f([1, 16, 16, 3], 0, 1), d.f([1, 16, 16, 3], 0, 1), 1.0),
    "image.grayscale_to_rgb": lambda d, f: f(d.f([2, 4, 4, 1], 0, 1)),
    "image.crop_and_resize": lambda d, f: f(d.f([1, 6, 8, 2]), [[0.1, 0.2, 0.7, 0.9]], [0], [4, 4]),
    "strings.length": lambda d, f: f(["abc", "", "äö"]), "strings.lower": lambda d, f: f(["AbC", "X"]),
    "strings.upper": lambda d, f: f(["AbC", "x"]), "strings.join": lambda d, f: f([["a", "b"], ["c", "d"]], separator="-"),
    "strings.split": lambda d, f: f(["a b  c", "d"]), "strings.substr": lambda d, f: f(["hello", "world"], 1, 3),
    "strings.regex_replace": lambda d, f: f(["a1b22", "c"], "[0-9]+", "#"), "strings.to_number": lambda d, f: f(["1.5", "-2"]),
    "strings.strip": lambda d, f: f([" a ", "b "]), "strings.to_hash_bucket_fast": lambda d, f: f(["a", "hello", "wörld"], 1000),
    "strings.as_string": lambda d, f: f(d.i()), "strings.reduce_join": lambda d, f: f([["a", "b"], ["c", "d"]], axis=1),
    "random.stateless_uniform": lambda d, f: f([3], seed=[int(d.r.randint(99)), 2]),
    "random.stateless_normal": lambda d, f: f([3], seed=[int(d.r.randint(99)), 2]),
    "nest.flatten": lambda d, f: f({"b": [1, 2], "a": (3, {"z": 4, "y": 5})}), "convert_to_tensor": lambda d, f: f([[1, 2], [3, 4]]),
    "constant": lambda d, f: f([1.5, 2], dtype=["float16", "float64", "float32"][d.r.randint(3)]),
    "map_fn": lambda d, f: f(lambda r: r * 2, d.f([3, 2])), "scan": lambda d, f: f(lambda a, x: a + x, d.f([4, 2])),
    "foldl": lambda d, f: f(lambda a, x: a * 0.5 + x, d.f([4])), "cond": lambda d, f: f(d.b([]), lambda: 1, lambda: 2),
    "while_loop": lambda d, f: f(lambda i: i < 10, lambda i: [i + 3], [tf.constant(0)]),
    "ragged.constant": lambda d, f: f([[1, 2], [], [3]]).to_tensor(), "signal.frame": lambda d, f: f(d.f([20]), 5, 3),
    "signal.hann_window": lambda d, f: f(7), "math.reduce_sum": reduction,
})


def text(x):
    if isinstance(x, (list, tuple)):
        return "(" + " ".join(text(v) for v in x) + ")"
    if hasattr(x, "to_list") and hasattr(x, "row_splits"):
        return str(x.to_list())
    if hasattr(x, "numpy"):
        v = np.asarray(x.numpy())
        if v.dtype == object or v.dtype.kind in "SU":
            return str(v.tolist())
        if v.dtype.kind in "f":
            v = v.astype("float64") + 0.0
            return f"{x.dtype.name}{list(v.shape)} " + " ".join(f"{n:.3f}".replace("-0.000", "0.000") for n in v.ravel()[:40])
        return f"{x.dtype.name}{list(v.shape)} {v.ravel()[:40].tolist()}"
    return str(x)


for name in sorted(T):
    for k in range(CALLS):
        try:
            f = tf
            for part in name.split("."):
                f = getattr(f, part)
            line = text(T[name](Draw(k * 7919 + len(name) * 31 + ord(name[-1])), f))
        except Exception as error:
            line = "!! " + type(error).__name__
        print(f"{name}#{k}\t{line}", flush=True)
