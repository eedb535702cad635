"""Complex numbers: a pair of real tensors that behaves as one tensor of complex64 or complex128.

The engine computes with real numbers. Every operation here is one on the parts, so gradients with respect to real values, functions and
programs hold as for everything else. The extension asks `__stoker_op__` when an operation meets such a pair.
"""
import numpy as np

from stoker import _stoker
from stoker.tf._base import o, static, tensor

_KINDS = {"float32": "complex64", "float64": "complex128"}


class ComplexTensor:
    __array_priority__ = 100

    def __init__(self, real, imag):
        self._re, self._im = real, imag
        self.dtype = _stoker.DType(_KINDS[real.dtype.name])

    shape = property(lambda self: self._re.shape)
    ndim = property(lambda self: len(self._re.shape))
    device = property(lambda self: self._re.device)
    name = property(lambda self: self._re.name)

    def get_shape(self):
        return self.shape

    def numpy(self):
        made = np.asarray(self._re.numpy() + 1j * self._im.numpy(), self.dtype.as_numpy_dtype)
        return made[()]

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.numpy(), dtype)

    def __complex__(self):
        return complex_(self.numpy())

    def __bool__(self):
        return bool(self.numpy())

    def __len__(self):
        return len(self._re)

    def __iter__(self):
        return (self[n] for n in range(len(self)))

    def __getitem__(self, key):
        return ComplexTensor(self._re[key], self._im[key])

    def __repr__(self):
        if not hasattr(self._re, "numpy"):
            return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}>"
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={self.numpy()!r}>"

    def __str__(self):
        return f"tf.Tensor({self.numpy()}, shape={self.shape}, dtype={self.dtype.name})" if hasattr(self._re, "numpy") else repr(self)

    __hash__ = None

    def __stoker_op__(self, name, is_elementwise, arguments):
        return _operation(name, arguments)

    def _signature_key(self):
        return ("complex",)

    def _to_components(self):
        return [self._re, self._im]

    def _from_components(self, parts):
        return ComplexTensor(*parts)


ComplexTensor.__module__ = "tensorflow.python.framework.tensor"
complex_ = complex  # the type; `complex` below is TensorFlow's function


def is_complex(x):
    return isinstance(x, ComplexTensor) or isinstance(x, complex_) or getattr(getattr(x, "dtype", None), "kind", "") == "c"


def from_value(value, dtype=None):
    """A pair for numbers that NumPy knows to be complex, or that should become so; None for others."""
    wanted = None if dtype is None else _stoker.DType(dtype).name
    if isinstance(value, ComplexVariable):
        value = value.value()
    if isinstance(value, ComplexTensor):
        return value if wanted in (None, value.dtype.name) else cast(value, wanted)
    if wanted is not None and not wanted.startswith("complex"):
        return None
    if hasattr(value, "__stoker_op__") or isinstance(value, _stoker.Tensor):
        return cast(value, wanted) if wanted else None
    array = np.asarray(value) if wanted or is_complex(value) or isinstance(value, (list, tuple)) else np.zeros(())
    if not wanted and array.dtype.kind != "c":
        return None
    if not wanted:
        wanted = array.dtype.name if isinstance(value, np.ndarray) else "complex128"
    part = "float32" if wanted == "complex64" else "float64"
    return ComplexTensor(tensor(array.real.astype(part)), tensor(np.imag(array).astype(part)))


def pair(x, like=None):
    """Anything as a pair; real values get an imaginary part of zeros."""
    if isinstance(x, ComplexTensor):
        return x
    part = None if like is None else like._re.dtype
    if not isinstance(x, _stoker.Tensor) and np.asarray(x).dtype.kind == "c":
        array = np.asarray(x)
        return ComplexTensor(tensor(array.real.astype(part.name)), tensor(array.imag.astype(part.name)))
    real = tensor(x, None if isinstance(x, _stoker.Tensor) else part)
    return ComplexTensor(real, real * 0)


def cast(x, dtype):
    dtype = _stoker.DType(dtype)
    kind = {"complex64": "float32", "complex128": "float64"}.get(dtype.name)
    change = _stoker.ops["cast"]
    if isinstance(x, ComplexTensor):
        if kind is None:
            return change(x._re, dtype)
        return ComplexTensor(change(x._re, kind), change(x._im, kind))
    real = change(tensor(x), kind)
    return ComplexTensor(real, real * 0)


