"""What optimizers get from the backend: updates of tf.Variables, dense or by rows."""
import warnings

from keras.src.backend.tensorflow import core
from keras.src.optimizers import base_optimizer
from stoker import tf as _tf
from stoker.tf._base import is_symbolic as _is_symbolic


def _inner(variable):
    return variable.value if isinstance(variable, core.Variable) else variable


def _once_a_row(gradient):
    """A row that was gathered twice has one gradient, the sum: squares of the two would not be its square."""
    if not isinstance(gradient, _tf.IndexedSlices):
        return gradient
    rows = None if _is_symbolic(gradient.indices) else gradient.indices.numpy()
    return gradient if rows is not None and len(set(rows.tolist())) == len(rows) else _tf.convert_to_tensor(gradient)


class TFOptimizer(base_optimizer.BaseOptimizer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._distribution_strategy = _tf.distribute.get_strategy()

    def stateless_apply(self, optimizer_variables, grads, trainable_variables):
        raise ValueError("stateless_apply is not supported with the TensorFlow backend (as it is incompatible with "
                         "tf.distribute).")

    def apply(self, grads, trainable_variables=None):
        return super().apply([_once_a_row(g) for g in grads], trainable_variables)

    def _change(self, variable, value, how, rows):
        variable = _inner(variable)
        if isinstance(value, _tf.IndexedSlices):
            getattr(variable, rows)(_tf.cast(value, variable.dtype))
        else:
            getattr(variable, how)(core.convert_to_tensor(value, variable.dtype))

    def assign(self, variable, value):
        self._change(variable, value, "assign", "scatter_update")

    def assign_add(self, variable, value):
        self._change(variable, value, "assign_add", "scatter_add")

    def assign_sub(self, variable, value):
        self._change(variable, value, "assign_sub", "scatter_sub")

    def _var_key(self, variable):
        return id(_inner(variable))

    def _apply_weight_decay(self, variables):
        if self.weight_decay is None:
            return
        for variable in variables:
            if self._use_weight_decay(variable):
                variable = _inner(variable)
                rate = core.cast(self.learning_rate, variable.dtype)
                decay = core.cast(self.weight_decay, variable.dtype)
                variable.assign_sub(variable.value() * decay * rate)

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        pairs = list(zip(grads, trainable_variables))
        filter_empty_gradients(pairs)
        for grad, variable in pairs:
            if grad is not None:
                self.update_step(grad, _inner(variable), learning_rate)

    def _overwrite_model_variables_with_average_value(self, trainable_variables):
        for variable, average in zip(trainable_variables, self._model_variables_moving_average):
            _inner(variable).assign(core.convert_to_tensor(average))

    def _backend_increment_gradient_accumulators(self, grads, acc_grads):
        for grad, total in zip(grads, acc_grads):
            total = _inner(total)
            total.assign_add(core.convert_to_tensor(grad, total.dtype))

    def _clip_by_norm(self, values, axes=None):
        return _tf.clip_by_norm(values, self.clipnorm, axes)


def filter_empty_gradients(grads_and_vars):
    """The pairs that have a gradient; a warning names the others, and none at all is an error."""
    pairs = tuple(grads_and_vars)
    kept = tuple((g, v) for g, v in pairs if g is not None)
    if pairs and not kept:
        raise ValueError(f"No gradients provided for any variable: {[v.name for _, v in pairs]}. Provided `grads_and_vars` is "
                         f"{pairs}.")
    if len(kept) < len(pairs):
        warnings.warn(f"Gradients do not exist for variables {[v.name for g, v in pairs if g is None]} when minimizing the "
                      "loss. If you're using `model.compile()`, did you forget to provide a `loss` argument?")
    return kept
