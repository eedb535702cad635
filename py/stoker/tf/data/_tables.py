"""Tables: CsvDataset, make_csv_dataset, and records of features in batches."""
import collections
import csv
import glob

import numpy as np

from stoker.tf import errors
from stoker.tf._base import tensor
from stoker.tf._specs import DType, TensorSpec
from stoker.tf.data._dataset import DatasetV2, integer
from stoker.tf.data._sources import TextLineDatasetV2, paths_of

_KINDS = {"int32": int, "int64": int, "float32": float, "float64": float}


class CsvDatasetV2(DatasetV2):
    """Rows of CSV files as tuples of scalars."""

    def __init__(self, filenames, record_defaults, compression_type=None, buffer_size=None, header=False, field_delim=",",
                 use_quote_delim=True, na_value="", select_cols=None, exclude_cols=None):
        from stoker.tf.io import decode_csv

        if exclude_cols is not None:
            if select_cols is not None:
                raise ValueError("Should provide exactly one of `select_cols` and `exclude_cols`.")
            select_cols = [n for n in range(len(record_defaults) + len(exclude_cols)) if n not in exclude_cols]
        skip = 1 if bool(np.asarray(header)) else 0

        def rows(path):
            return TextLineDatasetV2([path], compression_type).skip(skip)._pipe

        def parse(line):
            return tuple(decode_csv(line, record_defaults, field_delim, use_quote_delim, na_value, select_cols))

        paths = paths_of(filenames)
        pipe = rows(paths[0])
        for path in paths[1:]:
            pipe = pipe.concatenate(rows(path))
        lines = object.__new__(DatasetV2)
        lines._setup(pipe, TensorSpec((), "string"))
        made = lines.map(parse)
        self._setup(made._pipe, made._spec, (made,), made._variants)
        self._cardinality = -2


CsvDatasetV2.__module__ = "tensorflow.python.data.experimental.ops.readers"
CsvDataset = CsvDatasetV2


class SqlDataset:
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("SqlDataset: read the rows with sqlite3 and give them to from_generator")


def _first_rows(path, delimiter, quotes, count):
    with open(path, newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE)
        return [row for _, row in zip(range(count), reader)]


def _guess(values, na_value):
    """The narrowest of TensorFlow's kinds that takes all values of a column."""
    best = 0
    kinds = ("int32", "int64", "float32", "string")
    for text in values:
        if text in ("", na_value):
            continue
        for n in range(best, 4):
            if _fits(text, kinds[n]):
                best = n
                break
    return kinds[best]


def _fits(text, kind):
    if kind == "string":
        return True
    try:
        if kind == "float32":
            float(text)
            return True
        limit = 2**31 if kind == "int32" else 2**63
        return -limit <= int(text) < limit
    except ValueError:
        return False


def _defaults(names, rows, columns, column_defaults, chosen, na_value):
    if column_defaults is not None:
        made = []
        for default in column_defaults:
            if isinstance(default, (DType, str, type)) and not isinstance(default, bytes):
                try:
                    made.append(DType(default))
                    continue
                except (TypeError, ValueError):
                    pass
            made.append(default)
        return made
    made = []
    for column in columns:
        kind = _guess([row[column] for row in rows if column < len(row)], na_value)
        made.append([""] if kind == "string" else tensor([0], kind))
    return made


def make_csv_dataset(file_pattern, batch_size, column_names=None, column_defaults=None, label_name=None, select_columns=None,
                     field_delim=",", use_quote_delim=True, na_value="", header=True, num_epochs=None, shuffle=True,
                     shuffle_buffer_size=10000, shuffle_seed=None, prefetch_buffer_size=None, num_parallel_reads=None,
                     sloppy=False, num_rows_for_inference=100, compression_type=None, ignore_errors=False,
                     encoding="utf-8"):
    patterns = paths_of(file_pattern)
    paths = sorted({p for one in patterns for p in glob.glob(one)})
    if not paths:
        raise ValueError(f"No files matched pattern: {file_pattern}")
    rows = _first_rows(paths[0], field_delim, use_quote_delim, (num_rows_for_inference or 10**9) + 1)
    names = list(column_names) if column_names is not None else rows[0] if header else None
    if names is None:
        raise ValueError("Expected `column_names` to be a list of strings or `header=True`.")
    if len(set(names)) != len(names):
        raise ValueError("Cannot have duplicate column names.")
    chosen = list(range(len(names)))
    if select_columns is not None:
        chosen = sorted(names.index(c) if isinstance(c, str) else int(c) for c in select_columns)
    kept = [names[c] for c in chosen]
    if label_name is not None and label_name not in kept:
        raise ValueError("`label_name` provided must be one of the columns.")
    defaults = _defaults(names, rows[1:] if header else rows, chosen, column_defaults, kept, na_value)
    dataset = CsvDatasetV2(paths, defaults, compression_type, None, header, field_delim, use_quote_delim, na_value, chosen)
    if ignore_errors:
        dataset = dataset.ignore_errors()

    def named(*columns):
        features = collections.OrderedDict(zip(kept, columns))
        if label_name is None:
            return features
        label = features.pop(label_name)
        return features, label

    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(integer(batch_size, "batch_size"), drop_remainder=num_epochs is None)
    return dataset.map(named).prefetch(-1 if prefetch_buffer_size is None else prefetch_buffer_size)


def make_batched_features_dataset(file_pattern, batch_size, features, reader=None, label_key=None, reader_args=None,
                                  num_epochs=None, shuffle=True, shuffle_buffer_size=10000, shuffle_seed=None,
                                  prefetch_buffer_size=None, reader_num_threads=None, parser_num_threads=None,
                                  sloppy_ordering=False, drop_final_batch=False):
    from stoker.tf.data._sources import TFRecordDatasetV2
    from stoker.tf.io import parse_example

    paths = sorted({p for one in paths_of(file_pattern) for p in glob.glob(one)})
    if not paths:
        errors.invalid(f"No files matched pattern: {file_pattern}")
    dataset = TFRecordDatasetV2(paths) if reader is None else reader(paths, *(reader_args or ()))
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)

    def parse(records):
        made = parse_example(records, features)
        return made if label_key is None else (made, made.pop(label_key))

    return dataset.map(parse).prefetch(-1 if prefetch_buffer_size is None else prefetch_buffer_size)
