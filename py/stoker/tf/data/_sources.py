"""Where datasets begin: tensors, generators, files; and datasets made of several."""
import numpy as np

from stoker import _host_books, _stoker
from stoker.tf import errors
from stoker.tf._base import static, tensor
from stoker.tf._specs import DType, RaggedTensorSpec, TensorSpec, TypeSpec
from stoker.tf.data import _structure as st
from stoker.tf.data._dataset import DatasetV2, integer, make, seed_of


def _source(function):
    setattr(DatasetV2, function.__name__.removesuffix("_"), staticmethod(function))
    return function


# Memory.

@_source
def from_tensor_slices(tensors, name=None):
    value = st.normal(tensors)
    flat = st.leaves(value)
    if not any(v is not None for v in flat):
        raise ValueError("Invalid `tensors`. `tensors` must not be empty.")
    for v in flat:
        if v is not None and not st.is_sparse(v) and v.shape.rank == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
    if any(st.is_ragged(v) or st.is_sparse(v) for v in flat if v is not None):
        from stoker.tf.data import _composite

        return _composite.slices(value)
    counts = {v.shape.as_list()[0] for v in flat if v is not None}
    if len(counts) > 1:
        one, other = sorted(counts)[:2]
        raise ValueError(f"Dimensions {one} and {other} are not compatible")
    spec = st.map_leaves(lambda v: st.without_batch(st.spec_of(v)), value)
    return make("TensorSlice", _stoker.data_slices([v for v in flat if v is not None], st.text(spec)), spec)


@_source
def from_tensors(tensors, name=None):
    value = st.normal(tensors)
    spec = st.map_leaves(st.spec_of, value)
    return make("Tensor", _stoker.data_tensors(st.flat_parts(value), st.text(spec)), spec)


@_source
def range_(*args, output_type=None, name=None, **kwargs):
    numbers = [integer(a, "range") for a in args]
    if not 1 <= len(numbers) <= 3:
        raise ValueError(f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(numbers)}.")
    start, stop, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    if step == 0:
        errors.invalid("step must be a non-zero integer.", "RangeDataset")
    made = make("Range", _stoker.data_range(start, stop, step), TensorSpec((), "int64"))
    if output_type is None or DType(output_type).name == "int64":
        return made
    from stoker.tf._thin import cast

    made = made.map(lambda x: cast(x, output_type))
    return made


@_source
def random_(seed=None, rerandomize_each_iteration=None, name=None):
    return make("Random", _stoker.data_random(seed_of(seed), -1), TensorSpec((), "int64"))


@_source
def counter(start=0, step=1, dtype="int64", name=None):
    start, step = integer(start, "start"), integer(step, "step")
    stop = 2**62 if step > 0 else -(2**62)
    made = make("Counter", _stoker.data_range(start, stop, step), TensorSpec((), "int64"))
    made._cardinality = -1
    if DType(dtype).name == "int64":
        return made
    from stoker.tf._thin import cast

    made = made.map(lambda x: cast(x, dtype))
    made._cardinality = -1
    return made


# Generators.

def _legacy_signature(output_types, output_shapes):
    if output_types is None:
        raise TypeError("Either `output_signature` or `output_types` must be specified.")
    types = st.tuples(output_types)
    if output_shapes is None:
        return st.map_leaves(lambda t: TensorSpec(None, t), types)
    from stoker.tf.data._transforms import _shape_leaves

    shapes = iter(_shape_leaves(types, _keep(output_shapes, types)))
    return st.map_leaves(lambda t: TensorSpec(next(shapes), t), types)


def _keep(shapes, types):
    return tuple(shapes) if isinstance(shapes, list) and st.is_nested(types) else shapes


