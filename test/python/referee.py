"""What the *_referee.py share: a list of programs, and values as text that is the same on both engines."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def show(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {show(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value).__name__ + "(" + ", ".join(show(v) for v in value) + ")"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(show(v) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, tf.RaggedTensor):
        return f"ragged {value.to_list()}"
    if isinstance(value, tf.SparseTensor):
        return f"sparse {value.indices.numpy().tolist()} {value.values.numpy().tolist()} {value.dense_shape.numpy().tolist()}"
    if hasattr(value, "numpy") and not isinstance(value, np.generic):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f":
            value = np.round(value, 5)
        return f"{value.dtype}{value.tolist()}"
    if isinstance(value, np.generic):
        return f"{value.dtype}:{round(float(value), 5) if value.dtype.kind == 'f' else value}"
    return repr(value)


def all_of(ds, most=20):
    return [e for e in ds.take(most)]


def spec(ds):
    return str(ds.element_spec)


def fails(function):
    try:
        return function()
    except Exception as error:
        return f"{type(error).__name__}"


def main(names):
    for function in PROGRAMS:
        if names and function.__name__ not in names:
            continue
        try:
            text = show(function())
        except Exception as error:
            text = f"FAILED {type(error).__name__}: {error}".splitlines()[0]
            if names:
                raise
        print(f"{function.__name__} = {text}", flush=True)
