"""Losses over a sample of the classes (tf.nn.nce_loss, sampled_softmax_loss), and the samplers of tf.random."""
import collections

import numpy as np

from stoker.tf import _nn, errors
from stoker.tf._base import dims, not_traceable, o, recording, static, tensor
from stoker.tf.random import _numpy_generator


def _candidates(name):
    return collections.namedtuple(name, ["sampled_candidates", "true_expected_count", "sampled_expected_count"])


def _drawn(name, title, true_classes, num_sampled, unique, range_max, seed, chances):
    """Classes by their chances; with `unique` drawn until there are enough different ones."""
    if recording():
        not_traceable(f"{title} draws classes outside of the program")
    num_sampled = int(num_sampled)
    if unique and num_sampled > int(np.count_nonzero(chances)):
        errors.invalid(f"Sampler's range is too small: {num_sampled} different classes of {range_max}", name)
    generator, chosen, known, tries, total = _numpy_generator(title, seed), [], set(), 0, np.cumsum(chances)
    while len(chosen) < num_sampled:
        tries += 1
        pick = min(int(np.searchsorted(total, generator.random() * total[-1], "right")), range_max - 1)
        if not (unique and pick in known):
            chosen.append(pick)
            known.add(pick)

    def expected(ids):
        p = chances[np.asarray(ids)] / total[-1]
        if not unique:
            return tensor((p * num_sampled).astype(np.float32))
        if tries == num_sampled:  # TensorFlow takes the plain product where no class came twice
            return tensor((p * tries).astype(np.float32))
        return tensor((-np.expm1(tries * np.log1p(-p))).astype(np.float32))

    ids = np.array(chosen, np.int64)
    return _candidates(name)(tensor(ids), expected(static(true_classes)), expected(ids))


def log_uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None):
    """Classes by how often words come: P(k) = log((k + 2) / (k + 1)) / log(range_max + 1)."""
    return _drawn("LogUniformCandidateSampler", "log_uniform", true_classes, num_sampled, unique, range_max, seed,
                  np.log1p(1 / (np.arange(range_max) + 1.0)))


def uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None):
    return _drawn("UniformCandidateSampler", "uniform_candidates", true_classes, num_sampled, unique, range_max, seed, np.ones(range_max))


def learned_unigram_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None):
    """How often classes come is learned from the calls of one operation; every call here is a new one."""
    return _drawn("LearnedUnigramCandidateSampler", "learned_unigrams", true_classes, num_sampled, unique, range_max, seed,
                  np.ones(range_max))


def fixed_unigram_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, vocab_file="", distortion=1.0,
                                    num_reserved_ids=0, num_shards=1, shard=0, unigrams=(), seed=None, name=None):
    if vocab_file:
        with open(vocab_file) as file:
            unigrams = [float(line.rstrip("\n").rpartition(",")[2]) for line in file if line.strip()]
    if len(unigrams) + num_reserved_ids != range_max:
        errors.invalid(f"range_max is {range_max} but there are {len(unigrams)} unigrams and {num_reserved_ids} reserved ids",
                       "FixedUnigramCandidateSampler")
    chances = np.concatenate([np.zeros(num_reserved_ids), np.asarray(unigrams, np.float64) ** distortion])
    if num_shards > 1:
        chances[np.arange(range_max) % num_shards != shard] = 0
    return _drawn("FixedUnigramCandidateSampler", "fixed_unigrams", true_classes, num_sampled, unique, range_max, seed, chances)


def all_candidate_sampler(true_classes, num_true, num_sampled, unique, seed=None, name=None):
    shape = np.shape(static(true_classes))
    return _candidates("AllCandidateSampler")(tensor(np.arange(num_sampled)), tensor(np.ones(shape, np.float32)),
                                              tensor(np.ones(num_sampled, np.float32)))


Hits = collections.namedtuple("ComputeAccidentalHits", ["indices", "ids", "weights"])


def compute_accidental_hits(true_classes, sampled_candidates, num_true, seed=None, name=None):
    """Where a sampled class is a true one: row, place in the sample, and the weight that takes it out."""
    rows, places = [], []
    sampled = np.ravel(static(sampled_candidates)).tolist()
    for row, classes in enumerate(np.reshape(static(true_classes), [-1, num_true]).tolist()):
        for place, one in enumerate(sampled):
            if one in classes:
                rows.append(row)
                places.append(place)
    weights = np.full(len(rows), -np.finfo(np.float32).max, np.float32)
    return Hits(tensor(np.array(rows, np.int32)), tensor(np.array(places, np.int64)), tensor(weights))


def _logits(weights, biases, labels, inputs, sampled_values, num_true, remove_hits):
    """(logits, labels) of the true classes and then of the sampled ones, corrected by how often they are drawn."""
    sampled, true_expected, sampled_expected = (o.stop_gradient(tensor(v)) for v in sampled_values)
    inputs, sampled = tensor(inputs), o.cast(sampled, "int64")
    flat = o.reshape(o.cast(tensor(labels), "int64"), [-1])
    count, width = dims(flat)[0], dims(inputs)[-1]
    every = o.concat([flat, sampled], 0)
    rows, shift = _nn.embedding_lookup(weights, every), _nn.embedding_lookup(biases, every)
    true_rows = o.reshape(rows[:count], [-1, num_true, width])
    true = o.reduce_sum(o.expand_dims(inputs, 1) * true_rows, axis=-1) + o.reshape(shift[:count], [-1, num_true])
    others = o.matmul(inputs, rows[count:], transpose_b=True) + shift[count:]
    if remove_hits:
        same = o.equal(o.reshape(flat, [-1, num_true, 1]), o.reshape(sampled, [1, 1, -1]))
        hit = o.cast(o.reduce_any(same, axis=1), others.dtype)
        others = others + hit * float(-np.finfo(others.dtype.as_numpy_dtype).max)
    true = true - o.log(o.cast(true_expected, true.dtype))
    others = others - o.log(o.cast(sampled_expected, others.dtype))
    logits = o.concat([true, others], 1)
    goal = np.zeros([dims(logits)[0], dims(logits)[1]], logits.dtype.as_numpy_dtype)
    goal[:, :num_true] = 1.0 / num_true
    return logits, tensor(goal)


def _values(labels, num_true, num_sampled, num_classes, sampled_values, seed=None):
    if sampled_values is not None:
        return sampled_values
    return log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)


def nce_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None, remove_accidental_hits=False,
             name="nce_loss"):
    given = _values(labels, num_true, num_sampled, num_classes, sampled_values)
    logits, goal = _logits(weights, biases, labels, inputs, given, num_true, remove_accidental_hits)
    return o.reduce_sum(_nn.sigmoid_cross_entropy_with_logits(labels=goal, logits=logits), axis=1)


def sampled_softmax_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None,
                         remove_accidental_hits=True, seed=None, name="sampled_softmax_loss"):
    given = _values(labels, num_true, num_sampled, num_classes, sampled_values, seed)
    logits, goal = _logits(weights, biases, labels, inputs, given, num_true, remove_accidental_hits)
    return _nn.softmax_cross_entropy_with_logits(labels=o.stop_gradient(goal), logits=logits)
