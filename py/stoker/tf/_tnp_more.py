"""The rest of tf.experimental.numpy: what is made of the functions of _tnp, or of NumPy where a result has no gradient."""
import numpy as np

from stoker.tf import _tnp as t
from stoker.tf._base import dims, o, static, tensor

asanyarray = ascontiguousarray = t.asarray
inexact, object_, unicode_, complex_ = np.inexact, np.object_, np.str_, np.complex128
issubdtype, iscomplexobj, isscalar = np.issubdtype, np.iscomplexobj, lambda num: np.isscalar(num) or (hasattr(num, "shape") and not dims(t._as(num)))


def _host(function, *values, **how):
    """By NumPy: whole numbers, truths and shapes have no gradients to lose."""
    return tensor(np.asarray(function(*[static(t._as(v)) for v in values], **how)))


# ---- one value, two values -----------------------------------------------------------------------------------------

def around(a, decimals=0):
    a = t._as(a)
    if not a.dtype.is_floating:
        return a
    scale = tensor(10.0 ** decimals, a.dtype)
    return o.round(a * scale) / scale


round = around
positive = t._unary(lambda x: o.identity(x))
cbrt = t._unary(lambda x: o.sign(x) * o.pow(o.abs(x), tensor(1 / 3, x.dtype)), True)
exp2 = t._unary(lambda x: o.pow(tensor(2, x.dtype), x), True)
deg2rad = t._unary(lambda x: x * tensor(np.pi / 180, x.dtype), True)
rad2deg = t._unary(lambda x: x * tensor(180 / np.pi, x.dtype), True)
fix = t._unary(lambda x: o.sign(x) * o.floor(o.abs(x)), True)
isposinf = t._unary(lambda x: o.equal(x, tensor(np.inf, x.dtype)), True)
isneginf = t._unary(lambda x: o.equal(x, tensor(-np.inf, x.dtype)), True)
heaviside = t._binary(lambda x, h: o.where(o.equal(x, tensor(0, x.dtype)), h, o.cast(o.greater(x, tensor(0, x.dtype)), x.dtype)), True)
float_power = t._binary(lambda a, b: o.pow(o.cast(a, "float64"), o.cast(b, "float64")), True)


def logaddexp(x1, x2):
    a, b = t._together(x1, x2)
    a, b = t._real(a), t._real(b)
    large = o.maximum(a, b)
    return large + o.log1p(o.exp(-o.abs(a - b)))


def logaddexp2(x1, x2):
    a, b = t._together(x1, x2)
    two = np.log(2.0)
    return logaddexp(t._real(a) * two, t._real(b) * two) / two


def sinc(x):
    x = t._real(x) * np.pi
    zero = o.equal(x, tensor(0, x.dtype))
    safe = o.where(zero, tensor(1, x.dtype), x)
    return o.where(zero, tensor(1, x.dtype), o.sin(safe) / safe)


def divmod(x1, x2):
    return t.floor_divide(x1, x2), t.mod(x1, x2)


def logical_xor(x1, x2):
    return o.logical_xor(t._truth(x1), t._truth(x2))


bitwise_and, bitwise_or, bitwise_xor = (t._binary(t._C["bitwise_" + n]) for n in ("and", "or", "xor"))
bitwise_not = t._unary(t._C["invert"])


def gcd(x1, x2):
    return _host(np.gcd, x1, x2)


def lcm(x1, x2):
    return _host(np.lcm, x1, x2)


def signbit(x):
    return _host(np.signbit, x)


def nextafter(x1, x2):
    return _host(np.nextafter, x1, x2)


def real(val):
    return val.real if hasattr(val, "_im") else t._as(val)


def imag(val):
    return val.imag if hasattr(val, "_im") else t.zeros_like(t._as(val))


def conj(x):
    from stoker.tf import _complex

    return _complex.conj(x) if hasattr(x, "_im") else t._as(x)


conjugate = conj


def angle(z, deg=False):
    from stoker.tf import _complex

    made = _complex.angle(z if hasattr(z, "_im") else t._real(z))
    return rad2deg(made) if deg else made


