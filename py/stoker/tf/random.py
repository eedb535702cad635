"""tf.random. Seeded draws outside of programs are TensorFlow's own numbers; programs draw from the engine."""
import random as _python_random
import threading as _threading

import numpy as _np

from stoker import _stoker
from stoker.tf import _base, _philox
from stoker.tf._array import _sizes
from stoker.tf._base import dims as _dims
from stoker.tf._base import is_symbolic as _is_symbolic
from stoker.tf._base import o as _o
from stoker.tf._base import static as _static
from stoker.tf._base import tensor as _tensor
from stoker.tf._specs import as_dtype as _as_dtype

_DEFAULT = 87654321  # TensorFlow's seed of the graph when only the operation has one
_LARGEST = 2**31 - 1


class _Seeds(_threading.local):
    """The program's seed and the streams of operations that were seeded."""

    def __init__(self):
        self.seed, self.numbers, self.streams = None, None, {}


_seeds = _Seeds()


def set_seed(seed):
    _seeds.seed = int(_static(seed))
    _seeds.numbers = _python_random.Random(_seeds.seed)
    _seeds.streams = {}


def _pair(seed):
    """(graph seed, operation seed), or None when nothing is seeded."""
    if seed is not None:
        seed = int(_static(seed))
    if _seeds.seed is not None:
        if seed is None:
            seed = _seeds.numbers.randint(0, _LARGEST)
        pair = _seeds.seed, seed
    elif seed is not None:
        pair = _DEFAULT, seed
    else:
        return None
    return (0, _LARGEST) if pair == (0, 0) else tuple(s % _LARGEST for s in pair)


def _stream(title, seed, blocks):
    """The stream for this draw; the same operation with the same seeds goes on where it was."""
    pair = _pair(seed)
    if pair is None:
        bits = _python_random.SystemRandom().getrandbits
        return _philox.Stream(bits(64), bits(64) << 64)
    key = (title, pair)
    stream = _seeds.streams.get(key)
    if stream is None:
        stream = _seeds.streams[key] = _philox.from_seeds(*pair)
    here = stream.copy()
    stream.skip(blocks)
    return here


def _kind(dtype):
    name = _as_dtype(dtype).name
    return name, "float32" if name == "bfloat16" else name


def _made(array, dtype):
    return _tensor(array) if _as_dtype(dtype).name == array.dtype.name else _o.cast(_tensor(array), dtype)


def _scaled(unit, low, high, dtype):
    if (isinstance(low, (int, float)) and low == 0) and (isinstance(high, (int, float)) and high == 1):
        return unit
    low, high = _tensor(low, unit.dtype), _tensor(high, unit.dtype)
    return unit * (high - low) + low


def uniform(shape, minval=0, maxval=None, dtype="float32", seed=None, name=None):
    dtype = _as_dtype(dtype)
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        maxval = 1
    sizes = _sizes(shape)
    if _base.recording():
        if dtype.is_integer:
            low, high = int(_static(minval)), int(_static(maxval))
            return _o.random_int(None, sizes, low, high, dtype, *_program_seed(seed))
        return _scaled(_o.random_uniform(None, sizes, 0.0, 1.0, dtype, *_program_seed(seed)), minval, maxval, dtype)
    stream = _stream(("uniform", dtype.name, len(sizes)), seed, 256 * int(_np.prod(sizes, dtype=_np.int64)))
    if dtype.is_integer:
        low, high = int(_static(minval)), int(_static(maxval))
        if low >= high:
            from stoker.tf import errors

            errors.invalid(f"Need minval < maxval, got {low} >= {high}", "RandomUniformInt")
        return _tensor(_philox.integers(stream, sizes, dtype.as_numpy_dtype, low, high))
    return _scaled(_made(_philox.uniform(stream, sizes, _kind(dtype)[1]), dtype), minval, maxval, dtype)


def _program_seed(seed):
    """(seed, stream) of a draw inside of a program; every draw has a stream of its own."""
    pair = _pair(seed)
    if pair is None:
        return _python_random.SystemRandom().getrandbits(62), -1
    return pair[0] << 31 ^ pair[1], -1


def _counter(seed):
    """Two seeds that are only known when the program runs, as the number that selects other bits."""
    seed = _o.cast(_tensor(seed), "int64")
    return _o.bitwise_xor(_o.left_shift(seed[0], _tensor(32, "int64")), seed[1])


