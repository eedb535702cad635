"""TensorFlow's argument names and defaults around operations of the engine that go by other ones."""
import numpy as np

from stoker import _stoker
from stoker.tf import errors
from stoker.tf._base import Tensor, as_type_of, axis_of, bool_, dims, float32, int32, is_symbolic, o, static, tensor
from stoker.tf._specs import as_dtype


def constant(value, dtype=None, shape=None, name="Const"):
    try:
        made = tensor(value, dtype)
    except (TypeError, ValueError, errors.UnimplementedError):
        from stoker.tf import _complex

        made = _complex.from_value(value, dtype)
        if made is None:
            raise
    if shape is None:
        return made
    sizes = [int(s) for s in np.ravel(static(shape))]
    count = int(np.prod(dims(made), dtype=np.int64))
    if count == int(np.prod(sizes, dtype=np.int64)):
        return o.reshape(made, sizes)
    if count == 1:
        return o.broadcast_to(o.reshape(made, []), sizes)
    raise TypeError(f"Eager execution of tf.constant with unsupported shape. Tensor {made} (converted from {value}) has "
                    f"{count} elements, but got `shape` {tuple(sizes)} with {int(np.prod(sizes))} elements).")


def where(condition, x, y):
    """Three-argument where: the value that is no tensor takes the other's dtype."""
    if hasattr(x, "_im") or hasattr(y, "_im"):
        from stoker.tf import _complex

        one = x if hasattr(x, "_im") else y
        return _complex.by_parts(where, condition, _complex.pair(x, one), _complex.pair(y, one))
    if hasattr(x, "dtype") and not isinstance(x, np.ndarray):
        x = tensor(x)
        y = tensor(y, x.dtype)
    else:
        y = tensor(y)
        x = tensor(x, y.dtype)
    condition = tensor(condition)
    if condition.dtype != bool_:
        condition = o.cast(condition, bool_)
    return o.select(condition, x, y)


def divide(x, y, name=None):
    return x / y if hasattr(x, "dtype") else o.truediv(x, y)


def pad(tensor, paddings, mode="CONSTANT", constant_values=0, name=None):
    from stoker.tf import _base

    x = _base.tensor(tensor)
    rows = [[int(v) for v in row] for row in static(paddings, "paddings").tolist()] if not _is_rows(paddings) else \
        [[int(static(a)), int(static(b))] for a, b in paddings]
    if len(rows) != len(dims(x)):
        errors.invalid(f"The first dimension of paddings must be the rank of inputs[{len(rows)},2] {x.shape}", "Pad")
    low, high = [r[0] for r in rows], [r[1] for r in rows]
    mode = mode.upper()
    if mode == "CONSTANT":
        if x.dtype.name == "string":
            return _base.tensor(np.pad(x.numpy(), rows, constant_values=constant_values or b""), x.dtype)
        if hasattr(constant_values, "dtype") and _base.is_symbolic(constant_values):
            inside = o.pad_constant(o.ones_like(x), low, high, 0.0)
            return where(o.cast(inside, bool_), o.pad_constant(x, low, high, 0.0), constant_values)
        return o.pad_constant(x, low, high, float(static(constant_values)))
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(f"Value of argument `mode` expected to be one of \"CONSTANT\", \"REFLECT\", or \"SYMMETRIC\". "
                         f"Received `mode` = {mode}")
    return o.pad_mode(x, low, high, mode)


def _is_rows(paddings):
    return isinstance(paddings, (list, tuple)) and all(isinstance(r, (list, tuple)) and len(r) == 2 for r in paddings)


