"""What help() says about the methods of tf.data.Dataset: a line each."""
from stoker.tf.data._dataset import DatasetV2

LINES = """
apply: What a function of datasets makes of this one.
as_numpy_iterator: Walks over the elements as NumPy arrays.
batch: Puts consecutive elements together; drop_remainder leaves out a smaller last batch.
bucket_by_sequence_length: Puts elements of similar length together into padded batches.
cache: Keeps the elements of the first walk, in memory or in a file.
cardinality: How many elements there are, or INFINITE_CARDINALITY or UNKNOWN_CARDINALITY.
choose_from_datasets: Takes the next element of the dataset that choice_dataset names.
concatenate: These elements, then those of another dataset.
counter: Numbers from start on, without an end.
element_spec: Types and shapes of an element.
enumerate: Pairs of a number and the element.
filter: The elements for which a function is true.
flat_map: The elements of the datasets that a function makes, one dataset after the other.
from_generator: What a Python generator yields, as output_signature says.
from_tensor_slices: The rows of tensors, along the first axis.
from_tensors: A single element.
get_single_element: The only element.
group_by_window: Groups of elements with the same key, each reduced to a dataset.
ignore_errors: Leaves out elements that fail.
interleave: Elements of several datasets that a function makes, in turns.
list_files: Names of files that match patterns.
make_one_shot_iterator: An iterator, as of TensorFlow 1.
map: What a function makes of each element; num_parallel_calls says how many at a time.
options: The options of this dataset.
padded_batch: Puts consecutive elements together, padded to the same shape.
prefetch: Prepares elements before they are asked for.
ragged_batch: Puts consecutive elements together as ragged tensors.
random: Random numbers.
range: Whole numbers from start to stop.
rebatch: Batches of another size.
reduce: One value of all elements, by a function of a state and an element.
rejection_resample: Draws elements so that classes have the wanted shares.
repeat: The elements count times, or without an end.
sample_from_datasets: Takes the next element of a dataset drawn by weight.
scan: What a function of a state and the element makes, the state being carried on.
shard: Every num_shards-th element, from index on.
shuffle: Elements drawn from a buffer, in another order at each walk.
skip: Without the first count elements.
take: The first count elements.
take_while: The elements before a function is false for the first time.
unbatch: The rows of the elements.
unique: Each element once.
window: Datasets of size consecutive elements.
with_options: The same elements, with options.
zip: Tuples of the elements of several datasets.
"""

for _line in LINES.strip().splitlines():
    _name, _text = _line.split(": ", 1)
    _method = vars(DatasetV2)[_name]
    if not isinstance(_method, property):
        getattr(_method, "__func__", _method).__doc__ = _text
    else:
        setattr(DatasetV2, _name, property(_method.fget, doc=_text))
