"""keras.ops' NumPy functions on Stoker; those that are missing here are Keras' own, over stoker.tf.

A function that is here takes dense tensors straight to the engine, with Keras' rules for types; sparse and ragged
tensors go to Keras' own function of that name.
"""
import builtins
import functools

import numpy as np
from keras.src.backend import config
from keras.src.backend import standardize_dtype
from keras.src.backend.common import dtypes
from keras.src.backend.common.backend_utils import canonicalize_axis
from keras.src.backend.common.backend_utils import to_tuple_or_list
from stoker import _hook
from stoker import _stoker
from stoker import tf as _tf
from stoker.tf._base import o as _o

from keras.src.backend.tensorflow import _own
from keras.src.backend.tensorflow.core import convert_to_tensor
from keras.src.backend.tensorflow.core import shape as _shape_of

__getattr__ = _own.fallback("numpy", globals())
_Eager, _Symbolic = _stoker.EagerTensor, _stoker.SymbolicTensor
_WIDER = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}


def _keras(name):
    return getattr(_hook.keras_own("numpy"), name)


def _is_composite(x):
    kind = type(x)
    return kind is not _Eager and kind is not _Symbolic and (hasattr(x, "dense_shape") or hasattr(x, "row_splits"))


def _dense(function):
    """Sparse and ragged operands go to Keras' own function."""
    name = function.__name__

    @functools.wraps(function)
    def wrapped(x, *args, **kwargs):
        kind = type(x)
        if kind is not _Eager and kind is not _Symbolic and (_is_composite(x)):
            return _keras(name)(x, *args, **kwargs)
        return function(x, *args, **kwargs)

    return wrapped


def _name(x):
    return x.dtype.name


# Two operands.

def _pair(x1, x2, *more):
    """Both operands as tensors of the type that Keras gives to their combination."""
    if not isinstance(x1, (int, float)):
        x1 = convert_to_tensor(x1)
    if not isinstance(x2, (int, float)):
        x2 = convert_to_tensor(x2)
    d1, d2 = getattr(x1, "dtype", type(x1)), getattr(x2, "dtype", type(x2))
    if not more and d1 is d2 and not isinstance(d1, type):
        return x1, x2
    dtype = dtypes.result_type(d1, d2, *more)
    return convert_to_tensor(x1, dtype), convert_to_tensor(x2, dtype)


def _binary(name, op, boolean=None, more=()):
    """boolean: the operation for two booleans, where the engine's own has none."""

    def function(x1, x2):
        if _is_composite(x1) or _is_composite(x2):
            return _keras(name)(x1, x2)
        x1, x2 = _pair(x1, x2, *more)
        if boolean is not None and x1.dtype.name == "bool":
            return _stoker.ops[boolean](x1, x2)
        return call(x1, x2)

    call = _stoker.ops[op]
    function.__name__ = function.__qualname__ = name
    return function


add = _binary("add", "add", "logical_or")
subtract = _binary("subtract", "subtract")
multiply = _binary("multiply", "multiply", "logical_and")
divide = _binary("divide", "truediv", more=(float,))
true_divide = divide
maximum = _binary("maximum", "maximum", "logical_or")
minimum = _binary("minimum", "minimum", "logical_and")
floor_divide = _binary("floor_divide", "floordiv")


def _comparison(name, op):
    def function(x1, x2):
        if _is_composite(x1) or _is_composite(x2):
            return _keras(name)(x1, x2)
        x1, x2 = _pair(x1, x2)
        if x1.dtype.name == "bool" and name not in ("equal", "not_equal"):
            x1, x2 = _o.cast(x1, "int32"), _o.cast(x2, "int32")
        return call(x1, x2)

    call = _stoker.ops[op]
    function.__name__ = function.__qualname__ = name
    return function


equal = _comparison("equal", "equal")
not_equal = _comparison("not_equal", "not_equal")
less = _comparison("less", "less")
less_equal = _comparison("less_equal", "less_equal")
greater = _comparison("greater", "greater")
greater_equal = _comparison("greater_equal", "greater_equal")


