"""Names that programs ask for and that need little: version, test helpers, stand-ins of TensorFlow's inside."""
import contextlib
import functools
import logging
import unittest

import numpy as np

from stoker import _autograph, _stoker
from stoker.tf._base import Tensor, dims, host, o, static, string, tensor
from stoker.tf._specs import as_dtype

VERSION = "2.21.0"
GRAPH_DEF_VERSION = 2287
_log = logging.getLogger("tensorflow")
EagerTensor = getattr(_stoker, "EagerTensor", Tensor)


class Operation:
    """Programs have no operations to look at; the class is there for isinstance."""


class Graph:
    def as_default(self):
        return contextlib.nullcontext(self)

    def get_operations(self):
        return []


class FuncGraph(Graph):
    pass


class AbstractTensor:
    """tensorflow.python.types.core.Tensor: a mark for objects that act as tensors."""


class CompositeTensor:
    pass


class CriticalSection:
    def __init__(self, name=None, shared_name=None, critical_section_def=None, import_scope=None):
        import threading

        self._lock = threading.RLock()

    def execute(self, fn, exclusive_resource_access=True, name=None):
        with self._lock:
            return fn()


class RegisterGradient:
    def __init__(self, op_type):
        self._op_type = op_type

    def __call__(self, f):
        return f


def no_gradient(op_type):
    pass


