"""tf.linalg.LinearOperator and its kin. A kind says what its matrix is and, where that is less work, how it multiplies and solves;
all else goes by the dense matrix."""
import numpy as np

from stoker.tf import linalg
from stoker.tf._base import TensorShape, Variable, dims, o, tensor
from stoker.tf._module import Module
from stoker.tf._specs import as_dtype


def _held(x):
    return x if isinstance(x, Variable) else tensor(x)


def _swap(x):
    return linalg.adjoint(x)


class LinearOperator(Module):
    def __init__(self, dtype, graph_parents=None, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name=None, parameters=None):
        super().__init__(name or type(self).__name__)
        if is_positive_definite and is_non_singular is False:
            raise ValueError("A positive definite matrix is always non-singular.")
        self._dtype, self._square = as_dtype(dtype), is_square
        self.is_non_singular = True if is_positive_definite else is_non_singular
        self.is_self_adjoint, self.is_positive_definite = is_self_adjoint, is_positive_definite
        self.parameters = {k: v for k, v in (parameters or {}).items() if k != "self"}

    dtype = property(lambda self: self._dtype)
    H = property(lambda self: self.adjoint())

    # What a kind may say.

    def _to_dense(self):
        raise NotImplementedError(f"to_dense is not implemented by {type(self).__name__}")

    def _matmul(self, x, adjoint=False):
        dense = self.to_dense()
        return o.matmul(_swap(dense) if adjoint else dense, x)

    def _solve(self, rhs, adjoint=False):
        return linalg.solve(self.to_dense(), rhs, adjoint=adjoint)

    def _diag_part(self):
        return linalg.diag_part(self.to_dense())

    def _determinant(self):
        return linalg.det(self.to_dense())

    def _log_abs_determinant(self):
        return linalg.slogdet(self.to_dense())[1]

    # Shapes.

    @property
    def shape(self):
        return self.to_dense().shape

    batch_shape = property(lambda self: TensorShape(self.shape.as_list()[:-2]))
    tensor_rank = property(lambda self: len(self.shape))
    range_dimension = property(lambda self: self.shape.as_list()[-2])
    domain_dimension = property(lambda self: self.shape.as_list()[-1])

    @property
    def is_square(self):
        sizes = self.shape.as_list()[-2:]
        return sizes[0] == sizes[1]

    def shape_tensor(self, name=None):
        return tensor(np.array(self.shape.as_list(), np.int32))

    def batch_shape_tensor(self, name=None):
        return tensor(np.array(self.shape.as_list()[:-2], np.int32))

    def tensor_rank_tensor(self, name=None):
        return tensor(self.tensor_rank, "int32")

    def range_dimension_tensor(self, name=None):
        return tensor(self.range_dimension, "int32")

    def domain_dimension_tensor(self, name=None):
        return tensor(self.domain_dimension, "int32")

    # Work.

    def to_dense(self, name=None):
        return self._to_dense()

    def __tf_tensor__(self, dtype=None, name=None):
        return self.to_dense()

    def matmul(self, x, adjoint=False, adjoint_arg=False, name=None):
        if isinstance(x, LinearOperator):
            return _product(self.adjoint() if adjoint else self, x.adjoint() if adjoint_arg else x)
        x = tensor(x, self._dtype)
        x = _swap(x) if adjoint_arg else x
        mine = (self.range_dimension if adjoint else self.domain_dimension)
        if dims(x)[-2] != mine:
            raise ValueError(f"Dimensions are not compatible: the operator has shape {self.shape}, the argument {tuple(dims(x))}")
        return self._matmul(x, adjoint)

    __matmul__ = matmul

    def matvec(self, x, adjoint=False, name=None):
        return o.squeeze(self.matmul(o.expand_dims(tensor(x, self._dtype), -1), adjoint), [-1])

    def _need(self, what):
        if self.is_non_singular is False:
            raise NotImplementedError(f"Exact {what} not implemented for an operator that is expected to be singular.")
        if not self.is_square:
            raise NotImplementedError(f"Exact {what} not implemented for an operator that is expected to not be square.")

    def solve(self, rhs, adjoint=False, adjoint_arg=False, name=None):
        self._need("solve")
        if isinstance(rhs, LinearOperator):
            inverse = self.inverse()
            return _product(inverse.adjoint() if adjoint else inverse, rhs.adjoint() if adjoint_arg else rhs)
        rhs = tensor(rhs, self._dtype)
        return self._solve(_swap(rhs) if adjoint_arg else rhs, adjoint)

    def solvevec(self, rhs, adjoint=False, name=None):
        return o.squeeze(self.solve(o.expand_dims(tensor(rhs, self._dtype), -1), adjoint), [-1])

    def determinant(self, name="det"):
        if not self.is_square:
            raise NotImplementedError("Determinant not implemented for an operator that is expected to not be square.")
        return self._determinant()

    def log_abs_determinant(self, name="log_abs_det"):
        if not self.is_square:
            raise NotImplementedError("Determinant not implemented for an operator that is expected to not be square.")
        return self._log_abs_determinant()

    def diag_part(self, name="diag_part"):
        return self._diag_part()

    def trace(self, name="trace"):
        return o.reduce_sum(self.diag_part(), axis=-1)

    def add_to_tensor(self, x, name="add_to_tensor"):
        return self.to_dense() + tensor(x, self._dtype)

    def adjoint(self, name="adjoint"):
        return self if self.is_self_adjoint else LinearOperatorAdjoint(self)

    def inverse(self, name="inverse"):
        if not self.is_square:
            raise ValueError("Cannot take the Inverse: This operator represents a non square matrix.")
        if self.is_non_singular is False:
            raise ValueError("Cannot take the Inverse: This operator represents a singular matrix.")
        return LinearOperatorInversion(self)

    def cholesky(self, name="cholesky"):
        if not (self.is_positive_definite and self.is_self_adjoint):
            raise ValueError("Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix.")
        return LinearOperatorLowerTriangular(linalg.cholesky(self.to_dense()), is_non_singular=True)

    def eigvals(self, name=None):
        if not self.is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        return linalg.eigvalsh(self.to_dense())

    def cond(self, name=None):
        values = linalg.svd(self.to_dense(), compute_uv=False)
        return o.reduce_max(o.abs(values), axis=-1) / o.reduce_min(o.abs(values), axis=-1)

    # Checks, of values that are there.

    def assert_non_singular(self, name=None):
        low = 1 / np.finfo(self._dtype.as_numpy_dtype).eps
        _check(np.all(self.cond().numpy() < low), "Singular matrix up to precision epsilon.")

    def assert_positive_definite(self, name=None):
        try:
            linalg.cholesky(self.to_dense())
        except Exception:
            _check(False, "matrix was not positive definite.")

    def assert_self_adjoint(self, name=None):
        dense = self.to_dense().numpy()
        _check(np.array_equal(dense, np.swapaxes(dense, -1, -2)), "Matrix was not equal to its adjoint.")