def power(x1, x2):
    x1, x2 = _pair(x1, x2)
    dtype = x1.dtype.name
    if "uint" in dtype:
        return _o.cast(_o.pow(_o.cast(x1, "int32"), _o.cast(x2, "int32")), dtype)
    return _o.pow(x1, x2)


def mod(x1, x2):
    x1, x2 = _pair(x1, x2)
    if x1.dtype.name == "bool":
        x1, x2 = _o.cast(x1, "int32"), _o.cast(x2, "int32")
    return _o.floormod(x1, x2)


def arctan2(x1, x2):
    x1, x2 = _pair(x1, x2, float)
    return _o.atan2(x1, x2)


def _logical(name, op):
    def function(x1, x2):
        return call(convert_to_tensor(x1, "bool"), convert_to_tensor(x2, "bool"))

    call = _stoker.ops[op]
    function.__name__ = function.__qualname__ = name
    return function


logical_and = _logical("logical_and", "logical_and")
logical_or = _logical("logical_or", "logical_or")
logical_xor = _logical("logical_xor", "logical_xor")


def logical_not(x):
    return _o.logical_not(convert_to_tensor(x, "bool"))


# One operand.

def _as_float(x):
    dtype = x.dtype.name
    if "float" in dtype:
        return x
    return _o.cast(x, config.floatx() if dtype == "int64" else dtypes.result_type(dtype, float))


def _float_function(name, op):
    def function(x):
        if _is_composite(x):
            return _keras(name)(x)
        return call(_as_float(convert_to_tensor(x)))

    call = _stoker.ops[op]
    function.__name__ = function.__qualname__ = name
    return function


for _public, _op in (("sqrt", "sqrt"), ("exp", "exp"), ("expm1", "expm1"), ("log", "log"), ("log1p", "log1p"), ("sin", "sin"),
                     ("cos", "cos"), ("tan", "tan"), ("arcsin", "asin"), ("arccos", "acos"), ("arctan", "atan"),
                     ("sinh", "sinh"), ("cosh", "cosh"), ("tanh", "tanh"), ("arcsinh", "asinh"), ("arccosh", "acosh"),
                     ("arctanh", "atanh")):
    globals()[_public] = _float_function(_public, _op)
del _public, _op


@_dense
def absolute(x):
    x = convert_to_tensor(x)
    dtype = x.dtype.name
    return x if "uint" in dtype or dtype == "bool" else _o.abs(x)


abs = absolute


@_dense
def negative(x):
    return _o.negative(convert_to_tensor(x))


@_dense
def square(x):
    x = convert_to_tensor(x)
    return _o.square(_o.cast(x, "int32") if x.dtype.name == "bool" else x)


@_dense
def sign(x):
    return _o.sign(convert_to_tensor(x))


@_dense
def floor(x):
    x = convert_to_tensor(x)
    return _o.floor(x) if "float" in _name(x) else _o.cast(x, config.floatx())


@_dense
def ceil(x):
    x = convert_to_tensor(x)
    return _o.ceil(x) if "float" in _name(x) else _o.cast(x, config.floatx())


def clip(x, x_min, x_max):
    x = convert_to_tensor(x)
    if x.dtype.name == "bool":
        x = _o.cast(x, "int32")
    low = None if x_min is None else convert_to_tensor(x_min, x.dtype)
    high = None if x_max is None else convert_to_tensor(x_max, x.dtype)
    x = x if low is None else _o.maximum(x, low)
    return x if high is None else _o.minimum(x, high)


def _question(name, op, answer):
    def function(x):
        if _is_composite(x):
            return _keras(name)(x)
        x = convert_to_tensor(x)
        if "float" in x.dtype.name:
            return call(x)
        return _o.fill_value(x.shape.as_list(), "bool", answer)

    call = _stoker.ops[op]
    function.__name__ = function.__qualname__ = name
    return function