class _Generator:
    """Opens a walk of the user's generator; each element becomes a list of parts that fit the signature."""

    def __init__(self, generator, args, spec):
        self.generator, self.args, self.spec = generator, args, spec
        self.flat = st.leaves(spec)
        self.structure_text = repr(st.map_leaves(lambda s: s.dtype, spec))

    def __call__(self):
        walk = iter(self.generator(*self.args))
        return map(self.convert, self._watched(walk) if _host_books.on else walk)

    def _watched(self, walk):
        place = _host_books.place_of(self.generator)
        while True:
            with _host_books.timed("from_generator", *place) as row:
                try:
                    value = next(walk)
                except StopIteration:
                    return
                row[2] += _host_books._bytes(value)
            yield value

    def convert(self, value):
        parts = []
        for spec, leaf in zip(self.flat, self._leaves(self.spec, value, value)):
            parts += self._parts(spec, leaf, value)
        return parts

    def _leaves(self, spec, value, whole):
        if not st.is_nested(spec):
            return [value]
        if isinstance(spec, dict):
            fits = hasattr(value, "keys") and set(value) == set(spec)
        else:
            fits = isinstance(value, (tuple, list, np.ndarray)) and len(value) == len(st.children(spec))
        if not fits:
            raise TypeError("`generator` yielded an element that did not match the expected structure. The expected structure "
                            f"was {self.structure_text}, but the yielded element was {whole}.")
        inner = [value[k] for k in sorted(spec)] if isinstance(spec, dict) else list(value)
        return [leaf for s, v in zip(st.children(spec), inner) for leaf in self._leaves(s, v, whole)]

    def _parts(self, spec, leaf, whole):
        if isinstance(spec, RaggedTensorSpec) or st.is_sparse(leaf):
            return st.parts_of(leaf)
        try:
            made = tensor(leaf, spec.dtype)
        except (TypeError, ValueError):
            try:
                made = tensor(np.asarray(leaf).astype(spec.dtype.as_numpy_dtype), spec.dtype)
                if spec.dtype.name == "string" or np.asarray(leaf).dtype.kind in "OSU":
                    raise TypeError
                if np.asarray(leaf).dtype.kind == "f" and spec.dtype.is_integer:
                    raise TypeError
            except (TypeError, ValueError):
                raise TypeError("`generator` yielded an element that could not be converted to the expected type. The "
                                f"expected type was {spec.dtype.name}, but the yielded element was {leaf}.") from None
        if not spec.shape.is_compatible_with(made.shape):
            raise TypeError(f"`generator` yielded an element of shape {tuple(made.shape.as_list())} where an element of shape "
                            f"{spec.shape} was expected.")
        return [made]


@_source
def from_generator(generator, output_types=None, output_shapes=None, args=None, output_signature=None, name=None):
    if not callable(generator):
        raise TypeError("`generator` must be a Python callable.")
    if output_types is not None and output_signature is not None:
        raise TypeError("The `output_types` argument can not be used together with the `output_signature` argument.")
    if output_signature is not None:
        spec = st.tuples(output_signature)
        for leaf in st.leaves(spec):
            if not isinstance(leaf, TypeSpec):
                raise TypeError(f"`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found "
                                f"{type(leaf)} which is not.")
    else:
        spec = _legacy_signature(output_types, output_shapes)
    values = [tensor(a).numpy() for a in args or ()]
    pipe = _stoker.data_generator(_Generator(generator, values, spec), st.fields(spec), st.text(spec), -2)
    return make("FlatMap", pipe, spec, (), None, True)


# Several.

@_source
def zip_(*args, datasets=None, name=None):
    value = datasets if not args else args[0] if len(args) == 1 else tuple(args)
    if not args and datasets is None:
        raise TypeError("Must pass at least one dataset to `zip`.")
    if isinstance(value, list):
        raise TypeError("Invalid input to `zip`. Inputs are expected to be (nested) structures of `tf.data.Dataset` objects. "
                        "Python `list` is not supported and you should use `tuple` instead.")
    inputs = st.leaves(value)
    for one in inputs:
        if not isinstance(one, DatasetV2):
            raise TypeError("Invalid input to `zip`. Inputs are expected to be (nested) structures of `tf.data.Dataset` "
                            f"objects but encountered object of type {type(one)}.")
    spec = st.map_leaves(lambda d: d._spec, value)
    variants = [sum((d._variants[0] for d in inputs), [])] if all(d._variants for d in inputs) else None
    return make("Zip", _stoker.data_zip([d._pipe for d in inputs]), spec, inputs, variants)


def _common(datasets):
    spec = datasets[0]._spec
    for d in datasets[1:]:
        spec = st.merge(spec, d._spec)
    return spec


@_source
def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False, rerandomize_each_iteration=None):
    datasets = list(datasets)
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    if isinstance(weights, DatasetV2):
        raise NotImplementedError("sample_from_datasets: weights as a dataset")
    if weights is not None:
        weights = [float(w) for w in static(weights).ravel()]
        if len(weights) != len(datasets):
            raise ValueError("Invalid `weights`. The shape of `weights` should be compatible with `[len(datasets)]`.")
    pipe = _stoker.data_sample([d._pipe for d in datasets], weights, seed_of(seed), bool(stop_on_empty_dataset))
    return make("SampleFromDatasets", pipe, _common(datasets), datasets)


@_source
def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
    datasets = list(datasets)
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    pipe = _stoker.data_choose([d._pipe for d in datasets], choice_dataset._pipe, bool(stop_on_empty_dataset))
    return make("DirectedInterleave", pipe, _common(datasets), [*datasets, choice_dataset])


# Files.

def paths_of(filenames):
    """A list of str from anything that names files."""
    if isinstance(filenames, DatasetV2):
        filenames = [f for f in filenames.as_numpy_iterator()]
    if hasattr(filenames, "__fspath__"):
        filenames = filenames.__fspath__()
    if isinstance(filenames, (list, tuple)):
        filenames = [f.__fspath__() if hasattr(f, "__fspath__") else f for f in filenames]
    if isinstance(filenames, (list, tuple)) and not filenames:
        return []
    flat = np.ravel(np.asarray(tensor(filenames, "string").numpy(), object))
    return [f.decode() for f in flat]


