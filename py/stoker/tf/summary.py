"""tf.summary: numbers, histograms, images and text for TensorBoard."""
import contextlib as _contextlib
import struct as _struct
import threading as _threading
import zlib as _zlib

import numpy as _np

from stoker.tf import _events
from stoker.tf._base import is_symbolic as _is_symbolic
from stoker.tf._base import not_traceable as _not_traceable
from stoker.tf._base import static as _static
from stoker.tf._base import tensor as _tensor

_state = _threading.local()


class SummaryWriter:
    def __init__(self, logdir, filename_suffix=".v2"):
        self._folder, self._suffix, self._file = logdir, filename_suffix or "", None

    def _open(self):
        if self._file is None:
            self._file = _events.EventFile(self._folder, self._suffix)
        return self._file

    @_contextlib.contextmanager
    def as_default(self, step=None):
        before = getattr(_state, "writer", None), getattr(_state, "step", None)
        _state.writer = self
        if step is not None:
            _state.step = step
        try:
            yield self
        finally:
            _state.writer, _state.step = before

    def set_as_default(self, step=None):
        _state.writer, _state.step = self, step

    def init(self):
        self._open()

    def flush(self):
        self._open().flush()

    def close(self):
        if self._file is not None:
            self._file.close()


class _NoWriter:
    def as_default(self, step=None):
        return _contextlib.nullcontext(self)

    def set_as_default(self, step=None):
        _state.writer = None

    def init(self):
        pass

    flush = close = init


def create_file_writer(logdir, max_queue=None, flush_millis=None, filename_suffix=None, name=None,
                       experimental_trackable=False, experimental_mesh=None):
    return SummaryWriter(str(logdir.numpy().decode() if hasattr(logdir, "numpy") else logdir), filename_suffix or ".v2")


def create_noop_writer():
    return _NoWriter()


def _write(tag, array, plugin, step, description=None, content=b""):
    writer = getattr(_state, "writer", None)
    if writer is None or not should_record_summaries():
        return _tensor(False)
    step = getattr(_state, "step", None) if step is None else step
    if step is None:
        raise ValueError("No step set. Please specify one either through the `step` argument or through "
                         "tf.summary.experimental.set_step()")
    tag = "/".join(getattr(_state, "scopes", []) + [tag])
    writer._open().summary(_events.summary_value(tag, array, plugin, description or "", content), int(_static(step)))
    return _tensor(True)


def _array(data):
    if _is_symbolic(data):
        _not_traceable("it writes summaries")
    return _np.asarray(_tensor(data).numpy())


def scalar(name, data, step=None, description=None):
    value = _array(data)
    if value.ndim:
        raise ValueError(f"tf.summary.scalar: data must be a scalar, got shape {value.shape}")
    return _write(name, value.astype("float32"), "scalars", step, description)


def histogram(name, data, step=None, buckets=None, description=None):
    values = _array(data).astype("float64").ravel()
    count = 30 if buckets is None else int(buckets)
    if values.size == 0:
        rows = _np.zeros((count, 3))
    elif values.min() == values.max():
        rows = _np.zeros((count, 3))
        rows[:, :2] = values[0]
        rows[-1] = [values[0], values[0], values.size]
    else:
        number, edges = _np.histogram(values, count)
        rows = _np.stack([edges[:-1], edges[1:], number], 1)
    return _write(name, rows, "histograms", step, description)


def _png(pixels):
    """PNG bytes of [height, width, 1..4] uint8."""
    height, width, channels = pixels.shape
    raw = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))

    def chunk(kind, data):
        return _struct.pack(">I", len(data)) + kind + data + _struct.pack(">I", _zlib.crc32(kind + data))

    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    head = _struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", _zlib.compress(raw)) + chunk(b"IEND", b"")


def image(name, data, step=None, max_outputs=3, description=None):
    pictures = _array(data)
    if pictures.dtype.kind == "f":
        pictures = _np.clip(pictures * 255.999, 0, 255).astype(_np.uint8)
    height, width = pictures.shape[1:3]
    parts = [str(width).encode(), str(height).encode()] + [_png(p) for p in pictures[:max_outputs]]
    return _write(name, _np.array(parts, object), "images", step, description)


def audio(name, data, sample_rate, step=None, max_outputs=3, encoding=None, description=None):
    """Clips of [count, samples, channels] between -1 and 1, as WAV."""
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {encoding!r}")
    clips = _array(data)
    if clips.ndim != 3:
        raise ValueError(f"Tensor  must have rank 3.  Received rank {clips.ndim}, shape {clips.shape}")
    from stoker.tf.audio import encode_wav

    kept = clips[:int(_static(max_outputs))].astype("float32")
    rows = _np.array([[encode_wav(clip, sample_rate).numpy(), b""] for clip in kept], object).reshape(-1, 2)
    return _write(name, rows, "audio", step, description, b"\x10\x0b")


def text(name, data, step=None, description=None):
    return _write(name, _np.asarray(_tensor(data).numpy(), object), "text", step, description)


def write(tag, tensor, step=None, metadata=None, name=None):
    array = _array(tensor)
    plugin = getattr(getattr(metadata, "plugin_data", None), "plugin_name", "") or "tensors"
    content = getattr(getattr(metadata, "plugin_data", None), "content", b"")
    return _write(tag, array, plugin, step, None, content)


def should_record_summaries():
    return getattr(_state, "record", True)


@_contextlib.contextmanager
def record_if(condition):
    before = getattr(_state, "record", True)
    _state.record = bool(condition() if callable(condition) else _static(condition))
    try:
        yield
    finally:
        _state.record = before


def flush(writer=None, name=None):
    writer = writer or getattr(_state, "writer", None)
    if writer is not None:
        writer.flush()


def trace_on(graph=True, profiler=False, profiler_outdir=None):
    _state.trace = True


def trace_off():
    _state.trace = False


def trace_export(name, step=None, profiler_outdir=None):
    _state.trace = False


def graph(graph_data):
    return _tensor(False)


class experimental:
    @staticmethod
    def set_step(step):
        _state.step = step

    @staticmethod
    def get_step():
        return getattr(_state, "step", None)

    @staticmethod
    @_contextlib.contextmanager
    def summary_scope(name, default_name="summary", values=None):
        scopes = _state.scopes = getattr(_state, "scopes", [])
        yield "/".join(scopes + [name]), name