def bitcast(input, type, name=None):
    """The same bytes as another type: a smaller one adds a dimension at the end, a larger one takes it away."""
    x, kind = tensor(input), as_dtype(type)
    shape, ratio = dims(x), (x.dtype.size, kind.size)
    if ratio[0] > ratio[1]:
        shape = shape + [ratio[0] // ratio[1]]
    elif ratio[0] < ratio[1]:
        if not shape or shape[-1] != ratio[1] // ratio[0]:
            raise ValueError(f"Cannot bitcast from {x.dtype.name} to {kind.name}: the last dimension must be {ratio[1] // ratio[0]},"
                             f" the shape is {tuple(shape)}")
        shape = shape[:-1]

    def same_bytes(array):
        return np.frombuffer(np.ascontiguousarray(array).tobytes(), kind.as_numpy_dtype).reshape(shape)

    return host("Bitcast", same_bytes, [x], kind, shape)


def histogram_fixed_width(values, value_range, nbins=100, dtype="int32", name=None):
    low, high = (float(v) for v in static(value_range))
    x = o.cast(o.reshape(tensor(values), [-1]), "float64")
    place = o.cast(o.floor((x - low) * (nbins / (high - low))), "int64")
    place = o.minimum(o.maximum(place, tensor(0, "int64")), tensor(nbins - 1, "int64"))
    return o.cast(o.reduce_sum(o.one_hot(place, nbins), axis=0), dtype)


def load_op_library(library_filename):
    raise NotImplementedError("compiled TensorFlow operations cannot be loaded into Stoker")


def edit_distance(hypothesis, truth, normalize=True, name=None):
    """Levenshtein distance of the rows of two sparse tensors."""
    def rows(sp):
        made = {}
        for place, value in zip(sp.indices.numpy().tolist(), np.ravel(sp.values.numpy()).tolist()):
            made.setdefault(tuple(place[:-1]), []).append(value)
        return made

    first, second = rows(hypothesis), rows(truth)
    shape = np.maximum(hypothesis.dense_shape.numpy(), truth.dense_shape.numpy())[:-1]
    out = np.zeros(shape, np.float32)
    for place in np.ndindex(*shape):
        a, b = first.get(place, []), second.get(place, [])
        row = list(range(len(b) + 1))
        for n, x in enumerate(a, 1):
            row, last = [n], row
            for m, y in enumerate(b, 1):
                row.append(min(last[m] + 1, row[m - 1] + 1, last[m - 1] + (x != y)))
        out[place] = row[-1] / len(b) if normalize and b else (np.inf if normalize and a else row[-1])
    return tensor(out)


# AutoGraph.

def to_code(entity, recursive=True, experimental_optional_features=None):
    """The rewritten source of a function."""
    import ast

    from stoker import _autograph_rewrite

    function = getattr(entity, "python_function", entity)
    node = _autograph._find_node(function)
    count = iter(range(1 << 30))
    made = _autograph_rewrite.rewrite_function(node, lambda what: f"ag_{what}_{next(count)}")
    return ast.unparse(ast.fix_missing_locations(made))


def set_verbosity(level, alsologtostdout=False):
    pass


def autograph_trace(*args):
    print(*args)


do_not_convert = _autograph.do_not_convert
tf_convert = _autograph.tf_convert


def set_loop_options(parallel_iterations=None, swap_memory=None, maximum_iterations=None, shape_invariants=None):
    """For the loop around the call, where it is one of a recorded program."""
    from stoker import _autograph_ops

    _autograph_ops.loop_options(maximum_iterations, shape_invariants)


def to_graph(entity, recursive=True, experimental_optional_features=None):
    """The function with its control flow rewritten; it is not recorded."""
    from stoker import _autograph_ops

    return functools.partial(_autograph_ops.call, entity)


class AutographFeature:
    ALL = AUTO_CONTROL_DEPS = ASSERT_STATEMENTS = BUILTIN_FUNCTIONS = EQUALITY_OPERATORS = LISTS = NAME_SCOPES = "all"


def control_status_ctx():
    class Status:
        status = 1

    return Status


def to_dlpack(tf_tensor):
    return tf_tensor.__dlpack__()


def from_dlpack(dlcapsule):
    return _stoker.from_dlpack(dlcapsule)


# Build, test, saved models.

def get_build_info():
    return {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}


def get_include():
    return ""


get_lib = get_include


def is_gpu_available(cuda_only=False, min_cuda_compute_capability=None):
    """Is there a GPU? Ours are reached by OpenCL, whoever made them."""
    return not cuda_only and bool(gpu_device_name())


def is_built_with_cuda():
    return False


def is_built_with_rocm():
    return False


def is_built_with_gpu_support():
    return True  # OpenCL is looked for when the program runs


def gpu_device_name():
    from stoker.tf import config

    gpus = config.list_logical_devices("GPU")
    return gpus[0].name if gpus else ""


class TestCase(unittest.TestCase):
    @staticmethod
    def evaluate(x):
        return x.numpy() if hasattr(x, "numpy") else x

    def assertAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        np.testing.assert_allclose(self.evaluate(a), self.evaluate(b), rtol=rtol, atol=atol, err_msg=msg or "")

    def assertAllEqual(self, a, b, msg=None):
        np.testing.assert_array_equal(self.evaluate(a), self.evaluate(b), err_msg=msg or "")


TensorLike = object


# tf.sets: the last axis holds sets; dense or sparse.

def _set_rows(x):
    """(shape of the rows, {place of a row: its set}, dtype of the values)."""
    if hasattr(x, "dense_shape"):
        rows = {}
        for place, value in zip(x.indices.numpy().tolist(), x.values.numpy().tolist()):
            rows.setdefault(tuple(place[:-1]), set()).add(value)
        return x._shape[:-1], rows, x.values.dtype
    x = tensor(x)
    array = x.numpy()
    return list(array.shape[:-1]), {p: set(array[p].tolist()) for p in np.ndindex(*array.shape[:-1])}, x.dtype


def _sets(operation):
    def run(a, b, aminusb=True, validate_indices=True):
        from stoker.tf._sparse import SparseTensor

        shape, first, dtype = _set_rows(a)
        _, second, _ = _set_rows(b)
        places, values, wide = [], [], 0
        for place in np.ndindex(*shape):
            x, y = first.get(place, set()), second.get(place, set())
            row = sorted(operation(x, y) if aminusb else operation(y, x))
            places += [[*place, m] for m in range(len(row))]
            values += row
            wide = max(wide, len(row))
        return SparseTensor(np.array(places, np.int64).reshape(-1, len(shape) + 1), tensor(values, dtype), [*shape, wide])

    return run


difference = _sets(lambda x, y: x - y)
intersection = _sets(lambda x, y: x & y)
union = _sets(lambda x, y: x | y)


def set_size(a, validate_indices=True):
    rows = a.indices.numpy()[:, 0]
    return tensor(np.bincount(rows, minlength=a.shape.as_list()[0]).astype(np.int32))


# Fake quantisation: round to a grid that has a place for zero. Gradients pass inside of its range; those outside are the bounds'.

def fake_quant_with_min_max_vars(inputs, min, max, num_bits=8, narrow_range=False, name=None):
    from stoker.tf._tape import custom_gradient

    def quantize(x, low, high):
        bottom, top = float(1 if narrow_range else 0), float(2**num_bits - 1)
        scale, steps = (high - low) / (top - bottom), (top - bottom) / (high - low)
        zero = o.floor(o.minimum(o.maximum(bottom - low / scale, tensor(bottom)), tensor(top)) + 0.5)
        first, last = (bottom - zero) * scale, (top - zero) * scale
        inside = o.minimum(o.maximum(x, first), last)
        made = o.floor((inside - first) * steps - o.floor(-first * steps + 0.5) + 0.5) * scale

        def grad(dy):
            below, above = o.cast(o.less(x, first), "float32"), o.cast(o.greater(x, last), "float32")
            axes = list(range(len(dims(x)) - len(dims(low))))
            return dy * (1.0 - below - above), o.reduce_sum(dy * below, axes), o.reduce_sum(dy * above, axes)

        return made, grad

    return custom_gradient(quantize)(*(o.cast(tensor(v), "float32") for v in (inputs, min, max)))


def fake_quant_with_min_max_args(inputs, min=-6, max=6, num_bits=8, narrow_range=False, name=None):
    return fake_quant_with_min_max_vars(inputs, float(min), float(max), num_bits, narrow_range)


fake_quant_with_min_max_vars_per_channel = fake_quant_with_min_max_vars


# Compatibility.

def as_bytes(bytes_or_text, encoding="utf-8"):
    return bytes_or_text if isinstance(bytes_or_text, bytes) else str(bytes_or_text).encode(encoding)


def as_text(bytes_or_text, encoding="utf-8"):
    return bytes_or_text.decode(encoding) if isinstance(bytes_or_text, bytes) else str(bytes_or_text)


as_str = as_text


def as_str_any(value, encoding="utf-8"):
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path):
    import os

    return os.fspath(path)


