"""tf.profiler.experimental: start and stop write the engine's own trace."""
import collections
import contextlib
import os
import time

ProfilerOptions = collections.namedtuple(
    "ProfilerOptions", "host_tracer_level python_tracer_level device_tracer_level delay_ms", defaults=(2, 0, 1, None))
_running = {}


def start(logdir, options=None):
    if _running:
        from stoker.tf import errors

        errors.raise_(6, "Another profiler is running.")
    os.makedirs(logdir, exist_ok=True)
    from stoker import _stoker

    _running.update(folder=logdir, begun=time.time(), spans=[])
    if hasattr(_stoker, "trace_start"):
        _stoker.trace_start()


def stop(save=True):
    if not _running:
        from stoker.tf import errors

        errors.raise_(14, "Cannot export profiling results. No profiler is running.")
    import json

    from stoker import _stoker

    events = list(_running["spans"])
    if hasattr(_stoker, "trace_stop"):
        events += json.loads(_stoker.trace_stop()).get("traceEvents", [])
    if save:
        path = os.path.join(_running["folder"], f"stoker-{os.getpid()}-{int(_running['begun'])}.trace.json")
        with open(path, "w") as file:
            json.dump({"traceEvents": events}, file)
    _running.clear()


class Trace:
    """A named span of the program in the trace."""

    def __init__(self, name, **kwargs):
        self._name, self._arguments = name, kwargs

    def set_metadata(self, **kwargs):
        self._arguments.update(kwargs)

    def __enter__(self):
        self._begun = time.perf_counter()
        return self

    def __exit__(self, *exc):
        if _running:
            _running["spans"].append({"name": self._name, "ph": "X", "pid": os.getpid(), "tid": 0,
                                      "ts": self._begun * 1e6, "dur": (time.perf_counter() - self._begun) * 1e6,
                                      "args": {k: str(v) for k, v in self._arguments.items()}})


@contextlib.contextmanager
def Profile(logdir, options=None):
    start(logdir, options)
    try:
        yield
    finally:
        stop()


class Client:
    @staticmethod
    def trace(*args, **kwargs):
        raise NotImplementedError("remote profiling is not in Stoker; use `stoker profile program.py`")
