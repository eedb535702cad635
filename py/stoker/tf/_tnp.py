"""tf.experimental.numpy: NumPy's names and promotion of types over tensors. What is here runs on the engine, under tapes and in functions."""
import builtins

import numpy as np

from stoker import _stoker
from stoker.tf import _array, _math, _thin
from stoker.tf import random as _random
from stoker.tf._base import Tensor, Variable, dims, o, static, tensor

ndarray = Tensor
pi, e, inf, newaxis = np.pi, np.e, np.inf, None
for _name in "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool_ complex64 complex128".split():
    globals()[_name] = getattr(np, _name)
float_, int_, iinfo, finfo, string_ = np.float64, np.int64, np.iinfo, np.finfo, np.bytes_
promote_types = np.promote_types


def _known(x):
    """What decides about the type: a Python number is weak, everything else has one."""
    if isinstance(x, (Tensor, Variable)) or hasattr(x, "__tf_tensor__"):
        return np.dtype(_stoker.DType(x.dtype).as_numpy_dtype)  # variables of Keras say "float32"
    return x if isinstance(x, (bool, int, float)) else np.asarray(x).dtype


def result_type(*values):
    return np.result_type(*[_known(v) for v in values])


def _as(x, dtype=None):
    """A tensor; NumPy's types for Python values: int64 and float64."""
    if isinstance(x, (Tensor, Variable)) or hasattr(x, "__tf_tensor__"):
        made = tensor(x)
    elif isinstance(x, (list, tuple)) and builtins.any(isinstance(v, Tensor) for v in x):
        made = stack([_as(v) for v in x])
    else:
        made = tensor(np.asarray(x))
    return made if dtype is None or made.dtype == _stoker.DType(dtype) else _thin.cast(made, dtype)


def _together(*values):
    kind = result_type(*values)
    return [_as(v, kind) for v in values]


def _real(x):
    x = _as(x)
    return x if x.dtype.is_floating else _thin.cast(x, np.float64)


# ---- one value, two values ---------------------------------------------------------------------------------------

def _unary(function, real=False):
    return (lambda x: function(_real(x))) if real else (lambda x: function(_as(x)))


def _binary(function, real=False):
    def call(x1, x2):
        a, b = _together(x1, x2)
        return function(_real(a), _real(b)) if real else function(a, b)

    return call


_C = _stoker.ops
abs = absolute = fabs = _unary(_C["abs"])
negative, sign, square = _unary(_C["negative"]), _unary(_C["sign"]), _unary(_C["square"])
for _name, _op in dict(exp="exp", log="log", log1p="log1p", expm1="expm1", sqrt="sqrt", sin="sin", cos="cos", tan="tan", sinh="sinh", cosh="cosh",
                       tanh="tanh", arcsin="asin", arccos="acos", arctan="atan", arcsinh="asinh", arccosh="acosh", arctanh="atanh",
                       reciprocal="reciprocal").items():
    globals()[_name] = _unary(_C[_op], True)
floor, ceil = _unary(_C["floor"], True), _unary(_C["ceil"], True)
isnan, isinf, isfinite = (_unary(_C[n], True) for n in ("is_nan", "is_inf", "is_finite"))
log2 = _unary(lambda x: o.log(x) / np.log(2.0).astype(x.dtype.as_numpy_dtype), True)
log10 = _unary(lambda x: o.log(x) / np.log(10.0).astype(x.dtype.as_numpy_dtype), True)
add, subtract, maximum, minimum = (_binary(_C[n]) for n in ("add", "subtract", "maximum", "minimum"))
multiply, power, floor_divide = (_binary(_C[n]) for n in ("multiply", "pow", "floordiv"))
mod = remainder = _binary(_C["floormod"])
divide = true_divide = _binary(_C["truediv"], True)
arctan2, hypot = _binary(_C["atan2"], True), _binary(lambda a, b: o.sqrt(a * a + b * b), True)
equal, not_equal, less, less_equal, greater, greater_equal = (
    _binary(_C[n]) for n in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))


def _truth(x):
    return _as(x, np.bool_)


def logical_and(x1, x2):
    return o.logical_and(_truth(x1), _truth(x2))


def logical_or(x1, x2):
    return o.logical_or(_truth(x1), _truth(x2))


