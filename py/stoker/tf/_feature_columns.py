"""tf.feature_column: descriptions of columns of a table, and tf.compat.v1.feature_column.input_layer, which makes tensors of them.

Keras 3 has no DenseFeatures, and neither has TensorFlow beside it: what is left of them are the columns, `make_parse_example_spec` for
tf.io.parse_example, and the old input_layer. Columns are named tuples with TensorFlow's fields, so they print, compare and hash alike.
"""
import collections
import math

import numpy as np

from stoker.tf import _array, _nn_more, _sparse, strings
from stoker.tf._base import TensorShape, dims, float32, int64, is_symbolic, not_traceable, o, string, tensor
from stoker.tf._parsing import FixedLenFeature, VarLenFeature
from stoker.tf._specs import as_dtype


class FeatureColumn:
    """What all columns share. `features` is a Features: raw tensors by key, columns that were already computed."""

    _is_v2_column = True

    @property
    def name(self):
        return self.key

    @property
    def parents(self):
        return [self.key]

    def get_config(self):
        return {k: (v.name if hasattr(v, "as_numpy_dtype") else v) for k, v in zip(self._fields, self)}


class DenseColumn(FeatureColumn):
    """Gives numbers of the shape `variable_shape` for each row."""


class CategoricalColumn(FeatureColumn):
    """Gives a sparse tensor of ids below `num_buckets`; `weights` beside it, or None."""

    IdWeightPair = collections.namedtuple("IdWeightPair", "id_tensor weight_tensor")

    @property
    def parse_example_spec(self):
        return {self.key: VarLenFeature(self.dtype)}

    def ids_and_weights(self, features):
        return features.ids(self), None


class _OfCategories:
    """A column that stands for another one, which is read from the table."""

    @property
    def parents(self):
        return [self.categorical_column]

    @property
    def parse_example_spec(self):
        return self.categorical_column.parse_example_spec


class Features:
    """The tensors of a batch by key; a vector is a table of one column."""

    def __init__(self, raw):
        self._raw, self._made = raw, {}

    def dense_or_sparse(self, key):
        if key not in self._raw:
            raise ValueError(f"Feature {key} is not in features dictionary.")
        value = self._raw[key]
        if isinstance(value, _sparse.SparseTensor):
            return value
        value = tensor(value)
        if not dims(value):
            raise ValueError(f"Feature (key: {key}) cannot have rank 0. Given: {value}")
        return o.expand_dims(value, -1) if len(dims(value)) == 1 else value

    def sparse(self, key):
        """Empty strings and -1 are places without a value."""
        value = self.dense_or_sparse(key)
        if isinstance(value, _sparse.SparseTensor):
            return value
        if is_symbolic(value):
            not_traceable("a feature column looks at which values are missing")
        kept = _array.where(tensor(value.numpy() != (b"" if value.dtype == string else -1)))
        return _sparse.SparseTensor(kept, o.gather_nd(value, kept) if value.dtype != string else tensor(
            value.numpy()[tuple(kept.numpy().T)], string), dims(value))

    def ids(self, column):
        if column not in self._made:
            self._made[column] = column.ids(self)
        return self._made[column]


# ---- numbers -------------------------------------------------------------------------------------------------------

class NumericColumn(DenseColumn, collections.namedtuple("NumericColumn", "key shape default_value dtype normalizer_fn")):
    @property
    def parse_example_spec(self):
        return {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)}

    @property
    def variable_shape(self):
        return TensorShape(self.shape)

    def dense(self, features):
        value = features.dense_or_sparse(self.key)
        if isinstance(value, _sparse.SparseTensor):
            raise ValueError(f"The corresponding Tensor of numerical column must be a Tensor. SparseTensor is not supported. key: {self.key}")
        return o.cast(self.normalizer_fn(value) if self.normalizer_fn else value, float32)


class BucketizedColumn(DenseColumn, CategoricalColumn, collections.namedtuple("BucketizedColumn", "source_column boundaries")):
    @property
    def name(self):
        return f"{self.source_column.name}_bucketized"

    @property
    def parents(self):
        return [self.source_column]

    @property
    def parse_example_spec(self):
        return self.source_column.parse_example_spec

    @property
    def num_buckets(self):
        return (len(self.boundaries) + 1) * self.source_column.shape[0]

    @property
    def variable_shape(self):
        return TensorShape(tuple(self.source_column.shape) + (len(self.boundaries) + 1,))

    def _buckets(self, features):
        from stoker.tf._raw import Bucketize

        return Bucketize(input=self.source_column.dense(features), boundaries=self.boundaries)

    def dense(self, features):
        return o.one_hot(o.cast(self._buckets(features), int64), len(self.boundaries) + 1)

    def ids(self, features):
        """Each number of a row has buckets of its own."""
        found = self._buckets(features)
        rows, wide = dims(found)[0], self.source_column.shape[0]
        places = np.stack(np.meshgrid(np.arange(rows), np.arange(wide), indexing="ij"), -1).reshape(-1, 2)
        flat = o.cast(o.reshape(found, [-1]), int64) + tensor((len(self.boundaries) + 1) * places[:, 1], int64)
        return _sparse.SparseTensor(places.astype(np.int64), flat, [rows, wide])


