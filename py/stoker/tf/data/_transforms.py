"""The methods of a dataset that make another one."""
from stoker import _stoker
from stoker.tf import errors
from stoker.tf._base import static, tensor
from stoker.tf._specs import NoneTensorSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec
from stoker.tf.data import _structure as st
from stoker.tf.data._dataset import AUTOTUNE, DatasetV2, integer, make, parallel_of, seed_of
from stoker.tf.data._function import MapFunction, scalar


def _method(function):
    setattr(DatasetV2, function.__name__.removesuffix("_"), function)
    return function


def _is_simple(spec):
    return all(isinstance(leaf, (TensorSpec, NoneTensorSpec)) for leaf in st.leaves(spec))


# Order and number.

@_method
def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
    size = integer(buffer_size, "buffer_size")
    if size == -2:  # tf.data.UNKNOWN_CARDINALITY: all of it
        size = -1
    elif size < 1:
        errors.invalid(f"buffer_size must be greater than zero or UNKNOWN_CARDINALITY, got {size}", "ShuffleDatasetV3")
    again = True if reshuffle_each_iteration is None else bool(reshuffle_each_iteration)
    count = self._count()
    if count >= 0 and size >= count and self._pipe.random_access:
        size = -1  # an exact permutation, which needs no buffer
    made = self._same("Shuffle", self._pipe.shuffle(size, seed_of(seed), again))
    made._walks = type(self._walks)(True)
    return made


@_method
def repeat(self, count=None, name=None):
    count = -1 if count is None else integer(count, "count")
    return self._same("Repeat", self._pipe.repeat(count if count >= 0 else -1))


@_method
def take(self, count, name=None):
    count = integer(count, "count")
    return self._same("Take", self._pipe.take(count if count >= 0 else -1))


@_method
def skip(self, count, name=None):
    count = integer(count, "count")
    if count < 0:
        return self._same("Skip", self._pipe.take(0))
    return self._same("Skip", self._pipe.skip(count))


@_method
def shard(self, num_shards, index, name=None):
    shards, index = integer(num_shards, "num_shards"), integer(index, "index")
    if shards < 1:
        errors.invalid(f"Number of shards must be greater than zero (currently num_shards = {shards}).", "ShardDataset")
    if not 0 <= index < shards:
        errors.invalid(f"Index must be between 0 and {shards - 1} (currently index = {index}).", "ShardDataset")
    return self._same("Shard", self._pipe.shard(shards, index))


@_method
def prefetch(self, buffer_size=None, name=None):
    size = -1 if buffer_size is None else integer(buffer_size, "buffer_size")
    if size < -1:
        errors.invalid(f"buffer_size must be >= 0 or set buffer_size to be {AUTOTUNE} for auto-tuning", "PrefetchDataset")
    return self._same("Prefetch", self._pipe.prefetch(size))


@_method
def cache(self, filename="", name=None):
    path = static(filename, "filename").item() if filename != "" else ""
    path = path.decode() if isinstance(path, bytes) else str(path)
    if path:
        import os

        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return self._same("Cache", self._pipe.cache(path or None))


@_method
def ignore_errors(self, log_warning=False, name=None):
    made = self._same("IgnoreErrors", self._pipe.ignore_errors())
    made._cardinality = -2 if self._count() >= 0 else self._count()
    return made


@_method
def unique(self, name=None):
    return self._same("Unique", self._pipe.unique())


@_method
def with_options(self, options, name=None):
    merged = self.options().merge(options)
    # A map decides about its own order; the stream's option is for the whole.
    deterministic = merged.deterministic is not False
    autotune = merged.autotune.enabled is not False
    threads = merged.threading.private_threadpool_size or merged.experimental_threading.private_threadpool_size or 0
    made = self._same("Options", self._pipe.options(deterministic, autotune, threads, merged.autotune.ram_budget or 0))
    made._options_ = merged
    return made


@_method
def apply(self, transformation_func):
    made = transformation_func(self)
    if not isinstance(made, DatasetV2):
        raise TypeError(f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(made)}.")
    return made


