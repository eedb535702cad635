"""tf.linalg. Decompositions are computed by NumPy on the host; those that models differentiate have gradients."""
import numpy as _np

from stoker.tf import _rooms
from stoker.tf._array import eye  # noqa: F401
from stoker.tf._complex import eig, eigvals  # noqa: F401
from stoker.tf._base import dims as _dims
from stoker.tf._base import host as _host
from stoker.tf._base import o as _o
from stoker.tf._base import static as _static
from stoker.tf._base import tensor as _tensor
from stoker.tf._math import l2_normalize, norm, tensordot  # noqa: F401
from stoker.tf._tape import custom_gradient as _custom_gradient
from stoker.tf._thin import einsum  # noqa: F401


def _swap(x):
    many = len(_dims(x))
    return _o.transpose(x, list(range(many - 2)) + [many - 1, many - 2])


matrix_transpose = _swap


def adjoint(matrix, name=None):
    return _swap(_tensor(matrix))


def matvec(a, b, transpose_a=False, adjoint_a=False, a_is_sparse=False, b_is_sparse=False, name=None):
    return _o.squeeze(_o.matmul(a, _o.expand_dims(_tensor(b), -1), transpose_a or adjoint_a), [-1])


def trace(x, name=None):
    return _o.reduce_sum(_o.diag_part(_tensor(x)), axis=-1)


def diag(diagonal, name="diag", k=0, num_rows=-1, num_cols=-1, padding_value=0, align="RIGHT_LEFT"):
    x, k = _tensor(diagonal), int(_static(k))
    made = _o.diag(x)
    if k == 0:
        return made
    pads = [[0, 0]] * (len(_dims(made)) - 2)
    return _o.pad(made, pads + ([[0, k], [k, 0]] if k > 0 else [[-k, 0], [0, -k]]))


def diag_part(input, name="diag_part", k=0, padding_value=0, align="RIGHT_LEFT"):
    x, k = _tensor(input), int(_static(k))
    if k:
        lead = [0] * (len(_dims(x)) - 2)
        h, w = _dims(x)[-2:]
        x = _o.slice(x, lead + [max(-k, 0), max(k, 0)], _dims(x)[:-2] + [h - max(-k, 0), w - max(k, 0)])
    return _o.diag_part(x)


tensor_diag_part = diag_part
tensor_diag = diag


def set_diag(input, diagonal, name="set_diag", k=0, align="RIGHT_LEFT"):
    x = _tensor(input)
    h, w = _dims(x)[-2:]
    on = _tensor(_np.eye(h, w, int(_static(k)), dtype=bool))
    full = diag(diagonal, k=k)
    lead = [0] * (len(_dims(x)) - 2)
    have = _dims(full)[-2:]
    full = _o.pad(full, [[0, 0]] * len(lead) + [[0, max(h - have[0], 0)], [0, max(w - have[1], 0)]])
    full = _o.slice(full, lead + [0, 0], _dims(full)[:-2] + [h, w])
    return _o.where(on, full, x)


def band_part(input, num_lower, num_upper, name=None):
    x = _tensor(input)
    h, w = _dims(x)[-2:]
    below = _o.subtract(_o.expand_dims(_tensor(_np.arange(h)), 1), _tensor(_np.arange(w)))

    def inside(distance, most):  # a negative number is no border; it may be known only when the program runs
        most = _o.cast(_tensor(most), "int64")
        return _o.logical_or(_o.less(most, _tensor(0, "int64")), _o.less_equal(distance, most))

    return _o.where(_o.logical_and(inside(below, num_lower), inside(_o.negative(below), num_upper)), x, _o.zeros_like(x))


def _square_host(name, function):
    return lambda x: _host(name, lambda a: function(a).astype(a.dtype), [x], x.dtype, _dims(x))


@_custom_gradient
def inv(input, adjoint=False, name=None):
    x = _tensor(input)
    y = _square_host("inv", _np.linalg.inv)(_swap(x) if adjoint else x)

    def grad(dy):
        g = -_o.matmul(_swap(y), _o.matmul(dy, _swap(y)))
        return _swap(g) if adjoint else g

    return y, grad