def split(value, num_or_size_splits, axis=0, num=None, name="split"):
    value = tensor(value)
    axis = axis_of(axis, len(dims(value)), "Split")
    length = dims(value)[axis]
    parts = static(num_or_size_splits, "num_or_size_splits")
    if parts.ndim == 0:
        count = int(parts)
        if count < 1 or length % count:
            errors.invalid(f"Number of ways to split should evenly divide the split dimension, but got split_dim {axis} "
                           f"(size = {length}) and num_split {count}", "Split")
        sizes = [length // count] * count
    else:
        sizes = [int(p) for p in parts]
        if -1 in sizes:
            sizes[sizes.index(-1)] = length - sum(s for s in sizes if s != -1)
        if sum(sizes) != length:
            errors.invalid("Determined shape must either match input shape along split_dim exactly if fully specified, "
                           f"or be less than the size of the input along split_dim if not fully specified.  Got: {sum(sizes)}",
                           "SplitV")
    return o.split_sizes(value, sizes, axis)


def _known_later(indices):
    """Places out of range are an error of the run, and none where nobody uses what was gathered: a program must not know them yet."""
    zero = _known_later.__dict__.setdefault("zero", {})
    if indices.dtype.name not in zero:
        from stoker.tf._base import Variable, eager_scope

        with eager_scope():
            zero[indices.dtype.name] = Variable(tensor(0, indices.dtype), trainable=False)
    return _stoker.ops["add"](indices, zero[indices.dtype.name])


def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    if hasattr(params, "row_splits") or hasattr(indices, "row_splits"):
        from stoker.tf import _ragged

        return _ragged.gather(params, indices, 0 if axis is None else int(static(axis)))
    batch_dims = int(batch_dims)
    if axis is None:
        axis = batch_dims
    source, params, indices = params, tensor(params), tensor(indices)
    many = len(dims(indices))
    if batch_dims < 0:
        batch_dims += many
    axis = axis_of(static(axis), len(dims(params)), "GatherV2")
    try:
        made = _stoker.ops["gather"](params, indices, axis, batch_dims)
    except errors.InvalidArgumentError:
        if not is_symbolic(params) or is_symbolic(indices):
            raise
        made = _stoker.ops["gather"](params, _known_later(indices), axis, batch_dims)
    if axis == 0 and not isinstance(source, Tensor) and _stoker.taped():
        from stoker.tf import _tape

        _tape.note_rows(source, indices, made)
    return made


def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None):
    if hasattr(indices, "with_flat_values"):
        if axis not in (None, -1):
            raise ValueError(f"tf.one_hot of a ragged tensor has its new axis at the end, got axis {axis}")
        return indices.with_flat_values(one_hot(indices.flat_values, depth, on_value, off_value, None, dtype))
    if dtype is None:
        known = [v for v in (on_value, off_value) if hasattr(v, "dtype")]
        values = [v for v in (on_value, off_value) if v is not None]
        dtype = known[0].dtype if known else tensor(values[0]).dtype if values else float32
    dtype = as_dtype(dtype)
    indices = tensor(indices)
    axis = -1 if axis is None else int(axis)
    if dtype == bool_:
        return o.cast(o.one_hot_values(indices, int(static(depth)), 1.0, 0.0, axis, float32), bool_) \
            if on_value in (None, True) and off_value in (None, False) else \
            o.cast(o.one_hot_values(indices, int(static(depth)), float(bool(on_value)), float(bool(off_value)), axis,
                                    float32), bool_)
    on = 1 if on_value is None else static(on_value).item()
    off = 0 if off_value is None else static(off_value).item()
    return o.one_hot_values(indices, int(static(depth)), float(on), float(off), axis, dtype)


def _direction(direction):
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError("Argument `direction` should be one of 'ASCENDING' or 'DESCENDING'. Received: direction="
                         f"{direction}")
    return direction == "DESCENDING"


def sort(values, axis=-1, direction="ASCENDING", name=None):
    if hasattr(values, "row_splits"):
        from stoker.tf import _ragged_ops

        return _ragged_ops.sort(values, direction)
    return o.sort_values(tensor(values), int(axis), _direction(direction))


def argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None):
    return o.cast(o.argsort_values(tensor(values), int(axis), _direction(direction)), int32)


def top_k(input, k=1):
    x = tensor(input)
    k = int(static(k))
    if not dims(x) or dims(x)[-1] < k:
        errors.invalid(f"input must have last dimension >= k = {k} but is {dims(x)[-1] if dims(x) else 'a scalar'}",
                       "TopKV2")
    return o.top_k_values(x, k)


def concat(values, axis, name="concat"):
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    if any(hasattr(v, "row_splits") for v in values):
        from stoker.tf import _ragged

        return _ragged.concat(values, int(static(axis)))
    if any(hasattr(v, "_im") for v in values):
        from stoker.tf import _complex

        return _complex.by_parts(_stoker.ops["concat"], values, int(static(axis)))
    if len(values) == 1:
        return tensor(values[0])
    return _in_groups(_stoker.ops["concat"], values, int(static(axis)))


_MOST = 64  # inputs of one operation


def _in_groups(first, values, axis):
    """Joins more values than one operation takes: groups by `first`, then the groups."""
    if len(values) <= _MOST:
        return first(values, axis)
    return concat([first(values[n:n + _MOST], axis) for n in range(0, len(values), _MOST)], axis)


def stack(values, axis=0, name="stack"):
    values = list(values) if isinstance(values, (list, tuple)) else values
    if isinstance(values, list) and any(hasattr(v, "row_splits") for v in values):
        from stoker.tf import _ragged

        return _ragged.stack(values)
    if isinstance(values, list) and any(hasattr(v, "_im") for v in values):
        from stoker.tf import _complex

        return _complex.by_parts(_stoker.ops["stack"], values, int(axis))
    if not isinstance(values, list):
        values = o.unstack(tensor(values))
    return _in_groups(_stoker.ops["stack"], values, int(axis))


def expand_dims(input, axis, name=None):
    if hasattr(input, "row_splits"):
        return input.expand_dims(int(axis))
    return _stoker.ops["expand_dims"](input, int(static(axis)))


