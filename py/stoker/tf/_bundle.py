"""TensorFlow's checkpoint files: named arrays as a tensor bundle.

    PREFIX.index                   a sorted table of key -> where the bytes are, in blocks with checksums (LevelDB's form)
    PREFIX.data-00000-of-00001     the bytes, one array after the other

The first key is empty and holds the header; all others are BundleEntryProto. Files are written under other names and renamed when whole.
"""
import os
import struct

import numpy as np

from stoker import _stoker
from stoker.tf import errors
from stoker.tf._event_messages import DATA_TYPES, TensorShapeProto, _read_varint, message
from stoker.tf._events import field_bytes, field_varint, varint
from stoker.tf._tensor_proto import _NAMES, _NUMBERS

_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_HEADER = b"\x08\x01\x1a\x02\x08\x01"  # one shard, little endian, version 1
_Header = message("BundleHeaderProto", {1: ("num_shards", "int"), 2: ("endianness", "int")})
_Entry = message("BundleEntryProto", {1: ("dtype", "int"), 2: ("shape", TensorShapeProto), 3: ("shard_id", "int"), 4: ("offset", "int"),
                                      5: ("size", "int"), 6: ("crc32c", "fixed32"), 7: ("slices", ["bytes"])})


def _fail(prefix, why):
    errors.raise_(15, f"{prefix}: {why}")


# Tables.

