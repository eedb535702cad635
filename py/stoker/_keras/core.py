"""Variables, conversion, abstract evaluation and control flow of Keras on Stoker's tensors."""
import contextlib

import numpy as np
from keras.src import tree
from keras.src.backend.common import KerasVariable
from keras.src.backend.common import standardize_dtype
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.name_scope import current_path as _current_path
from keras.src.backend.common.name_scope import name_scope as base_name_scope
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.stateless_scope import get_stateless_scope
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.backend.common.symbolic_scope import SymbolicScope
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

from keras.src.backend.tensorflow import _own
from stoker import _stoker
from stoker import tf as _tf
from stoker.tf import _control
from stoker.tf import _other
from stoker.tf._base import NotTraceable as _NotTraceable
from stoker.tf._base import o as _o
from stoker.tf._ragged import RaggedTensor as _RaggedTensor
from stoker.tf._sparse import IndexedSlices as _IndexedSlices
from stoker.tf._sparse import SparseTensor as _SparseTensor

SUPPORTS_SPARSE_TENSORS = True
SUPPORTS_RAGGED_TENSORS = True
SUPPORTS_COMPLEX_DTYPES = True
IS_THREAD_SAFE = False

_Tensor, _TFVariable = _stoker.Tensor, _stoker.Variable
_Eager, _Symbolic = _stoker.EagerTensor, _stoker.SymbolicTensor
# Sizes that stand for an unknown one: with many divisors, so that splits and reshapes work, and small enough for
# constants that depend on them. Further pairs are tried when the first does not fit a model: a table of 80 positions, say,
# has no place 239.
_SIZES = ((240, 336), (5040, 7560), (83, 89), (24, 36), (2, 4))
__getattr__ = _own.fallback("core", globals())


class _ResourceVariable(_stoker.Variable):
    """The value of a Keras variable: tf.Variable with methods that tests may replace."""

    def assign(self, value, use_locking=False, name=None, read_value=True):
        return _assign(self, value)

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        return _assign_add(self, delta)

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        return _assign_sub(self, delta)


_assign, _assign_add, _assign_sub = (_stoker.Variable.assign, _stoker.Variable.assign_add, _stoker.Variable.assign_sub)
_ResourceVariable.__module__ = "tensorflow.python.ops.resource_variable_ops"


class Variable(KerasVariable, _other.AbstractTensor, _other.Trackable):
    """A Keras variable over a tf.Variable; programs write into its memory."""

    _should_act_as_resource_variable = True

    handle = property(lambda self: self.value.handle)
    _shared_name = property(lambda self: self.value._shared_name)

    def _initialize(self, value):
        if not isinstance(value, _TFVariable):
            value = _ResourceVariable(value, dtype=self._dtype, trainable=self.trainable, name=self.name)
        self._value = value

    def _initialize_with_initializer(self, initializer):
        self._initialize(lambda: convert_to_tensor(initializer(self._shape, dtype=self._dtype), self._dtype))

    def _deferred_initialize(self):
        if self._value is not None:
            raise ValueError(f"Variable {self.path} is already initialized.")
        if in_stateless_scope():
            raise ValueError(
                "You are attempting to initialize a variable while in a stateless scope. This is disallowed. Make sure that "
                "all variables are initialized before you start using your layer/model objects.")
        with _control.init_scope():
            self._initialize_with_initializer(self._initializer)
            self._initializer = None

    def _direct_assign(self, value):
        self._value.assign(convert_to_tensor(value, self._dtype))

    def _convert_to_tensor(self, value, dtype=None):
        return convert_to_tensor(value, dtype=dtype)

    def numpy(self):
        return self.value.numpy()

    @property
    def value(self):
        if self._value is None and in_symbolic_scope():
            trace = _stoker.get_trace()
            if trace is not None:  # what it will be does not matter yet: no need to run its initializer
                scope = get_stateless_scope() if in_stateless_scope() else None
                known = None if scope is None else scope.get_current_value(self)
                return self._maybe_autocast(trace.input(self._dtype, list(self._shape)) if known is None else known)
        return super().value

    @property
    def shape(self):
        return _stoker.TensorShape(super().shape)

    def __tf_tensor__(self, dtype=None, name=None):
        return convert_to_tensor(self.value, dtype)