def isreal(x):
    return o.equal(imag(x), tensor(0, imag(x).dtype))


def iscomplex(x):
    return o.logical_not(isreal(x))


def isrealobj(x):
    return not iscomplexobj(x)


# ---- comparisons ----------------------------------------------------------------------------------------------------

def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    return _host(np.isclose, a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    return t.all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1, a2):
    return _host(np.array_equal, a1, a2)


# ---- making ---------------------------------------------------------------------------------------------------------

def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    return tensor(np.logspace(static(start), static(stop), num, endpoint, base, dtype, axis))


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    return tensor(np.geomspace(static(start), static(stop), num, endpoint, dtype, axis))


def tri(N, M=None, k=0, dtype=None):
    return tensor(np.tri(N, M, k, dtype or float))


def diag(v, k=0):
    v = t._as(v)
    if len(dims(v)) == 1:
        return diagflat(v, k)
    return diagonal(v, k)


def diagflat(v, k=0):
    from stoker.tf import linalg

    return linalg.diag(t.ravel(v), k=k)


def diagonal(a, offset=0, axis1=0, axis2=1):
    from stoker.tf import linalg

    return linalg.diag_part(t.moveaxis(a, (axis1, axis2), (-2, -1)), k=offset)


def trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    return t.sum(diagonal(a, offset, axis1, axis2), -1, dtype)


def diag_indices(n, ndim=2):
    return (t.arange(n, dtype=np.int32),) * ndim


def vander(x, N=None, increasing=False):
    x = t._as(x)
    count = dims(x)[0] if N is None else int(N)
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    return o.pow(o.expand_dims(x, 1), tensor(powers[None], x.dtype))


def ix_(*args):
    return [o.reshape(t._as(a), [1] * n + [-1] + [1] * (len(args) - 1 - n)) for n, a in enumerate(args)]


# ---- shapes -----------------------------------------------------------------------------------------------------------

def atleast_1d(*arys):
    made = [t._at_least(a, 1) for a in arys]
    return made[0] if len(made) == 1 else made


def atleast_2d(*arys):
    made = [t._at_least(a, 2) for a in arys]
    return made[0] if len(made) == 1 else made


def atleast_3d(*arys):
    made = []
    for a in arys:
        a = t._at_least(a, 1)
        made.append(o.reshape(a, [1, *dims(a), 1]) if len(dims(a)) == 1 else o.expand_dims(a, -1) if len(dims(a)) == 2 else a)
    return made[0] if len(made) == 1 else made


def append(arr, values, axis=None):
    return t.concatenate([t.ravel(arr), t.ravel(values)] if axis is None else [arr, values], axis or 0)


def dstack(tup):
    return t.concatenate([atleast_3d(a) for a in tup], 2)


def hsplit(ary, indices_or_sections):
    return t.split(ary, indices_or_sections, 1 if t.ndim(ary) > 1 else 0)


def vsplit(ary, indices_or_sections):
    return t.split(ary, indices_or_sections, 0)


def dsplit(ary, indices_or_sections):
    return t.split(ary, indices_or_sections, 2)


def broadcast_arrays(*args):
    shape = np.broadcast_shapes(*[tuple(dims(t._as(a))) for a in args])
    return [t.broadcast_to(a, shape) for a in args]


def flatten(a, order="C"):
    return t.ravel(a if order == "C" else t.transpose(a))


def fliplr(m):
    return t.flip(m, 1)


def flipud(m):
    return t.flip(m, 0)


def rot90(m, k=1, axes=(0, 1)):
    k, (first, second) = k % 4, axes
    if k == 0:
        return t._as(m)
    if k == 2:
        return t.flip(m, axes)
    return t.swapaxes(t.flip(m, second), first, second) if k == 1 else t.flip(t.swapaxes(m, first, second), second)


def pad(array, pad_width, mode="constant", **kwargs):
    array = t._as(array)
    width = np.broadcast_to(np.asarray(pad_width), [len(dims(array)), 2]).tolist()
    return o.pad(array, width, mode.upper(), kwargs.get("constant_values", 0))