def logical_not(x):
    return o.logical_not(_truth(x))


def clip(a, a_min, a_max):
    a = _as(a)
    return minimum(maximum(a, a_min), a_max) if a_min is not None and a_max is not None else (
        maximum(a, a_min) if a_max is None else minimum(a, a_max))


def where(condition, x=None, y=None):
    if x is None:
        return tuple(_thin.cast(p, np.int64) for p in o.unstack(_array.where(_truth(condition)), axis=1))
    x, y = _together(x, y)
    return _array.where(_truth(condition), x, y)


# ---- making ------------------------------------------------------------------------------------------------------

def array(val, dtype=None, copy=True, ndmin=0):
    made = _as(val, dtype)
    lacking = ndmin - len(dims(made))
    return o.reshape(made, [1] * lacking + dims(made)) if lacking > 0 else made


def asarray(a, dtype=None):
    return _as(a, dtype)


def copy(a):
    return o.identity(_as(a))


def _sizes(shape):
    return [int(n) for n in np.ravel(static(shape))]


def full(shape, fill_value, dtype=None):
    return o.broadcast_to(_as(fill_value, dtype), _sizes(shape))


def zeros(shape, dtype=float):
    return tensor(np.zeros(_sizes(shape), dtype))


def ones(shape, dtype=float):
    return tensor(np.ones(_sizes(shape), dtype))


empty = zeros


def full_like(a, fill_value, dtype=None):
    a = _as(a)
    return full(dims(a), fill_value, dtype or a.dtype)


def zeros_like(a, dtype=None):
    return full_like(a, 0, dtype)


def ones_like(a, dtype=None):
    return full_like(a, 1, dtype)


empty_like = zeros_like


def eye(N, M=None, k=0, dtype=float):
    return tensor(np.eye(N, M, k, dtype))


def identity(n, dtype=float):
    return eye(n, dtype=dtype)


def arange(start, stop=None, step=1, dtype=None):
    return tensor(np.arange(*(static(v) for v in ((0, start) if stop is None else (start, stop))), static(step), dtype))


def linspace(start, stop, num=50, endpoint=True, dtype=float):
    return tensor(np.linspace(static(start), static(stop), num, endpoint, dtype=dtype))


def meshgrid(*xi, indexing="xy"):
    return _array.meshgrid(*[_as(x) for x in xi], indexing=indexing)


# ---- shapes ------------------------------------------------------------------------------------------------------

def shape(a):
    return tuple(dims(_as(a)))


def ndim(a):
    return len(dims(_as(a)))


def size(a):
    return int(np.prod(dims(_as(a)), dtype=np.int64))


def reshape(a, newshape, order="C"):
    return o.reshape(_as(a), _sizes(newshape))


def ravel(a):
    return o.reshape(_as(a), [-1])


def transpose(a, axes=None):
    return o.transpose(_as(a), None if axes is None else _sizes(axes))


def swapaxes(a, axis1, axis2):
    a = _as(a)
    order = list(range(len(dims(a))))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return o.transpose(a, order)


def moveaxis(a, source, destination):
    a = _as(a)
    return o.transpose(a, _moved(len(dims(a)), source, destination))


def _moved(rank, source, destination):
    source, destination = ([int(v) % rank for v in np.ravel(x)] for x in (source, destination))
    order = [n for n in range(rank) if n not in source]
    for to, come in sorted(zip(destination, source)):
        order.insert(to, come)
    return order


def expand_dims(a, axis):
    return _thin.expand_dims(_as(a), axis)


def squeeze(a, axis=None):
    return _thin.squeeze(_as(a), axis)


def concatenate(arys, axis=0):
    return _thin.concat(_together(*arys), axis)


def stack(arrays, axis=0):
    return _thin.stack(_together(*arrays), axis)


def vstack(tup):
    return concatenate([_at_least(a, 2) for a in tup], 0)


def hstack(tup):
    tup = [_at_least(a, 1) for a in tup]
    return concatenate(tup, 0 if len(dims(tup[0])) == 1 else 1)


def _at_least(a, rank):
    a = _as(a)
    return o.reshape(a, [1] * (rank - len(dims(a))) + dims(a))