def _is_sparse(x):
    return isinstance(x, _SparseTensor)


def _is_ragged(x):
    return isinstance(x, _RaggedTensor)


def convert_to_tensor(x, dtype=None, sparse=None, ragged=None):
    kind = type(x)
    if kind is not _Eager and kind is not _Symbolic:
        if isinstance(x, (KerasVariable, _TFVariable)):
            x = x.value
            x = x.value() if hasattr(x, "read_value") else x() if callable(x) else x
        elif isinstance(x, (_SparseTensor, _RaggedTensor, _IndexedSlices)):
            return _convert_composite(x, dtype, sparse, ragged)
        elif isinstance(x, KerasTensor):
            raise ValueError("A KerasTensor is symbolic: it has a shape and a dtype, but no numbers, so it cannot become a tf.Tensor. Use it in "
                             "layers and keras.ops; the model that they make computes with numbers.")
        elif not isinstance(x, _Tensor):
            return _convert_value(x, None if dtype is None else standardize_dtype(dtype))
    if dtype is None:
        return x
    dtype = standardize_dtype(dtype)
    return x if x.dtype.name == dtype else _tf.cast(x, dtype) if hasattr(x, "_im") or dtype[0] == "c" else _o.cast(x, dtype)


def _is_complex(x):
    return isinstance(x, complex) or hasattr(x, "_im") or getattr(getattr(x, "dtype", None), "kind", "") == "c"


def _convert_value(x, dtype):
    if _is_complex(x) or (dtype or "").startswith("complex"):
        return _tf.convert_to_tensor(x, dtype)
    if dtype is None:
        return _stoker.convert_to_tensor(x)
    if dtype == "bool" or "int" in dtype:  # anything may become an integer, which TensorFlow's conversion refuses
        made = _stoker.convert_to_tensor(x)
        return made if made.dtype.name == dtype else _o.cast(made, dtype)
    if isinstance(x, bool):
        x = float(x)
    return _stoker.convert_to_tensor(x, dtype)


def _convert_composite(x, dtype, sparse, ragged):
    if _is_sparse(x) and sparse is not None and not sparse:
        x = _tf.sparse.to_dense(_tf.sparse.reorder(x))
    elif _is_ragged(x) and ragged is not None and not ragged:
        x = x.to_tensor()
    if dtype is None or standardize_dtype(x.dtype) == standardize_dtype(dtype):
        return x
    return _tf.cast(x, standardize_dtype(dtype))


def convert_to_numpy(x):
    if _is_sparse(x):
        x = _tf.sparse.to_dense(_tf.sparse.reorder(x))
    elif _is_ragged(x):
        x = x.to_tensor()
    elif isinstance(x, _IndexedSlices):
        x = _tf.convert_to_tensor(x)
    elif isinstance(x, KerasVariable):
        x = convert_to_tensor(x)
    return np.array(x)


def is_tensor(x):
    return _tf.is_tensor(x)


def shape(x):
    if isinstance(x, KerasTensor):
        return x.shape
    if not is_tensor(x):
        x = convert_to_tensor(x)
    return tuple(x.shape.as_list())


def cast(x, dtype):
    dtype = standardize_dtype(dtype)
    if type(x) is _Eager or type(x) is _Symbolic:
        return x if x.dtype.name == dtype else _o.cast(x, dtype)
    if isinstance(x, (_SparseTensor, _RaggedTensor, _IndexedSlices)):
        return _tf.cast(x, dtype)
    return convert_to_tensor(convert_to_tensor(x), dtype)


# Abstract evaluation.

def compute_output_spec(fn, *args, **kwargs):
    """What fn gives for placeholders: recorded, never computed. Unknown sizes are those that follow the sizes put in."""
    given = [x for x in tree.flatten((args, kwargs)) if isinstance(x, KerasTensor)]
    unknown = any(None in x.shape for x in given)
    with StatelessScope(), SymbolicScope():
        if not unknown:
            return tree.map_structure(_spec_of, _abstract(fn, args, kwargs, 1))
        first_error = None
        for low, high in _SIZES:
            try:
                one = _abstract(fn, args, kwargs, low)
                other = _abstract(fn, args, kwargs, high)
            except NotImplementedError:
                raise
            except Exception as error:
                first_error = first_error or error
                continue
            return tree.map_structure(_merged_spec, one, other)
        raise first_error