def take_along_axis(arr, indices, axis):
    arr, indices = t._as(arr), t._as(indices)
    if axis is None:
        return t.take(t.ravel(arr), t.ravel(indices))
    last = len(dims(arr)) - 1
    arr, indices = t.swapaxes(arr, axis, last), t.swapaxes(indices, axis, last)
    lead = np.broadcast_shapes(tuple(dims(arr)[:-1]), tuple(dims(indices)[:-1]))
    arr, indices = (o.broadcast_to(x, [*lead, dims(x)[-1]]) for x in (arr, indices))
    negative = o.less(indices, tensor(0, indices.dtype))
    indices = o.where(negative, indices + tensor(dims(arr)[-1], indices.dtype), indices)
    return t.swapaxes(o.gather(arr, indices, axis=last, batch_dims=last), axis, last)


def compress(condition, a, axis=None):
    keep = np.flatnonzero(static(t._as(condition)))
    return t.take(a, keep, axis)


def nonzero(a):
    return [tensor(p) for p in np.nonzero(static(t._as(a)))]


def select(condlist, choicelist, default=0):
    made = t._as(default)
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        made = t.where(condition, choice, made)
    return made


# ---- sums and products --------------------------------------------------------------------------------------------

def count_nonzero(a, axis=None):
    return t.sum(o.cast(t._truth(a), "int64"), axis)


def _without_nan(a, filler):
    a = t._real(a)
    return o.where(o.is_nan(a), tensor(filler, a.dtype), a)


def nansum(a, axis=None, dtype=None, keepdims=False):
    return t.sum(_without_nan(a, 0), axis, dtype, keepdims)


def nanprod(a, axis=None, dtype=None, keepdims=False):
    return t.prod(_without_nan(a, 1), axis, dtype, keepdims)


def nanmean(a, axis=None, dtype=None, keepdims=None):
    a = t._real(a)
    count = t.sum(o.cast(o.logical_not(o.is_nan(a)), a.dtype), axis, None, bool(keepdims))
    return nansum(a, axis, dtype, bool(keepdims)) / count


def ptp(a, axis=None, keepdims=None):
    return t.max(a, axis, None, bool(keepdims)) - t.min(a, axis, None, bool(keepdims))


def cumprod(a, axis=None, dtype=None):
    return o.cumprod(t.ravel(t._as(a, dtype)) if axis is None else t._as(a, dtype), axis or 0)


def diff(a, n=1, axis=-1):
    a = t.moveaxis(a, axis, -1)
    for _ in range(n):
        a = a[..., 1:] - a[..., :-1]
    return t.moveaxis(a, -1, axis)


def polyval(p, x):
    p, x = t._together(p, x)
    made = o.zeros_like(x)
    for n in range(dims(p)[0]):
        made = made * x + p[n]
    return made


def vdot(a, b):
    return t.dot(t.ravel(a), t.ravel(b))


def kron(a, b):
    a, b = t._together(a, b)
    rank = max(len(dims(a)), len(dims(b)))
    a, b = t._at_least(a, rank), t._at_least(b, rank)
    wide = [n for d in dims(a) for n in (d, 1)]
    narrow = [n for d in dims(b) for n in (1, d)]
    return o.reshape(o.reshape(a, wide) * o.reshape(b, narrow), [x * y for x, y in zip(dims(a), dims(b))])


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = t._together(a, b)
    a, b = t.moveaxis(a, axisa, -1), t.moveaxis(b, axisb, -1)

    def parts(x):
        zero = o.zeros_like(x[..., 0])
        return [x[..., n] if n < dims(x)[-1] else zero for n in range(3)]

    (a0, a1, a2), (b0, b1, b2) = parts(a), parts(b)
    last = a0 * b1 - a1 * b0
    if dims(a)[-1] == dims(b)[-1] == 2:
        return last
    return t.moveaxis(t.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, last], -1), -1, axisc)
