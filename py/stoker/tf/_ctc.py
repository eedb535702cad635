"""Labels from the scores of a recogniser: tf.nn.ctc_beam_search_decoder."""
import numpy as np

from stoker.tf._array import _concrete
from stoker.tf._base import tensor
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
