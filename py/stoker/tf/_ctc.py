"""Connectionist temporal classification: the loss over all alignments, and labels from the scores of a recogniser."""
import numpy as np

from stoker.tf._array import _concrete
from stoker.tf._base import dims, float32, int32, o, tensor
from stoker.tf._sparse import SparseTensor

_NEVER = -np.inf


def _best(beams, width):
    return sorted(beams.items(), key=lambda item: -np.logaddexp(*item[1]))[:width]


def _search(steps, width, blank):
    """The best (labels, log probability) of [time, classes] log probabilities.

    A beam is a prefix with two numbers: the probability that it ends in a blank, and that it ends in its last label. The same
    label twice needs a blank between them, so the two grow differently.
    """
    beams = {(): (0.0, _NEVER)}
    for row in steps:
        grown = {}

        def add(prefix, to_blank, to_label):
            before = grown.get(prefix, (_NEVER, _NEVER))
            grown[prefix] = np.logaddexp(before[0], to_blank), np.logaddexp(before[1], to_label)

        for prefix, (ends_blank, ends_label) in beams.items():
            total = np.logaddexp(ends_blank, ends_label)
            add(prefix, total + row[blank], ends_label + row[prefix[-1]] if prefix else _NEVER)
            for label in range(len(row)):
                if label != blank:
                    start = ends_blank if prefix and prefix[-1] == label else total
                    add(prefix + (label,), _NEVER, start + row[label])
        beams = dict(_best(grown, width))
    return [(prefix, np.logaddexp(*ends)) for prefix, ends in _best(beams, width)]


def ctc_beam_search_decoder(inputs, sequence_length, beam_width=100, top_paths=1):
    """Time-major scores to ([SparseTensor of labels] for each path, log probabilities [batch, paths]); the last class is the blank."""
    scores = _concrete(tensor(inputs), "ctc_beam_search_decoder")
    lengths = _concrete(tensor(sequence_length), "ctc_beam_search_decoder")
    if top_paths > beam_width:
        raise ValueError(f"ctc_beam_search_decoder: {top_paths} paths of a beam of {beam_width}")
    work = scores.astype(np.float64)
    work = work - np.logaddexp.reduce(work, axis=-1, keepdims=True)
    found = [_search(work[:length, n], beam_width, scores.shape[-1] - 1) for n, length in enumerate(lengths)]
    for paths in found:
        paths += [((), _NEVER)] * (top_paths - len(paths))  # fewer prefixes than paths were asked for
    decoded = []
    for path in range(top_paths):
        rows = [paths[path][0] for paths in found]
        places = [[n, m] for n, row in enumerate(rows) for m in range(len(row))]
        values = [label for row in rows for label in row]
        decoded.append(SparseTensor(np.array(places, np.int64).reshape(-1, 2), np.array(values, np.int64),
                                    [len(rows), max(map(len, rows), default=0)]))
    return decoded, tensor(np.array([[p for _, p in paths[:top_paths]] for paths in found], scores.dtype))


def all_ways(target, logits, target_length, logit_length, blank):
    """Minus the log of the sum over all alignments, by the forward recursion in logs; gradients follow from it.

    target [batch, labels], logits [batch, time, classes] in logs; target_length and logit_length [batch].
    """
    batch, steps, _ = dims(logits)
    labels = dims(target)[1]
    low = tensor(-1e30, logits.dtype)
    # States: blank, label, blank, label .. blank; a label may be reached from the label before when they differ. As in
    # TensorFlow that holds for a label that is the blank's number, too: padding is counted off by target_length, not by its value.
    blanks = o.fill_value([batch, labels + 1], "int32", blank)
    states = o.reshape(o.stack([blanks[:, :-1], target], axis=2), [batch, 2 * labels])
    states = o.concat([states, blanks[:, -1:]], 1)
    differs = o.concat([o.fill_value([batch, 2], "bool", 0), o.not_equal(states[:, 2:], states[:, :-2])], 1)
    scores = o.gather(o.transpose(logits, [0, 2, 1]), states, axis=1, batch_dims=1)  # batch, states, time
    alpha = o.where(tensor(np.arange(2 * labels + 1)[None] < 2), scores[:, :, 0], low)
    edge = o.broadcast_to(low, [batch, 2])
    for t in range(1, steps):
        one = o.concat([edge[:, :1], alpha[:, :-1]], 1)
        two = o.where(differs, o.concat([edge, alpha[:, :-2]], 1), low)
        ways = o.reduce_logsumexp(o.stack([alpha, one, two]), axis=0)
        going = o.expand_dims(o.less(tensor(t), logit_length), 1)
        alpha = o.where(going, ways + scores[:, :, t], alpha)
    last = target_length * 2
    ends = o.stack([last, o.maximum(last - 1, o.zeros_like(last))], axis=1)
    found = o.gather(alpha, ends, axis=1, batch_dims=1)
    some = o.stack([o.fill_value([batch], "bool", 1), o.greater(last, o.zeros_like(last))], axis=1)
    return o.negative(o.reduce_logsumexp(o.where(some, found, low), axis=1))


def ctc_loss(labels, logits, label_length, logit_length, logits_time_major=True, unique=None, blank_index=None, name=None):
    """labels: [batch, most] with label_length, or a SparseTensor."""
    scores = o.log_softmax(o.cast(tensor(logits), float32), axis=-1)
    scores = o.transpose(scores, [1, 0, 2]) if logits_time_major else scores
    classes = dims(scores)[-1]
    if isinstance(labels, SparseTensor):
        if blank_index is None:
            raise ValueError("Argument `blank_index` must be provided when labels is a SparseTensor.")
        rows = _concrete(labels.indices, "ctc_loss")[:, 0]
        label_length = np.bincount(rows, minlength=dims(scores)[0])
        from stoker.tf._sparse import to_dense

        labels = to_dense(labels)
    blank = 0 if blank_index is None else blank_index % classes
    lengths = [o.cast(tensor(n), int32) for n in (label_length, logit_length)]
    return all_ways(o.cast(tensor(labels), int32), scores, *lengths, blank)