@_custom_gradient
def cholesky(input, name=None):
    x = _tensor(input)
    low = _square_host("cholesky", _np.linalg.cholesky)(x)

    def grad(dy):
        inverse = _square_host("inv", _np.linalg.inv)(low)
        middle = band_part(_o.matmul(_swap(low), dy), -1, 0)
        middle = set_diag(middle, 0.5 * _o.diag_part(middle))
        g = _o.matmul(_swap(inverse), _o.matmul(middle, inverse))
        return 0.5 * (g + _swap(g))

    return low, grad


def det(input, name=None):
    x = _tensor(input)

    @_custom_gradient
    def run(a):
        value = _host("det", lambda m: _np.linalg.det(m).astype(m.dtype), [a], a.dtype, _dims(a)[:-2])

        def grad(dy):
            inverse = _square_host("inv", _np.linalg.inv)(a)
            return _o.reshape(dy * value, _dims(value) + [1, 1]) * _swap(inverse)

        return value, grad

    return run(x)


def slogdet(input, name=None):
    x = _tensor(input)
    sign = _host("slogdet", lambda m: _np.linalg.slogdet(m)[0].astype(m.dtype), [x], x.dtype, _dims(x)[:-2])
    return sign, logabsdet(x)


def logabsdet(x):
    @_custom_gradient
    def run(a):
        value = _host("slogdet", lambda m: _np.linalg.slogdet(m)[1].astype(m.dtype), [a], a.dtype, _dims(a)[:-2])

        def grad(dy):
            return _o.reshape(dy, _dims(value) + [1, 1]) * _swap(_square_host("inv", _np.linalg.inv)(a))

        return value, grad

    return run(_tensor(x))


def logdet(matrix, name=None):
    return 2.0 * _o.reduce_sum(_o.log(_o.diag_part(cholesky(matrix))), axis=-1)


def solve(matrix, rhs, adjoint=False, name=None):
    a, b = _tensor(matrix), _tensor(rhs)

    @_custom_gradient
    def run(a, b):
        a = _swap(a) if adjoint else a
        x = _host("solve", lambda m, v: _np.linalg.solve(m, v).astype(m.dtype), [a, b], a.dtype, _dims(b))

        def grad(dy):
            db = _host("solve", lambda m, v: _np.linalg.solve(m, v).astype(m.dtype), [_swap(a), dy], a.dtype, _dims(b))
            da = -_o.matmul(db, x, transpose_b=True)
            return (_swap(da) if adjoint else da), db

        return x, grad

    return run(a, b)


def triangular_solve(matrix, rhs, lower=True, adjoint=False, name=None):
    a = band_part(matrix, -1, 0) if lower else band_part(matrix, 0, -1)
    return solve(a, rhs, adjoint)


def cholesky_solve(chol, rhs, name=None):
    return triangular_solve(chol, triangular_solve(chol, rhs), adjoint=True)


def lstsq(matrix, rhs, l2_regularizer=0.0, fast=True, name=None):
    a, b = _tensor(matrix), _tensor(rhs)
    square = _o.matmul(a, a, transpose_a=True)
    if l2_regularizer:
        square = square + l2_regularizer * eye(_dims(a)[-1], dtype=a.dtype)
    return solve(square, _o.matmul(a, b, transpose_a=True))


def pinv(a, rcond=None, validate_args=False, name=None):
    a = _tensor(a)
    shape = _dims(a)[:-2] + _dims(a)[-2:][::-1]
    return _host("pinv", lambda m: _np.linalg.pinv(m).astype(m.dtype), [a], a.dtype, shape)


def svd(tensor, full_matrices=False, compute_uv=True, name=None):
    x = _tensor(tensor)
    h, w = _dims(x)[-2:]
    k, lead = min(h, w), _dims(x)[:-2]
    if not compute_uv:
        return _host("svd", lambda m: _np.linalg.svd(m, compute_uv=False).astype(m.dtype), [x], x.dtype, lead + [k])

    def run(m):
        u, s, v = _np.linalg.svd(m, full_matrices)
        return s.astype(m.dtype), u.astype(m.dtype), _np.swapaxes(v, -1, -2).astype(m.dtype)

    shapes = [lead + [k], lead + [h, h if full_matrices else k], lead + [w, w if full_matrices else k]]
    return tuple(_host("svd", run, [x], [x.dtype] * 3, shapes))