def cast(x, dtype, name=None):
    if hasattr(x, "with_flat_values"):
        return x.with_flat_values(cast(x.flat_values, dtype))
    if hasattr(x, "with_values") and hasattr(x, "dense_shape"):
        return x.with_values(cast(x.values, dtype))
    dtype = as_dtype(dtype)
    if dtype.is_complex or hasattr(x, "_im"):
        from stoker.tf import _complex

        return _complex.cast(x, dtype)
    x = tensor(x)
    if x.dtype == dtype:
        return x
    if "string" in (x.dtype.name, dtype.name):
        errors.raise_(12, f"Cast {x.dtype.name} to {dtype.name} is not supported", "Cast")
    return _stoker.ops["cast"](x, dtype)


def squeeze(input, axis=None, name=None):
    if hasattr(input, "row_splits"):
        from stoker.tf import _ragged

        return _ragged.squeeze(input, axis)
    return _stoker.ops["squeeze"](input, axis)


def transpose(a, perm=None, conjugate=False, name="transpose"):
    if perm is not None and not isinstance(perm, (list, tuple)):
        perm = [int(p) for p in static(perm)]
    return _stoker.ops["transpose"](a, perm)


def roll(input, shift, axis, name=None):
    shift = [int(s) for s in np.ravel(static(shift))]
    return _stoker.ops["roll"](input, shift, [int(a) for a in np.ravel(static(axis))])


def einsum(equation, *inputs, **kwargs):
    """By transposes, products and matrix products: two operands at a time, from the left."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    values = [tensor(x) for x in inputs[:1]]
    values += [as_type_of(values[0], x) for x in inputs[1:]]
    if len(terms) != len(values):
        raise ValueError(f"Got {len(values)} arguments for equation \"{equation}\", expecting {len(terms)}")
    terms = _spell_dots(terms, values, equation)
    letters = "".join(terms)
    dots = "".join(sorted({c for c in letters if c.isdigit()}))
    if not arrow:
        right = dots + "".join(sorted(c for c in set(letters) if letters.count(c) == 1 and c not in dots))
    right = right.replace("...", dots)
    reduced = [_diagonals(t, x) for t, x in zip(terms, values)]
    term, value = reduced[0]
    for n, (other_term, other) in enumerate(reduced[1:], 2):
        needed = set(right).union(*[t for t, _ in reduced[n:]]) if n < len(reduced) + 1 else set(right)
        term, value = _contract(term, value, other_term, other, needed)
    gone = [n for n, c in enumerate(term) if c not in right]
    if gone:
        value = o.reduce_sum(value, axis=gone)
        term = "".join(c for c in term if c in right)
    return value if term == right else o.transpose(value, [term.index(c) for c in right])


def _spell_dots(terms, values, equation):
    """'...' as digits, the last axis of it always the same digit."""
    done = []
    for term, value in zip(terms, values):
        count = len(dims(value)) - len(term.replace("...", ""))
        if count < 0 or (count and "..." not in term):
            raise ValueError(f"Einsum equation \"{equation}\": {term} does not fit a tensor of rank {len(dims(value))}")
        done.append(term.replace("...", "0123456789"[10 - count:]))
    return done


def _diagonals(term, value):
    """Letters that come twice in one operand are a diagonal."""
    while len(set(term)) < len(term):
        letter = next(c for c in term if term.count(c) > 1)
        first, second = term.index(letter), term.rindex(letter)
        order = [n for n in range(len(term)) if n not in (first, second)] + [first, second]
        value = o.diag_part(o.transpose(value, order))
        term = "".join(term[n] for n in order[:-1])
    return term, value


def _contract(a, x, b, y, needed):
    """One product of two operands: letters are batch (in both, needed), inner (in both), or free."""
    for term, value, other in ((a, x, b), (b, y, a)):
        alone = [n for n, c in enumerate(term) if c not in other and c not in needed]
        if alone:
            short = "".join(c for n, c in enumerate(term) if n not in alone)
            value = o.reduce_sum(value, axis=alone)
            if term is a:
                a, x = short, value
            else:
                b, y = short, value
    size = {}
    for term, value in ((a, x), (b, y)):
        for letter, width in zip(term, dims(value)):
            size[letter] = max(size.get(letter, 1), width)
    both = [c for c in a if c in b]
    x = _fill(x, a, both, size)
    y = _fill(y, b, both, size)
    batch = [c for c in both if c in needed]
    inner = [c for c in both if c not in needed]
    free_a, free_b = [c for c in a if c not in both], [c for c in b if c not in both]
    x = o.transpose(x, [a.index(c) for c in batch + free_a + inner])
    y = o.transpose(y, [b.index(c) for c in batch + inner + free_b])

    def product(letters):
        return int(np.prod([size[c] for c in letters], dtype=np.int64))

    lead = [size[c] for c in batch]
    x = o.reshape(x, lead + [product(free_a), product(inner)])
    y = o.reshape(y, lead + [product(inner), product(free_b)])
    made = o.reshape(o.matmul(x, y), lead + [size[c] for c in free_a] + [size[c] for c in free_b])
    return "".join(batch + free_a + free_b), made


def _fill(value, term, both, size):
    wanted = [size[c] if c in both else d for c, d in zip(term, dims(value))]
    return value if wanted == dims(value) else o.broadcast_to(value, wanted)
