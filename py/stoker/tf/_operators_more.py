"""Linear operators that are made of others, or of fewer numbers than their matrix has."""
import numpy as np

from stoker.tf import linalg
from stoker.tf._base import TensorShape, dims, o, tensor
from stoker.tf._operators import LinearOperator, _held, _plain


class LinearOperatorZeros(LinearOperator):
    def __init__(self, num_rows, num_columns=None, batch_shape=None, dtype=None, is_non_singular=False, is_self_adjoint=True,
                 is_positive_definite=False, is_square=True, assert_proper_shapes=False, name="LinearOperatorZeros"):
        parameters = dict(locals())
        columns = num_rows if num_columns is None else num_columns
        self._sizes = [int(s) for s in (batch_shape if batch_shape is not None else [])] + [int(num_rows), int(columns)]
        super().__init__(dtype or "float32", None, False, is_self_adjoint, False, is_square, name, _plain(parameters))

    shape = property(lambda self: TensorShape(self._sizes))

    def _to_dense(self):
        return tensor(np.zeros(self._sizes, self._dtype.as_numpy_dtype))


class LinearOperatorBlockDiag(LinearOperator):
    def __init__(self, operators, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=True,
                 name="LinearOperatorBlockDiag"):
        self.operators = list(operators)
        super().__init__(self.operators[0].dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name,
                         {"operators": operators})

    def _to_dense(self):
        parts = [p.to_dense() for p in self.operators]
        wide, rows, before = sum(dims(p)[-1] for p in parts), [], 0
        for part in parts:
            after = wide - before - dims(part)[-1]
            rows.append(o.pad(part, [[0, 0]] * (len(dims(part)) - 1) + [[before, after]]))
            before += dims(part)[-1]
        return o.concat(rows, -2)


class LinearOperatorKronecker(LinearOperator):
    def __init__(self, operators, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None, name=None):
        self.operators = list(operators)
        super().__init__(self.operators[0].dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square,
                         name or "_x_".join(p.name for p in self.operators), {"operators": operators})

    def _to_dense(self):
        made = self.operators[0].to_dense()
        for one in self.operators[1:]:
            dense = one.to_dense()
            a, b = dims(made), dims(dense)
            left = o.reshape(made, a[:-2] + [a[-2], 1, a[-1], 1])
            right = o.reshape(dense, b[:-2] + [1, b[-2], 1, b[-1]])
            product = left * right
            made = o.reshape(product, dims(product)[:-4] + [a[-2] * b[-2], a[-1] * b[-1]])
        return made


class LinearOperatorLowRankUpdate(LinearOperator):
    """base + u diag v^H."""

    def __init__(self, base_operator, u, diag_update=None, v=None, is_diag_update_positive=None, is_non_singular=None, is_self_adjoint=None,
                 is_positive_definite=None, is_square=None, name="LinearOperatorLowRankUpdate"):
        parameters = dict(locals())
        self.base_operator, self.u = base_operator, _held(u)
        self.v = self.u if v is None else _held(v)
        self.diag_update = None if diag_update is None else _held(diag_update)
        super().__init__(base_operator.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name, _plain(parameters))

    shape = property(lambda self: self.base_operator.shape)

    def _update(self, x, adjoint):
        left, right = (self.v, self.u) if adjoint else (self.u, self.v)
        inner = o.matmul(linalg.adjoint(tensor(right)), x)
        if self.diag_update is not None:
            inner = o.expand_dims(tensor(self.diag_update), -1) * inner
        return o.matmul(tensor(left), inner)

    def _to_dense(self):
        eye = np.eye(self.domain_dimension, dtype=self._dtype.as_numpy_dtype)
        return self.base_operator.to_dense() + self._update(tensor(eye), False)

    def _matmul(self, x, adjoint=False):
        return self.base_operator._matmul(x, adjoint) + self._update(x, adjoint)


