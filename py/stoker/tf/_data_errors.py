"""Failures of tf.data as TensorFlow's classes. The extension calls `explain` with an exception of Python code."""
import traceback

from stoker.tf import errors

_BY_TYPE = {TypeError: 3, ValueError: 3, StopIteration: 3, MemoryError: 8, NotImplementedError: 12}


def explain(kind, exception):
    """The exception to raise at the iterator for one that was raised in a generator ('g') or a function ('f')."""
    if isinstance(exception, (errors.OpError, KeyboardInterrupt, SystemExit)):
        return exception
    text = "".join(traceback.format_exception(type(exception), exception, _users(exception.__traceback__)))
    message = f"{type(exception).__name__}: {exception}\n{text}"
    code = next((c for t, c in _BY_TYPE.items() if isinstance(exception, t)), 2)
    told = errors.by_code[code](None, None, message, code)
    told.__cause__ = exception
    return told


def _users(trace):
    """The traceback from the first line that is not of this package."""
    at = trace
    while at is not None and "/stoker/" in at.tb_frame.f_code.co_filename.replace("\\", "/"):
        at = at.tb_next
    return at if at is not None else trace


def not_found(message):
    raise errors.by_code[5](None, None, message, 5)