def _abstract(fn, args, kwargs, size):
    """Runs fn in a trace of its own; values of an enclosing trace come in as captures."""
    outer = _stoker.get_trace()
    trace = _stoker.Trace(outer) if outer is not None else _stoker.Trace()
    before = _stoker.swap_trace(trace)
    try:
        args, kwargs = tree.map_structure(lambda x: _placeholder(trace, x, size), (args, kwargs))
        with StatelessScope():  # what this run assigns belongs to its trace
            return fn(*args, **kwargs)
    except _NotTraceable as why:
        raise NotImplementedError(f"the shape of the result cannot be known before it is computed: {why}") from None
    finally:
        _stoker.swap_trace(before)


def _placeholder(trace, x, size):
    if not isinstance(x, KerasTensor):
        return x
    sizes = [size if d is None else d for d in x.shape]
    if x.dtype == "string":
        return _stoker.convert_to_tensor(np.full(sizes, b"", object), "string")
    if getattr(x, "sparse", False):
        count = max(1, min(8, int(np.prod(sizes))))
        places = np.stack(np.unravel_index(np.arange(count), sizes), -1).astype(np.int64)
        return _tf.SparseTensor(places, trace.input(x.dtype, [count]), sizes)
    return trace.input(x.dtype, sizes)


def _spec_of(x):
    if isinstance(x, KerasTensor) or not is_tensor(x):
        return x
    return KerasTensor(tuple(x.shape.as_list()), standardize_dtype(x.dtype), sparse=_is_sparse(x))


def _merged_spec(x, y):
    if isinstance(x, KerasTensor) or not is_tensor(x):
        return x
    sizes = tuple(a if a == b else None for a, b in zip(x.shape.as_list(), y.shape.as_list()))
    return KerasTensor(sizes, standardize_dtype(x.dtype), sparse=_is_sparse(x))


# Control flow.

def cond(pred, true_fn, false_fn):
    if isinstance(pred, (KerasVariable, _TFVariable)):
        pred = convert_to_tensor(pred)
    if isinstance(pred, _Symbolic):
        return _control.cond(pred, true_fn, false_fn)
    return true_fn() if pred else false_fn()


def _rows(xs):
    flat = [convert_to_tensor(x) for x in tree.flatten(xs)]
    return flat, flat[0].shape.as_list()[0]


def _stack(rows):
    return tree.map_structure(lambda *column: _o.stack([convert_to_tensor(c) for c in column]), *rows)


def _repeated(row, count):
    """In abstract evaluation all rows are alike: one stands for all."""
    def one(x):
        x = convert_to_tensor(x)
        return _o.broadcast_to(_o.expand_dims(x, 0), [count] + x.shape.as_list())

    return tree.map_structure(one, row)


def map(f, xs):
    flat, count = _rows(xs)

    def row(n):
        return f(tree.pack_sequence_as(xs, [x[n] for x in flat]) if tree.is_nested(xs) else flat[0][n])

    if in_symbolic_scope() and count:
        return _repeated(row(0), count)
    if not count:
        return tree.map_structure(lambda x: convert_to_tensor(x)[:0], xs)
    return _stack([row(n) for n in range(count)])


def vectorized_map(function, elements):
    return map(function, elements)


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}")
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")
    flat, count = _rows(xs) if xs is not None else ([], int(length))
    count = int(length) if length is not None else count
    carry = tree.map_structure(convert_to_tensor, init)

    def step(carry, n):
        row = None if xs is None else tree.pack_sequence_as(xs, [x[n] for x in flat]) if tree.is_nested(xs) else flat[0][n]
        return f(carry, row)

    if in_symbolic_scope() and count:
        carry, y = step(carry, 0)
        return carry, None if y is None else _repeated(y, count)
    ys = []
    for n in range(count - 1, -1, -1) if reverse else range(count):
        carry, y = step(carry, n)
        ys.append(y)
    if not ys:
        return carry, tree.map_structure(lambda c: convert_to_tensor(c)[None][:0], init)
    if all(y is None for y in ys):  # as Keras on TensorFlow: rows of zeros shaped like the carry
        return carry, tree.map_structure(lambda c: _o.zeros_like(_o.stack([c] * len(ys))), carry)
    return carry, _stack(ys[::-1] if reverse else ys)


