"""Event files as TensorBoard reads them: length-prefixed, checksummed protocol-buffer records.

    record   u64 length | u32 crc of the length | bytes | u32 crc of the bytes
"""
import os
import socket
import struct
import threading
import time

from stoker._stoker import masked_crc

# Protocol buffers by hand: field number and wire type, then the value.

def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field_varint(number, value):
    return varint(number << 3) + varint(value)


def field_double(number, value):
    return varint(number << 3 | 1) + struct.pack("<d", value)


def field_float(number, value):
    return varint(number << 3 | 5) + struct.pack("<f", value)


def field_bytes(number, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor_proto(array):
    """TensorProto with the raw content: dtype 1, shape 2, content 4, strings 8."""
    import numpy as np

    array = np.asarray(array)
    shape = b"".join(field_bytes(2, field_varint(1, d)) for d in array.shape)
    if array.dtype == object or array.dtype.kind in "SU":
        strings = b"".join(field_bytes(8, s if isinstance(s, bytes) else str(s)) for s in np.ravel(array))
        return field_varint(1, 7) + field_bytes(2, shape) + strings
    number = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int64": 9, "bool": 10}[array.dtype.name]
    return field_varint(1, number) + field_bytes(2, shape) + field_bytes(4, array.tobytes())


def summary_value(tag, array, plugin, description="", content=b""):
    data = field_bytes(1, field_bytes(1, plugin) + (field_bytes(2, content) if content else b""))
    metadata = data + (field_bytes(3, description) if description else b"")
    if plugin in ("scalars", "images", "histograms", "text"):
        metadata += field_varint(4, {"scalars": 1, "histograms": 2, "text": 2, "images": 3}[plugin])
    return field_bytes(1, tag) + field_bytes(9, metadata) + field_bytes(8, tensor_proto(array))


class EventFile:
    """One file; writes are buffered and go out with flush, close, or every 120 s."""

    _count = 0

    def __init__(self, folder, suffix=""):
        os.makedirs(folder, exist_ok=True)
        EventFile._count += 1
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{EventFile._count}{suffix}"
        self.path = os.path.join(folder, name)
        self._file = open(self.path, "wb")
        self._lock, self._flushed = threading.Lock(), time.monotonic()
        self.event(field_bytes(3, "brain.Event:2"))

    def event(self, body, step=None):
        text = field_double(1, time.time()) + (b"" if step is None else field_varint(2, int(step))) + body
        length = struct.pack("<Q", len(text))
        with self._lock:
            if self._file.closed:
                return
            self._file.write(length + struct.pack("<I", masked_crc(length)) + text + struct.pack("<I", masked_crc(text)))
            late = time.monotonic() - self._flushed > 120
        if late:
            self.flush()

    def summary(self, value, step):
        self.event(field_bytes(5, field_bytes(1, value)), step)

    def flush(self):
        with self._lock:
            if not self._file.closed:
                self._file.flush()
        self._flushed = time.monotonic()

    def close(self):
        with self._lock:
            self._file.close()