def _gaussian(title, maker, shape, mean, stddev, dtype, seed):
    dtype = _as_dtype(dtype)
    sizes = _sizes(shape)
    if _base.recording():
        draw = _o.random_normal if title == "normal" else _o.random_truncated_normal
        unit = draw(None, sizes, 0.0, 1.0, dtype, *_program_seed(seed))
    else:
        stream = _stream((title, dtype.name), seed, 256 * int(_np.prod(sizes, dtype=_np.int64)))
        kind = "float64" if dtype.name == "float64" else "float32"
        unit = _made(maker(stream, sizes, kind), dtype)
    return unit * _tensor(stddev, dtype) + _tensor(mean, dtype)


def normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
    return _gaussian("normal", _philox.normal, shape, mean, stddev, dtype, seed)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
    return _gaussian("truncated", _philox.truncated_normal, shape, mean, stddev, dtype, seed)


def shuffle(value, seed=None, name=None):
    value = _tensor(value)
    count = _dims(value)[0]
    if _base.recording():
        order = _o.random_permutation(None, count, *_program_seed(seed))
    else:
        order = _tensor(_np.array(_philox.permutation(_stream("shuffle", seed, -(-count // 4)), count), _np.int64))
    return _o.gather(value, order)


def _by_weights(logits, unit, dtype):
    """For each number of [rows, samples] between 0 and 1 the class in whose share of its row it falls, as TensorFlow counts them:
    in float64, with logits that are not finite left out."""
    logits = _o.cast(logits, "float64")
    finite = _o.is_finite(logits)
    least = _o.broadcast_to(_tensor(-1e300, "float64"), _dims(logits))
    top = _o.reduce_max(_o.where(finite, logits, least), axis=1, keepdims=True)
    share = _o.where(finite, _o.exp(logits - top), _o.zeros_like(logits))
    ends = _o.cumsum(share, 1)
    below = _o.less_equal(_o.expand_dims(ends, 1), _o.expand_dims(unit * ends[:, -1:], 2))
    return _o.reduce_sum(_o.cast(below, dtype), axis=2)


def categorical(logits, num_samples, dtype=None, seed=None, name=None):
    logits, samples, dtype = _tensor(logits), int(_static(num_samples)), _as_dtype(dtype or "int64")
    sizes = [_dims(logits)[0], samples]
    if _base.recording():
        unit = uniform(sizes, dtype="float64", seed=seed)
    else:
        stream = _stream(("categorical", logits.dtype.name, dtype.name), seed, 256 * sizes[0] * 8 * -(-samples // 4))
        unit = _tensor(_philox.uniform(stream, sizes, "float64"))
    return _by_weights(logits, unit, dtype)


def _numpy_generator(title, seed):
    stream = _stream(title, seed, 1)
    return _np.random.Generator(_np.random.Philox(key=stream.key & (2**64 - 1), counter=stream.counter))


def _drawn(title, shape, parameters, dtype, seed, draw):
    """Gamma, Poisson and kin: NumPy's algorithms on a stream of ours. Not for use inside of programs."""
    if _base.recording():
        _base.not_traceable(f"tf.random.{title} is drawn outside of the engine")
    arrays = [_static(p).astype(_np.float64) for p in parameters]
    sizes = _sizes(shape) + list(_np.broadcast_shapes(*[a.shape for a in arrays]))
    made = draw(_numpy_generator(title, seed), *arrays, sizes)
    return _tensor(_np.asarray(made), _as_dtype(dtype))


def gamma(shape, alpha, beta=None, dtype="float32", seed=None, name=None):
    beta = 1.0 if beta is None else beta
    return _drawn("gamma", shape, [alpha, beta], dtype, seed, lambda g, a, b, s: g.gamma(a, 1.0 / b, s))


def poisson(shape, lam, dtype="float32", seed=None, name=None):
    return _drawn("poisson", shape, [lam], dtype, seed, lambda g, m, s: g.poisson(m, s).astype("float64"))


# Stateless: the seed is two numbers, given with every call.

def _stateless(seed):
    return _philox.from_stateless([int(s) for s in _np.ravel(_static(seed, "the seed of a stateless operation"))])


def _stateless_in_program(seed):
    return _base.recording() and _is_symbolic(seed)


def stateless_uniform(shape, seed, minval=0, maxval=None, dtype="float32", name=None, alg="auto_select"):
    dtype = _as_dtype(dtype)
    sizes = _sizes(shape)
    full = dtype.is_integer and minval is None and maxval is None
    if maxval is None and not full:
        if dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        maxval = 1
    if _stateless_in_program(seed):
        if dtype.is_integer:
            return _o.random_int(_counter(seed), sizes, int(_static(minval)), int(_static(maxval)), dtype, 0, 0)
        return _scaled(_o.random_uniform(_counter(seed), sizes, 0.0, 1.0, dtype, 0, 0), minval, maxval, dtype)
    if dtype.is_integer:
        low, high = (None, None) if full else (int(_static(minval)), int(_static(maxval)))
        return _tensor(_philox.integers(_stateless(seed), sizes, dtype.as_numpy_dtype, low, high))
    return _scaled(_made(_philox.uniform(_stateless(seed), sizes, _kind(dtype)[1]), dtype), minval, maxval, dtype)


def _stateless_gaussian(maker, title, shape, seed, mean, stddev, dtype):
    dtype = _as_dtype(dtype)
    sizes = _sizes(shape)
    if _stateless_in_program(seed):
        unit = getattr(_o, "random_" + title)(_counter(seed), sizes, 0.0, 1.0, dtype, 0, 0)
    else:
        unit = _made(maker(_stateless(seed), sizes, "float64" if dtype.name == "float64" else "float32"), dtype)
    return unit * _tensor(stddev, dtype) + _tensor(mean, dtype)


def stateless_normal(shape, seed, mean=0.0, stddev=1.0, dtype="float32", name=None, alg="auto_select"):
    return _stateless_gaussian(_philox.normal, "normal", shape, seed, mean, stddev, dtype)


def stateless_truncated_normal(shape, seed, mean=0.0, stddev=1.0, dtype="float32", name=None, alg="auto_select"):
    return _stateless_gaussian(_philox.truncated_normal, "truncated_normal", shape, seed, mean, stddev, dtype)


def stateless_categorical(logits, num_samples, seed, dtype="int64", name=None):
    logits = _tensor(logits)
    unit = stateless_uniform([_dims(logits)[0], int(_static(num_samples))], seed, dtype="float64")
    return _by_weights(logits, unit, _as_dtype(dtype))


def stateless_shuffle(value, seed, alg="auto_select", name=None):
    value = _tensor(value)
    keys = stateless_uniform([_dims(value)[0]], seed)
    return _o.gather(value, _o.argsort(keys))


def experimental_index_shuffle(index, seed, max_index):
    order = _np.random.Generator(_np.random.Philox(key=int(_np.ravel(_static(seed))[0]) & (2**63 - 1)))
    return _tensor(int(order.permutation(int(_static(max_index)) + 1)[int(_static(index))]), "int64")


def _stateless_generator(seed):
    stream = _stateless(seed)
    return _np.random.Generator(_np.random.Philox(key=stream.key, counter=stream.counter))


def stateless_gamma(shape, seed, alpha, beta=None, dtype="float32", name=None):
    alpha, beta = _static(alpha).astype("float64"), _static(1.0 if beta is None else beta).astype("float64")
    return _tensor(_stateless_generator(seed).gamma(alpha, 1.0 / beta, _sizes(shape)), _as_dtype(dtype))


def stateless_poisson(shape, seed, lam, dtype="int32", name=None):
    return _tensor(_stateless_generator(seed).poisson(_static(lam).astype("float64"), _sizes(shape)), _as_dtype(dtype))


def stateless_binomial(shape, seed, counts, probs, output_dtype="int32", name=None):
    counts, probs = _static(counts).astype("int64"), _static(probs).astype("float64")
    return _tensor(_stateless_generator(seed).binomial(counts, probs, _sizes(shape)), _as_dtype(output_dtype))


def split(seed, num=2, alg="auto_select"):
    return stateless_uniform([num, 2], seed, None, None, "int32" if _tensor(seed).dtype.name == "int32" else "int64")


def fold_in(seed, data, alg="auto_select"):
    seed = _tensor(seed)
    return stateless_uniform([2], _o.stack([_tensor(data, seed.dtype), seed[1]]), None, None, seed.dtype)


experimental_stateless_split, experimental_stateless_fold_in = split, fold_in
_OWN_NORMAL, _OWN_UNIFORM, _OWN_TRUNCATED = normal, uniform, truncated_normal


class Algorithm:
    PHILOX, THREEFRY, AUTO_SELECT = "philox", "threefry", "auto_select"


class Generator:
    """tf.random.Generator: a stream with a state that can be saved, split and set."""

    def __init__(self, copy_from=None, state=None, alg=None):
        if copy_from is not None:
            state, alg = copy_from.state.numpy(), copy_from.algorithm
        self._state = _stoker.Variable(_np.asarray(state, _np.int64), trainable=False, name="StateVar")
        self._alg = alg or "philox"

    def _checkpoint_parts(self):
        return {"_state_var": self._state}

    @classmethod
    def from_seed(cls, seed, alg=None):
        seed = int(_static(seed))
        return cls(state=[_signed(seed), 0, 0], alg=alg)

    @classmethod
    def from_state(cls, state, alg):
        return cls(state=_static(state), alg=alg)

    @classmethod
    def from_key_counter(cls, key, counter, alg):
        return cls(state=[*(_signed(int(c)) for c in _np.ravel(_static(counter))), _signed(int(_static(key)))], alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg=None):
        bits = _python_random.SystemRandom().getrandbits
        return cls(state=[_signed(bits(64)) for _ in range(3)], alg=alg)

    state = property(lambda self: self._state)
    algorithm = property(lambda self: 1)
    key = property(lambda self: self._state[2])

    def _take(self, shape):
        if _base.recording():
            _base.not_traceable("tf.random.Generator draws outside of the engine")
        low, high, key = (int(v) & 0xFFFFFFFFFFFFFFFF for v in self._state.numpy())
        here = _philox.Stream(key, low | high << 64)
        after = here.copy()
        after.skip(256 * int(_np.prod(_sizes(shape), dtype=_np.int64)))
        self._state.assign([_signed(after.counter & (2**64 - 1)), _signed(after.counter >> 64), _signed(key)])
        return here

    def skip(self, delta):
        low, high, key = (int(v) & 0xFFFFFFFFFFFFFFFF for v in self._state.numpy())
        total = (low | high << 64) + 256 * int(delta)
        self._state.assign([_signed(total & (2**64 - 1)), _signed(total >> 64 & (2**64 - 1)), _signed(key)])

    def reset_from_seed(self, seed):
        self._state.assign([_signed(int(seed)), 0, 0])

    def reset(self, state):
        self._state.assign(state)

    def uniform(self, shape, minval=0, maxval=None, dtype="float32", name=None):
        dtype = _as_dtype(dtype)
        stream, sizes = self._take(shape), _sizes(shape)
        if dtype.is_integer:
            if maxval is None:
                raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
            return _tensor(_philox.integers(stream, sizes, dtype.as_numpy_dtype, int(_static(minval)), int(_static(maxval))))
        unit = _made(_philox.uniform(stream, sizes, _kind(dtype)[1]), dtype)
        return _scaled(unit, minval, 1 if maxval is None else maxval, dtype)

    def uniform_full_int(self, shape, dtype="uint64", name=None):
        return _tensor(_philox.integers(self._take(shape), _sizes(shape), _as_dtype(dtype).as_numpy_dtype, None, None))

    def normal(self, shape, mean=0.0, stddev=1.0, dtype="float32", name=None):
        return self._gaussian(_philox.normal, shape, mean, stddev, dtype)

    def truncated_normal(self, shape, mean=0.0, stddev=1.0, dtype="float32", name=None):
        return self._gaussian(_philox.truncated_normal, shape, mean, stddev, dtype)

    def _gaussian(self, maker, shape, mean, stddev, dtype):
        dtype = _as_dtype(dtype)
        unit = _made(maker(self._take(shape), _sizes(shape), "float64" if dtype.name == "float64" else "float32"), dtype)
        return unit * _tensor(stddev, dtype) + _tensor(mean, dtype)

    def make_seeds(self, count=1):
        flat = self.uniform_full_int([count * 2], "int64")
        return _o.reshape(flat, [2, count])

    def split(self, count=1):
        keys = self.uniform_full_int([count], "uint64").numpy()
        return [Generator(state=[0, 0, _signed(int(k))]) for k in keys]


def _signed(value):
    value &= 0xFFFFFFFFFFFFFFFF
    return value - 2**64 if value >= 2**63 else value


_global = None


def get_global_generator():
    global _global
    if _global is None:
        _global = Generator.from_non_deterministic_state()
    return _global


def set_global_generator(generator):
    global _global
    _global = generator


def create_rng_state(seed, alg):
    return _tensor(_np.array([_signed(int(_static(seed))), 0, 0], _np.int64))


def __getattr__(name):
    if name == "experimental":
        import sys
        import types

        room = types.ModuleType("stoker.tf.random.experimental")
        for word in ("Generator", "Algorithm", "get_global_generator", "set_global_generator", "create_rng_state",
                     "stateless_shuffle", "index_shuffle", "stateless_split", "stateless_fold_in"):
            setattr(room, word, globals().get("experimental_" + word) or globals()[word])
        sys.modules[room.__name__] = room
        globals()[name] = room
        return room
    from stoker.tf import _rooms

    return _rooms.find("random", name)


def __dir__():
    from stoker.tf import _rooms

    return sorted(set(_rooms.names("random")) | set(globals()))
