"""tf.io.parse_example and its kin: records of named features to tensors."""
import collections

import numpy as np

from stoker import _stoker
from stoker.tf import errors
from stoker.tf._base import dims, is_symbolic, not_traceable, string, tensor
from stoker.tf._specs import DType

_FIXED, _VAR, _SEQUENCE = 0, 1, 2


class FixedLenFeature(collections.namedtuple("FixedLenFeature", ["shape", "dtype", "default_value"])):
    def __new__(cls, shape, dtype, default_value=None):
        return super().__new__(cls, shape, DType(dtype), default_value)


class VarLenFeature(collections.namedtuple("VarLenFeature", ["dtype"])):
    def __new__(cls, dtype):
        return super().__new__(cls, DType(dtype))


class FixedLenSequenceFeature(collections.namedtuple("FixedLenSequenceFeature", ["shape", "dtype", "allow_missing",
                                                                                "default_value"])):
    def __new__(cls, shape, dtype, allow_missing=False, default_value=None):
        return super().__new__(cls, shape, DType(dtype), allow_missing, default_value)


class SparseFeature(collections.namedtuple("SparseFeature", ["index_key", "value_key", "dtype", "size", "already_sorted"])):
    def __new__(cls, index_key, value_key, dtype, size, already_sorted=False):
        return super().__new__(cls, index_key, value_key, DType(dtype), size, already_sorted)


class RaggedFeature(collections.namedtuple("RaggedFeature", ["dtype", "value_key", "partitions", "row_splits_dtype",
                                                            "validate"])):
    def __new__(cls, dtype, value_key=None, partitions=(), row_splits_dtype="int32", validate=False):
        return super().__new__(cls, DType(dtype), value_key, tuple(partitions), DType(row_splits_dtype), validate)


def _partition(name, field):
    made = collections.namedtuple(name, [field])
    setattr(RaggedFeature, name, made)
    return made


_RowSplits, _RowLengths, _RowStarts, _RowLimits, _ValueRowIds = (
    _partition(n, "key") for n in ("RowSplits", "RowLengths", "RowStarts", "RowLimits", "ValueRowIds"))
_UniformRowLength = _partition("UniformRowLength", "length")


def _with_partitions(features):
    """(features without partitions, {name: feature that has some}): values and partitions are read as rows of their own."""
    cut = {n: f for n, f in features.items() if isinstance(f, RaggedFeature) and f.partitions}
    plain = {n: f for n, f in features.items() if n not in cut}
    for name, feature in cut.items():
        plain["values of " + name] = RaggedFeature(feature.dtype, feature.value_key or name)
        for k, p in enumerate(feature.partitions):
            if not isinstance(p, _UniformRowLength):
                plain[f"partition {k} of {name}"] = RaggedFeature("int64", p.key)
    return plain, cut