def split(ary, indices_or_sections, axis=0):
    ary = _as(ary)
    if np.ndim(indices_or_sections):
        ends = [0] + _sizes(indices_or_sections) + [dims(ary)[axis]]
        return _thin.split(ary, [b - a for a, b in zip(ends, ends[1:])], axis)
    return _thin.split(ary, int(indices_or_sections), axis)


def broadcast_to(array, shape):
    return o.broadcast_to(_as(array), _sizes(shape))


def tile(a, reps):
    a, reps = _as(a), _sizes(reps)
    a = _at_least(a, len(reps))
    return o.tile(a, [1] * (len(dims(a)) - len(reps)) + reps)


def repeat(a, repeats, axis=None):
    return _array.repeat(_as(a), repeats, axis)


def flip(m, axis=None):
    m = _as(m)
    return o.reverse(m, list(range(len(dims(m)))) if axis is None else _sizes(axis))


def roll(a, shift, axis=None):
    a = _as(a)
    if axis is None:
        return o.reshape(_thin.roll(ravel(a), [shift], [0]), dims(a))
    return _thin.roll(a, shift, axis)


def take(a, indices, axis=None):
    return _thin.gather(ravel(a) if axis is None else _as(a), _as(indices), axis=axis or 0)


def tril(m, k=0):
    m = _as(m)
    return _array.where(tensor(np.tri(*dims(m)[-2:], k, dtype=np.bool_)), m, m * 0)


def triu(m, k=0):
    m = _as(m)
    return _array.where(tensor(np.tri(*dims(m)[-2:], k - 1, dtype=np.bool_)), m * 0, m)


def sort(a, axis=-1, kind=None):
    return _thin.sort(_as(a), axis=axis)


def argsort(a, axis=-1, kind=None):
    return _thin.cast(_thin.argsort(_as(a), axis=axis, stable=True), np.int64)


# ---- sums and products -------------------------------------------------------------------------------------------

def _reduction(function, wide=False, real=False):
    def call(a, axis=None, dtype=None, keepdims=False):
        a = _as(a, dtype)
        if real:
            a = _real(a)
        elif wide and dtype is None and (a.dtype.is_bool or a.dtype.is_integer and a.dtype.size < 8):
            a = _thin.cast(a, np.int64)
        return function(a, axis, keepdims)

    return call


sum, prod = _reduction(_C["reduce_sum"], wide=True), _reduction(_C["reduce_prod"], wide=True)
mean = average = _reduction(_C["reduce_mean"], real=True)
max = amax = _reduction(_C["reduce_max"])
min = amin = _reduction(_C["reduce_min"])
var = _reduction(_math.reduce_variance, real=True)
std = _reduction(_math.reduce_std, real=True)


def all(a, axis=None, keepdims=None):
    return o.reduce_all(_truth(a), axis, bool(keepdims))


def any(a, axis=None, keepdims=None):
    return o.reduce_any(_truth(a), axis, bool(keepdims))


def argmax(a, axis=None):
    return o.argmax(ravel(a) if axis is None else _as(a), axis or 0)


def argmin(a, axis=None):
    return o.argmin(ravel(a) if axis is None else _as(a), axis or 0)


def cumsum(a, axis=None, dtype=None):
    return o.cumsum(ravel(_as(a, dtype)) if axis is None else _as(a, dtype), axis or 0)


def matmul(x1, x2):
    a, b = _together(x1, x2)
    left, right = len(dims(a)) == 1, len(dims(b)) == 1
    made = o.matmul(a[None] if left else a, b[:, None] if right else b)
    made = _thin.squeeze(made, [-1]) if right else made
    return _thin.squeeze(made, [-1 if right else -2]) if left else made


def dot(a, b):
    a, b = _together(a, b)
    if not dims(a) or not dims(b):
        return a * b
    return _math.tensordot(a, b, [[len(dims(a)) - 1], [0 if len(dims(b)) == 1 else len(dims(b)) - 2]])


def inner(a, b):
    a, b = _together(a, b)
    return a * b if not dims(a) or not dims(b) else _math.tensordot(a, b, [[len(dims(a)) - 1], [len(dims(b)) - 1]])