# ---- what operations mean for pairs ----------------------------------------------------------------------------

def _modulus(x):
    """sqrt(re^2 + im^2); its gradient at 0 is 0, as TensorFlow's is."""
    square = x._re * x._re + x._im * x._im
    some = square > 0
    return o.where(some, o.sqrt(o.where(some, square, square * 0 + 1)), square * 0)


def _multiply(a, b):
    return ComplexTensor(a._re * b._re - a._im * b._im, a._re * b._im + a._im * b._re)


def _divide(a, b):
    size = b._re * b._re + b._im * b._im
    return ComplexTensor((a._re * b._re + a._im * b._im) / size, (a._im * b._re - a._re * b._im) / size)


def _matmul(a, b, **how):
    def product(x, y):
        return _stoker.ops["matmul"](x, y, **how)

    return ComplexTensor(product(a._re, b._re) - product(a._im, b._im), product(a._re, b._im) + product(a._im, b._re))


def _exp(x):
    size = o.exp(x._re)
    return ComplexTensor(size * o.cos(x._im), size * o.sin(x._im))


def _sqrt(x):
    """The root with a real part that is not negative."""
    size = _modulus(x)
    re, im = o.sqrt(o.maximum(size + x._re, size * 0) / 2), o.sqrt(o.maximum(size - x._re, size * 0) / 2)
    return ComplexTensor(re, o.where(x._im < 0, -im, im))


def _pow(x, y):
    return _exp(_multiply(y, ComplexTensor(o.log(_modulus(x)), angle(x))))


_BINARY = {
    "add": lambda a, b: ComplexTensor(a._re + b._re, a._im + b._im),
    "subtract": lambda a, b: ComplexTensor(a._re - b._re, a._im - b._im),
    "multiply": _multiply, "truediv": _divide, "divide": _divide, "div": _divide, "realdiv": _divide, "pow": _pow,
    "equal": lambda a, b: o.logical_and(o.equal(a._re, b._re), o.equal(a._im, b._im)),
    "not_equal": lambda a, b: o.logical_or(o.not_equal(a._re, b._re), o.not_equal(a._im, b._im)),
}
_UNARY = {
    "abs": _modulus, "exp": _exp, "sqrt": _sqrt, "square": lambda x: _multiply(x, x),
    "reciprocal": lambda x: _divide(pair(1.0, x), x),
    "log": lambda x: ComplexTensor(o.log(_modulus(x)), angle(x)),
    "sign": lambda x: _divide(x, pair(_modulus(x))),
}
# The same on both parts.
_BY_PARTS = set("""reshape transpose expand_dims squeeze slice strided_slice tile reverse gather gather_nd broadcast_to negative cumsum
    reduce_sum reduce_mean identity stop_gradient pad roll split unstack concat stack where repeat""".split())


def _operation(name, arguments):
    values = list(arguments.values())
    if name in _BINARY and len(values) >= 2:
        one = next(v for v in values[:2] if isinstance(v, ComplexTensor))
        return _BINARY[name](pair(values[0], one), pair(values[1], one))
    if name == "matmul":
        a, b, *_ = values
        how = {k: v for k, v in list(arguments.items())[2:]}
        return _matmul(pair(a, b), pair(b, a), **how)
    if name in _UNARY:
        return _UNARY[name](values[0])
    if name in _BY_PARTS:
        return by_parts(_stoker.ops[name], **arguments)
    raise TypeError(f"tf.{name} does not take complex numbers here; tf.math.real and tf.math.imag give the parts")


def by_parts(function, *args, **kwargs):
    """The function on all real parts, then on all imaginary ones."""
    def part(x, which):
        if isinstance(x, ComplexTensor):
            return x._im if which else x._re
        if isinstance(x, (list, tuple)) and any(isinstance(v, ComplexTensor) for v in x):
            one = next(v for v in x if isinstance(v, ComplexTensor))
            return [part(pair(v, one), which) for v in x]
        return x

    made = [function(*[part(a, n) for a in args], **{k: part(v, n) for k, v in kwargs.items()}) for n in (0, 1)]
    if isinstance(made[0], (list, tuple)):
        return [ComplexTensor(a, b) for a, b in zip(*made)]
    return ComplexTensor(*made)