def while_loop(cond, body, loop_vars, maximum_iterations=None):
    single = not isinstance(loop_vars, (tuple, list))
    values = (loop_vars,) if single else tuple(loop_vars)
    values = tuple(tree.map_structure(lambda x: convert_to_tensor(x), v) for v in values)

    def run(*state):
        made = body(*state)
        if not isinstance(made, (list, tuple)):
            made = (made,)
        return tuple(tree.map_structure(convert_to_tensor, m) for m in made)

    if in_symbolic_scope():
        going = cond(*values)
        if isinstance(going, _Symbolic):
            run(*values)
            return values[0] if single else values
    made = _control.while_loop(cond, run, values, maximum_iterations=maximum_iterations)
    made = tuple(made) if isinstance(made, (list, tuple)) else (made,)
    return made[0] if single else made


def fori_loop(lower, upper, body_fun, init_val):
    if isinstance(lower, _Symbolic) or isinstance(upper, _Symbolic):
        made = while_loop(lambda n, _: _o.less(n, upper), lambda n, v: (n + 1, body_fun(n, v)), (lower, init_val))
        return made[1]
    value = init_val
    for n in range(int(lower), int(upper)):
        value = body_fun(convert_to_tensor(n, "int32"), value)
        if in_symbolic_scope():
            break
    return value


def switch(index, branches, *operands):
    index = convert_to_tensor(index, "int32")
    if not isinstance(index, _Symbolic):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    last = len(branches) - 1
    index = _o.minimum(_o.maximum(index, _stoker.convert_to_tensor(0)), _stoker.convert_to_tensor(last))
    chosen = lambda: branches[last](*operands)  # noqa: E731
    for n in range(last - 1, -1, -1):
        chosen = (lambda n=n, rest=chosen: cond(_o.equal(index, _stoker.convert_to_tensor(n)),
                                                lambda: branches[n](*operands), rest))
    return chosen()


def custom_gradient(fun):
    return _tf.custom_gradient(f=fun)


def remat(f):
    """Run f again for its gradient: the memory plan of a program decides about that, so f itself will do."""
    return f


def stop_gradient(variable):
    return _o.stop_gradient(convert_to_tensor(variable))


# Pieces of tensors.

def scatter(indices, values, shape):
    return _tf.scatter_nd(convert_to_tensor(indices), convert_to_tensor(values), shape)


def slice(inputs, start_indices, shape):
    inputs = convert_to_tensor(inputs)
    starts = convert_to_tensor(start_indices, "int32")
    if isinstance(starts, _Symbolic):  # the place is known when the program runs: gather axis by axis
        for axis, size in enumerate(shape):
            places = starts[axis] + _stoker.convert_to_tensor(np.arange(int(size), dtype=np.int32))
            inputs = _o.gather(inputs, places, axis=axis)
        return inputs
    return _tf.slice(inputs, starts, [int(s) for s in shape])


def slice_update(inputs, start_indices, updates):
    from stoker.tf import _python

    inputs = convert_to_tensor(inputs)
    updates = convert_to_tensor(updates, inputs.dtype)
    return _python._xla()["dynamic_update_slice"](inputs, updates, convert_to_tensor(start_indices))


def unstack(x, num=None, axis=0):
    return _o.unstack(convert_to_tensor(x), num=num, axis=axis)


def random_seed_dtype():
    return "int64"


class name_scope(base_name_scope):
    """Keras' scope of names: reports and failures of a program name the layer."""

    def __enter__(self):
        super().__enter__()
        self._trace = _stoker.get_trace()
        if self._trace is not None:
            self._before = self._trace.place(_current_path())
        return self

    def __exit__(self, *args, **kwargs):
        if self._trace is not None:
            self._trace.place(self._before)
        self._trace = None
        return super().__exit__(*args, **kwargs)


@contextlib.contextmanager
def device_scope(device_name):
    with _tf.device(device_name):
        yield