def outer(a, b):
    a, b = _together(a, b)
    return o.reshape(a, [-1, 1]) * o.reshape(b, [1, -1])


def tensordot(a, b, axes=2):
    return _math.tensordot(*_together(a, b), axes)


def einsum(subscripts, *operands):
    return _thin.einsum(subscripts, *_together(*operands))


# ---- random numbers, switches --------------------------------------------------------------------------------------

def rand(*size):
    return _random.uniform(list(size), dtype=np.float64)


def randn(*args):
    return _random.normal(list(args), dtype=np.float64)


def random_uniform(low=0.0, high=1.0, size=None):
    return _random.uniform([] if size is None else _sizes(size), low, high, dtype=np.float64)


def random_standard_normal(size=None):
    return _random.normal([] if size is None else _sizes(size), dtype=np.float64)


def randint(low, high=None, size=None, dtype=np.int64):
    low, high = (0, low) if high is None else (low, high)
    return _random.uniform([] if size is None else _sizes(size), low, high, dtype=dtype)


def seed(s):
    _random.set_seed(s)


_mode = "legacy"


def _common_type(x, y):
    """The type of x + y: NumPy's, or in the modes "all" and "safe" a float's where an integer meets it."""
    kinds = [v.dtype if hasattr(v, "dtype") else type(v) for v in (x, y)]
    if _mode == "legacy" or not builtins.all(hasattr(v, "dtype") for v in (x, y)):
        return _stoker.DType(result_type(x, y))
    a, b = (_stoker.DType(k) for k in kinds)
    if a.is_floating != b.is_floating:
        common = a if a.is_floating else b
    else:
        common = _stoker.DType(np.promote_types(a.as_numpy_dtype, b.as_numpy_dtype))
    if _mode == "safe" and not (common in (a, b) and builtins.all(np.can_cast(k.as_numpy_dtype, common.as_numpy_dtype) for k in (a, b))):
        raise TypeError(f"In promotion mode SAFE, implicit dtype promotion between ({a!r}, weak=False) and ({b!r}, weak=False) is disallowed. You "
                        "need to explicitly specify the dtype in your op, or relax your dtype promotion rules (such as from SAFE mode to ALL mode).")
    return common


def _promoted(name, x, y):
    """x + y of two types, for the operators of tensors."""
    values = [tensor(v) if isinstance(v, (Variable, list, tuple)) or hasattr(v, "__tf_tensor__") else v for v in (x, y)]
    for n, v in enumerate(values):
        if not isinstance(v, (Tensor, np.ndarray, np.generic, bool, int, float, complex, str, bytes)):
            return NotImplemented
    if builtins.any(isinstance(v, (str, bytes)) or getattr(v, "dtype", None) == "string" for v in values):
        return getattr(o, name)(tensor(x), tensor(y))
    common = _common_type(*values)
    return getattr(o, name)(*[_thin.cast(tensor(v) if isinstance(v, (Tensor, np.ndarray, np.generic)) else tensor(v, common), common) for v in values])


def experimental_enable_numpy_behavior(prefer_float32=False, dtype_conversion_mode="legacy"):
    """Tensors get NumPy's methods, and operators bring two types to one."""
    global _mode
    if dtype_conversion_mode not in ("off", "legacy", "safe", "all"):
        raise ValueError(f"The attempted promotion mode {dtype_conversion_mode} does not exist. Try using one of: ['off', 'legacy', 'safe', 'all']")
    _mode = dtype_conversion_mode
    _stoker.promote_with(None if _mode == "off" else _promoted)
    methods = dict(astype=lambda self, dtype: _as(self, dtype), reshape=lambda self, *to: reshape(self, to[0] if len(to) == 1 else to),
                   ravel=ravel, transpose=lambda self, *axes: transpose(self, (axes[0] if len(axes) == 1 else axes) or None),
                   clip=clip, tolist=lambda self: self.numpy().tolist(), data=property(lambda self: self),
                   T=property(transpose), size=property(size))
    for name in ("sum", "prod", "mean", "max", "min", "std", "var", "all", "any", "argmax", "argmin", "cumsum", "dot", "repeat", "take"):
        methods[name] = globals()[name]
    for name, value in methods.items():
        if not hasattr(Tensor, name):
            setattr(Tensor, name, value)