def _splits(partition, numbers, count):
    """Where rows end, from what the record says."""
    if isinstance(partition, _UniformRowLength):
        if count % partition.length:
            errors.invalid(f"{count} values do not make rows of {partition.length}", "ParseExample")
        return np.arange(count // partition.length + 1) * partition.length
    if isinstance(partition, _RowSplits):
        return numbers
    if isinstance(partition, _RowLengths):
        return np.concatenate([[0], np.cumsum(numbers)])
    if isinstance(partition, _RowStarts):
        return np.append(numbers, count)
    if isinstance(partition, _RowLimits):
        return np.insert(numbers, 0, 0)
    return np.searchsorted(numbers, np.arange((numbers[-1] if len(numbers) else -1) + 2))


def _cut(feature, values, partitions):
    """The values of one record in rows of rows; rows of one given length make a dense tensor."""
    from stoker.tf._base import o
    from stoker.tf._ragged import RaggedTensor

    count, made = dims(values)[0], values
    for partition, numbers in zip(reversed(feature.partitions), reversed(partitions)):
        splits = _splits(partition, None if numbers is None else numbers.numpy(), count)
        if isinstance(partition, _UniformRowLength) and not isinstance(made, RaggedTensor):
            made = o.reshape(made, [len(splits) - 1, partition.length] + dims(made)[1:])
        else:
            made = RaggedTensor.from_row_splits(made, splits)
        count = len(splits) - 1
    return made


def _put_together(parsed, cut, count=None):
    """Features with partitions, of one record or of `count`."""
    from stoker.tf import _ragged

    for name, feature in cut.items():
        values = parsed.pop("values of " + name)
        keys = [None if isinstance(p, _UniformRowLength) else f"partition {k} of {name}" for k, p in enumerate(feature.partitions)]
        parts = [None if key is None else parsed.pop(key) for key in keys]
        if is_symbolic(values):
            not_traceable("a RaggedFeature has rows that are only known when it runs")
        if count is None:
            parsed[name] = _cut(feature, values, parts)
            continue
        rows = [_cut(feature, values[n], [None if p is None else p[n] for p in parts]) for n in range(count)]
        rows = [_ragged.RaggedTensor.from_tensor(r) if not hasattr(r, "row_splits") else r for r in rows]
        parsed[name] = _ragged.stack(rows)
    return parsed


def _shape(feature):
    shape = feature.shape
    if isinstance(shape, (int, np.integer)):
        return [int(shape)]
    sizes = _stoker.TensorShape(shape).as_list()
    if None in sizes:
        raise ValueError(f"First dimension of shape for feature must be known, got {shape}.")
    return sizes


def _row(name, feature, in_list=False):
    """What the extension's parser needs."""
    if isinstance(feature, FixedLenFeature):
        default = None if feature.default_value is None else _default(feature)
        return (name, _SEQUENCE if in_list else _FIXED, feature.dtype, _shape(feature), default, in_list)
    if isinstance(feature, VarLenFeature):
        return (name, _VAR, feature.dtype, [], None, in_list)
    if isinstance(feature, FixedLenSequenceFeature):
        if not feature.allow_missing and not in_list:
            raise ValueError(f"Unsupported: FixedLenSequenceFeature requires allow_missing to be True for feature {name}.")
        return (name, _SEQUENCE, feature.dtype, _shape(feature), None, in_list)
    if isinstance(feature, RaggedFeature):
        return (feature.value_key or name, _VAR, feature.dtype, [], None, in_list)
    raise ValueError(f"Invalid feature {name}:{feature}.")


def _default(feature):
    value = tensor(feature.default_value, feature.dtype)
    shape = _shape(feature)
    if dims(value) and dims(value) != shape:
        from stoker.tf._base import o

        value = o.reshape(value, shape)
    return value


def _key(op, features, rows):
    defaults = tuple(None if r[4] is None else (r[4].numpy().tobytes() if hasattr(r[4].numpy(), "tobytes") else r[4].numpy())
                     for r in rows)
    return (op, tuple((r[0], r[1], r[2].name, tuple(r[3]), r[5]) for r in rows), defaults)


def _check(features, what="features"):
    if not features:
        raise ValueError(f"Argument `{what}` cannot be None or falsy.")


def _sparse_features(features):
    """SparseFeature reads two others."""
    plain = {}
    for name, feature in features.items():
        if isinstance(feature, SparseFeature):
            raise NotImplementedError(f"SparseFeature (feature {name}): parse its keys with VarLenFeature")
        plain[name] = feature
    return plain


def _sparse(indices, values, shape):
    from stoker.tf._sparse import SparseTensor

    return SparseTensor(indices, values, shape)


def _single(feature, value):
    """One feature of one record."""
    if isinstance(feature, VarLenFeature):
        n = dims(value)[0]
        return _sparse(tensor(np.arange(n, dtype=np.int64).reshape(n, 1)), value, tensor([n], "int64"))
    return value


def _result_spec(row):
    name, kind, dtype, shape, _, _ = row
    return (dtype, shape if kind == _FIXED else [None] if kind == _VAR else [None] + shape)


def parse_single_example(serialized, features, example_names=None, name=None):
    from stoker.tf.io import host

    _check(features)
    plain, cut = _with_partitions(_sparse_features(features))
    if cut:
        return _put_together(parse_single_example(serialized, plain), cut)
    features = plain
    x = tensor(serialized, string)
    if dims(x):
        errors.invalid(f"Input serialized must be a scalar, got shape {tuple(dims(x))}", "ParseSingleExample")
    names = sorted(features)
    rows = [_row(n, features[n]) for n in names]
    made = host(_key("ParseSingleExample", features, rows), lambda: _stoker.host_parse_example(rows, False), [x],
                [_result_spec(r) for r in rows])
    by_name = {n: _single(features[n], v) for n, v in zip(names, made)}
    return {n: by_name[n] for n in _ordered(features)}


_HOW = {FixedLenFeature: "d", VarLenFeature: "s", FixedLenSequenceFeature: "p", RaggedFeature: "r"}


def parse_example(serialized, features, example_names=None, name=None):
    from stoker.tf.io import host

    _check(features)
    x = tensor(serialized, string)
    if not dims(x):
        return parse_single_example(x, features, example_names, name)
    features, cut = _with_partitions(_sparse_features(features))
    if cut:
        return _put_together(parse_example(x, features), cut, dims(x)[0])
    if len(dims(x)) != 1:
        errors.invalid(f"Input serialized must be a scalar or a vector, got shape {tuple(dims(x))}", "ParseExampleV2")
    names = sorted(features)
    rows = [_row(n, features[n]) for n in names]
    how = "".join(_HOW[type(features[n])] for n in names)
    count = dims(x)[0]
    results = []
    for letter, (_, _, dtype, shape, _, _) in zip(how, rows):
        results += {"d": [(dtype, [count] + shape)], "p": [(dtype, [count, None] + shape)],
                    "s": [("int64", [None, 2]), (dtype, [None]), ("int64", [2])],
                    "r": [(dtype, [None]), ("int64", [count + 1])]}[letter]
    key = _key("ParseExampleV2", features, rows) + (how,)
    made = iter(host(key, lambda: _stoker.host_parse_examples(rows, how), [x], results))
    found = {}
    for name_, letter in zip(names, how):
        if letter == "s":
            found[name_] = _sparse(next(made), next(made), next(made))
        elif letter == "r":
            from stoker.tf._ragged import RaggedTensor

            values, splits = next(made), next(made)
            if is_symbolic(splits):
                not_traceable("a RaggedFeature has rows that are only known when it runs")
            found[name_] = RaggedTensor.from_row_splits(values, splits)
        else:
            value = next(made)
            if letter == "p" and features[name_].default_value is not None:
                value = _padded(value, serialized, features[name_])
            found[name_] = value
    return {n: found[n] for n in _ordered(features)}


def _ordered(features):
    """TensorFlow's order: sparse, dense, ragged."""
    rank = {VarLenFeature: 0, RaggedFeature: 2}
    return sorted(features, key=lambda n: (rank.get(type(features[n]), 1), n))


def _padded(value, serialized, feature):
    if np.any(np.asarray(feature.default_value)):
        raise NotImplementedError("parse_example: FixedLenSequenceFeature with a default_value other than zero")
    return value


# Sequences.

def _sequence(x, context, lists):
    from stoker.tf.io import host

    context, lists = context or {}, lists or {}
    names, inner = sorted(context), sorted(lists)
    rows = [_row(n, context[n]) for n in names] + [_row(n, lists[n], True) for n in inner]
    made = host(_key("ParseSingleSequenceExample", None, rows), lambda: _stoker.host_parse_example(rows, True), [x],
                [_result_spec(r) for r in rows])
    return dict(zip(names, made)), dict(zip(inner, made[len(names):])), made


def parse_single_sequence_example(serialized, context_features=None, sequence_features=None, example_name=None, name=None):
    if not (context_features or sequence_features):
        raise ValueError("Missing: `context_features` and `sequence_features`. At least one must be specified.")
    ragged = [n for n, f in (sequence_features or {}).items() if not isinstance(f, (FixedLenSequenceFeature,))]
    if ragged:
        return _by_message(tensor(serialized, string), context_features or {}, sequence_features)
    head, rest, _ = _sequence(tensor(serialized, string), context_features, sequence_features)
    return {n: _single(context_features[n], v) for n, v in head.items()}, rest


def _by_message(x, context, lists):
    """Features of lists with rows of different lengths: by way of the message."""
    from stoker.tf._messages import SequenceExample
    from stoker.tf._ragged import RaggedTensor

    if is_symbolic(x):
        not_traceable("sequence features of different lengths")
    message = SequenceExample.FromString(x.numpy())
    head = {}
    if context:
        head, _, _ = _sequence(x, context, None)
        head = {n: _single(context[n], v) for n, v in head.items()}
    found = {}
    for name, feature in lists.items():
        key = getattr(feature, "value_key", None) or name
        rows = [f._pair()[1] for f in message.feature_lists.feature_list[key].feature]
        if isinstance(feature, FixedLenSequenceFeature):
            flat = [v for row in rows for v in row]
            found[name] = tensor(np.array(flat, object if feature.dtype == string else feature.dtype.as_numpy_dtype).reshape(
                [len(rows)] + _shape(feature)), feature.dtype)
            continue
        flat = [v for row in rows for v in row]
        values = np.empty(len(flat), object) if feature.dtype == string else np.zeros(len(flat), feature.dtype.as_numpy_dtype)
        values[:] = flat
        values = tensor(values, feature.dtype)
        if isinstance(feature, VarLenFeature):
            places = [(r, c) for r, row in enumerate(rows) for c in range(len(row))]
            found[name] = _sparse(tensor(np.array(places, np.int64).reshape(-1, 2)), values,
                                  tensor([len(rows), max(map(len, rows), default=0)], "int64"))
        else:
            found[name] = RaggedTensor.from_row_lengths(values, [len(r) for r in rows])
    return head, found


def parse_sequence_example(serialized, context_features=None, sequence_features=None, example_names=None, name=None):
    """A batch of SequenceExamples: features of lists are padded, their lengths are the third result."""
    from stoker.tf._base import o

    x = tensor(serialized, string)
    if is_symbolic(x):
        not_traceable("parse_sequence_example")
    for n, f in (sequence_features or {}).items():
        if not isinstance(f, FixedLenSequenceFeature):
            raise NotImplementedError(f"parse_sequence_example: {type(f).__name__} (feature {n}); parse_single_sequence_example "
                                      "takes it")
    heads, bodies = [], []
    for record in np.ravel(np.asarray(x.numpy(), object)):
        head, body = parse_single_sequence_example(tensor(record, string), context_features, sequence_features)
        heads.append(head)
        bodies.append(body)
    context = {n: o.stack([h[n] for h in heads]) for n in context_features or {}}
    lists, lengths = {}, {}
    for n in sequence_features or {}:
        rows = [b[n].numpy() for b in bodies]
        most = max((r.shape[0] for r in rows), default=0)
        full = np.zeros((len(rows), most) + rows[0].shape[1:], rows[0].dtype)
        for k, row in enumerate(rows):
            full[k, :row.shape[0]] = row
        lists[n] = tensor(full, sequence_features[n].dtype)
        lengths[n] = tensor([r.shape[0] for r in rows], "int64")
    return context, lists, lengths


for _made in (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, SparseFeature, RaggedFeature):
    _made.__module__ = "tensorflow.python.ops.parsing_config"
