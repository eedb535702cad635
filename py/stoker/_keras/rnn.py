"""Recurrent layers: the engine's LSTM and GRU where they fit, else the step function row after row."""
from keras.src import activations as _activations
from keras.src import tree
from keras.src.backend.common.symbolic_scope import in_symbolic_scope
from stoker import _stoker
from stoker.tf._base import o as _o

from keras.src.backend.tensorflow import _own
from keras.src.backend.tensorflow.core import convert_to_tensor

__getattr__ = _own.fallback("rnn", globals())


def rnn(step_function, inputs, initial_states, go_backwards=False, mask=None, constants=None, unroll=False,
        input_length=None, time_major=False, zero_output_for_mask=False, return_all_outputs=True):
    if not time_major:
        inputs = tree.map_structure(_swap, inputs)
    rows = [convert_to_tensor(x) for x in tree.flatten(inputs)]
    steps = rows[0].shape.as_list()[0]
    mask = None if mask is None else _time_mask(mask, time_major)
    order = list(range(steps - 1, -1, -1)) if go_backwards else list(range(steps))
    constants = tuple(constants or ())
    states, output, outputs = tuple(initial_states), None, []
    for t in order[:1] if in_symbolic_scope() else order:
        row = tree.pack_sequence_as(inputs, [x[t] for x in rows])
        made, new_states = step_function(row, states + constants)
        if mask is not None:
            made = _choose(mask[t], made, None if zero_output_for_mask else output)
            new_states = tuple(_choose(mask[t], n, s) for n, s in zip(tree.flatten(new_states), tree.flatten(states)))
            new_states = tree.pack_sequence_as(states, list(new_states))
        states, output = tuple(new_states), made
        outputs.append(made)
    kept = outputs if return_all_outputs else outputs[-1:]
    stacked = tree.map_structure(lambda *column: _o.stack([convert_to_tensor(c) for c in column]), *kept)
    if in_symbolic_scope() and return_all_outputs:
        stacked = tree.map_structure(lambda x: _o.tile(x, [steps] + [1] * (len(x.shape) - 1)), stacked)
    if not time_major:
        stacked = tree.map_structure(_swap, stacked)
    return output, stacked, states


def _swap(x):
    x = convert_to_tensor(x)
    return _o.transpose(x, [1, 0] + list(range(2, len(x.shape))))


def _time_mask(mask, time_major):
    mask = convert_to_tensor(mask, "bool")
    if len(mask.shape) == 2:
        mask = _o.expand_dims(mask, -1)
    return mask if time_major else _swap(mask)


def _choose(mask, new, old):
    """new where the mask is set; else old, or zeros where there is none."""
    if tree.is_nested(new):
        olds = [None] * len(tree.flatten(new)) if old is None else tree.flatten(old)
        return tree.pack_sequence_as(new, [_choose(mask, n, p) for n, p in zip(tree.flatten(new), olds)])
    new = convert_to_tensor(new)
    old = _o.zeros_like(new) if old is None else convert_to_tensor(old, new.dtype)
    sizes = mask.shape.as_list()
    sizes += [1] * (len(new.shape) - len(sizes))
    return _o.where(_o.reshape(mask, sizes[:len(new.shape)]), new, old)


def _is(activation, name):
    return activation is getattr(_activations, name) or getattr(activation, "__name__", None) == name and getattr(
        activation, "__module__", "").startswith("keras.src.activations")


def _fits(mask, return_sequences, activation, recurrent_activation, unroll):
    """The engine's cells have tanh and sigmoid; what a masked step gives to a sequence is decided step by step."""
    if unroll or not _is(activation, "tanh") or not _is(recurrent_activation, "sigmoid"):
        raise NotImplementedError
    if mask is not None and (return_sequences or len(mask.shape) != 2):
        raise NotImplementedError
    return None if mask is None else convert_to_tensor(mask, "bool")


def _same(tensors):
    """All in the type of the first, the inputs; of the kernel where those are whole numbers."""
    first = convert_to_tensor(tensors[0])
    if not first.dtype.is_floating:
        first = _o.cast(first, next(t for t in tensors[1:] if t is not None).dtype)
    return [first] + [None if t is None else convert_to_tensor(t, first.dtype) for t in tensors[1:]]


def lstm(inputs, initial_state_h, initial_state_c, mask, kernel, recurrent_kernel, bias, activation, recurrent_activation,
         return_sequences=False, go_backwards=False, unroll=False, time_major=False):
    mask = _fits(mask, return_sequences, activation, recurrent_activation, unroll)
    x, h, c, w, u, b = _same([inputs, initial_state_h, initial_state_c, kernel, recurrent_kernel, bias])
    sequence, h, c = _stoker.ops["lstm"](x, w, u, b, mask, h, c, time_major, go_backwards)
    return h, _outputs(sequence, h, return_sequences, go_backwards, time_major), [h, c]


def gru(inputs, initial_state, mask, kernel, recurrent_kernel, bias, activation, recurrent_activation,
        return_sequences=False, go_backwards=False, unroll=False, time_major=False, reset_after=True):
    mask = _fits(mask, return_sequences, activation, recurrent_activation, unroll)
    x, h, w, u, b = _same([inputs, initial_state, kernel, recurrent_kernel, bias])
    sequence, h = _stoker.ops["gru"](x, w, u, b, mask, h, time_major, go_backwards, reset_after)
    return h, _outputs(sequence, h, return_sequences, go_backwards, time_major), [h]


def _outputs(sequence, last, return_sequences, go_backwards, time_major):
    time = 0 if time_major else 1
    if not return_sequences:
        return _o.expand_dims(last, time)
    return _o.reverse(sequence, [time]) if go_backwards else sequence


def bidirectional_lstm(*args, **kwargs):
    raise NotImplementedError  # Keras then runs the two directions one after the other


def bidirectional_gru(*args, **kwargs):
    raise NotImplementedError


def cudnn_ok(*args, **kwargs):
    return False
