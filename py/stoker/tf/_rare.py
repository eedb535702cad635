"""Rarer names of tf, tf.math, tf.linalg and tf.train."""
import numpy as np

from stoker.tf import _math, _tape, linalg
from stoker.tf._base import Tensor, Variable, dims, o, static, tensor


class AggregationMethod:
    ADD_N, DEFAULT, EXPERIMENTAL_TREE, EXPERIMENTAL_ACCUMULATE_N = 0, 0, 1, 2


def identity_n(input, name=None):
    return [o.identity(tensor(x)) for x in input]


def truncatediv(x, y, name=None):
    """Towards zero, as in C."""
    x, y = tensor(x), tensor(y)
    if not x.dtype.is_integer:
        return o.sign(x / y) * o.floor(o.abs(x / y))
    whole = o.floordiv(x, y)
    short = o.logical_and(o.less(whole, tensor(0, x.dtype)), o.not_equal(whole * y, x))
    return whole + o.cast(short, x.dtype)


def truncatemod(x, y, name=None):
    x, y = tensor(x), tensor(y)
    return x - truncatediv(x, y) * y


def strided_slice(input_, begin, end, strides=None, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0, var=None, name=None):
    """input_[begin:end:strides] with the bits of the masks for what is left out."""
    begin, end = ([int(v) for v in np.ravel(static(x))] for x in (begin, end))
    steps = [1] * len(begin) if strides is None else [int(v) for v in np.ravel(static(strides))]
    index = []
    for n, (low, high, step) in enumerate(zip(begin, end, steps)):
        bit = 1 << n
        if ellipsis_mask & bit:
            index.append(Ellipsis)
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            index.append(low)
        else:
            index.append(slice(None if begin_mask & bit else low, None if end_mask & bit else high, step))
    return tensor(input_)[tuple(index)]


def hessians(ys, xs, gate_gradients=False, aggregation_method=None, name="hessians"):
    """Second derivatives of the sum of ys, one tensor [shape of x, shape of x] for each x; inside of functions."""
    made = []
    for x in xs if isinstance(xs, (list, tuple)) else [xs]:
        first = o.reshape(_tape.gradients(ys, x)[0], [-1])
        rows = [_tape.gradients(first[n], x)[0] for n in range(dims(first)[0])]
        shape = dims(x if isinstance(x, (Tensor, Variable)) else tensor(x))
        made.append(o.reshape(o.stack([o.zeros_like(tensor(x)) if r is None else r for r in rows]), shape + shape))
    return made


def unsorted_segment_sqrt_n(data, segment_ids, num_segments, name=None):
    data = tensor(data)
    total = _math.unsorted_segment_sum(data, segment_ids, num_segments)
    count = _math.unsorted_segment_sum(o.fill_value(dims(tensor(segment_ids)), data.dtype.name, 1), segment_ids, num_segments)
    root = o.sqrt(o.maximum(count, tensor(1, data.dtype)))
    return total / o.reshape(root, dims(root) + [1] * (len(dims(total)) - len(dims(root))))


def erfcinv(x, name=None):
    x = tensor(x)
    return _math.ndtri(x * tensor(0.5, x.dtype)) * tensor(-np.sqrt(0.5), x.dtype)


# ---- linalg -----------------------------------------------------------------------------------------------------

def lu_reconstruct(lower_upper, perm, validate_args=False, name=None):
    lower_upper, perm = tensor(lower_upper), tensor(perm)
    lower = linalg.set_diag(linalg.band_part(lower_upper, -1, 0), o.fill_value(dims(lower_upper)[:-1], lower_upper.dtype.name, 1))
    made = o.matmul(lower, linalg.band_part(lower_upper, 0, -1))
    return o.gather(made, _math.invert_permutation(perm) if len(dims(perm)) == 1 else o.argsort(perm, axis=-1), axis=len(dims(perm)) - 1,
                    batch_dims=len(dims(perm)) - 1)


