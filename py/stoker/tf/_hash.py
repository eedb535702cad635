"""The two string hashes that saved models rely on: FarmHash's Fingerprint64 (fast) and SipHash-2-4 (strong)."""
_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _rotate(value, shift):
    return ((value >> shift) | (value << (64 - shift))) & _MASK if shift else value


def _mix(value):
    return value ^ value >> 47


def _u64(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def _u32(data, at):
    return int.from_bytes(data[at:at + 4], "little")


def _hash16(u, v, multiplier):
    a = (u ^ v) * multiplier & _MASK
    a ^= a >> 47
    b = (v ^ a) * multiplier & _MASK
    b ^= b >> 47
    return b * multiplier & _MASK


def _short(s):
    n = len(s)
    if n >= 8:
        multiplier = _K2 + n * 2 & _MASK
        a, b = _u64(s, 0) + _K2 & _MASK, _u64(s, n - 8)
        c = _rotate(b, 37) * multiplier + a & _MASK
        d = (_rotate(a, 25) + b) * multiplier & _MASK
        return _hash16(c, d, multiplier)
    if n >= 4:
        multiplier = _K2 + n * 2 & _MASK
        return _hash16(n + (_u32(s, 0) << 3) & _MASK, _u32(s, n - 4), multiplier)
    if n:
        y, z = s[0] + (s[n >> 1] << 8), n + (s[n - 1] << 2)
        return _mix(y * _K2 & _MASK ^ z * _K0 & _MASK) * _K2 & _MASK
    return _K2


def _middle(s):
    n = len(s)
    multiplier = _K2 + n * 2 & _MASK
    a, b = _u64(s, 0) * _K1 & _MASK, _u64(s, 8)
    c, d = _u64(s, n - 8) * multiplier & _MASK, _u64(s, n - 16) * _K2 & _MASK
    return _hash16(_rotate(a + b & _MASK, 43) + _rotate(c, 30) + d & _MASK,
                   a + _rotate(b + _K2 & _MASK, 18) + c & _MASK, multiplier)


def _upper(s):
    n = len(s)
    multiplier = _K2 + n * 2 & _MASK
    a, b = _u64(s, 0) * _K2 & _MASK, _u64(s, 8)
    c, d = _u64(s, n - 8) * multiplier & _MASK, _u64(s, n - 16) * _K2 & _MASK
    y = _rotate(a + b & _MASK, 43) + _rotate(c, 30) + d & _MASK
    z = _hash16(y, a + _rotate(b + _K2 & _MASK, 18) + c & _MASK, multiplier)
    e, f = _u64(s, 16) * multiplier & _MASK, _u64(s, 24)
    g, h = (y + _u64(s, n - 32)) * multiplier & _MASK, (z + _u64(s, n - 24)) * multiplier & _MASK
    return _hash16(_rotate(e + f & _MASK, 43) + _rotate(g, 30) + h & _MASK,
                   e + _rotate(f + a & _MASK, 18) + g & _MASK, multiplier)


def _weak(s, at, a, b):
    w, x, y, z = _u64(s, at), _u64(s, at + 8), _u64(s, at + 16), _u64(s, at + 24)
    a = a + w & _MASK
    b = _rotate(b + a + z & _MASK, 21)
    c = a
    a = a + x + y & _MASK
    b = b + _rotate(a, 44) & _MASK
    return a + z & _MASK, b + c & _MASK


def fingerprint64(s):
    """FarmHash Fingerprint64 of bytes, as tf.strings.to_hash_bucket_fast has it."""
    n = len(s)
    if n <= 16:
        return _short(s)
    if n <= 32:
        return _middle(s)
    if n <= 64:
        return _upper(s)
    seed = 81
    x, y = seed, seed * _K1 + 113 & _MASK
    z = _mix(y * _K2 + 113 & _MASK) * _K2 & _MASK
    v, w = (0, 0), (0, 0)
    x = x * _K2 + _u64(s, 0) & _MASK
    end = (n - 1) // 64 * 64
    last64 = end + ((n - 1) & 63) - 63
    at = 0
    while at != end:
        x = _rotate(x + y + v[0] + _u64(s, at + 8) & _MASK, 37) * _K1 & _MASK
        y = _rotate(y + v[1] + _u64(s, at + 48) & _MASK, 42) * _K1 & _MASK
        x ^= w[1]
        y = y + v[0] + _u64(s, at + 40) & _MASK
        z = _rotate(z + w[0] & _MASK, 33) * _K1 & _MASK
        v = _weak(s, at, v[1] * _K1 & _MASK, x + w[0] & _MASK)
        w = _weak(s, at + 32, z + w[1] & _MASK, y + _u64(s, at + 16) & _MASK)
        z, x = x, z
        at += 64
    multiplier = _K1 + ((z & 0xFF) << 1) & _MASK
    at = last64
    w = (w[0] + ((n - 1) & 63) & _MASK, w[1])
    v = (v[0] + w[0] & _MASK, v[1])
    w = (w[0] + v[0] & _MASK, w[1])
    x = _rotate(x + y + v[0] + _u64(s, at + 8) & _MASK, 37) * multiplier & _MASK
    y = _rotate(y + v[1] + _u64(s, at + 48) & _MASK, 42) * multiplier & _MASK
    x ^= w[1] * 9 & _MASK
    y = y + v[0] * 9 + _u64(s, at + 40) & _MASK
    z = _rotate(z + w[0] & _MASK, 33) * multiplier & _MASK
    v = _weak(s, at, v[1] * multiplier & _MASK, x + w[0] & _MASK)
    w = _weak(s, at + 32, z + w[1] & _MASK, y + _u64(s, at + 16) & _MASK)
    z, x = x, z
    return _hash16(_hash16(v[0], w[0], multiplier) + _mix(y) * _K0 + z & _MASK,
                   _hash16(v[1], w[1], multiplier) + x & _MASK, multiplier)


def siphash(s, key):
    """SipHash-2-4 of bytes with a key of two 64-bit numbers, as tf.strings.to_hash_bucket_strong has it."""
    k0, k1 = (int(k) & _MASK for k in key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def turn():
        v[0] = v[0] + v[1] & _MASK
        v[2] = v[2] + v[3] & _MASK
        v[1] = _rotate(v[1], 51) ^ v[0]
        v[3] = _rotate(v[3], 48) ^ v[2]
        v[0] = _rotate(v[0], 32)
        v[2] = v[2] + v[1] & _MASK
        v[0] = v[0] + v[3] & _MASK
        v[1] = _rotate(v[1], 47) ^ v[2]
        v[3] = _rotate(v[3], 43) ^ v[0]
        v[2] = _rotate(v[2], 32)

    whole = len(s) // 8 * 8
    for at in range(0, whole, 8):
        word = _u64(s, at)
        v[3] ^= word
        turn()
        turn()
        v[0] ^= word
    word = int.from_bytes(s[whole:], "little") | (len(s) & 0xFF) << 56
    v[3] ^= word
    turn()
    turn()
    v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        turn()
    return v[0] ^ v[1] ^ v[2] ^ v[3]
