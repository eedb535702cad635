"""tf.debugging: checks that name what they looked at."""
import numpy as _np

from stoker import _stoker
from stoker.tf import errors as _errors
from stoker.tf._base import dims as _dims
from stoker.tf._base import is_symbolic as _is_symbolic
from stoker.tf._base import o as _o
from stoker.tf._base import static as _static
from stoker.tf._base import tensor as _tensor
from stoker.tf._specs import as_dtype as _as_dtype

_log_placement = False


def set_log_device_placement(enabled):
    """Print where each operation ran."""
    global _log_placement
    _log_placement = bool(enabled)
    _stoker.log_placement(_log_placement)


def get_log_device_placement():
    return _log_placement


def _first(x, count=3):
    flat = _np.ravel(_np.asarray(x))
    return f"First {min(flat.size, count)} elements of"


def _shown(x):
    flat = _np.ravel(_np.asarray(x))[:3]
    return "[" + " ".join(str(v) for v in flat.tolist()) + "]"


def _compare(sign, test):
    def check(x, y, message=None, summarize=None, name=None):
        x, y = _pair(x, y)
        if _is_symbolic(x) or _is_symbolic(y):
            good = _o.reduce_all(getattr(_o, _OPS[sign])(x, y))
            return _check_in_program(good, lambda a, b: check(a, b, message), [x, y], _NAMES[sign], message=message)
        a, b = _np.asarray(x.numpy()), _np.asarray(y.numpy())
        try:
            fine = bool(_np.all(test(a, b)))
        except ValueError:
            _errors.invalid(f"Incompatible shapes: {list(a.shape)} vs. {list(b.shape)}")
        if fine:
            return None
        lead = f"{message}\n" if message else ""
        _errors.invalid(f"{lead}Condition x {sign} y did not hold.\n{_first(a)} x:\n{_shown(a)}\n{_first(b)} y:\n{_shown(b)}")

    return check


_NAMES = {"==": "assert_equal", "!=": "assert_none_equal", "<": "assert_less", "<=": "assert_less_equal", ">": "assert_greater",
          ">=": "assert_greater_equal"}
