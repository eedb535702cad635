"""tf.experimental.DynamicRaggedShape: the lengths of a ragged tensor, some of them one per row."""
import numpy as np

from stoker.tf._base import dims, o, static, tensor
from stoker.tf._ragged import RaggedTensor, RowPartition
from stoker.tf._specs import as_dtype


class DynamicRaggedShape:
    def __init__(self, row_partitions, inner_shape, dtype="int64", validate=False):
        self._partitions = tuple(row_partitions)
        self._inner = [int(s) for s in np.ravel(static(inner_shape))]
        self._dtype = as_dtype(dtype)
        if self._partitions and int(self._partitions[-1].nvals()) != self._inner[0]:
            raise ValueError(f"Last row partition does not match inner_shape: {int(self._partitions[-1].nvals())} against {self._inner[0]}")

    @classmethod
    def from_lengths(cls, lengths, num_row_partitions=None, dtype="int64"):
        """[2, (3, 1), 5]: a number for all rows, or a number for each."""
        lengths = list(lengths)
        ragged = [n for n, one in enumerate(lengths) if isinstance(one, (list, tuple))]
        count = max(ragged, default=0) if num_row_partitions is None else int(num_row_partitions)
        if 0 in ragged or (ragged and count < max(ragged)):
            raise ValueError(f"num_row_partitions ({count}) is too few for lengths {lengths}")
        if not lengths:
            return cls([], [], dtype)
        rows, partitions = int(lengths[0]), []
        for one in lengths[1:count + 1]:
            even = not isinstance(one, (list, tuple))
            widths = np.asarray([one] * rows if even else one, np.int64)
            if len(widths) != rows:
                raise ValueError(f"{len(widths)} lengths for {rows} rows in {lengths}")
            partitions.append(RowPartition(np.concatenate([[0], np.cumsum(widths)]), even))
            rows = int(widths.sum())
        return cls(partitions, [rows, *lengths[count + 1:]], dtype)

    @classmethod
    def from_row_partitions(cls, row_partitions, dtype="int64"):
        if not row_partitions:
            raise ValueError("row_partitions cannot be empty")
        return cls(row_partitions, [int(row_partitions[-1].nvals())], dtype)

    @classmethod
    def from_tensor(cls, t, dtype="int64"):
        partitions = []
        while isinstance(t, RaggedTensor):
            partitions.append(RowPartition(t._splits))
            t = t.values
        return cls(partitions, dims(tensor(t)), dtype)

    dtype = property(lambda self: self._dtype)
    row_partitions = property(lambda self: self._partitions)
    num_row_partitions = property(lambda self: len(self._partitions))
    inner_rank = property(lambda self: len(self._inner))
    rank = property(lambda self: len(self._partitions) + len(self._inner))
    inner_shape = property(lambda self: tensor(np.array(self._inner, self._dtype.as_numpy_dtype)))

    def static_lengths(self, ragged_lengths=True):
        if not self._partitions:
            return list(self._inner)
        made = [int(self._partitions[0].nrows())]
        for one in self._partitions:
            widths = one.row_lengths().numpy().tolist()
            made.append(tuple(widths) if one.uniform_row_length() is None else int(one.uniform_row_length()))
        return made + self._inner[1:]

    def is_uniform(self, axis):
        return not isinstance(self.static_lengths()[axis], tuple)

    def with_dtype(self, dtype):
        return DynamicRaggedShape(self._partitions, self._inner, dtype)

    def __getitem__(self, index):
        lengths = self.static_lengths()
        if isinstance(index, slice):
            return DynamicRaggedShape.from_lengths(lengths[index], dtype=self._dtype)
        found = lengths[int(static(index))]
        if isinstance(found, tuple):
            raise ValueError(f"Index {index} is not uniform")
        return tensor(found, self._dtype)

    def __eq__(self, other):
        return tensor(isinstance(other, DynamicRaggedShape) and self.static_lengths() == other.static_lengths())

    __hash__ = None

    def __repr__(self):
        return f"<DynamicRaggedShape lengths={self.static_lengths()} num_row_partitions={self.num_row_partitions}>"

    # What operations do with such a shape.

    def filled(self, flat):
        """Values in the order of the rows as a tensor of this shape."""
        made = o.reshape(flat, self._inner)
        for one in reversed(self._partitions):
            made = RaggedTensor(made, one.row_splits())
        return made

    def __stoker_op__(self, name, is_elementwise, arguments):
        if name == "reshape":
            value = arguments["tensor"]
            return self.filled(value.flat_values if isinstance(value, RaggedTensor) else tensor(value))
        if name == "broadcast_to":
            return self._broadcast(arguments["input"])
        raise ValueError(f"tf.{name} does not take a DynamicRaggedShape")

    def _broadcast(self, value):
        """Each element of the result comes from the place with the same numbers, or 0 where the value has one row."""
        if isinstance(value, RaggedTensor):
            if DynamicRaggedShape.from_tensor(value).static_lengths() == self.static_lengths():
                return value
            raise ValueError("a ragged tensor is broadcast to its own shape only")
        value, places = tensor(value), self._places()
        sizes = [1] * (self.rank - len(dims(value))) + dims(value)
        for column, size in zip(places.T, sizes):
            if size != 1 and column.size and column.max() >= size:
                raise ValueError(f"Unable to broadcast: shape {dims(value)} to {self}")
        columns = [column if size != 1 else column * 0 for column, size in zip(places.T, sizes)]
        return self.filled(o.gather_nd(o.reshape(value, sizes), tensor(np.stack(columns, 1))))

    def _places(self):
        places = np.zeros((1, 0), np.int64)
        for depth, one in enumerate(self.static_lengths()):
            widths = np.asarray(one if isinstance(one, tuple) else [one] * len(places), np.int64)
            inner = np.concatenate([np.arange(w) for w in widths]) if len(widths) else np.zeros(0, np.int64)
            places = np.column_stack([np.repeat(places, widths, axis=0), inner])
        return places


DynamicRaggedShape.__module__ = "tensorflow.python.ops.ragged.dynamic_ragged_shape"