# ---- categories ----------------------------------------------------------------------------------------------------

class HashedCategoricalColumn(CategoricalColumn, collections.namedtuple("HashedCategoricalColumn", "key hash_bucket_size dtype")):
    @property
    def num_buckets(self):
        return self.hash_bucket_size

    def ids(self, features):
        found = features.sparse(self.key)
        if (found.dtype == string) != (self.dtype == string):
            raise ValueError(f"Column dtype and SparseTensors dtype must be compatible. key: {self.key}, column dtype: {self.dtype}, tensor dtype: {found.dtype}")
        texts = found.values if found.dtype == string else strings.as_string(found.values)
        return found.with_values(strings.to_hash_bucket_fast(texts, self.hash_bucket_size))


class IdentityCategoricalColumn(CategoricalColumn, collections.namedtuple("IdentityCategoricalColumn", "key number_buckets default_value")):
    dtype = int64

    @property
    def num_buckets(self):
        return self.number_buckets

    def ids(self, features):
        found = features.sparse(self.key)
        if not found.dtype.is_integer:
            raise ValueError(f"Invalid input, not integer. key: {self.key} dtype: {found.dtype}")
        values = o.cast(found.values, int64)
        outside = o.logical_or(o.less(values, 0), o.greater_equal(values, self.number_buckets))
        if self.default_value is not None:
            values = o.where(outside, tensor(self.default_value, int64), values)
        elif bool(o.reduce_any(outside)):
            from stoker.tf import errors

            errors.invalid(f"assertion failed: {self.key}: values must be from 0 to {self.number_buckets - 1}", "Assert")
        return found.with_values(values)


class _Vocabulary(CategoricalColumn):
    @property
    def num_buckets(self):
        return self._words() + self.num_oov_buckets

    def ids(self, features):
        found = features.sparse(self.key)
        keys = found.values if self.dtype == string else o.cast(found.values, int64)
        table = self._table()
        numbers = table.lookup(keys).numpy()
        if self.num_oov_buckets:
            from stoker.tf import _hash

            numbers = np.array([n if n >= 0 else self._words() + _hash.fingerprint64(k if isinstance(k, bytes) else str(k).encode()) % self.num_oov_buckets
                                for k, n in zip(keys.numpy().tolist(), numbers.tolist())], np.int64)
        else:
            numbers = np.where(numbers < 0, -1 if self.default_value is None else self.default_value, numbers)
        return found.with_values(tensor(numbers, int64))


class VocabularyListCategoricalColumn(_Vocabulary, collections.namedtuple(
        "VocabularyListCategoricalColumn", "key vocabulary_list dtype default_value num_oov_buckets")):
    def _words(self):
        return len(self.vocabulary_list)

    def _table(self):
        from stoker.tf import lookup

        kind = string if self.dtype == string else int64
        return lookup.StaticHashTable(lookup.KeyValueTensorInitializer(list(self.vocabulary_list), np.arange(self._words()), kind, int64), -1)


class VocabularyFileCategoricalColumn(_Vocabulary, collections.namedtuple(
        "VocabularyFileCategoricalColumn", "key vocabulary_file vocabulary_size num_oov_buckets dtype default_value file_format")):
    def _words(self):
        return self.vocabulary_size

    def _table(self):
        from stoker.tf import lookup

        kind = string if self.dtype == string else int64
        return lookup.StaticHashTable(lookup.TextFileInitializer(
            self.vocabulary_file, kind, lookup.TextFileIndex.WHOLE_LINE, int64, lookup.TextFileIndex.LINE_NUMBER, vocab_size=self.vocabulary_size), -1)


