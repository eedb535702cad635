"""tf.queue: elements handed from one thread to another, kept in Python. A dequeue of what is not there waits, as in TensorFlow."""
import heapq
import random
import threading


from stoker.tf import errors
from stoker.tf._base import TensorShape, dims, o, recording, not_traceable, static, tensor
from stoker.tf._specs import as_dtype


class QueueBase:
    _KIND = "FIFOQueue"

    def __init__(self, dtypes, shapes, names, capacity):
        dtypes = list(dtypes) if isinstance(dtypes, (list, tuple)) else [dtypes]
        self._dtypes = [as_dtype(d) for d in dtypes]
        if shapes is not None:
            one = isinstance(shapes, TensorShape) or not shapes or not isinstance(shapes[0], (list, tuple, TensorShape))
            one = one and not (len(self._dtypes) > 1 or (shapes == [[]]))
            shapes = [shapes] if one else list(shapes)
            if len(shapes) != len(self._dtypes):
                raise ValueError(f"Queue shapes must have the same length as dtypes, received len(shapes)={len(shapes)}, "
                                 f"len(dtypes)={len(self._dtypes)}")
        self._shapes = [TensorShape(s) for s in shapes] if shapes is not None else [TensorShape(None)] * len(self._dtypes)
        names = [names] if isinstance(names, str) else names
        if names is not None and len(names) != len(self._dtypes):
            raise ValueError(f"`names` must have the same length as `dtypes`, received {len(names)} and {len(self._dtypes)}")
        self._names = None if names is None else list(names)
        self._capacity = capacity if capacity is not None and capacity > 0 else None
        self._items, self._closed, self._changed = [], False, threading.Condition()

    dtypes = property(lambda self: self._dtypes)
    shapes = property(lambda self: self._shapes)
    names = property(lambda self: self._names)
    name = property(lambda self: self._KIND)
    queue_ref = property(lambda self: self)

    # Elements.

    def _element(self, vals, many=False):
        """A tensor for each component, checked."""
        if recording():
            not_traceable("it uses a queue")
        if self._names is not None:
            if not isinstance(vals, dict) or sorted(vals) != sorted(self._names):
                raise ValueError(f"Keys in dictionary to enqueue do not match names of Queue. Dictionary: "
                                 f"{sorted(vals) if isinstance(vals, dict) else vals}, Queue: {sorted(self._names)}")
            vals = [vals[n] for n in self._names]
        elif isinstance(vals, dict):
            raise ValueError("Queue must have names to enqueue a dictionary")
        elif not isinstance(vals, (list, tuple)) or (len(self._dtypes) == 1 and len(vals) != 1):
            vals = [vals]
        if len(vals) != len(self._dtypes):
            raise ValueError(f"`vals` should have {len(self._dtypes)} components, got {len(vals)}")
        parts = [tensor(v, d) for v, d in zip(vals, self._dtypes)]
        for part, shape in zip(parts, self._shapes):
            sizes = dims(part)[1 if many else 0:]
            if not shape.is_compatible_with(TensorShape(sizes)):
                raise ValueError(f"Shape mismatch in a queue: expected {shape}, got {tuple(sizes)}")
        return parts

    def _given(self, parts):
        if self._names is not None:
            return dict(zip(self._names, parts))
        return parts[0] if len(parts) == 1 else parts

    # How elements are ordered: subclasses say.

    def _put(self, parts):
        self._items.append(parts)

    def _take(self):
        return self._items.pop(0)

    def _ready(self):
        return len(self._items)

    # Operations.

    def _add(self, elements):
        with self._changed:
            for parts in elements:
                while not self._closed and self._capacity is not None and len(self._items) >= self._capacity:
                    self._changed.wait(0.05)  # short waits let Ctrl-C through
                if self._closed:
                    errors.raise_(1, f"{self._KIND} is closed.", "QueueEnqueueV2")
                self._put(parts)
                self._changed.notify_all()

    def enqueue(self, vals, name=None):
        self._add([self._element(vals)])

    def enqueue_many(self, vals, name=None):
        parts = self._element(vals, True)
        count = {dims(p)[0] for p in parts}
        if len(count) > 1:
            raise ValueError(f"enqueue_many: components have different numbers of elements: {sorted(count)}")
        self._add([[p[n] for p in parts] for n in range(count.pop())])

    def _remove(self, least, most):
        with self._changed:
            while self._ready() < most and not self._closed:
                self._changed.wait(0.05)
            if self._closed and len(self._items) < least:
                errors.raise_(11, f"{self._KIND} is closed and has insufficient elements (requested {most}, current size "
                              f"{len(self._items)})", "QueueDequeueV2")
            made = [self._take() for _ in range(min(most, len(self._items)))]
            self._changed.notify_all()
            return made

    def dequeue(self, name=None):
        if recording():
            not_traceable("it uses a queue")
        return self._given(self._remove(1, 1)[0])

    def _together(self, elements):
        return self._given([o.stack([e[n] for e in elements]) for n in range(len(self._dtypes))])

    def _several(self, n, least):
        if not all(s.is_fully_defined() for s in self._shapes) and type(self) is not PaddingFIFOQueue:
            errors.invalid(f"{self._KIND}'s DequeueMany and DequeueUpTo require the components to have specified shapes.",
                           "QueueDequeueManyV2")
        return self._together(self._remove(least, n))

    def dequeue_many(self, n, name=None):
        return self._several(int(static(n)), int(static(n)))

    def dequeue_up_to(self, n, name=None):
        return self._several(int(static(n)), 1)

    def size(self, name=None):
        return tensor(len(self._items), "int32")

    def is_closed(self, name=None):
        return tensor(self._closed)

    def close(self, cancel_pending_enqueues=False, name=None):
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class FIFOQueue(QueueBase):
    def __init__(self, capacity, dtypes, shapes=None, names=None, shared_name=None, name="fifo_queue"):
        super().__init__(dtypes, shapes, names, capacity)