_OPS = {"==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}


def _pair(x, y):
    if hasattr(x, "dtype") and not isinstance(x, _np.ndarray):
        x = _tensor(x)
        return x, _tensor(y, x.dtype)
    if hasattr(y, "dtype") and not isinstance(y, _np.ndarray):
        y = _tensor(y)
        return _tensor(x, y.dtype), y
    return _tensor(x), _tensor(y)


def _check_in_program(good, check, inputs, title, **options):
    """The program tests the condition itself; only where it does not hold Python is called, to complain. A saved function calls
    the function of that title with these options then."""
    from stoker import _flow

    check.saved = ("assert", title, {k: None if v is None else float(v) if k in ("rtol", "atol") else v for k, v in options.items()})

    def complain():
        _stoker.host_call(check, inputs, [], [], "Assert", True)
        return ()

    _flow.cond(good, lambda: (), complain, lambda x, y: ([], [], lambda outputs: None))


assert_equal = _compare("==", lambda a, b: a == b)
assert_none_equal = _compare("!=", lambda a, b: a != b)
assert_less = _compare("<", lambda a, b: a < b)
assert_less_equal = _compare("<=", lambda a, b: a <= b)
assert_greater = _compare(">", lambda a, b: a > b)
assert_greater_equal = _compare(">=", lambda a, b: a >= b)


def assert_near(x, y, rtol=None, atol=None, message=None, summarize=None, name=None):
    x, y = _pair(x, y)
    if _is_symbolic(x) or _is_symbolic(y):
        eps = 10 * float(_np.finfo(x.dtype.as_numpy_dtype).eps)
        far = _o.abs(x - y) <= (eps if atol is None else atol) + (eps if rtol is None else rtol) * _o.abs(y)
        return _check_in_program(_o.reduce_all(far), lambda a, b: assert_near(a, b, rtol, atol, message), [x, y],
                                 "assert_near", rtol=rtol, atol=atol, message=message)
    eps = 10 * _np.finfo(x.dtype.as_numpy_dtype).eps
    rtol, atol = eps if rtol is None else float(rtol), eps if atol is None else float(atol)
    a, b = x.numpy(), y.numpy()
    if not (_np.abs(a - b) <= atol + rtol * _np.abs(b)).all():
        _errors.invalid(f"{message or ''}\nx and y not equal to tolerance rtol = {rtol}, atol = {atol}\n"
                        f"{_first(a)} x:\n{_shown(a)}\n{_first(b)} y:\n{_shown(b)}")


def _against_zero(title, test, sign):
    def check(x, message=None, summarize=None, name=None):
        x = _tensor(x)
        if _is_symbolic(x):
            good = _o.reduce_all(getattr(_o, _OPS[sign])(x, _tensor(0, x.dtype)))
            return _check_in_program(good, lambda a: check(a, message), [x], title, message=message)
        array = _np.asarray(x.numpy())
        if not _np.all(test(array)):
            lead = f"{message}\n" if message else ""
            _errors.invalid(f"{lead}Condition x {sign} 0 did not hold element-wise:\n{_first(array)} x:\n{_shown(array)}")

    check.__name__ = title
    return check


assert_positive = _against_zero("assert_positive", lambda a: a > 0, ">")
assert_negative = _against_zero("assert_negative", lambda a: a < 0, "<")
assert_non_negative = _against_zero("assert_non_negative", lambda a: a >= 0, ">=")
assert_non_positive = _against_zero("assert_non_positive", lambda a: a <= 0, "<=")


def Assert(condition, data=None, summarize=None, name=None):
    if _is_symbolic(condition):
        values = [_tensor(d) for d in data or [] if hasattr(d, "dtype")]
        return _check_in_program(_o.reduce_all(condition), lambda c, *d: Assert(c, list(d) or data), [condition] + values, "Assert",
                                 data=None if values else [str(d) for d in data or []])
    if not bool(_np.all(_static(condition))):
        shown = "\n".join(str(d.numpy() if hasattr(d, "numpy") else d) for d in (data or []))
        _errors.invalid(f"Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. Summarized data: {shown}")


def assert_rank(x, rank, message=None, name=None):
    x, rank = _tensor(x), int(_static(rank))
    if len(_dims(x)) != rank:
        raise ValueError(f"{message or ''} Tensor {x} must have rank {rank}.  Received rank {len(_dims(x))}, shape "
                         f"{tuple(_dims(x))}".strip())


def assert_rank_at_least(x, rank, message=None, name=None):
    x, rank = _tensor(x), int(_static(rank))
    if len(_dims(x)) < rank:
        raise ValueError(f"{message or ''} Tensor {x} must have rank at least {rank}.  Received rank {len(_dims(x))}, "
                         f"shape {tuple(_dims(x))}".strip())


def assert_rank_in(x, ranks, message=None, name=None):
    x = _tensor(x)
    if len(_dims(x)) not in [int(_static(r)) for r in ranks]:
        raise ValueError(f"{message or ''} Tensor {x} must have rank in {tuple(ranks)}.  Received rank "
                         f"{len(_dims(x))}, shape {tuple(_dims(x))}".strip())


def assert_scalar(tensor, message=None, name=None):
    assert_rank(tensor, 0, message)
    return _tensor(tensor)


def assert_type(tensor, tf_type, message=None, name=None):
    if _tensor(tensor).dtype != _as_dtype(tf_type):
        raise TypeError(f"{message or ''} Tensor {tensor} must be of type {_as_dtype(tf_type)!r}; got "
                        f"{_tensor(tensor).dtype!r}".strip())


def assert_same_float_dtype(tensors=None, dtype=None):
    kinds = [_tensor(t).dtype for t in tensors or []] + ([] if dtype is None else [_as_dtype(dtype)])
    for kind in kinds:
        if not kind.is_floating:
            raise ValueError(f"Expected floating point type, got {kind}.")
        if kind != kinds[0]:
            raise ValueError(f"Expected {kinds[0]}, got {kind}.")
    return kinds[0] if kinds else _as_dtype("float32")


def assert_shapes(shapes, data=None, summarize=None, message=None, name=None):
    """Each tensor has the shape that is written for it; the same letter means the same size."""
    seen = {}
    for x, symbols in shapes.items() if isinstance(shapes, dict) else shapes:
        sizes = _dims(_tensor(x))
        symbols = list(symbols) if not isinstance(symbols, str) else list(symbols)
        if Ellipsis in symbols:
            at = symbols.index(Ellipsis)
            symbols = symbols[:at] + [None] * (len(sizes) - len(symbols) + 1) + symbols[at + 1:]
        if len(symbols) != len(sizes):
            raise ValueError(f"{message or ''} Specified rank {len(symbols)}, but tensor has rank {len(sizes)}".strip())
        for symbol, size in zip(symbols, sizes):
            wanted = symbol if isinstance(symbol, int) else seen.setdefault(symbol, size) if symbol else size
            if wanted != size:
                raise ValueError(f"{message or ''} Specified size {wanted} of dimension {symbol!r}, but the tensor has "
                                 f"{size}".strip())


def assert_all_finite(x, message, name=None):
    return check_numerics(x, message)


def assert_integer(x, message=None, name=None):
    if not _tensor(x).dtype.is_integer:
        raise TypeError(f"{message or ''} Expected \"x\" to be integer type.  Found: {_tensor(x).dtype}".strip())


def assert_proper_iterable(values):
    if isinstance(values, (str, bytes, _np.ndarray)) or hasattr(values, "dtype") or not hasattr(values, "__iter__"):
        raise TypeError("Expected argument \"values\" to be a \"proper\" iterable.  Found: %s" % type(values))


def check_numerics(tensor, message, name=None):
    x = _tensor(tensor)
    if not _is_symbolic(x):
        array = x.numpy()
        bad = [word for word, test in (("Inf", _np.isinf), ("NaN", _np.isnan)) if test(array).any()]
        if bad:
            _errors.invalid(f"{message} : Tensor had {' and '.join(bad)} values", "CheckNumerics")
    else:
        _check_in_program(_o.reduce_all(_o.is_finite(x)), lambda a: (check_numerics(a, message), None)[1], [x], "check_numerics",
                          message=message)
    return x


def _check_results(op, made):
    """Every float that an operation makes, as it is made; what the check itself computes is not checked."""
    _stoker.check_results(None)
    try:
        results = list(made) if isinstance(made, (list, tuple)) else [made]
        for n, x in enumerate(results):
            if x.dtype.is_floating:
                check_numerics(x, f"\n\n!!! Detected Infinity or NaN in output {n} of op \"{op}\" (# of outputs: {len(results)}) "
                                  f"!!!\n  dtype: {x.dtype!r}\n  shape: {x.shape}\n ")
    finally:
        _stoker.check_results(_check_results)


def enable_check_numerics(stack_height_limit=30, path_length_limit=50):
    """From here on an operation that makes an infinity or NaN raises an error that names it; functions traced before stay."""
    _stoker.check_results(_check_results)


def disable_check_numerics():
    _stoker.check_results(None)


def is_numeric_tensor(tensor):
    return hasattr(tensor, "dtype") and getattr(tensor.dtype, "is_numeric", False)


def disable_traceback_filtering():
    pass


def enable_traceback_filtering():
    pass


def is_traceback_filtering_enabled():
    return False