@_method
def enumerate(self, start=0, name=None):
    spec = (TensorSpec((), "int64"), self._spec)
    variants = [[[]] + v for v in self._variants]
    return make("Enumerate", self._pipe.enumerate(integer(start, "start")), spec, (self,), variants)


@_method
def concatenate(self, dataset, name=None):
    try:
        spec = st.merge(self._spec, dataset._spec)
    except TypeError as error:
        raise TypeError(f"Incompatible dataset elements: {error}") from None
    first, second = self._pipe, dataset._pipe
    made = make("Concatenate", first.concatenate(second), spec, (self, dataset), (self._variants + dataset._variants)[:2])
    return made


# Batches.

def _batch_variants(self, size, drop):
    """Shapes of a full batch, and of the last one where that is known."""
    if not self._variants:
        return []
    inner, count = self._variants[0], self._count()
    sizes = [size] if count < 0 or count >= size else []
    if not drop and count >= 0 and count % size:
        sizes.append(count % size)
    return [[[n] + shape for shape in inner] for n in sizes or [size]]


@_method
def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None):
    size, drop = integer(batch_size, "batch_size"), bool(static(drop_remainder))
    if size < 1:
        errors.invalid("Batch size must be greater than zero.", "BatchDatasetV2")
    spec = st.map_leaves(lambda s: st.with_batch(s, size if drop else None), self._spec)
    if any(isinstance(leaf, st.DatasetSpec) for leaf in st.leaves(self._spec)):
        raise TypeError("Batching of elements that are datasets is not supported: flat_map them first.")
    if not _is_simple(self._spec):
        from stoker.tf.data import _composite

        return _composite.batch(self, size, drop, spec)
    made = make("Batch", self._pipe.batch(size, drop), spec, (self,), _batch_variants(self, size, drop))
    made._batch_of = (self, size, drop)
    return made


@_method
def rebatch(self, batch_size, drop_remainder=False, name=None):
    size = integer(batch_size, "batch_size")
    spec = st.map_leaves(lambda s: st.with_batch(st.without_batch(s), size if drop_remainder else None), self._spec)
    return make("Rebatch", self._pipe.rebatch(size, drop_remainder), spec, (self,))


@_method
def unbatch(self, name=None):
    for leaf in st.leaves(self._spec):
        if isinstance(leaf, TensorSpec) and leaf.shape.rank == 0:
            raise ValueError("Cannot unbatch an input with scalar components.")
    spec = st.map_leaves(st.without_batch, self._spec)
    if not _is_simple(self._spec):
        from stoker.tf.data import _composite

        return _composite.unbatch(self, spec)
    return make("Unbatch", self._pipe.unbatch(), spec, (self,))


def _padded_shapes(self, padded_shapes):
    """(list of sizes per part, specification of one padded element)"""
    flat = st.leaves(self._spec)
    if padded_shapes is None:
        shapes = [s.shape for s in flat]
        for shape in shapes:
            if shape.rank is None:
                raise ValueError("You must provide `padded_shapes` argument because component has unknown rank.")
    else:
        shapes = _shape_leaves(self._spec, padded_shapes)
    lists = []
    for spec, shape in zip(flat, shapes):
        sizes = [-1 if d is None or (isinstance(d, int) and d < 0) else int(d) for d in shape.as_list()]
        if spec.shape.rank is not None and len(sizes) != spec.shape.rank:
            raise ValueError(f"The padded shape {tuple(shape.as_list())} is not compatible with the shape {spec.shape} of "
                             "the corresponding input component.")
        for want, have in zip(sizes, spec.shape.as_list() if spec.shape.rank is not None else sizes):
            if have is not None and 0 <= want < have:
                raise ValueError(f"The padded shape {tuple(shape.as_list())} is not compatible with the shape {spec.shape} "
                                 "of the corresponding input component.")
        lists.append(sizes)
    made = iter(lists)
    return lists, st.map_leaves(lambda s: TensorSpec([None if d < 0 else d for d in next(made)], s.dtype), self._spec)