def _check(holds, message):
    from stoker.tf import errors

    if not holds:
        errors.invalid(message)


def _product(left, right):
    """Kinds that stay simple under multiplication do."""
    for one, other in ((left, right), (right, left)):
        if type(one) is LinearOperatorIdentity:
            return other
    if isinstance(left, LinearOperatorDiag) and isinstance(right, LinearOperatorDiag):
        return LinearOperatorDiag(left._diag * right._diag)
    return LinearOperatorComposition([left, right])


class LinearOperatorFullMatrix(LinearOperator):
    def __init__(self, matrix, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorFullMatrix"):
        parameters = dict(locals())
        self._matrix = _held(matrix)
        super().__init__(self._matrix.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name, _plain(parameters))

    matrix = property(lambda self: self._matrix)

    def _to_dense(self):
        return tensor(self._matrix)


def _plain(parameters):
    return {k: v for k, v in parameters.items() if not k.startswith("__")}


class LinearOperatorLowerTriangular(LinearOperator):
    def __init__(self, tril, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorLowerTriangular"):
        parameters = dict(locals())
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        self._tril = _held(tril)
        super().__init__(self._tril.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name, _plain(parameters))

    tril = property(lambda self: self._tril)

    @property
    def shape(self):
        return self._tril.shape

    def _to_dense(self):
        return linalg.band_part(self._tril, -1, 0)

    def _solve(self, rhs, adjoint=False):
        return linalg.triangular_solve(self.to_dense(), rhs, lower=True, adjoint=adjoint)

    def _diag_part(self):
        return linalg.diag_part(tensor(self._tril))

    def _determinant(self):
        return o.reduce_prod(self._diag_part(), axis=-1)

    def _log_abs_determinant(self):
        return o.reduce_sum(o.log(o.abs(self._diag_part())), axis=-1)

    def assert_non_singular(self, name=None):
        _check(np.all(self._diag_part().numpy() != 0), "Singular operator:  Diagonal contained zero values.")


class LinearOperatorDiag(LinearOperator):
    def __init__(self, diag, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None, name="LinearOperatorDiag"):
        parameters = dict(locals())
        self._diag = _held(diag)
        super().__init__(self._diag.dtype, None, is_non_singular, True, is_positive_definite, True, name, _plain(parameters))

    diag = property(lambda self: self._diag)

    @property
    def shape(self):
        sizes = self._diag.shape.as_list()
        return TensorShape(sizes + sizes[-1:])

    def _to_dense(self):
        return linalg.diag(tensor(self._diag))

    def _matmul(self, x, adjoint=False):
        return o.expand_dims(tensor(self._diag), -1) * x

    def _solve(self, rhs, adjoint=False):
        return rhs / o.expand_dims(tensor(self._diag), -1)

    def _diag_part(self):
        return tensor(self._diag)

    _determinant = LinearOperatorLowerTriangular._determinant
    _log_abs_determinant = LinearOperatorLowerTriangular._log_abs_determinant
    assert_non_singular = LinearOperatorLowerTriangular.assert_non_singular

    def eigvals(self, name=None):
        return self._diag_part()

    def inverse(self, name="inverse"):
        return LinearOperatorDiag(1.0 / tensor(self._diag), is_non_singular=True, is_positive_definite=self.is_positive_definite)

    def cholesky(self, name="cholesky"):
        if not self.is_positive_definite:
            raise ValueError("Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix.")
        return LinearOperatorDiag(o.sqrt(tensor(self._diag)), is_positive_definite=True)

    def assert_positive_definite(self, name=None):
        _check(np.all(self._diag_part().numpy() > 0), "Operator is not positive definite: diagonal has a value that is not positive.")


class LinearOperatorScaledIdentity(LinearOperatorDiag):
    def __init__(self, num_rows, multiplier, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=True,
                 assert_proper_shapes=False, name="LinearOperatorScaledIdentity"):
        parameters = dict(locals())
        self._multiplier, self._rows = _held(multiplier), int(num_rows)
        LinearOperator.__init__(self, self._multiplier.dtype, None, is_non_singular, True, is_positive_definite, True, name, _plain(parameters))

    multiplier = property(lambda self: self._multiplier)

    @property
    def _diag(self):
        ones = np.ones(self._rows, self._dtype.as_numpy_dtype)
        return o.expand_dims(tensor(self._multiplier), -1) * tensor(ones)

    def inverse(self, name="inverse"):
        return LinearOperatorScaledIdentity(self._rows, 1.0 / tensor(self._multiplier), is_non_singular=True)


class LinearOperatorIdentity(LinearOperatorDiag):
    def __init__(self, num_rows, batch_shape=None, dtype=None, is_non_singular=True, is_self_adjoint=True, is_positive_definite=True,
                 is_square=True, assert_proper_shapes=False, name="LinearOperatorIdentity"):
        parameters = dict(locals())
        if not (is_non_singular and is_self_adjoint and is_positive_definite and is_square):
            raise ValueError("An identity operator is always non-singular, self-adjoint, positive definite and square.")
        self._sizes = [int(s) for s in (batch_shape if batch_shape is not None else [])] + [int(num_rows)]
        LinearOperator.__init__(self, dtype or "float32", None, True, True, True, True, name, _plain(parameters))

    @property
    def _diag(self):
        return tensor(np.ones(self._sizes, self._dtype.as_numpy_dtype))

    def inverse(self, name="inverse"):
        return self

    cholesky = inverse


class LinearOperatorAdjoint(LinearOperator):
    def __init__(self, operator, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None, name=None):
        self.operator = operator
        super().__init__(operator.dtype, None, operator.is_non_singular, operator.is_self_adjoint, operator.is_positive_definite, None,
                         name or operator.name + "_adjoint", {"operator": operator})

    def _to_dense(self):
        return _swap(self.operator.to_dense())

    def _matmul(self, x, adjoint=False):
        return self.operator._matmul(x, not adjoint)

    def _solve(self, rhs, adjoint=False):
        return self.operator._solve(rhs, not adjoint)

    def adjoint(self, name="adjoint"):
        return self.operator


class LinearOperatorInversion(LinearOperator):
    def __init__(self, operator, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None, name=None):
        self.operator = operator
        super().__init__(operator.dtype, None, True, operator.is_self_adjoint, operator.is_positive_definite, True,
                         name or operator.name + "_inv", {"operator": operator})

    shape = property(lambda self: self.operator.shape)

    def _to_dense(self):
        sizes = self.operator.shape.as_list()
        eye = np.broadcast_to(np.eye(sizes[-1], dtype=self._dtype.as_numpy_dtype), sizes)
        return self.operator._solve(tensor(np.ascontiguousarray(eye)))

    def _matmul(self, x, adjoint=False):
        return self.operator._solve(x, adjoint)

    def _solve(self, rhs, adjoint=False):
        return self.operator._matmul(rhs, adjoint)

    def inverse(self, name="inverse"):
        return self.operator


class LinearOperatorComposition(LinearOperator):
    def __init__(self, operators, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None, name=None):
        self.operators = list(operators)
        if not self.operators:
            raise ValueError("Expected a non-empty list of operators.")
        if is_non_singular is None and all(p.is_non_singular for p in self.operators):
            is_non_singular = True
        super().__init__(self.operators[0].dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square,
                         name or "_o_".join(p.name for p in self.operators), {"operators": operators})

    def _to_dense(self):
        made = self.operators[-1].to_dense()
        for one in reversed(self.operators[:-1]):
            made = one._matmul(made)
        return made

    def _matmul(self, x, adjoint=False):
        for one in self.operators if adjoint else reversed(self.operators):
            x = one._matmul(x, adjoint)
        return x

    def _solve(self, rhs, adjoint=False):
        for one in reversed(self.operators) if adjoint else self.operators:
            rhs = one._solve(rhs, adjoint)
        return rhs