def _operator(name, swapped=False):
    operation = _BINARY[name]

    def method(self, other):
        other = pair(other, self)
        return operation(other, self) if swapped else operation(self, other)

    return method


for _name, _op in [("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "truediv"), ("pow", "pow")]:
    setattr(ComplexTensor, f"__{_name}__", _operator(_op))
    setattr(ComplexTensor, f"__r{_name}__", _operator(_op, True))
ComplexTensor.__eq__, ComplexTensor.__ne__ = _operator("equal"), _operator("not_equal")
ComplexTensor.__neg__ = lambda self: ComplexTensor(-self._re, -self._im)
ComplexTensor.__abs__ = _modulus
ComplexTensor.__matmul__ = lambda self, other: _matmul(self, pair(other, self))
ComplexTensor.__rmatmul__ = lambda self, other: _matmul(pair(other, self), self)


class ComplexVariable(ComplexTensor):
    """tf.Variable of complex numbers: a variable for each part."""

    def __init__(self, initial_value, trainable=None, validate_shape=True, caching_device=None, name=None, variable_def=None, dtype=None,
                 import_scope=None, constraint=None, **kwargs):
        value = initial_value() if callable(initial_value) else initial_value
        value = from_value(value, dtype)
        make, self._name = _stoker.Variable, name or "Variable"
        super().__init__(*(make(part, trainable=trainable, name=f"{self._name}/{which}")
                           for part, which in ((value._re, "real"), (value._im, "imag"))))
        self.constraint = constraint

    name = property(lambda self: f"{self._name}:0")
    trainable = property(lambda self: self._re.trainable)
    __hash__ = object.__hash__

    def value(self):
        return ComplexTensor(self._re.read_value(), self._im.read_value())

    read_value = value

    def _written(self, method, value):
        value = from_value(value, self.dtype)
        for mine, given in ((self._re, value._re), (self._im, value._im)):
            getattr(mine, method)(given)
        return self

    def assign(self, value, use_locking=False, name=None, read_value=True):
        return self._written("assign", value)

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        return self._written("assign_add", delta)

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        return self._written("assign_sub", delta)

    def _checkpoint_parts(self):
        return {"real": self._re, "imag": self._im}

    def __repr__(self):
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}, numpy={self.numpy()!r}>"

    __str__ = __repr__


ComplexVariable.__module__ = "tensorflow.python.ops.resource_variable_ops"


# ---- TensorFlow's functions ---------------------------------------------------------------------------------------

def complex(real, imag, name=None):
    real, imag = tensor(real), tensor(imag)
    if real.dtype != imag.dtype or real.dtype.name not in _KINDS:
        raise TypeError(f"The `real` and `imag` components have incorrect types: {real.dtype.name} {imag.dtype.name}. They must be "
                        "consistent, and one of [tf.float32, tf.float64]")
    return ComplexTensor(*(o.broadcast_to(p, (real + imag).shape) for p in (real, imag)))


def _known(x):
    made = from_value(x)
    return tensor(x) if made is None else made


def real(input, name=None):
    x = _known(input)
    return x._re if isinstance(x, ComplexTensor) else x


def imag(input, name=None):
    x = _known(input)
    return x._im if isinstance(x, ComplexTensor) else x * 0


def conj(x, name=None):
    x = _known(x)
    return ComplexTensor(x._re, -x._im) if isinstance(x, ComplexTensor) else x


def angle(input, name=None):
    x = _known(input)
    if isinstance(x, ComplexTensor):
        return o.atan2(x._im, x._re)
    return o.where(x < 0, x * 0 + np.pi, x * 0)


def eig(tensor, name=None):
    """Eigenvalues and vectors of matrices that need not be symmetric; NumPy computes them, there is no gradient."""
    values, vectors = np.linalg.eig(static(tensor, "tf.linalg.eig"))
    return from_value(_widened(values, tensor)), from_value(_widened(vectors, tensor))


def eigvals(tensor, name=None):
    return from_value(_widened(np.linalg.eigvals(static(tensor, "tf.linalg.eigvals")), tensor))


def _widened(array, like):
    return array.astype("complex64" if np.asarray(like).dtype in (np.float32, np.complex64) else "complex128")