def _shape_leaves(spec, value):
    """Shapes in the structure of a specification; a shape itself may be a list or a tuple."""
    if st.is_nested(spec):
        inner = st.children(value) if st.nest.is_nested(value) else [value] * len(st.children(spec))
        return [leaf for s, v in zip(st.children(spec), inner) for leaf in _shape_leaves(s, v)]
    if isinstance(value, _stoker.TensorShape):
        return [value]
    if isinstance(value, tuple) and len(value) == 1 and isinstance(value[0], (list, tuple, _stoker.TensorShape)):
        value = value[0]
    if not isinstance(value, (list, tuple)) and value is not None:
        value = static(value).tolist()
    return [_stoker.TensorShape(None if value is None else [None if d is None or int(d) < 0 else int(d) for d in value])]


def _padding_values(self, padding_values):
    if padding_values is None:
        return None
    flat = st.leaves(self._spec)
    if st.is_nested(padding_values):
        values = [v for v in st.leaves(padding_values)]
    else:
        values = [padding_values] * len(flat)
    made = []
    for spec, value in zip(flat, values):
        if value is None:
            made.append(0.0)
            continue
        value = static(value).item()
        if isinstance(value, (bytes, str)):
            if value not in (b"", ""):
                raise NotImplementedError("padded_batch pads strings with empty ones only")
            value = 0.0
        elif spec.dtype.is_integer and isinstance(value, float) and value != int(value):
            raise TypeError(f"Mismatched type between padding value {value} and input dataset's component type {spec.dtype}.")
        made.append(float(value))
    return made


@_method
def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
    size, drop = integer(batch_size, "batch_size"), bool(drop_remainder)
    if not _is_simple(self._spec):
        raise TypeError(f"`padded_batch` is only supported for datasets that produce tensor elements but the input dataset "
                        f"produces elements of {self._spec}.")
    shapes, padded = _padded_shapes(self, padded_shapes)
    spec = st.map_leaves(lambda s: st.with_batch(s, size if drop else None), padded)
    return make("PaddedBatch", self._pipe.padded_batch(size, drop, shapes, _padding_values(self, padding_values)), spec, (self,))


@_method
def ragged_batch(self, batch_size, drop_remainder=False, row_splits_dtype="int64", name=None):
    from stoker.tf.data import _composite

    return _composite.ragged_batch(self, integer(batch_size, "batch_size"), bool(drop_remainder), row_splits_dtype)


@_method
def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
    size, stride = integer(size, "size"), integer(stride, "stride")
    shift = size if shift is None else integer(shift, "shift")
    for value, what in ((size, "size"), (shift, "shift"), (stride, "stride")):
        if value < 1:
            errors.invalid(f"Window {what} must be greater than zero.", "WindowDataset")
    spec = st.map_leaves(st.DatasetSpec, self._spec)
    return make("Window", self._pipe.window(size, shift, stride, bool(drop_remainder)), spec, (self,), [])


# Functions.

@_method
def map(self, map_func, num_parallel_calls=None, deterministic=None, synchronous=None, use_unbounded_threadpool=False,
        name=None):
    parallel = parallel_of(num_parallel_calls)
    f = self._function(map_func, serial=parallel == 1)
    unordered = deterministic is False
    pipe = self._pipe.map(f.fn, f.out_fields, f.text, parallel, seed_of(None), unordered)
    kind = "Map" if num_parallel_calls is None else "ParallelMap"
    return make(kind, pipe, f.spec, (self,), f.shapes, f.why is not None)


@_method
def filter(self, predicate, name=None):
    f = self._function(predicate, check=scalar("bool", "`predicate`"))
    made = make("Filter", self._pipe.filter(f.fn), self._spec, (self,), self._variants, f.why is not None)
    return made


@_method
def take_while(self, predicate, name=None):
    f = self._function(predicate, check=scalar("bool", "`predicate`"))
    return make("TakeWhile", self._pipe.take_while(f.fn), self._spec, (self,), self._variants, f.why is not None)