def qr(input, full_matrices=False, name=None):
    x = _tensor(input)
    h, w = _dims(x)[-2:]
    k, lead = min(h, w), _dims(x)[:-2]

    def run(m):
        q, r = _np.linalg.qr(m, "complete" if full_matrices else "reduced")
        return q.astype(m.dtype), r.astype(m.dtype)

    shapes = [lead + [h, h if full_matrices else k], lead + [h if full_matrices else k, w]]
    return tuple(_host("qr", run, [x], [x.dtype] * 2, shapes))


def eigh(tensor, name=None):
    x = _tensor(tensor)

    @_custom_gradient
    def run(a):
        values, vectors = _host("eigh", lambda m: tuple(p.astype(m.dtype) for p in _np.linalg.eigh(m)), [a],
                                [a.dtype] * 2, [_dims(a)[:-1], _dims(a)])

        def grad(dvalues, dvectors):
            gap = _o.expand_dims(values, -2) - _o.expand_dims(values, -1)
            safe = _o.where(_o.equal(gap, _tensor(0, a.dtype)), _tensor(float("inf"), a.dtype), gap)
            inner = _o.matmul(vectors, dvectors, transpose_a=True) / safe
            g = _o.matmul(vectors, _o.matmul(inner + _o.diag(dvalues), vectors, transpose_b=True))
            return 0.5 * (g + _swap(g))

        return (values, vectors), grad

    return run(x)


def eigvalsh(tensor, name=None):
    return eigh(tensor)[0]


def matrix_rank(a, tol=None, validate_args=False, name=None):
    a = _tensor(a)
    return _host("matrix_rank", lambda m: _np.asarray(_np.linalg.matrix_rank(m, tol), _np.int32), [a], "int32",
                 _dims(a)[:-2])


def expm(input, name=None):
    """Scaling and squaring of a Taylor series of degree 18."""
    x = _tensor(input) * (2.0 ** -8)
    term = total = eye(_dims(x)[-1], batch_shape=_dims(x)[:-2], dtype=x.dtype)
    for n in range(1, 19):
        term = _o.matmul(term, x) / float(n)
        total = total + term
    for _ in range(8):
        total = _o.matmul(total, total)
    return total


def cross(a, b, name=None):
    return _o.cross(a, b)


def normalize(tensor, ord="euclidean", axis=None, name=None):
    length = norm(tensor, ord, axis, keepdims=True)
    return _tensor(tensor) / length, length


def global_norm(t_list, name=None):
    from stoker.tf import _math

    return _math.global_norm(t_list)


def __getattr__(name):
    if name == "matmul":
        return _o.matmul
    return _rooms.find("linalg", name)


def __dir__():
    return sorted(set(_rooms.names("linalg")) | set(globals()))


def lu(input, output_idx_type="int32", name=None):
    """Packed L and U and the order of the rows."""
    x = _tensor(input)

    def run(m):
        flat = m.reshape((-1,) + m.shape[-2:]).astype(_np.float64)
        orders = _np.tile(_np.arange(m.shape[-1]), (len(flat), 1))
        for a, order in zip(flat, orders):
            for k in range(a.shape[0]):
                p = k + int(_np.argmax(_np.abs(a[k:, k])))
                if p != k:
                    a[[k, p]], order[[k, p]] = a[[p, k]], order[[p, k]]
                if a[k, k]:
                    a[k + 1:, k] /= a[k, k]
                    a[k + 1:, k + 1:] -= _np.outer(a[k + 1:, k], a[k, k + 1:])
        return flat.reshape(m.shape).astype(m.dtype), orders.reshape(m.shape[:-1]).astype(output_idx_type)

    return tuple(_host("lu", run, [x], [x.dtype, output_idx_type], [_dims(x), _dims(x)[:-1]]))
