"""Functions of a program that run as Python in the middle of the engine's work: which, where, how often, how long.

Nothing is looked at unless a profile is made (`on`). Time of a function inside of another one is the inner one's.
"""
import functools
import os
import sys
import threading
import time

on = False
rows = {}  # (kind, name, file, line) -> [calls, seconds, bytes]
recorded = []  # functions that were recorded, for reports
fits = {}  # id -> what `fit` ran as whole epochs, for the doctor
walked = {}  # id -> dataset that the program iterates over
_thread = threading.local()


def switch(yes):
    global on
    on = bool(yes)
    if on:
        rows.clear(), fits.clear(), walked.clear()
        del recorded[:]


def place_of(function):
    """(name, file, line) of what the user wrote."""
    while True:
        inner = getattr(function, "__wrapped__", None) or getattr(function, "_python_function", None) or (
            function.func if isinstance(function, functools.partial) else None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None) or getattr(getattr(type(function), "__call__", None), "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    return (name, code.co_filename, code.co_firstlineno) if code is not None else (name, "", 0)


def is_users(file):
    own = os.path.dirname(os.path.abspath(__file__))
    return not file.startswith((own, os.path.dirname(os.__file__), "<frozen")) and "site-packages" not in file


def caller():
    """(file, line) of the nearest line of the user's on the stack."""
    frame = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "", 0


def _bytes(values):
    size = 0
    for x in values if isinstance(values, (list, tuple)) else (values,):
        if hasattr(x, "nbytes"):
            size += int(x.nbytes)
        elif hasattr(x, "shape") and hasattr(x.dtype, "size"):
            count = 1
            for d in x.shape.as_list():
                count *= d
            size += count * x.dtype.size
    return size


class timed:
    """with timed("map", name, file, line) as row: row[2] counts bytes."""

    def __init__(self, kind, name, file, line):
        self.row = rows.setdefault((kind, name, file, line), [0, 0.0, 0])

    def __enter__(self):
        self.outer = getattr(_thread, "inside", 0.0)
        _thread.inside = 0.0
        self.begun = time.perf_counter()
        return self.row

    def __exit__(self, *exc):
        took = time.perf_counter() - self.begun
        self.row[0] += 1
        self.row[1] += took - _thread.inside
        _thread.inside = self.outer + took
        return False


def watch(function, kind, place=None):
    """The function, on the books when a profile is made."""
    if not on:
        return function
    name, file, line = place_of(function)
    if place is not None:
        name, (file, line) = kind, place

    @functools.wraps(function)
    def watched(*args, **kwargs):
        with timed(kind, name, file, line) as row:
            made = function(*args, **kwargs)
            row[2] += _bytes(args) + _bytes(made)
            return made

    return watched


def table(most=12):
    """Rows for reports, dearest first."""
    made = [{"kind": kind, "name": name, "file": short(file), "line": line, "calls": calls, "seconds": seconds,
             "bytes": size} for (kind, name, file, line), (calls, seconds, size) in list(rows.items()) if calls]
    return sorted(made, key=lambda r: -r["seconds"])[:most]


def short(file):
    return os.path.relpath(file) if file.startswith("/") else file


# Functions that are recorded again and again.

def _leaf_names(function, call):
    """The name of the argument of each leaf of a call."""
    from stoker.tf import nest

    args, kwargs = call.structure
    signature = getattr(function, "_arguments", None)
    names = list(signature.parameters) if signature is not None else []
    made = []
    for n, value in enumerate(args):
        made += [names[n] if n < len(names) else f"argument {n}"] * len(nest.flatten(value))
    for name in kwargs:
        made += [name] * len(nest.flatten(kwargs[name]))
    return made


def _words(part):
    if isinstance(part, tuple) and len(part) == 2 and isinstance(part[1], tuple):
        return f"{part[0]} {list(part[1])}"
    return repr(part) if not isinstance(part, tuple) else "another object"


def retraced(least=4):
    """Functions that were recorded many times, with the argument that changes."""
    made = []
    for f in recorded:
        calls = [c._call for c in f._traces.values()]
        if len(calls) < least:
            continue
        before, now = calls[-2].key[2], calls[-1].key[2]
        names = _leaf_names(f, calls[-1])
        changed = [n for n, (a, b) in enumerate(zip(before, now)) if a != b]
        n = changed[0] if changed else None
        argument = names[n] if n is not None and n < len(names) else None
        name, file, line = place_of(f)
        shapes = n is not None and isinstance(now[n], tuple)
        made.append({"name": name, "file": short(file), "line": line, "times": len(calls), "argument": argument,
                     "was": _words(before[n]) if n is not None else "", "is": _words(now[n]) if n is not None else "",
                     "shapes": shapes})
    return sorted(made, key=lambda r: -r["times"])
