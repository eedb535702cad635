"""TensorFlow's random streams, bit by bit: Philox 4x32-10, and how uniform and normal numbers are made of its words.

A stream is a key (two words) and a counter (128 bits as two of 64); block n of it is Philox(key, counter + n), four
words of 32 bits. Seeded operations of TensorFlow on a CPU take their numbers from there in order, so the same seeds
give the same numbers here.
"""
import numpy as np

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def _blocks(key, low, high):
    """Philox of counters (arrays of their low and high 64 bits): array [n, 4] of uint32."""
    c0, c1, c2, c3 = low & _LOW, low >> _32, high & _LOW, high >> _32
    k0, k1 = int(key) & 0xFFFFFFFF, int(key) >> 32 & 0xFFFFFFFF
    for _ in range(10):
        p0, p1 = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = (p1 >> _32) ^ c1 ^ np.uint64(k0), p1 & _LOW, (p0 >> _32) ^ c3 ^ np.uint64(k1), p0 & _LOW
        k0, k1 = (k0 + _W0) & 0xFFFFFFFF, (k1 + _W1) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


class Stream:
    """A place in a random stream."""

    def __init__(self, key, counter=0):
        self.key, self.counter = key & 0xFFFFFFFFFFFFFFFF, counter  # counter: Python int of 128 bits

    def copy(self):
        return Stream(self.key, self.counter)

    def skip(self, blocks):
        self.counter = (self.counter + int(blocks)) & ((1 << 128) - 1)

    def words(self, count, stride=1):
        """`count` blocks, each `stride` after the one before: [count, 4] words. Does not move."""
        low = np.uint64(self.counter & 0xFFFFFFFFFFFFFFFF)
        with np.errstate(over="ignore"):
            lows = low + np.arange(count, dtype=np.uint64) * np.uint64(stride)
        high = np.full(count, self.counter >> 64, np.uint64)
        high[lows < low] += np.uint64(1)
        return _blocks(self.key, lows, high)


def from_seeds(seed, seed2):
    """The stream of a stateful operation with these two seeds."""
    return Stream(seed & 0xFFFFFFFFFFFFFFFF, (seed2 & 0xFFFFFFFFFFFFFFFF) << 64)


def from_stateless(seed):
    """The stream of a stateless operation: the two seeds are scrambled into key and counter."""
    first, second = (int(s) & 0xFFFFFFFFFFFFFFFF for s in seed)
    mix = _blocks(0x02461E293EC8F720, np.array([first], np.uint64), np.array([second], np.uint64))[0]
    mix = [int(m) for m in mix]
    return Stream(mix[0] | mix[1] << 32, (mix[2] | mix[3] << 32) << 64)


def _unit32(words):
    """[0, 1) from 23 bits of a word."""
    return ((words & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)


def _unit64(words):
    """[0, 1) from 52 bits of two words."""
    high, low = words[..., 0::2].astype(np.uint64), words[..., 1::2].astype(np.uint64)
    bits = (high & np.uint64(0xFFFFF)) << _32 | low | np.uint64(0x3FF0000000000000)
    return bits.view(np.float64) - 1.0


def _unit16(words):
    return ((words.astype(np.uint16) & np.uint16(0x3FF)) | np.uint16(0x3C00)).view(np.float16) - np.float16(1)


def _count(shape):
    return int(np.prod(shape, dtype=np.int64))


def uniform(stream, shape, kind):
    """Numbers in [0, 1) of a float kind: float16, float32, float64 (bfloat16: rounded from float32)."""
    n = _count(shape)
    if kind == "float64":
        return _unit64(stream.words(-(-n // 2))).reshape(-1)[:n].reshape(shape)
    make = _unit16 if kind == "float16" else _unit32
    return make(stream.words(-(-n // 4))).reshape(-1)[:n].reshape(shape)


def _normals(words, kind):
    """Box and Muller on pairs of words (float64: on pairs of two words)."""
    if kind == "float64":
        unit = _unit64(words)
        u, v = np.maximum(unit[..., 0::2], 1e-7), unit[..., 1::2] * (2 * np.pi)
    else:
        unit = _unit32(words)
        u = np.maximum(unit[..., 0::2], np.float32(1e-7))
        v = (np.float64(2 * np.pi) * unit[..., 1::2]).astype(np.float32)
    radius = np.sqrt((-2 if kind == "float64" else np.float32(-2)) * np.log(u))
    out = np.empty(unit.shape, unit.dtype)
    out[..., 0::2], out[..., 1::2] = np.sin(v) * radius, np.cos(v) * radius
    return out


def normal(stream, shape, kind):
    n = _count(shape)
    per_block = 2 if kind == "float64" else 4
    return _normals(stream.words(-(-n // per_block)), kind).reshape(-1)[:n].reshape(shape)


def truncated_normal(stream, shape, kind):
    """Normal numbers within two deviations; each group of outputs has 256 words per output to draw from."""
    n = _count(shape)
    group = 2 if kind == "float64" else 4
    groups = -(-n // group)
    out = np.zeros((groups, group), np.float64 if kind == "float64" else np.float32)
    filled = np.zeros(groups, np.int64)
    base, active, block = stream.counter, np.arange(groups), 0
    while active.size:
        low = np.uint64((base + block) & 0xFFFFFFFFFFFFFFFF)
        with np.errstate(over="ignore"):
            lows = low + active.astype(np.uint64) * np.uint64(64 * group)
        high = np.full(active.size, base >> 64, np.uint64)
        drawn = _normals(_blocks(stream.key, lows, high), kind)
        for column in range(drawn.shape[1]):
            good = (np.abs(drawn[:, column]) < 2) & (filled[active] < group)
            rows = active[good]
            out[rows, filled[rows]] = drawn[good, column]
            filled[rows] += 1
        active = active[filled[active] < group]
        block += 1
    return out.reshape(-1)[:n].reshape(shape)


def integers(stream, shape, kind, low, high):
    """low + word % (high - low)."""
    n, wide = _count(shape), np.dtype(kind).itemsize == 8
    words = stream.words(-(-n // (2 if wide else 4)))
    if wide:
        words = words[:, 0::2].astype(np.uint64) | words[:, 1::2].astype(np.uint64) << _32
    flat = words.reshape(-1)[:n]
    if low is None:  # all bits
        return flat.view(kind).reshape(shape) if not wide else flat.astype(kind).reshape(shape)
    span = flat.dtype.type(int(high) - int(low))
    with np.errstate(over="ignore"):
        return (flat % span).astype(kind).__add__(np.dtype(kind).type(low)).reshape(shape)


def permutation(stream, n):
    """The order of tf.random.shuffle."""
    words = stream.words(-(-max(n, 1) // 4)).reshape(-1).astype(np.int64)
    order = list(range(n))
    for i in range(n - 1):
        j = i + int(words[i] % (n - i))
        order[i], order[j] = order[j], order[i]
    return order