class CrossedColumn(CategoricalColumn, collections.namedtuple("CrossedColumn", "keys hash_bucket_size hash_key")):
    def _leaves(self):
        for key in self.keys:
            yield from key._leaves() if isinstance(key, CrossedColumn) else [key]

    @property
    def name(self):
        return "_X_".join(sorted(key if isinstance(key, str) else key.name for key in self._leaves()))

    @property
    def parents(self):
        return list(self.keys)

    @property
    def parse_example_spec(self):
        made = {}
        for key in self.keys:
            made.update({key: VarLenFeature(string)} if isinstance(key, str) else key.parse_example_spec)
        return made

    @property
    def num_buckets(self):
        return self.hash_bucket_size

    def ids(self, features):
        inputs = [features.dense_or_sparse(key) if isinstance(key, str) else key.ids_and_weights(features)[0] for key in self._leaves()]
        return _sparse.cross_hashed(inputs, self.hash_bucket_size, self.hash_key)


class WeightedCategoricalColumn(CategoricalColumn, collections.namedtuple(
        "WeightedCategoricalColumn", "categorical_column weight_feature_key dtype")):
    @property
    def name(self):
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parents(self):
        return [self.categorical_column, self.weight_feature_key]

    @property
    def parse_example_spec(self):
        made = self.categorical_column.parse_example_spec
        if self.weight_feature_key in made:
            raise ValueError(f"Parse config {made[self.weight_feature_key]} already exists for {self.weight_feature_key}.")
        return {**made, self.weight_feature_key: VarLenFeature(self.dtype)}

    @property
    def num_buckets(self):
        return self.categorical_column.num_buckets

    def ids_and_weights(self, features):
        weights = features.dense_or_sparse(self.weight_feature_key)
        if not isinstance(weights, _sparse.SparseTensor):
            weights = features.sparse(self.weight_feature_key) if weights.dtype.is_integer else _sparse.from_dense(weights)
        ids = self.categorical_column.ids_and_weights(features)[0]
        if dims(ids.values) != dims(weights.values):
            raise ValueError(f"Dimensions {dims(ids.values)[0]} and {dims(weights.values)[0]} are not compatible")
        return ids, weights.with_values(o.cast(weights.values, float32))


class SequenceCategoricalColumn(_OfCategories, CategoricalColumn, collections.namedtuple("SequenceCategoricalColumn", "categorical_column")):
    @property
    def name(self):
        return self.categorical_column.name

    @property
    def num_buckets(self):
        return self.categorical_column.num_buckets


class SequenceNumericColumn(FeatureColumn, collections.namedtuple("SequenceNumericColumn", "key shape default_value dtype normalizer_fn")):
    @property
    def parse_example_spec(self):
        return {self.key: VarLenFeature(self.dtype)}

    @property
    def variable_shape(self):
        return TensorShape(self.shape)


# ---- categories as numbers -----------------------------------------------------------------------------------------

class IndicatorColumn(_OfCategories, DenseColumn, collections.namedtuple("IndicatorColumn", "categorical_column")):
    @property
    def name(self):
        return f"{self.categorical_column.name}_indicator"

    @property
    def variable_shape(self):
        return TensorShape([1, self.categorical_column.num_buckets])

    def dense(self, features):
        """How often, or with what weight, each id stands in a row."""
        ids, weights = self.categorical_column.ids_and_weights(features)
        values, places = ids.values.numpy(), ids.indices.numpy()
        if len(ids._shape) > 2:
            not_traceable("an indicator column of more than two dimensions")
        known = values >= 0
        counted = np.zeros((ids._shape[0], self.categorical_column.num_buckets), np.float32)
        amounts = np.ones(len(values), np.float32) if weights is None else weights.values.numpy()
        np.add.at(counted, (places[known, 0], values[known]), amounts[known])
        return tensor(counted)


class EmbeddingColumn(_OfCategories, DenseColumn, collections.namedtuple(
        "EmbeddingColumn", "categorical_column dimension combiner initializer ckpt_to_load_from tensor_name_in_ckpt max_norm trainable use_safe_embedding_lookup")):
    @property
    def name(self):
        return f"{self.categorical_column.name}_embedding"

    @property
    def variable_shape(self):
        return TensorShape([self.dimension])

    def dense(self, features, variables=None):
        from stoker.tf._base import Variable

        ids, weights = self.categorical_column.ids_and_weights(features)
        table = Variable(self.initializer([self.categorical_column.num_buckets, self.dimension], dtype=float32), trainable=self.trainable,
                         name=f"input_layer/{self.name}/embedding_weights")
        if variables is not None:
            variables.append(table)
        return _nn_more.safe_embedding_lookup_sparse(table, ids, weights, self.combiner, max_norm=self.max_norm)


# ---- what programs call --------------------------------------------------------------------------------------------