def lu_solve(lower_upper, perm, rhs, validate_args=False, name=None):
    return linalg.solve(lu_reconstruct(lower_upper, perm), rhs)


def lu_matrix_inverse(lower_upper, perm, validate_args=False, name=None):
    return linalg.inv(lu_reconstruct(lower_upper, perm))


def _bands(diagonals, form, size=None):
    """(above, main, below) of [..., size] each, from a tuple, from rows, or from a matrix."""
    if form == "sequence":
        return [tensor(d) for d in diagonals]
    diagonals = tensor(diagonals)
    if form == "compact":
        return [diagonals[..., n, :] for n in range(3)]
    if form != "matrix":
        raise ValueError(f"diagonals_format must be 'matrix', 'sequence' or 'compact', got {form!r}")
    zero = o.zeros_like(diagonals[..., :1, 0])
    return [o.concat([linalg.diag_part(diagonals, k=1), zero], -1), linalg.diag_part(diagonals), o.concat([zero, linalg.diag_part(diagonals, k=-1)], -1)]


def _tridiagonal(diagonals, form):
    above, main, below = _bands(diagonals, form)
    made = linalg.diag(main)
    if dims(main)[-1] > 1:
        made = made + linalg.diag(above[..., :-1], k=1) + linalg.diag(below[..., 1:], k=-1)
    return made


def tridiagonal_matmul(diagonals, rhs, diagonals_format="compact", name=None):
    return o.matmul(_tridiagonal(diagonals, diagonals_format), tensor(rhs))


def tridiagonal_solve(diagonals, rhs, diagonals_format="compact", transpose_rhs=False, conjugate_rhs=False, name=None, partial_pivoting=True,
                      perturb_singular=False):
    matrix, rhs = _tridiagonal(diagonals, diagonals_format), tensor(rhs)
    if transpose_rhs:
        rhs = linalg.adjoint(rhs)
    vector = len(dims(rhs)) == len(dims(matrix)) - 1
    made = linalg.solve(matrix, o.expand_dims(rhs, -1) if vector else rhs)
    return o.squeeze(made, [-1]) if vector else made


def eigh_tridiagonal(alpha, beta, eigvals_only=True, select="a", select_range=None, tol=None, name=None):
    if select != "a":
        raise NotImplementedError("tf.linalg.eigh_tridiagonal: Stoker has select='a', all eigenvalues")
    alpha, beta = tensor(alpha), tensor(beta)
    values, vectors = linalg.eigh(linalg.diag(alpha) + linalg.diag(beta, k=1) + linalg.diag(beta, k=-1))
    return values if eigvals_only else (values, vectors)


# ---- train -------------------------------------------------------------------------------------------------

class ExponentialMovingAverage:
    """Shadows of variables: average = decay * average + (1 - decay) * variable, each time apply is called."""

    def __init__(self, decay, num_updates=None, zero_debias=False, name="ExponentialMovingAverage"):
        if zero_debias:
            raise NotImplementedError("tf.train.ExponentialMovingAverage: zero_debias is not in Stoker")
        self._decay, self._updates, self._name, self._shadows = decay, num_updates, name, []

    name = property(lambda self: self._name)

    def apply(self, var_list=None):
        for v in var_list or []:
            shadow = self.average(v)
            if shadow is None:
                shadow = Variable(v.value(), trainable=False, name=f"{v.name.partition(':')[0]}/{self._name}")
                self._shadows.append((v, shadow))
            decay = tensor(self._decay, shadow.dtype)
            if self._updates is not None:
                done = o.cast(tensor(self._updates), shadow.dtype)
                decay = o.minimum(decay, (done + 1) / (done + 10))
            shadow.assign_sub((shadow.value() - v.value()) * (1 - decay))

    def average(self, var):
        return next((shadow for v, shadow in self._shadows if v is var), None)

    def average_name(self, var):
        return f"{var.name.partition(':')[0]}/{self._name}"

    def variables_to_restore(self, moving_avg_variables=None):
        return {self.average_name(v): v for v in moving_avg_variables or [v for v, _ in self._shadows]}
