"""TensorFlow's error classes. C code finds them through `by_code`; one table makes all of them."""
import sys as _sys

_MODULE = "tensorflow.python.framework.errors_impl"


class OpError(Exception):
    """An operation failed while it ran. `.message` is the text, `.error_code` one of the numbers below."""

    def __init__(self, node_def=None, op=None, message=None, error_code=None, *rest):
        # Keras re-raises as cls(text); TensorFlow constructs cls(node_def, op, message[, code]).
        if message is None and op is None and isinstance(node_def, str):
            node_def, message = None, node_def
        super().__init__(node_def, op, message)
        self._node_def, self._op, self._message = node_def, op, message if message is not None else ""
        self._error_code = error_code if error_code is not None else getattr(type(self), "_code", 2)

    @property
    def message(self):
        return self._message

    @property
    def op(self):
        return self._op

    @property
    def node_def(self):
        return self._node_def

    @property
    def error_code(self):
        return self._error_code

    code = error_code

    @property
    def experimental_payloads(self):
        return {}

    def __str__(self):
        return self._message

    def __reduce__(self):
        return type(self), (self._node_def, None, self._message, self._error_code)


OpError.__module__ = _MODULE
OK = 0
by_code = {}
for _code, _constant, _name, _doc in (
    (1, "CANCELLED", "CancelledError", "The work was cancelled."),
    (2, "UNKNOWN", "UnknownError", "Something failed that has no class of its own, such as an exception in Python code."),
    (3, "INVALID_ARGUMENT", "InvalidArgumentError", "An argument has a value, shape or dtype that does not fit."),
    (4, "DEADLINE_EXCEEDED", "DeadlineExceededError", "It took longer than allowed."),
    (5, "NOT_FOUND", "NotFoundError", "A file or key is not there."),
    (6, "ALREADY_EXISTS", "AlreadyExistsError", "What was to be made is there already."),
    (7, "PERMISSION_DENIED", "PermissionDeniedError", "Not allowed to do that."),
    (8, "RESOURCE_EXHAUSTED", "ResourceExhaustedError", "Out of memory or another resource."),
    (9, "FAILED_PRECONDITION", "FailedPreconditionError", "The state does not allow it yet."),
    (10, "ABORTED", "AbortedError", "Aborted, usually by something concurrent."),
    (11, "OUT_OF_RANGE", "OutOfRangeError", "Past the end, for example of an iterator."),
    (12, "UNIMPLEMENTED", "UnimplementedError", "This combination is not implemented."),
    (13, "INTERNAL", "InternalError", "A defect in the engine."),
    (14, "UNAVAILABLE", "UnavailableError", "Not available at the moment."),
    (15, "DATA_LOSS", "DataLossError", "A file is damaged."),
    (16, "UNAUTHENTICATED", "UnauthenticatedError", "Not known who asks."),
):
    by_code[_code] = type(_name, (OpError,), {"__doc__": _doc, "__module__": _MODULE, "_code": _code})
    globals()[_constant] = _code
    globals()[_name] = by_code[_code]


class OperatorNotAllowedInGraphError(TypeError):
    """A symbolic tensor was used where Python needs a value."""


class InaccessibleTensorError(ValueError):
    """A tensor of one trace was used in another."""


OperatorNotAllowedInGraphError.__module__ = InaccessibleTensorError.__module__ = _MODULE


def raise_(code, message, op_name=None):
    """Raise the class of a code, with the operation's name as TensorFlow writes it."""
    if op_name:
        message = f"{message} [Op:{op_name}] name: "
    raise by_code[code](None, None, message, code)


def invalid(message, op_name=None):
    raise_(3, message, op_name)


def __getattr__(name):
    if name == "exception_type_from_error_code":
        return by_code.__getitem__
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
