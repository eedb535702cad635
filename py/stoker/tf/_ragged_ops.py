"""Operations on ragged tensors: elementwise ones run on the flat values, others on rows; what has no meaning here is refused."""
import numpy as np

from stoker import _stoker
from stoker.tf._base import dims, o, static, tensor
from stoker.tf._ragged import RaggedTensor, _splits_of, _take
from stoker.tf._ragged_broadcast import alike, broadcast

_ALSO_ELEMENTWISE = {"round", "truediv", "divide_no_nan", "pow", "elu", "selu", "gelu", "leaky_relu", "relu6", "softsign", "cast",
                     "xlogy", "clip_by_value", "one_hot", "dropout"}


def call(ragged, name, is_elementwise, arguments):
    if (is_elementwise and name != "matmul") or name in _ALSO_ELEMENTWISE:
        return _elementwise(ragged, _stoker.ops[name], arguments)
    if name.startswith("reduce_"):
        return _reduce(name, **arguments)
    if name in _BY_ROWS:
        return _BY_ROWS[name](**arguments)
    raise ValueError(f"tf.{name} does not take a tf.RaggedTensor here; ragged.to_tensor() gives a dense one")


def _row_of_each_value(ragged):
    return np.repeat(np.arange(ragged.nrows_int()), np.diff(ragged._splits))


def _elementwise(ragged, operation, arguments):
    operands = [k for k, v in arguments.items() if isinstance(v, RaggedTensor) or (k in ("x", "y", "a", "b") and not np.isscalar(v))]
    values = [arguments[k] for k in operands]
    if len(values) > 1 and not alike(values):
        kind = next((v.dtype for v in values if hasattr(v, "dtype")), None)
        flat, shaped = broadcast([v if isinstance(v, RaggedTensor) else tensor(v, None if hasattr(v, "dtype") else kind) for v in values])
        return shaped(operation(**{**arguments, **dict(zip(operands, flat))}))
    return ragged.with_flat_values(operation(**{k: v.flat_values if isinstance(v, RaggedTensor) else v for k, v in arguments.items()}))


def _reduce(name, input_tensor, axis=None, keepdims=False, **_):
    operation = _stoker.ops[name]
    if axis is None:
        return operation(input_tensor.flat_values)
    axis = int(np.ravel(static(axis))[0])
    axis += len(input_tensor.shape) if axis < 0 else 0
    if axis > 1:
        inner = input_tensor._values
        made = _reduce(name, inner, axis - 1, keepdims) if isinstance(inner, RaggedTensor) else operation(inner, axis - 1, keepdims)
        return input_tensor.with_values(made)
    if axis == 0:
        return _reduce(name, _turned(input_tensor), 1)
    rows = [operation(row, 0) for row in input_tensor]
    if not rows:
        return o.reshape(input_tensor.flat_values, [0])
    made = o.stack(rows)
    return o.expand_dims(made, 1) if keepdims else made


def _turned(ragged):
    """Columns as rows: shorter rows leave their places out."""
    widths = np.diff(ragged._splits)
    places = [[s + n for s, w in zip(ragged._splits, widths) if w > n] for n in range(int(widths.max(initial=0)))]
    return RaggedTensor(_take(ragged._values, [p for column in places for p in column]), _splits_of([len(p) for p in places]))


def _picked(ragged, rows):
    """Rows made of other places of the values."""
    return RaggedTensor(_take(ragged._values, np.concatenate([np.asarray(r, np.int64) for r in rows]) if rows else []),
                        _splits_of([len(r) for r in rows]))


def _places(ragged):
    return [np.arange(a, b) for a, b in zip(ragged._splits[:-1], ragged._splits[1:])]


def _tile(input, multiples, **_):
    down, across = (int(m) for m in np.ravel(static(multiples))[:2])
    return _picked(input, [np.tile(row, across) for row in _places(input)] * down)


def _reverse(tensor, axis, **_):
    axes = [int(a) % len(tensor.shape) for a in np.ravel(static(axis))]
    rows = _places(tensor)
    rows = [row[::-1] for row in rows] if 1 in axes else rows
    return _picked(tensor, rows[::-1] if 0 in axes else rows)


def _each_row(operation):
    def run(first, **options):
        options.pop("axis", None)
        rows = [operation(row, **options) for row in first]
        return RaggedTensor(o.concat(rows, 0), first._splits) if rows else first

    return run


def _softmax(logits, axis=-1, **_):
    return _each_row(lambda row: _stoker.ops["softmax"](row) if dims(row)[0] else row)(logits)


_BY_ROWS = {"tile": _tile, "reverse": _reverse, "softmax": _softmax}


def map_fn(fn, ragged):
    """tf.map_fn over rows: rows may come out with other lengths."""
    rows = [tensor(fn(row)) for row in ragged]
    if not rows or not dims(rows[0]):
        return o.stack(rows) if rows else ragged.flat_values
    return RaggedTensor(o.concat(rows, 0), _splits_of([dims(r)[0] for r in rows]))


def sort(values, direction):
    return _each_row(lambda row: o.sort(row, -1, direction))(values)


def where(condition, x, y):
    parts = [v.flat_values if isinstance(v, RaggedTensor) else v for v in (condition, x, y)]
    return next(v for v in (condition, x, y) if isinstance(v, RaggedTensor)).with_flat_values(o.where(*parts))