def _key(key):
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}." if not isinstance(key, FeatureColumn) else
                         f"key must be a string. Got: type {type(key)}. Did you mean to pass {key}?")
    return key


def _only(kind, dtype, what="dtype must be string or integer"):
    dtype = as_dtype(dtype)
    if not (dtype.is_integer or dtype == string) if kind == "category" else not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"{what}. dtype: {dtype}.")
    return dtype


def _sizes(shape, key):
    shape = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
    for size in shape:
        if not isinstance(size, (int, np.integer)):
            raise TypeError(f"shape dimensions must be integer. shape: {shape}, key: {key}")
        if size < 1:
            raise ValueError(f"shape dimensions must be greater than 0. shape: {shape}, key: {key}")
    return shape


def _default_number(default, shape, dtype, key):
    """A number for all, or numbers of the shape, as a tuple of tuples."""
    if default is None:
        return None
    array = np.asarray(default)
    if array.dtype.kind not in "iuf" or (array.dtype.kind == "f" and dtype.is_integer):
        raise TypeError(f"default_value must be compatible with dtype. default_value: {default}, dtype: {dtype}, key: {key}")
    if array.shape not in ((), shape):
        raise ValueError(f"The shape of default_value must be equal to given shape. default_value: {default}, shape: {shape}, key: {key}")
    array = np.broadcast_to(array.astype(dtype.as_numpy_dtype), shape)

    def nested(part):
        return tuple(map(nested, part)) if isinstance(part, list) else part
    return nested(array.tolist())


def numeric_column(key, shape=(1,), default_value=None, dtype=float32, normalizer_fn=None):
    shape = _sizes(shape, key)
    dtype = as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype}, key: {key}")
    default = _default_number(default_value, shape, dtype, key)
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    return NumericColumn(_key(key), shape, default, dtype, normalizer_fn)


def bucketized_column(source_column, boundaries):
    if not isinstance(source_column, NumericColumn):
        raise ValueError(f"source_column must be a column generated with numeric_column(). Given: {source_column}")
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not boundaries:
        raise ValueError("boundaries must not be empty.")
    if not isinstance(boundaries, (list, tuple)) or any(a >= b for a, b in zip(boundaries, boundaries[1:])):
        raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, tuple(boundaries))


def categorical_column_with_hash_bucket(key, hash_bucket_size, dtype=string):
    if hash_bucket_size is None:
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}")
    return HashedCategoricalColumn(_key(key), hash_bucket_size, _only("category", dtype))


def categorical_column_with_identity(key, num_buckets, default_value=None):
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}")
    return IdentityCategoricalColumn(_key(key), num_buckets, default_value)


def _outside_vocabulary(key, default_value, num_oov_buckets, none):
    if num_oov_buckets:
        if default_value != none:
            raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
        if num_oov_buckets < 0:
            raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")


def categorical_column_with_vocabulary_list(key, vocabulary_list, dtype=None, default_value=-1, num_oov_buckets=0):
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    found = as_dtype(np.array(vocabulary_list).dtype)
    found = string if not (found.is_integer or found.is_floating or found.is_bool) else found
    _outside_vocabulary(key, default_value, num_oov_buckets, -1)
    dtype = _only("category", found if dtype is None else dtype, f"{key}: vocabulary_list dtype must be string or integer")
    if dtype.is_integer != found.is_integer:
        raise ValueError(f"dtype {dtype} and vocabulary dtype {found} do not match, column_name: {key}")
    return VocabularyListCategoricalColumn(_key(key), tuple(vocabulary_list), dtype, default_value, num_oov_buckets)


def categorical_column_with_vocabulary_file(key, vocabulary_file, vocabulary_size=None, dtype=string, default_value=None, num_oov_buckets=0, file_format=None):
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if file_format not in (None, "text"):
        raise NotImplementedError(f"vocabularies in files of the format {file_format} are not in Stoker; a text file with a word in each line is")
    if vocabulary_size is None:
        with open(vocabulary_file, "rb") as file:
            vocabulary_size = sum(1 for _ in file)
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    _outside_vocabulary(key, default_value, num_oov_buckets, None)
    return VocabularyFileCategoricalColumn(_key(key), vocabulary_file, vocabulary_size, num_oov_buckets, _only("category", dtype),
                                           -1 if default_value is None else default_value, file_format)


def crossed_column(keys, hash_bucket_size, hash_key=None):
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, (str, CategoricalColumn)):
            raise ValueError(f"Unsupported key type. All keys must be either string, or categorical column except HashedCategoricalColumn. Given: {key}")
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError("categorical_column_with_hash_bucket is not supported for crossing. Hashing before crossing will increase probability of "
                             f"collision. Instead, use the feature name as a string. Given: {key}")
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