def forward_compatible(year, month, day):
    return True


def reset_default_graph():
    pass


def get_default_graph():
    return Graph()


def keras_get_session():
    raise NotImplementedError("there are no sessions in Stoker; everything runs eagerly or in tf.function")


def Dimension(value):
    return value


def enable_eager_execution(config=None, device_policy=None, execution_mode=None):
    pass


enable_v2_behavior = enable_eager_execution


def disable_eager_execution():
    raise NotImplementedError("programs in TensorFlow 1 style (graphs and sessions) do not run on Stoker")


disable_v2_behavior = disable_eager_execution


def set_random_seed(seed):
    from stoker.tf import random

    random.set_seed(seed)


DEBUG, INFO, WARN, ERROR, FATAL = logging.DEBUG, logging.INFO, logging.WARN, logging.ERROR, logging.FATAL
log_set_verbosity, log_info, log_warning, log_error = _log.setLevel, _log.info, _log.warning, _log.error


class Trackable:
    pass


class AutoTrackable(Trackable):
    pass


class TrackableDataStructure:
    pass


def wrap(value):
    return value


def no_automatic_dependency_tracking(method):
    return method


def enabled():
    return True


def make_decorator(target, decorator_func, *args, **kwargs):
    return functools.wraps(target)(decorator_func)


@contextlib.contextmanager
def jit_scope(compile_ops=True, separate_compiled_gradients=False):
    yield


def fingerprint(data, method="farmhash64", name=None):
    from stoker.tf import _hash

    rows = [_hash.fingerprint64(bytes(v)) for v in tensor(data, string).numpy()]
    return tensor(np.array([list(int(r).to_bytes(8, "little")) for r in rows], np.uint8))



class Layout:
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("DTensor spreads tensors over devices; Stoker has one")


class Mesh(Layout):
    pass


def histogram_fixed_width_bins(values, value_range, nbins=100, dtype="int32", name=None):
    low, high = (float(v) for v in static(value_range))
    place = o.floor((o.cast(tensor(values), "float64") - low) * (nbins / (high - low)))
    return o.cast(o.minimum(o.maximum(place, tensor(0.0, "float64")), tensor(nbins - 1.0, "float64")), dtype)


class ForwardAccumulator:
    """Forward-mode derivatives by two reverse ones: the derivative of (dy . v) with respect to v."""

    def __init__(self, primals, tangents):
        from stoker.tf import nest
        from stoker.tf._tape import GradientTape

        self._primals, self._tangents = nest.flatten(primals), nest.flatten(tangents)
        self._outer = GradientTape(persistent=True)

    def __enter__(self):
        self._outer.__enter__()
        self._outer.watch(self._primals)
        return self

    def __exit__(self, *exc):
        self._outer.__exit__(*exc)

    def jvp(self, primals, unconnected_gradients=None):
        from stoker.tf import nest

        def one(y):
            rows = self._outer.jacobian(y, self._primals)
            total = None
            for row, tangent in zip(rows, self._tangents):
                if row is not None:
                    axes = list(range(len(y.shape), len(row.shape)))
                    part = o.reduce_sum(row * tensor(tangent), axis=axes) if axes else row * tensor(tangent)
                    total = part if total is None else total + part
            return total

        return nest.map_structure(one, primals)