def _block(items):
    """Entries in the order of their keys, every 16th with its whole key, and where those are."""
    out, restarts, last = bytearray(), [], b""
    for n, (key, value) in enumerate(items):
        shared = 0
        if n % 16 == 0:
            restarts.append(len(out))
        else:
            while shared < min(len(key), len(last)) and key[shared] == last[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    restarts = restarts or [0]
    return bytes(out) + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def _table(items, block_size=1 << 18):
    """The bytes of a table."""
    out, index, block, size = bytearray(), [], [], 0

    def put(data):
        at = len(out)
        out.extend(data + b"\0" + struct.pack("<I", _stoker.masked_crc(data + b"\0")))
        return varint(at) + varint(len(data))

    for key, value in sorted(items):
        block.append((key, value))
        size += len(key) + len(value)
        if size >= block_size:
            index.append((key, put(_block(block))))
            block, size = [], 0
    if block:
        index.append((block[-1][0], put(_block(block))))
    handles = put(_block([])) + put(_block(index))
    return bytes(out) + handles.ljust(40, b"\0") + _MAGIC


class _Table:
    """Reads a table from its bytes."""

    def __init__(self, data, name):
        self.data, self.name = data, name
        if len(data) < 48 or data[-8:] != _MAGIC:
            _fail(name, "not an sstable (bad magic number)")
        at = len(data) - 48
        _, at = self._handle(data, at)
        self.index, _ = self._handle(data, at)

    @staticmethod
    def _handle(data, at):
        offset, at = _read_varint(data, at)
        size, at = _read_varint(data, at)
        return (offset, size), at

    def _read(self, handle):
        offset, size = handle
        block = self.data[offset:offset + size + 5]
        if len(block) < size + 5 or struct.unpack("<I", block[-4:])[0] != _stoker.masked_crc(block[:-4]):
            _fail(self.name, f"the block at {offset} is damaged (its checksum does not fit)")
        if block[size] != 0:
            errors.raise_(12, f"{self.name}: the table is compressed, which TensorFlow's checkpoints are not")
        return block[:size]

    def _entries(self, block):
        (count,) = struct.unpack("<I", block[-4:])
        at, end, key = 0, len(block) - 4 - 4 * count, b""
        while at < end:
            shared, at = _read_varint(block, at)
            more, at = _read_varint(block, at)
            size, at = _read_varint(block, at)
            if shared > len(key) or at + more + size > end:
                _fail(self.name, "an entry of the table is damaged")
            key = key[:shared] + block[at:at + more]
            yield key, block[at + more:at + more + size]
            at += more + size

    def __iter__(self):
        for _, where in self._entries(self._read(self.index)):
            yield from self._entries(self._read(self._handle(where, 0)[0]))


# Arrays as bytes.

def _strings(array):
    """(bytes, what the checksum covers) of strings: lengths, their checksum, then all of them."""
    items = [bytes(s) for s in (array.ravel() if isinstance(array, np.ndarray) else array)]  # an array of bytes would lose zeros at their ends
    covered = b"".join(struct.pack("<I" if len(s) < 1 << 32 else "<Q", len(s)) for s in items)
    check = struct.pack("<I", _stoker.masked_crc(covered))
    whole = b"".join(items)
    return b"".join(varint(len(s)) for s in items) + check + whole, covered + check + whole


def _read_strings(data, count, shape):
    sizes, at = [], 0
    for _ in range(count):
        size, at = _read_varint(data, at)
        sizes.append(size)
    at += 4
    made = np.empty(count, object)
    for n, size in enumerate(sizes):
        made[n] = bytes(data[at:at + size])
        at += size
    return made.reshape(shape)


def write(prefix, values):
    """values: key -> array; bytes stand for a scalar string."""
    os.makedirs(os.path.dirname(prefix) or ".", exist_ok=True)
    entries, at, name = [(b"", _HEADER)], 0, prefix + ".data-00000-of-00001"
    with open(name + ".tmp", "wb") as file:
        for key in sorted(values):
            value = values[key]
            if isinstance(value, bytes) or value.dtype == object:
                shape, kind = () if isinstance(value, bytes) else value.shape, "string"
                data, covered = _strings([value] if isinstance(value, bytes) else value)
            else:
                shape, kind = value.shape, value.dtype.name
                data = covered = memoryview(np.ascontiguousarray(value).reshape(-1).view(np.uint8))
            dims = b"".join(field_bytes(2, field_varint(1, d) if d else b"") for d in shape)
            entry = field_varint(1, _NUMBERS[kind]) + field_bytes(2, dims) + (field_varint(4, at) if at else b"")
            entry += (field_varint(5, len(data)) if len(data) else b"") + b"\x35" + struct.pack("<I", _stoker.masked_crc(covered))
            entries.append((key.encode(), entry))
            file.write(data)
            at += len(data)
    with open(prefix + ".index.tmp", "wb") as file:
        file.write(_table(entries))
    os.replace(name + ".tmp", name)
    os.replace(prefix + ".index.tmp", prefix + ".index")


class Bundle:
    """The arrays of a bundle by key; bytes are read when they are asked for."""

    def __init__(self, prefix, data):
        self.prefix, self.entries, self.shards = prefix, {}, 1
        try:
            for key, value in _Table(data, prefix + ".index"):
                if not key:
                    header = _Header.FromString(value)
                    self.shards = header.num_shards
                    if header.endianness:
                        errors.raise_(12, f"{prefix}: the checkpoint was written by a big-endian machine")
                    continue
                self.entries[key.decode()] = _Entry.FromString(value)
        except (ValueError, IndexError, struct.error) as error:
            _fail(prefix, f"the index is damaged: {error}")

    def shape(self, key):
        return [d.size for d in self.entries[key].shape.dim]

    def dtype(self, key):
        return _NAMES.get(self.entries[key].dtype, f"type {self.entries[key].dtype}")

    def read(self, key):
        """An array; bytes for a scalar string."""
        entry, kind, shape = self.entries[key], self.dtype(key), self.shape(key)
        if entry.slices:
            errors.raise_(12, f"{self.prefix}: '{key}' was saved in slices (a partitioned variable), which are not put together here")
        if entry.dtype not in DATA_TYPES:
            errors.raise_(12, f"{self.prefix}: '{key}' has TensorFlow's type number {entry.dtype}, which Stoker has not got")
        with open(f"{self.prefix}.data-{entry.shard_id:05d}-of-{self.shards:05d}", "rb") as file:
            file.seek(entry.offset)
            data = file.read(entry.size)
        if len(data) != entry.size:
            _fail(self.prefix, f"'{key}' ends after {len(data)} of {entry.size} bytes")
        count = int(np.prod(shape, dtype=np.int64))
        if kind == "string":
            array = _read_strings(data, count, shape)
            covered = _strings(array)[1]
        else:
            from stoker.tf._specs import DType

            covered = data
            array = np.frombuffer(data, np.dtype(kind) if kind.startswith("complex") else DType(kind).as_numpy_dtype).reshape(shape).copy()
        if _stoker.masked_crc(covered) != entry.crc32c:
            _fail(self.prefix, f"'{key}' is damaged (its checksum does not fit)")
        return array if shape or kind != "string" else array.item()