def weighted_categorical_column(categorical_column, weight_feature_key, dtype=float32):
    dtype = as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype {dtype} is not convertible to float.")
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, dtype)


def indicator_column(categorical_column):
    if not isinstance(categorical_column, CategoricalColumn):
        raise ValueError(f"Unsupported input type. Input must be a CategoricalColumn. Given: {categorical_column}")
    return IndicatorColumn(categorical_column)


class TruncatedNormal:
    """The initializer of an embedding that has none."""

    def __init__(self, mean=0.0, stddev=1.0):
        self.mean, self.stddev = mean, stddev

    def __call__(self, shape, dtype=float32, **_):
        from stoker.tf import random

        return random.truncated_normal(shape, self.mean, self.stddev, dtype)


def embedding_column(categorical_column, dimension, combiner="mean", initializer=None, ckpt_to_load_from=None, tensor_name_in_ckpt=None, max_norm=None,
                     trainable=True, use_safe_embedding_lookup=True):
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. Embedding of column_name: {categorical_column.name}")
    return EmbeddingColumn(categorical_column, dimension, combiner, initializer or TruncatedNormal(0.0, 1 / math.sqrt(dimension)), ckpt_to_load_from,
                           tensor_name_in_ckpt, max_norm, trainable, use_safe_embedding_lookup)


def shared_embeddings(categorical_columns, dimension, combiner="mean", initializer=None, shared_embedding_collection_name=None, ckpt_to_load_from=None,
                      tensor_name_in_ckpt=None, max_norm=None, trainable=True, use_safe_embedding_lookup=True):
    raise RuntimeError("shared_embedding_columns are not supported when eager execution is enabled.")


def sequence_numeric_column(key, shape=(1,), default_value=0.0, dtype=float32, normalizer_fn=None):
    return SequenceNumericColumn(_key(key), _sizes(shape, key), default_value, as_dtype(dtype), normalizer_fn)


def sequence_categorical_column_with_hash_bucket(key, hash_bucket_size, dtype=string):
    return SequenceCategoricalColumn(categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


def sequence_categorical_column_with_identity(key, num_buckets, default_value=None):
    return SequenceCategoricalColumn(categorical_column_with_identity(key, num_buckets, default_value))


def sequence_categorical_column_with_vocabulary_list(key, vocabulary_list, dtype=None, default_value=-1, num_oov_buckets=0):
    return SequenceCategoricalColumn(categorical_column_with_vocabulary_list(key, vocabulary_list, dtype, default_value, num_oov_buckets))


def sequence_categorical_column_with_vocabulary_file(key, vocabulary_file, vocabulary_size=None, num_oov_buckets=0, default_value=None, dtype=string):
    return SequenceCategoricalColumn(categorical_column_with_vocabulary_file(key, vocabulary_file, vocabulary_size, dtype, default_value, num_oov_buckets))


def make_parse_example_spec(feature_columns):
    """What tf.io.parse_example needs for these columns."""
    made = {}
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(f"All feature_columns must be FeatureColumn instances. Given: {column}")
        for key, value in column.parse_example_spec.items():
            if key in made and made[key] != value:
                raise ValueError(f"feature_columns contain different parse_spec for key {key}. Given {value} and {made[key]}")
            made[key] = value
    return made


def input_layer(features, feature_columns, weight_collections=None, trainable=True, cols_to_vars=None, cols_to_output_tensors=None):
    """tf.compat.v1.feature_column.input_layer: the columns of a batch side by side, in the order of their names."""
    columns = [feature_columns] if isinstance(feature_columns, FeatureColumn) else list(feature_columns)
    for column in columns:
        if not isinstance(column, DenseColumn):
            raise ValueError("Items of feature_columns must be a _DenseColumn. You can wrap a categorical column with an embedding_column or "
                             f"indicator_column. Given: {column}")
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    found, parts = Features(features), []
    for column in sorted(columns, key=lambda c: c.name):
        variables = []
        part = column.dense(found, variables) if isinstance(column, EmbeddingColumn) else column.dense(found)
        parts.append(o.reshape(part, [dims(part)[0], column.variable_shape.num_elements()]))
        if cols_to_vars is not None:
            cols_to_vars[column] = variables
        if cols_to_output_tensors is not None:
            cols_to_output_tensors[column] = parts[-1]
    return o.concat(parts, 1)
