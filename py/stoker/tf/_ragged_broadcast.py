"""Ragged and dense operands brought to one shape: axes are matched from the last on, an axis of the size 1 is repeated."""
import numpy as np

from stoker.tf import errors
from stoker.tf._base import dims, o, tensor
from stoker.tf._ragged import RaggedTensor, _take


def alike(values):
    """Ragged with the same rows, or single numbers: the flat values can meet as they are."""
    first = next(v for v in values if isinstance(v, RaggedTensor))
    return all(v._signature_key() == first._signature_key() and dims(v.flat_values)[1:] == dims(first.flat_values)[1:]
               if isinstance(v, RaggedTensor) else not dims(tensor(v)) for v in values)


def pair(ragged, other):
    """Flat values of a ragged tensor and of another operand, and the function that gives their result its rows."""
    if not isinstance(other, RaggedTensor) and not hasattr(other, "dtype"):
        other = tensor(other, ragged.dtype)
    if alike([ragged, other]):
        return ragged.flat_values, other.flat_values if isinstance(other, RaggedTensor) else other, ragged.with_flat_values
    (mine, theirs), shaped = broadcast([ragged, other])
    return mine, theirs, shaped


class _Operand:
    """Nodes of a tree, axis by axis: how many children each has, and whether that is a size or lengths of rows."""

    def __init__(self, value, rank):
        self.ragged = isinstance(value, RaggedTensor)
        value = value if self.ragged else tensor(value)
        splits = [s.numpy() for s in value.nested_row_splits] if self.ragged else []
        self.flat = value.flat_values if self.ragged else value
        inner = dims(self.flat)
        own = [len(splits[0]) - 1] if self.ragged else []
        self.axes = [("size", 1)] * (rank - len(own) - len(splits) - len(inner) + (1 if self.ragged else 0))
        self.axes += [("size", n) for n in own] + [("rows", s) for s in splits] + [("size", n) for n in (inner[1:] if self.ragged else inner)]

    def children(self, axis, nodes):
        """For each of the nodes: its first child, how many, and can one be repeated."""
        kind, what = self.axes[axis]
        if kind == "size":
            return nodes * what, np.full(len(nodes), what), what == 1
        return what[nodes], np.diff(what)[nodes], False


def rank_of(value):
    return len(value.shape) if isinstance(value, RaggedTensor) else len(dims(tensor(value)))


def broadcast(values):
    """The values with all of their rows of the same lengths: flat tensors, and a function that puts a flat result into the shape."""
    rank = max(map(rank_of, values))
    operands = [_Operand(v, rank) for v in values]
    nodes = [np.zeros(1, np.int64) for _ in operands]
    axes = []  # (lengths, is it one size for all)
    for axis in range(rank):
        firsts, counts, may = zip(*[x.children(axis, n) for x, n in zip(operands, nodes)])
        wide = counts[0]
        for count, repeat in zip(counts, may):
            wide = count if not repeat else wide
        for count, repeat in zip(counts, may):
            if not repeat and not np.array_equal(count, wide):
                errors.invalid(f"Unable to broadcast: ragged operands need rows of the same lengths, got {wide} and {count}", "RaggedBroadcast")
        offsets = np.arange(int(wide.sum())) - np.repeat(np.cumsum(wide) - wide, wide)
        nodes = [np.repeat(first, wide) + (0 if repeat else offsets) for first, repeat in zip(firsts, may)]
        axes.append((wide, all(x.axes[axis][0] == "size" for x in operands)))
    return [_take(o.reshape(x.flat, [-1]), n) for x, n in zip(operands, nodes)], lambda flat: _shaped(flat, axes)


def _shaped(flat, axes):
    last = max((n for n, (_, uniform) in enumerate(axes) if not uniform), default=0)
    sizes = [int(wide[0]) if len(wide) else 0 for wide, _ in axes]
    made = o.reshape(flat, ([-1] if last else [sizes[0]]) + sizes[last + 1:])
    for wide, _ in reversed(axes[1:last + 1]):
        made = RaggedTensor.from_row_lengths(made, wide)
    return made