def _window_batches(packed, made):
    """[(size, drop_remainder)] when the result is just the batches of the argument's windows, in their order; or None."""
    windows = st.leaves(packed)
    results = [made] if hasattr(made, "_batch_of") else list(made._inputs_) if type(made).__name__ == "_ZipDataset" else []
    recipes = [getattr(r, "_batch_of", (None,)) for r in results]
    if not windows or len(recipes) != len(windows) or any(r[0] is not w for r, w in zip(recipes, windows)):
        return None
    return [recipe[1:] for recipe in recipes]


def _inner_spec(self, function, what):
    """The specification of the datasets that a function gives, by one call on a sample."""
    failure = None
    for _, values in zip(range(4), self._samples()):
        try:
            packed = st.pack(self._spec, values)
            made = st.call(function, self._spec, packed)
        except Exception as error:
            failure = error
            continue
        if not isinstance(made, DatasetV2):
            raise TypeError(f"The `map_func` argument must return a `Dataset` object. Got {type(made)!r}.")
        return made._spec, _window_batches(packed, made)
    if failure is not None:
        raise failure
    return TensorSpec((), "int64"), None  # no element: nothing will come out


def _flat(self, function):
    def call(parts):
        return st.call(function, self._spec, st.pack(self._spec, parts))

    return call


@_method
def flat_map(self, map_func, name=None):
    spec, batches = _inner_spec(self, map_func, "flat_map")
    pipe = self._pipe.flat_map(batches or _flat(self, map_func), st.fields(spec), st.text(spec))
    return make("FlatMap", pipe, spec, (self,), None, batches is None)


@_method
def interleave(self, map_func, cycle_length=None, block_length=None, num_parallel_calls=None, deterministic=None, name=None):
    cycle = -1 if cycle_length is None else integer(cycle_length, "cycle_length")
    block = 1 if block_length is None else integer(block_length, "block_length")
    if cycle < 1 and cycle != AUTOTUNE:
        errors.invalid("`cycle_length` must be > 0", "InterleaveDataset")
    if block < 1:
        errors.invalid("`block_length` must be > 0", "InterleaveDataset")
    if cycle == AUTOTUNE:
        import os

        cycle = 10 if num_parallel_calls is None else max(2, os.cpu_count() or 1)
    spec, _ = _inner_spec(self, map_func, "interleave")
    parallel = parallel_of(num_parallel_calls)
    pipe = self._pipe.interleave(_flat(self, map_func), st.fields(spec), st.text(spec), cycle, block, parallel)
    return make("Interleave", pipe, spec, (self,), None, True)


def _scan_function(self, initial, function, what):
    """A MapFunction over (state, element)."""
    spec = (st.map_leaves(st.spec_of, initial), self._spec)

    def sample():
        for values in self._samples():
            yield st.flat_parts(initial) + values

    def unpack(f, structure, values):
        return f(values[0], values[1])

    variants = [[p.shape.as_list() for p in st.flat_parts(initial)] + v for v in self._variants]
    return MapFunction(function, spec, variants, sample, unpack=unpack, serial=True)


@_method
def scan(self, initial_state, scan_func, name=None):
    initial = st.normal(initial_state)
    f = _scan_function(self, initial, scan_func, "scan")
    if type(f.spec) is not tuple or len(f.spec) != 2:
        raise TypeError("`scan_func` should return a pair consisting of new state and the output value.")
    pipe = self._pipe.scan(st.flat_parts(initial), f.fn, f.out_fields, f.text)
    return make("Scan", pipe, f.spec[1], (self,), None, f.why is not None)


