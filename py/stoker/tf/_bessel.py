"""Modified Bessel functions of the first kind, out of plain operations: they have gradients and run in programs.

Up to 30 the power series, whose terms are all positive; above it the asymptotic one.
"""
import math

from stoker.tf._base import o, tensor

_SPLIT = 30.0


def _series(t, order):
    """sum of t^k / (k! (k + order)!), t = x^2 / 4"""
    made = o.ones_like(t)
    for k in range(80, 0, -1):
        made = made * t * (1.0 / (k * (k + order))) + 1.0
    return made


def _tail(x, order):
    """e^-x I(x) sqrt(2 pi x) = sum of (-1)^k (m - 1)(m - 9)...(m - (2k - 1)^2) / (k! (8 x)^k), m = 4 order^2"""
    m, factor, factors = 4.0 * order * order, 1.0, []
    for k in range(1, 16):
        factor *= -(m - (2 * k - 1) ** 2) / (8.0 * k)
        factors.append(factor)
    made = o.zeros_like(x)
    for factor in reversed(factors):
        made = (made + factor) / x
    return made + 1.0


def _scaled(x, order):
    """e^-|x| I(x)"""
    x = tensor(x)
    kind = x.dtype
    wide = o.cast(x, "float64")
    size = o.abs(wide)
    border = tensor(_SPLIT, "float64")
    small = o.less_equal(size, border)
    near, far = o.where(small, size, border), o.where(small, border, size)
    low = _series(near * near * 0.25, order) * o.exp(o.negative(near))
    high = _tail(far, order) / o.sqrt(far * (2.0 * math.pi))
    if order:
        low = low * near * 0.5
    made = o.where(small, low, high)
    return kind, size, made * o.sign(wide) if order else made


def _function(name, order, scaled):
    def function(x, name=None):
        kind, size, made = _scaled(x, order)
        return o.cast(made if scaled else made * o.exp(size), kind)

    function.__name__ = function.__qualname__ = name
    return function


bessel_i0 = _function("bessel_i0", 0, False)
bessel_i0e = _function("bessel_i0e", 0, True)
bessel_i1 = _function("bessel_i1", 1, False)
bessel_i1e = _function("bessel_i1e", 1, True)