@_source
def list_files(file_pattern, shuffle=None, seed=None, name=None):
    patterns = paths_of(file_pattern)
    try:
        pipe = _stoker.data_list_files(patterns, shuffle is None or bool(shuffle), seed_of(seed))
    except errors.OpError as error:
        errors.invalid(f"No files matched pattern: {', '.join(patterns)} ({error})")
    if pipe.cardinality == 0:
        errors.invalid(f"No files matched pattern: {', '.join(patterns)}")
    return make("Shuffle", pipe, TensorSpec((), "string"))


@_source
def load(path, element_spec=None, compression=None, reader_func=None, wait=False):
    """What Dataset.save wrote."""
    import json
    import os

    if not os.path.exists(os.path.join(path, "elements.stk")):
        raise errors.by_code[5](None, None, f"{path}: there is no dataset that Dataset.save of Stoker wrote (folders of "
                                "TensorFlow's own format cannot be read)", 5)
    with open(os.path.join(path, "element_spec.json")) as file:
        stored = st.from_json(json.load(file))
    return make("Load", _stoker.data_load(os.path.join(path, "elements.stk")), element_spec or stored)


_COMPRESSION = {None: 0, "": 1, "GZIP": 2, "ZLIB": 3}


class _FileDataset(DatasetV2):
    """Records of files; of no file, none. A file that is not there is told of when the records are wanted, as TensorFlow does."""

    def __init__(self, make_pipe, paths, *args):
        try:
            pipe = make_pipe(paths, *args) if paths else from_tensor_slices(tensor([], "string"))._pipe
        except errors.NotFoundError as missing:
            message = str(missing)

            def fail():
                errors.raise_(5, message)

            pipe = _stoker.data_generator(fail, [("string", [], False)], "0", -2)
        self._setup(pipe, TensorSpec((), "string"))


def _compression(compression_type):
    name = None if compression_type is None else static(compression_type).item()
    name = name.decode() if isinstance(name, bytes) else name
    if name not in _COMPRESSION:
        errors.invalid(f"Unsupported compression_type: {name}.")
    return _COMPRESSION[name]


class TFRecordDatasetV2(_FileDataset):
    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
        kind, paths = max(1, _compression(compression_type)), paths_of(filenames)
        if num_parallel_reads is not None and len(paths) > 1:
            cycle = integer(num_parallel_reads, "num_parallel_reads")
            cycle = min(len(paths), 10) if cycle < 1 else cycle
            files = DatasetV2.from_tensor_slices(paths)
            made = files.interleave(lambda f: TFRecordDatasetV2(f, compression_type), cycle, num_parallel_calls=cycle)
            super().__init__(lambda _: made._pipe, paths)
            self._python = True
            return
        super().__init__(_stoker.data_tfrecord, paths, kind)
        self._cardinality = -2


def _unpacked_lines(paths, kind):
    """Lines of compressed files, without their ends."""
    import gzip
    import io
    import zlib

    for path in paths:
        try:
            with open(path, "rb") as packed:
                lines = gzip.open(packed) if kind == _COMPRESSION["GZIP"] else io.BytesIO(zlib.decompress(packed.read()))
                for line in lines:
                    yield line.rstrip(b"\n").replace(b"\r", b"")
        except FileNotFoundError:
            errors.raise_(5, f"{path}; No such file or directory")
        except (OSError, EOFError, zlib.error) as broken:
            errors.raise_(15, f"{path}: {broken}")


class TextLineDatasetV2(_FileDataset):
    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
        kind, paths = _compression(compression_type), paths_of(filenames)
        if kind > 1:
            made = DatasetV2.from_generator(lambda: _unpacked_lines(paths, kind), output_signature=TensorSpec((), "string"))
            super().__init__(lambda _: made._pipe, paths)
            self._python = True
            return
        super().__init__(_stoker.data_text_lines, paths)
        self._cardinality = -2


class FixedLengthRecordDatasetV2(_FileDataset):
    def __init__(self, filenames, record_bytes, header_bytes=None, footer_bytes=None, buffer_size=None, compression_type=None,
                 num_parallel_reads=None, name=None):
        if _compression(compression_type) > 1:
            raise NotImplementedError("FixedLengthRecordDataset reads plain files only")
        sizes = [0 if v is None else integer(v, "bytes") for v in (record_bytes, header_bytes, footer_bytes)]
        super().__init__(_stoker.data_fixed_records, paths_of(filenames), *sizes)
        self._cardinality = -2


for _made in (TFRecordDatasetV2, TextLineDatasetV2, FixedLengthRecordDatasetV2):
    _made.__module__ = "tensorflow.python.data.ops.readers"
