"""Names of tf.compat.v1 whose arguments differ from those of TensorFlow 2. Every other name there is that of TensorFlow 2 (_rooms.find).

Keras' backend functions (`tf.keras.backend.switch`, `pool2d`, `ctc_batch_cost` ...) call them, and so do programs that were only half moved over.
"""
from stoker.tf import _array, _control, _ctc, _math, _module, _nn, _sparse, _tape
from stoker.tf._base import dims, int32, o, tensor


def assign(ref, value, validate_shape=None, use_locking=None, name=None):
    return ref.assign(value)


def assign_add(ref, value, use_locking=None, name=None):
    return ref.assign_add(value)


def assign_sub(ref, value, use_locking=None, name=None):
    return ref.assign_sub(value)


def cond(pred, true_fn=None, false_fn=None, strict=False, name=None, fn1=None, fn2=None):
    return _control.cond(pred, true_fn or fn1, false_fn or fn2)


def where(condition, x=None, y=None, name=None):
    """A vector as condition chooses rows, which TensorFlow 2 does not do."""
    condition = tensor(condition)
    if x is not None and len(dims(condition)) == 1 and len(dims(tensor(x))) > 1:
        condition = o.reshape(condition, dims(condition) + [1] * (len(dims(tensor(x))) - 1))
    return _array.where(condition, x, y)


def gradients(ys, xs, grad_ys=None, name="gradients", colocate_gradients_with_ops=False, gate_gradients=False, aggregation_method=None,
              stop_gradients=None, unconnected_gradients=None):
    more = {} if unconnected_gradients is None else {"unconnected_gradients": unconnected_gradients}
    return _tape.gradients(ys, xs, grad_ys, **more)


def sparse_concat(axis, sp_inputs, name=None, expand_nonconcat_dim=False, concat_dim=None, expand_nonconcat_dims=None):
    return _sparse.concat(axis, sp_inputs, expand_nonconcat_dims or expand_nonconcat_dim)


def random_normal_initializer(mean=0.0, stddev=1.0, seed=None, dtype="float32"):
    made = _module.random_normal_initializer(mean, stddev, seed)
    return lambda shape, dtype=dtype, **_: made(shape, dtype)


def random_uniform_initializer(minval=0.0, maxval=1.0, seed=None, dtype="float32"):
    made = _module.random_uniform_initializer(minval, maxval, seed)
    return lambda shape, dtype=dtype, **_: made(shape, dtype)


def in_top_k(predictions, targets, k, name=None):
    return _math.in_top_k(targets, predictions, k)


def to_float(x, name="ToFloat"):
    return o.cast(tensor(x), "float32")


def to_int32(x, name="ToInt32"):
    return o.cast(tensor(x), "int32")


def to_int64(x, name="ToInt64"):
    return o.cast(tensor(x), "int64")


def div(x, y, name=None):
    """Whole numbers are rounded down."""
    x = tensor(x)
    return (o.floordiv if x.dtype.is_integer else o.truediv)(x, y)


def make_one_shot_iterator(dataset):
    return iter(dataset)


# ---- nn ------------------------------------------------------------------------------------------------------------

def convolution(input, filter=None, padding="VALID", strides=None, dilation_rate=None, name=None, data_format=None, filters=None, dilations=None):
    return _nn.convolution(input, filter if filters is None else filters, strides or 1, padding, data_format, dilation_rate or dilations)


def conv2d(input, filter=None, strides=None, padding="VALID", use_cudnn_on_gpu=True, data_format="NHWC", dilations=None, name=None, filters=None):
    return _nn.conv2d(input, filter if filters is None else filters, strides, padding, data_format, dilations)


def conv2d_transpose(value=None, filter=None, output_shape=None, strides=None, padding="SAME", data_format="NHWC", name=None, input=None,
                     filters=None, dilations=None):
    return _nn.conv2d_transpose(value if input is None else input, filter if filters is None else filters, output_shape, strides, padding,
                                data_format, dilations)


def max_pool(value=None, ksize=None, strides=None, padding="VALID", data_format="NHWC", name=None, input=None):
    return _nn.max_pool(value if input is None else input, ksize, strides, padding, data_format)


def avg_pool(value=None, ksize=None, strides=None, padding="VALID", data_format="NHWC", name=None, input=None):
    return _nn.avg_pool(value if input is None else input, ksize, strides, padding, data_format)


def dropout(x, keep_prob=None, noise_shape=None, seed=None, name=None, rate=None):
    return _nn.dropout(x, 1 - keep_prob if rate is None else rate, noise_shape, seed)


def embedding_lookup(params, ids, partition_strategy="mod", name=None, validate_indices=True, max_norm=None):
    return _nn.embedding_lookup(params, ids, max_norm)


def softmax_cross_entropy_with_logits(_sentinel=None, labels=None, logits=None, dim=-1, name=None, axis=None):
    return _nn.softmax_cross_entropy_with_logits(labels, logits, dim if axis is None else axis)


def ctc_loss(labels, inputs=None, sequence_length=None, preprocess_collapse_repeated=False, ctc_merge_repeated=True,
             ignore_longer_outputs_than_inputs=False, time_major=True, logits=None):
    """The last class is the blank."""
    if preprocess_collapse_repeated or not ctc_merge_repeated:
        raise NotImplementedError("tf.compat.v1.nn.ctc_loss: repeated labels are told apart as usual; other ways are not in Stoker")
    scores = tensor(inputs if logits is None else logits)
    return _ctc.ctc_loss(labels, scores, None, o.cast(tensor(sequence_length), int32), time_major, blank_index=-1)


def ctc_beam_search_decoder(inputs, sequence_length, beam_width=100, top_paths=1, merge_repeated=True):
    return _ctc.ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths)


# Options of a session. Programs of TensorFlow 2 write them down for the memory of a GPU, which grows here as it is needed, and make a
# session with them that never runs.

class _Options:
    """Takes any option, and options of options."""

    def __init__(self, **options):
        self.__dict__.update(options)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = self.__dict__[name] = _Options()
        return made


class ConfigProto(_Options):
    pass


class GPUOptions(_Options):
    pass


class Session:
    def __init__(self, target="", graph=None, config=None):
        if config is None or graph is not None:
            self._refuse()

    @staticmethod
    def _refuse(*args, **kwargs):
        raise NotImplementedError(
            "sessions of TensorFlow 1 do not run on Stoker: it runs programs of TensorFlow 2 (eager tensors, tf.Variable, tf.function, Keras). "
            "A session that only carries a ConfigProto with options can be made.")

    run = partial_run = make_callable = list_devices = _refuse

    def as_default(self):
        return self

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False


class InteractiveSession(Session):
    pass