@_method
def reduce(self, initial_state, reduce_func, name=None):
    initial = st.normal(initial_state)
    spec = st.map_leaves(st.spec_of, initial)
    f = _scan_function(self, initial, reduce_func, "reduce")
    have, want = st.fields(f.spec), st.fields(spec)
    if len(have) != len(want) or any(a[0] != b[0] for a, b in zip(have, want)):
        raise TypeError(f"The element types for the new state must match the initial state. Expected {spec}; got {f.spec}.")
    parts = self._pipe.reduce(st.flat_parts(initial), f.fn, f.out_fields)
    return st.pack(spec, parts)


@_method
def group_by_window(self, key_func, reduce_func, window_size=None, window_size_func=None, name=None):
    if (window_size is None) == (window_size_func is None):
        raise ValueError("Exactly one of the `window_size` or `window_size_func` arguments must be specified.")
    if window_size is None:
        sizes = {int(static(window_size_func(tensor(k, "int64")))) for k in range(2)}
        if len(sizes) != 1:
            raise NotImplementedError("group_by_window: window_size_func must give the same size for every key")
        window_size = sizes.pop()
    key = self._function(key_func, check=scalar("int64", "`key_func`"))
    inner = reduce_func(tensor(0, "int64"), wrap_of(self, self._pipe.take(integer(window_size, "window_size"))))

    def call(number, pipe):
        return reduce_func(tensor(number, "int64"), wrap_of(self, pipe))

    pipe = self._pipe.group(key.fn, call, st.fields(inner._spec), st.text(inner._spec), integer(window_size, "window_size"))
    return make("GroupByWindow", pipe, inner._spec, (self,), None, True)


def wrap_of(self, pipe):
    return make("Window", pipe, self._spec, (), self._variants, self._python)


@_method
def bucket_by_sequence_length(self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None,
                              padding_values=None, pad_to_bucket_boundary=False, no_padding=False, drop_remainder=False,
                              name=None):
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError(f"`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but `len(bucket_batch_sizes)="
                         f"{len(bucket_batch_sizes)}` and `len(bucket_boundaries)={len(bucket_boundaries)}`.")
    if no_padding:
        raise NotImplementedError("bucket_by_sequence_length(no_padding=True): use ragged_batch")

    def length(*args):
        from stoker.tf._thin import cast

        return cast(element_length_func(*args), "int64")

    length.__name__ = getattr(element_length_func, "__name__", "length")
    f = self._function(length)
    shapes, padded = _padded_shapes(self, padded_shapes)
    spec = st.map_leaves(lambda s: st.with_batch(s, None), padded)
    pipe = self._pipe.bucket(f.fn, list(bucket_boundaries), list(bucket_batch_sizes), drop_remainder, pad_to_bucket_boundary,
                             shapes, _padding_values(self, padding_values))
    return make("BucketBySequenceLength", pipe, spec, (self,), None, f.why is not None)


@_method
def rejection_resample(self, class_func, target_dist, initial_dist=None, seed=None, name=None):
    def kind(*args):
        from stoker.tf._thin import cast

        return cast(class_func(*args), "int64")

    f = self._function(kind)
    target = [float(v) for v in static(target_dist).ravel()]
    initial = None if initial_dist is None else [float(v) for v in static(initial_dist).ravel()]
    spec = (TensorSpec((), "int64"), self._spec)
    return make("RejectionResample", self._pipe.resample(f.fn, target, initial, seed_of(seed)), spec, (self,), None,
                f.why is not None)


@_method
def save(self, path, compression=None, shard_func=None, checkpoint_args=None):
    """All elements into a folder. The format is Stoker's own, not TensorFlow's."""
    import json
    import os

    os.makedirs(path, exist_ok=True)
    self._pipe.save(os.path.join(path, "elements.stk"))
    with open(os.path.join(path, "element_spec.json"), "w") as file:
        json.dump(st.to_json(self._spec), file)


@_method
def snapshot(self, path, compression="AUTO", reader_func=None, shard_func=None, name=None):
    """Elements are written when they are first read, and taken from there afterwards."""
    import os

    os.makedirs(path, exist_ok=True)
    return cache(self, os.path.join(path, "snapshot.stk"))


__all__ = ["RaggedTensorSpec", "SparseTensorSpec"]