class PaddingFIFOQueue(QueueBase):
    """Elements of different sizes: several at once are padded with zeros."""

    _KIND = "PaddingFIFOQueue"

    def __init__(self, capacity, dtypes, shapes, names=None, shared_name=None, name="padding_fifo_queue"):
        super().__init__(dtypes, shapes, names, capacity)

    def _together(self, elements):
        columns = []
        for n in range(len(self._dtypes)):
            sizes = [dims(e[n]) for e in elements]
            most = [max(column) for column in zip(*sizes)]
            columns.append(o.stack([o.pad(e[n], [[0, m - d] for m, d in zip(most, dims(e[n]))]) if most else e[n] for e in elements]))
        return self._given(columns)


class PriorityQueue(QueueBase):
    """The smallest first component comes out first; it is an int64 in front of the others."""

    _KIND = "PriorityQueue"

    def __init__(self, capacity, types, shapes=None, names=None, shared_name=None, name="priority_queue"):
        types = list(types) if isinstance(types, (list, tuple)) else [types]
        shapes = None if shapes is None else [[], *(shapes if isinstance(shapes[0], (list, tuple, TensorShape)) else [shapes])]
        super().__init__(["int64", *types], shapes, names, capacity)
        self._count = 0

    def _put(self, parts):
        self._count += 1
        heapq.heappush(self._items, (int(parts[0]), self._count, parts))

    def _take(self):
        return heapq.heappop(self._items)[2]


class RandomShuffleQueue(QueueBase):
    """Elements in random order; min_after_dequeue of them stay behind until the queue is closed."""

    _KIND = "RandomShuffleQueue"

    def __init__(self, capacity, min_after_dequeue, dtypes, shapes=None, names=None, seed=None, shared_name=None,
                 name="random_shuffle_queue"):
        super().__init__(dtypes, shapes, names, capacity)
        self._least, self._random = int(min_after_dequeue), random.Random(seed)

    def _ready(self):
        return len(self._items) - self._least

    def _take(self):
        return self._items.pop(self._random.randrange(len(self._items)))


for _made in (QueueBase, FIFOQueue, PaddingFIFOQueue, PriorityQueue, RandomShuffleQueue):
    _made.__module__ = "tensorflow.python.ops.data_flow_ops"