class LinearOperatorHouseholder(LinearOperator):
    """I - 2 v v^H of a vector of length one."""

    def __init__(self, reflection_axis, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorHouseholder"):
        parameters = dict(locals())
        self.reflection_axis = _held(reflection_axis)
        super().__init__(self.reflection_axis.dtype, None, True, True, False, True, name, _plain(parameters))

    def _to_dense(self):
        axis = tensor(self.reflection_axis)
        axis = axis / o.sqrt(o.reduce_sum(axis * axis, axis=-1, keepdims=True))
        eye = np.eye(dims(axis)[-1], dtype=self._dtype.as_numpy_dtype)
        return tensor(eye) - 2.0 * o.expand_dims(axis, -1) * o.expand_dims(axis, -2)

    def _solve(self, rhs, adjoint=False):
        return self._matmul(rhs)  # a reflection is its own inverse


class LinearOperatorPermutation(LinearOperator):
    def __init__(self, perm, dtype="float32", is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorPermutation"):
        parameters = dict(locals())
        self.perm = _held(perm)
        super().__init__(dtype, None, True, is_self_adjoint, is_positive_definite, True, name, _plain(parameters))

    def _to_dense(self):
        return o.cast(o.one_hot(tensor(self.perm), dims(tensor(self.perm))[-1]), self._dtype)

    def _solve(self, rhs, adjoint=False):
        return self._matmul(rhs, not adjoint)


def _banded(parts, offsets, width):
    """A matrix with these diagonals, each as long as the matrix is wide; what does not fit is left out."""
    made = None
    for part, k in zip(parts, offsets):
        inside = part[..., :width - k] if k >= 0 else part[..., -k:]
        one = linalg.diag(inside, k=k)
        made = one if made is None else made + one
    return made


class LinearOperatorTridiag(LinearOperator):
    def __init__(self, diagonals, diagonals_format="compact", is_non_singular=None, is_self_adjoint=None, is_positive_definite=None,
                 is_square=None, name="LinearOperatorTridiag"):
        parameters = dict(locals())
        if diagonals_format not in ("compact", "matrix", "sequence"):
            raise ValueError(f"Argument `diagonals_format` must be one of compact, matrix, or sequence. Found : {diagonals_format}.")
        self.diagonals = [_held(d) for d in diagonals] if diagonals_format == "sequence" else _held(diagonals)
        self.diagonals_format = diagonals_format
        first = self.diagonals[0] if diagonals_format == "sequence" else self.diagonals
        super().__init__(first.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name, _plain(parameters))

    def _to_dense(self):
        if self.diagonals_format == "matrix":
            return linalg.band_part(tensor(self.diagonals), 1, 1)
        if self.diagonals_format == "compact":
            whole = tensor(self.diagonals)
            parts = [whole[..., n, :] for n in range(3)]
        else:
            parts = [tensor(d) for d in self.diagonals]
        return _banded(parts, (1, 0, -1), dims(parts[1])[-1])


class LinearOperatorToeplitz(LinearOperator):
    """Constant diagonals: the first column and the first row say all."""

    def __init__(self, col, row, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorToeplitz"):
        parameters = dict(locals())
        self.col, self.row = _held(col), _held(row)
        super().__init__(self.col.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name, _plain(parameters))

    def _to_dense(self):
        col, row = tensor(self.col), tensor(self.row)
        n = dims(col)[-1]
        line = o.concat([o.reverse(row[..., 1:], [-1]), col], -1)  # element (i, j) is number n - 1 + i - j of it
        places = n - 1 + np.arange(n)[:, None] - np.arange(n)[None]
        return o.gather(line, tensor(places), axis=-1)


class LinearOperatorBlockLowerTriangular(LinearOperator):
    """operators: rows of blocks up to the diagonal."""

    def __init__(self, operators, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorBlockLowerTriangular"):
        self.operators = [list(row) for row in operators]
        super().__init__(self.operators[0][0].dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name,
                         {"operators": operators})

    def _to_dense(self):
        wide, rows = sum(row[-1].domain_dimension for row in self.operators), []
        for row in self.operators:
            line = o.concat([p.to_dense() for p in row], -1)
            rows.append(o.pad(line, [[0, 0]] * (len(dims(line)) - 1) + [[0, wide - dims(line)[-1]]]))
        return o.concat(rows, -2)