isnan = _question("isnan", "is_nan", 0)
isinf = _question("isinf", "is_inf", 0)
isfinite = _question("isfinite", "is_finite", 1)


def reciprocal(x):
    return divide(1, x)


# Reductions.

def _axes(axis):
    return axis if axis is None or isinstance(axis, int) else [int(a) for a in to_tuple_or_list(axis)]


@_dense
def sum(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    wider = _WIDER.get(x.dtype.name)
    return _o.reduce_sum(_o.cast(x, wider) if wider else x, axis=_axes(axis), keepdims=keepdims)


def prod(x, axis=None, keepdims=False, dtype=None):
    x = convert_to_tensor(x)
    wider = standardize_dtype(dtype) if dtype is not None else _WIDER.get(x.dtype.name)
    return _o.reduce_prod(_o.cast(x, wider) if wider else x, axis=_axes(axis), keepdims=keepdims)


def mean(x, axis=None, keepdims=False):
    if _is_composite(x) or hasattr(x, "indices"):
        return _keras("mean")(x, axis, keepdims)
    x = convert_to_tensor(x)
    given = x.dtype.name
    compute = given if given in ("float32", "float64") else dtypes.result_type(given, "float32")
    made = _o.reduce_mean(x if compute == given else _o.cast(x, compute), axis=_axes(axis), keepdims=keepdims)
    result = given if "float" in given else compute
    return made if result == compute else _o.cast(made, result)


def var(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    compute, result = dtypes.result_type(x.dtype, "float32"), dtypes.result_type(x.dtype, float)
    made = _o.reduce_variance(convert_to_tensor(x, compute), axis=_axes(axis), keepdims=keepdims)
    return convert_to_tensor(made, result)


def std(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    if "float" not in x.dtype.name:
        x = _o.cast(x, config.floatx())
    return _o.reduce_std(x, axis=_axes(axis), keepdims=keepdims)


def _extreme(name, op, boolean, combine):
    def function(x, axis=None, keepdims=False, initial=None):
        if _is_composite(x):
            return _keras(name)(x, axis, keepdims, initial)
        x = convert_to_tensor(x)
        if 0 in x.shape.as_list():
            if initial is None:
                raise ValueError(f"Cannot compute the {name} of an empty tensor.")
            axes = None if axis is None else tuple(to_tuple_or_list(axis))
            sizes = np.empty(x.shape.as_list(), bool).any(axis=axes, keepdims=keepdims).shape
            return _o.broadcast_to(convert_to_tensor(initial, x.dtype), list(sizes))
        is_bool = x.dtype.name == "bool"
        made = (of_bools if is_bool else call)(x, axis=_axes(axis), keepdims=keepdims)
        if initial is None:
            return made
        if is_bool:
            return _o.cast(_stoker.ops[combine](_o.cast(made, "int32"), convert_to_tensor(initial, "int32")), "bool")
        return _stoker.ops[combine](made, convert_to_tensor(initial, x.dtype))

    call, of_bools = _stoker.ops[op], _stoker.ops[boolean]
    function.__name__ = function.__qualname__ = name
    return function


max = _extreme("max", "reduce_max", "reduce_any", "maximum")
min = _extreme("min", "reduce_min", "reduce_all", "minimum")


def amax(x, axis=None, keepdims=False):
    return max(x, axis=axis, keepdims=keepdims)


def amin(x, axis=None, keepdims=False):
    return min(x, axis=axis, keepdims=keepdims)


def all(x, axis=None, keepdims=False):
    return _o.reduce_all(convert_to_tensor(x, "bool"), axis=_axes(axis), keepdims=keepdims)


def any(x, axis=None, keepdims=False):
    return _o.reduce_any(convert_to_tensor(x, "bool"), axis=_axes(axis), keepdims=keepdims)


def _place(name, op):
    def function(x, axis=None, keepdims=False):
        x = convert_to_tensor(x)
        if x.dtype.name == "bool":
            x = _o.cast(x, "int32")
        rank = len(x.shape)
        made = call(_o.reshape(x, [-1]) if axis is None else x, axis=0 if axis is None or not rank else axis,
                    output_type="int32")
        if not keepdims:
            return made
        return _o.reshape(made, [1] * rank) if axis is None else _o.expand_dims(made, axis)

    call = _stoker.ops[op]
    function.__name__ = function.__qualname__ = name
    return function


argmax = _place("argmax", "argmax")
argmin = _place("argmin", "argmin")


def _cumulative(name, op):
    def function(x, axis=None, dtype=None):
        x = convert_to_tensor(x)
        if dtype is not None:
            x = convert_to_tensor(x, dtype)
        if x.dtype.name == "bool":
            x = _o.cast(x, "int32")
        if axis is None:
            x, axis = _o.reshape(x, [-1]), 0
        return call(x, axis=axis)

    call = _stoker.ops[op]
    function.__name__ = function.__qualname__ = name
    return function


cumsum = _cumulative("cumsum", "cumsum")
cumprod = _cumulative("cumprod", "cumprod")


# New tensors.

def _sizes(shape):
    return [int(shape)] if isinstance(shape, (int, np.integer)) else [int(d) for d in shape]


def _filled(sizes, dtype, value):
    dtype = standardize_dtype(dtype)
    if dtype.startswith("complex"):
        return (_tf.ones if value else _tf.zeros)(sizes, dtype)
    return _o.fill_value(sizes, dtype, value)


def zeros(shape, dtype=None):
    return _filled(_sizes(shape), dtype or config.floatx(), 0)


def ones(shape, dtype=None):
    return _filled(_sizes(shape), dtype or config.floatx(), 1)


empty = zeros


@_dense
def zeros_like(x, dtype=None):
    x = convert_to_tensor(x)
    return _filled(x.shape.as_list(), dtype or x.dtype, 0)


@_dense
def ones_like(x, dtype=None):
    x = convert_to_tensor(x)
    return _filled(x.shape.as_list(), dtype or x.dtype, 1)


empty_like = zeros_like


def full(shape, fill_value, dtype=None):
    value = convert_to_tensor(fill_value, standardize_dtype(dtype or config.floatx()))
    return _o.broadcast_to(value, _sizes(shape))


def full_like(x, fill_value, dtype=None):
    x = convert_to_tensor(x)
    return full(x.shape.as_list(), fill_value, dtype or x.dtype.name)


def array(x, dtype=None):
    return convert_to_tensor(x, dtype=dtype)


@_dense
def copy(x):
    return _o.identity(convert_to_tensor(x))


def identity(n, dtype=None):
    return eye(N=n, M=n, dtype=dtype)


def eye(N, M=None, k=0, dtype=None):
    made = np.eye(int(N), int(N if M is None else M), int(k))
    return convert_to_tensor(made.astype(np.float32), standardize_dtype(dtype or config.floatx()))


# Shapes.

@_dense
def reshape(x, newshape):
    return _o.reshape(convert_to_tensor(x), newshape)


@_dense
def ravel(x):
    return _o.reshape(convert_to_tensor(x), [-1])


@_dense
def expand_dims(x, axis):
    x = convert_to_tensor(x)
    axes = to_tuple_or_list(axis)
    rank = len(x.shape) + len(axes)
    for a in sorted(canonicalize_axis(a, rank) for a in axes):
        x = _o.expand_dims(x, a)
    return x


@_dense
def squeeze(x, axis=None):
    x = convert_to_tensor(x)
    if axis is not None:
        sizes = x.shape.as_list()
        for a in to_tuple_or_list(axis):
            if sizes[a] != 1:
                raise ValueError(f"Cannot squeeze axis={a}, because the dimension is not 1.")
        axis = [canonicalize_axis(a, len(sizes)) for a in to_tuple_or_list(axis)]
    return _o.squeeze(x, axis=axis)


@_dense
def transpose(x, axes=None):
    x = convert_to_tensor(x)
    if axes:
        axes = [canonicalize_axis(axis, len(x.shape)) for axis in axes]
        if len(set(axes)) != len(axes):
            raise ValueError("`axes` must be a valid permutation of the input dimensions (no duplicates). Received: "
                             f"axes={axes} for input of rank {len(x.shape)}.")
    return _o.transpose(x, perm=axes or None)


def swapaxes(x, axis1, axis2):
    x = convert_to_tensor(x)
    order = list(range(len(x.shape)))
    axis1, axis2 = canonicalize_axis(axis1, len(order)), canonicalize_axis(axis2, len(order))
    order[axis1], order[axis2] = axis2, axis1
    return x if axis1 == axis2 else _o.transpose(x, perm=order)


def moveaxis(x, source, destination):
    x = convert_to_tensor(x)
    rank = len(x.shape)
    source = [canonicalize_axis(a, rank) for a in to_tuple_or_list(source)]
    destination = [canonicalize_axis(a, rank) for a in to_tuple_or_list(destination)]
    order = [a for a in range(rank) if a not in source]
    for to, place in sorted(zip(destination, source)):
        order.insert(to, place)
    return _o.transpose(x, perm=order)


def broadcast_to(x, shape):
    return _o.broadcast_to(convert_to_tensor(x), list(shape))


@_dense
def ndim(x):
    return len(convert_to_tensor(x).shape)


@_dense
def size(x):
    return convert_to_tensor(int(np.prod(_shape_of(x), dtype=np.int64)), "int32")


def _common(xs):
    """Tensors of one type; None when one of them is sparse or ragged."""
    if builtins.any(_is_composite(x) for x in xs):
        return None
    xs = [x if isinstance(x, (int, float)) else convert_to_tensor(x) for x in xs]
    kinds = {getattr(x, "dtype", type(x)) for x in xs}
    if len(kinds) == 1 and not isinstance(next(iter(kinds)), type):
        return xs
    dtype = dtypes.result_type(*kinds)
    return [convert_to_tensor(x, dtype) for x in xs]


def concatenate(xs, axis=0):
    xs = list(xs)
    made = _common(xs)
    return _keras("concatenate")(xs, axis) if made is None else _o.concat(made, axis)


def stack(x, axis=0):
    x = list(x)
    made = _common(x)
    return _keras("stack")(x, axis) if made is None else _o.stack(made, axis)


def flip(x, axis=None):
    x = convert_to_tensor(x)
    rank = len(x.shape)
    axes = range(rank) if axis is None else [canonicalize_axis(a, rank) for a in to_tuple_or_list(axis)]
    return _o.reverse(x, list(axes))


def where(condition, x1=None, x2=None):
    if (x1 is None) != (x2 is None):
        raise ValueError("`x1` and `x2` either both should be `None` or both should have non-None value.")
    condition = convert_to_tensor(condition, "bool")
    if x1 is None:
        return __getattr__("nonzero")(condition)
    x1, x2 = _pair(x1, x2)
    return _o.where(condition, x1, x2)


def take(x, indices, axis=None):
    if hasattr(indices, "dense_shape"):  # an absent entry of a sparse tensor is index 0
        indices = convert_to_tensor(indices, sparse=False)
    if _is_composite(indices) or _is_composite(x):
        return _keras("take")(x, indices, axis)
    x, indices = convert_to_tensor(x), convert_to_tensor(indices)
    if "int" not in indices.dtype.name:
        raise TypeError(f"`take` needs integer indices, got {indices.dtype.name}")
    if axis is None:
        x, axis = _o.reshape(x, [-1]), 0
    if "uint" not in indices.dtype.name:
        count = convert_to_tensor(x.shape.as_list()[axis], indices.dtype)
        indices = _o.where(_o.less(indices, _o.zeros_like(indices)), indices + count, indices)
    return _o.gather(x, indices, axis=axis)


def _sparse_matmul(x1, x2):
    """Sparse only when both operands are."""
    s1, s2 = hasattr(x1, "dense_shape"), hasattr(x2, "dense_shape")
    result = dtypes.result_type(x1.dtype, x2.dtype)
    if s1 != s2 and len(x1.shape) == len(x2.shape) == 2 and "float" in result:
        return _tf.sparse.sparse_dense_matmul(_tf.cast(x1, result), _tf.cast(x2, result))
    made = matmul(convert_to_tensor(x1, sparse=False), convert_to_tensor(x2, sparse=False))
    return _tf.sparse.from_dense(made) if s1 and s2 else made


def matmul(x1, x2):
    if _is_composite(x1) or _is_composite(x2):
        return _sparse_matmul(x1 if _is_composite(x1) else convert_to_tensor(x1),
                              x2 if _is_composite(x2) else convert_to_tensor(x2))
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    d1, d2 = x1.dtype.name, x2.dtype.name
    if d1 == d2 and "float" in d1:
        return _product(x1, x2)
    if d1 == d2 == "int8" and len(x1.shape) > 1 and len(x2.shape) > 1:
        return _product(_o.cast(x1, "int32"), _o.cast(x2, "int32"))
    compute, result = dtypes.result_type(d1, d2, float), dtypes.result_type(d1, d2)
    made = _product(convert_to_tensor(x1, compute), convert_to_tensor(x2, compute))
    return convert_to_tensor(made, result)


def _product(x1, x2):
    """The engine multiplies matrices; vectors get an axis that goes away again."""
    r1, r2 = len(x1.shape), len(x2.shape)
    if r1 >= 2 and r2 >= 2:
        if r2 == 2 and r1 > 2:  # one tall matrix instead of many
            sizes = x1.shape.as_list()
            tall = _o.matmul(_o.reshape(x1, [-1, sizes[-1]]) if 0 not in sizes else _o.reshape(
                x1, [int(np.prod(sizes[:-1])), sizes[-1]]), x2)
            return _o.reshape(tall, sizes[:-1] + [x2.shape.as_list()[1]])
        return _o.matmul(x1, x2)
    made = _o.matmul(_o.expand_dims(x1, 0) if r1 == 1 else x1, _o.expand_dims(x2, -1) if r2 == 1 else x2)
    if r2 == 1:
        made = _o.squeeze(made, axis=[-1])
    return _o.squeeze(made, axis=[-1 if r2 == 1 else -2]) if r1 == 1 else made


def histogram(x, bins=10, range=None):
    """What is outside of the range counts nothing, so that sizes are known before values are."""
    x = _o.reshape(convert_to_tensor(x), [-1])
    low, high = (_o.reduce_min(x), _o.reduce_max(x)) if range is None else (convert_to_tensor(v, x.dtype) for v in range)
    inside = _o.logical_and(_o.greater_equal(x, low), _o.less_equal(x, high))
    edges = convert_to_tensor(linspace(low, high, bins + 1), x.dtype)
    place = _o.expand_dims(_tf.searchsorted(edges[1:-1], x, side="right"), -1)
    return _o.tensor_scatter_nd_add(_tf.zeros([bins], x.dtype), place, _o.cast(inside, x.dtype)), edges


def select(condlist, choicelist, default=0):
    made = convert_to_tensor(default)
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):  # the first that holds is the one
        made = where(condition, choice, made)
    return made


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    if num < 0:
        raise ValueError(f"`num` must be a non-negative integer. Received: num={num}")
    if num:
        return _keras("linspace")(start, stop, num, endpoint, retstep, dtype, axis)
    start, stop = _pair(start, stop, float)
    made = _o.expand_dims(start + stop, axis)
    made = convert_to_tensor(_o.gather(made, convert_to_tensor(np.zeros(0, np.int64)), axis=axis), dtype or start.dtype)
    return (made, None) if retstep else made
