"""tf.data.experimental: mostly older names of what is now on Dataset, and tables."""
from stoker.tf._base import tensor as _tensor
from stoker.tf.data._dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY  # noqa: F401
from stoker.tf.data._dataset import DatasetV2 as _Dataset
from stoker.tf.data._iterator import Optional  # noqa: F401
from stoker.tf.data._options import (AutoShardPolicy, AutotuneAlgorithm, AutotuneOptions, DistributeOptions,  # noqa: F401
                                     ExternalStatePolicy, OptimizationOptions, ThreadingOptions)
from stoker.tf.data._structure import DatasetSpec as DatasetStructure  # noqa: F401
from stoker.tf.data._tables import CsvDataset, SqlDataset, make_batched_features_dataset, make_csv_dataset  # noqa: F401

Counter = _Dataset.counter
RandomDataset = _Dataset.random
sample_from_datasets = _Dataset.sample_from_datasets
choose_from_datasets = _Dataset.choose_from_datasets
load = _Dataset.load


def save(dataset, path, compression=None, shard_func=None, checkpoint_args=None):
    dataset.save(path)


def cardinality(dataset):
    return dataset.cardinality()


def get_single_element(dataset):
    return dataset.get_single_element()


def enumerate_dataset(start=0):
    return lambda dataset: dataset.enumerate(start)


def unbatch():
    return lambda dataset: dataset.unbatch()


def unique():
    return lambda dataset: dataset.unique()


def ignore_errors(log_warning=False):
    return lambda dataset: dataset.ignore_errors(log_warning)


def scan(initial_state, scan_func):
    return lambda dataset: dataset.scan(initial_state, scan_func)


def take_while(predicate):
    return lambda dataset: dataset.take_while(predicate)


def prefetch_to_device(device, buffer_size=None):
    return lambda dataset: dataset.prefetch(buffer_size)


def copy_to_device(target_device, source_device="/cpu:0"):
    return lambda dataset: dataset


def shuffle_and_repeat(buffer_size, count=None, seed=None):
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def map_and_batch(map_func, batch_size, num_parallel_batches=None, drop_remainder=False, num_parallel_calls=None):
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def parallel_interleave(map_func, cycle_length, block_length=1, sloppy=False, buffer_output_elements=None,
                        prefetch_input_elements=None):
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length, AUTOTUNE, not sloppy)


def dense_to_ragged_batch(batch_size, drop_remainder=False, row_splits_dtype="int64"):
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def group_by_window(key_func, reduce_func, window_size=None, window_size_func=None):
    return lambda dataset: dataset.group_by_window(key_func, reduce_func, window_size, window_size_func)


def bucket_by_sequence_length(element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None,
                              padding_values=None, pad_to_bucket_boundary=False, no_padding=False, drop_remainder=False):
    return lambda dataset: dataset.bucket_by_sequence_length(
        element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values, pad_to_bucket_boundary,
        no_padding, drop_remainder)


def rejection_resample(class_func, target_dist, initial_dist=None, seed=None):
    return lambda dataset: dataset.rejection_resample(class_func, target_dist, initial_dist, seed)


def snapshot(path, compression="AUTO", reader_func=None, shard_func=None):
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def assert_cardinality(expected_cardinality):
    def apply(dataset):
        count, want = dataset._count(), int(_tensor(expected_cardinality))
        if count >= 0 and count != want:
            from stoker.tf import errors

            raise errors.by_code[9](None, None, f"Input dataset was expected to contain {want} elements but contained "
                                    f"{count} elements.", 9)
        made = dataset._same("AssertCardinality", dataset._pipe)
        made._cardinality = want
        return made

    return apply


def enable_debug_mode():
    """Functions of tf.data run eagerly."""
    from stoker.tf.data import _function

    _function.debug = True


def get_structure(dataset_or_iterator):
    return dataset_or_iterator.element_spec


def get_next_as_optional(iterator):
    return iterator.get_next_as_optional()


def make_saveable_from_iterator(iterator, external_state_policy=None):
    raise NotImplementedError("make_saveable_from_iterator: iterators are saved with their trainer's checkpoint")
