"""Keras' training loops on Stoker: each step is one program, made once per shape of the batch."""
import contextlib
import functools
import warnings

from keras.src import callbacks as callbacks_module
from keras.src import metrics as metrics_module
from keras.src import optimizers as optimizers_module
from keras.src import tree
from keras.src.backend import config
from keras.src.losses import loss as loss_module
from keras.src.trainers import trainer as base_trainer
from keras.src.trainers.data_adapters import array_slicing
from keras.src.trainers.data_adapters import data_adapter_utils
from keras.src.utils import traceback_utils
from keras.src.utils.python_utils import pythonify_logs

from keras.src.backend.tensorflow import _calls
from keras.src.backend.tensorflow import _steps
from keras.src.backend.tensorflow import _whole
from stoker import tf as _tf

_unpack = data_adapter_utils.unpack_x_y_sample_weight


class TensorFlowTrainer(base_trainer.Trainer):
    def __init__(self):
        super().__init__()
        self.train_function = None
        self.test_function = None
        self.predict_function = None
        self.unrolled_steps_per_execution = 1
        self._rows_vary = False  # of the batches of the fit or evaluation that goes on
        self._distribute_strategy = _tf.distribute.get_strategy() if _tf.distribute.has_strategy() else None

    @property
    def distribute_strategy(self):
        return self._distribute_strategy or _tf.distribute.get_strategy()

    @property
    def distribute_reduction_method(self):
        return getattr(self, "_distribute_reduction_method", None) or "auto"

    @distribute_reduction_method.setter
    def distribute_reduction_method(self, value):
        self._distribute_reduction_method = value

    # Calls outside of functions.

    def __call__(self, *args, **kwargs):
        found, made = _calls.call(self, args, kwargs)
        return made if found else super().__call__(*args, **kwargs)

    def _call_plainly(self, x, training):
        return super().__call__(x) if training is None else super().__call__(x, training=training)

    # One step. Programs may override these; they are traced as they are.

    def _forward(self, x, training):
        return self(x, training=training) if self._call_has_training_arg else self(x)

    def _loss_of(self, x, y, y_pred, sample_weight, training):
        loss = self._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)
        rows = next(i for i in tree.flatten(x) if i is not None)
        self._loss_tracker.update_state(loss_module.unscale_loss_for_distribution(loss), sample_weight=_tf.shape(rows)[0])
        return loss

    def train_step(self, data):
        x, y, sample_weight = _unpack(data)
        with _tf.GradientTape() as tape:
            y_pred = self._forward(x, True)
            loss = self._loss_of(x, y, y_pred, sample_weight, True)
            if self.optimizer is not None:
                loss = self.optimizer.scale_loss(loss)
        weights = self.trainable_weights
        if weights:
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        else:
            warnings.warn("The model does not have any trainable weights.")
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data):
        x, y, sample_weight = _unpack(data)
        y_pred = self._forward(x, False)
        self._loss_of(x, y, y_pred, sample_weight, False)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data):
        x, _, _ = _unpack(data)
        return self._forward(x, False)

    # Functions that run the steps of one execution, given an iterator of batches.

    def _make_function(self, step):
        one_step = self._as_program(step)

        def function(iterator):
            outputs = None
            for _ in range(self.steps_per_execution):
                try:
                    data = next(iterator)
                except (StopIteration, _tf.errors.OutOfRangeError):
                    if outputs is None:
                        raise StopIteration from None
                    break
                outputs = one_step(data)
            return outputs

        function.one_step = one_step
        return function

    def _as_program(self, step):
        @functools.wraps(step)
        def one_step(data):
            with _steps.open_rows(data) if self._rows_vary and not self.run_eagerly else contextlib.nullcontext():
                return self.distribute_strategy.run(step, args=(data,))

        return _steps.eager(one_step) if self.run_eagerly else _steps.program(one_step, self)

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            self.train_function = self._make_function(self.train_step)
        return self.train_function

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            self.test_function = self._make_function(self.test_step)
        return self.test_function

    def make_predict_function(self, force=False):
        """The predict function takes the list of an execution's batches and gives their outputs, one after the other."""
        if self.predict_function is not None and not force:
            return self.predict_function
        one_step = self._as_program(self.predict_step)

        def function(batches):
            outputs = [one_step(data) for data in batches]
            if len(outputs) == 1:
                return outputs[0]
            return tree.map_structure(lambda *parts: _steps.concat(parts), *outputs)

        function.one_step = one_step
        self.predict_function = function
        return function

    # The loops.

    @traceback_utils.filter_traceback
    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None, validation_split=0.0,
            validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0, steps_per_epoch=None,
            validation_steps=None, validation_batch_size=None, validation_freq=1):
        self._assert_compile_called("fit")
        most = config.max_epochs()
        if most and most < epochs:
            warnings.warn("Limiting epochs to %d" % most)
            epochs = most
        self._eval_epoch_iterator = None
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = array_slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split)
        if validation_data is not None:
            val_x, val_y, val_sample_weight = _unpack(validation_data)

        batches = _steps.Epochs(x=x, y=y, sample_weight=sample_weight, batch_size=batch_size, steps_per_epoch=steps_per_epoch,
                                shuffle=shuffle, class_weight=class_weight, steps_per_execution=self.steps_per_execution)
        self._rows_vary = batches.rows_vary
        self._maybe_symbolic_build(iterator=batches)
        batches.reset()
        if not isinstance(callbacks, callbacks_module.CallbackList):
            callbacks = callbacks_module.CallbackList(callbacks, add_history=True, add_progbar=verbose != 0, verbose=verbose,
                                                      epochs=epochs, steps=batches.num_batches, model=self)
        self.stop_training = False
        self.make_train_function()
        callbacks.on_train_begin()
        training_logs, logs = None, {}
        for epoch in range(self._initial_epoch or initial_epoch, epochs):
            self.reset_metrics()
            callbacks.on_epoch_begin(epoch)
            logs = self._train_epoch(batches, callbacks, logs)
            epoch_logs = dict(self._get_metrics_result_or_logs(logs))
            if validation_data is not None and self._should_eval(epoch, validation_freq):
                if getattr(self, "_eval_epoch_iterator", None) is None:
                    self._eval_epoch_iterator = _steps.Epochs(
                        x=val_x, y=val_y, sample_weight=val_sample_weight, batch_size=validation_batch_size or batch_size,
                        steps_per_execution=self.steps_per_execution, steps_per_epoch=validation_steps, shuffle=False)
                val_logs = self.evaluate(
                    x=val_x, y=val_y, sample_weight=val_sample_weight, batch_size=validation_batch_size or batch_size,
                    steps=validation_steps, callbacks=callbacks, return_dict=True, _use_cached_eval_dataset=True)
                epoch_logs.update({f"val_{name}": value for name, value in val_logs.items()})
            callbacks.on_epoch_end(epoch, epoch_logs)
            training_logs = epoch_logs
            if self.stop_training:
                break
        if isinstance(self.optimizer, optimizers_module.Optimizer) and epochs > 0:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        if getattr(self, "_eval_epoch_iterator", None) is not None:
            del self._eval_epoch_iterator
        callbacks.on_train_end(logs=training_logs)
        return self.history

    def _train_epoch(self, batches, callbacks, logs):
        """All steps of one epoch; gives the logs of the last."""
        whole = self._whole_epoch(batches, callbacks, "train", self.train_function)
        if whole is not None:
            return whole
        with batches.catch_stop_iteration():
            for begin_step, end_step, iterator in batches:
                callbacks.on_train_batch_begin(begin_step)
                logs = self.train_function(iterator)
                callbacks.on_train_batch_end(end_step, logs)
                if self.stop_training:
                    break
        return logs

    def _whole_epoch(self, batches, callbacks, mode, function):
        """The epoch inside of the engine; None when its steps have to be taken one by one."""
        reason = _whole.refusal(self, batches, callbacks, mode, function)
        _whole.note(self, mode, reason)
        if reason is not None:
            return None
        bar = callbacks._progbar

        def look(done, logs):
            if bar is not None and done:
                getattr(bar, f"on_{mode}_batch_end")(done - 1, pythonify_logs(logs) if mode != "predict" else None)
            return self.stop_training if mode == "train" else False

        run = _whole.predict if mode == "predict" else _whole.epoch
        made = run(self, batches, function, look)
        if made is None:
            _whole.note(self, mode, _whole.why_not(function))
            return None
        if mode == "predict":
            return made
        look(made[1], made[0])
        return made[0]

    @traceback_utils.filter_traceback
    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None, steps=None, callbacks=None,
                 return_dict=False, **kwargs):
        self._assert_compile_called("evaluate")
        cached = kwargs.pop("_use_cached_eval_dataset", False)
        if kwargs:
            raise ValueError(f"Arguments not recognized: {kwargs}")
        batches = self._eval_epoch_iterator if cached else _steps.Epochs(
            x=x, y=y, sample_weight=sample_weight, batch_size=batch_size, steps_per_epoch=steps, shuffle=False,
            steps_per_execution=self.steps_per_execution)
        self._rows_vary = batches.rows_vary
        self._maybe_symbolic_build(iterator=batches)
        batches.reset()
        if not isinstance(callbacks, callbacks_module.CallbackList):
            callbacks = callbacks_module.CallbackList(callbacks, add_progbar=verbose != 0, verbose=verbose, epochs=1,
                                                      steps=batches.num_batches, model=self)
        self.make_test_function()
        self.stop_evaluating = False
        callbacks.on_test_begin()
        logs = {}
        self.reset_metrics()
        whole = self._whole_epoch(batches, callbacks, "test", self.test_function)
        logs = self._test_steps(batches, callbacks) if whole is None else whole
        logs = pythonify_logs(self._get_metrics_result_or_logs(logs))
        callbacks.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    def _test_steps(self, batches, callbacks):
        logs = {}
        with batches.catch_stop_iteration():
            for begin_step, end_step, iterator in batches:
                callbacks.on_test_batch_begin(begin_step)
                logs = self.test_function(iterator)
                callbacks.on_test_batch_end(end_step, logs)
                if self.stop_evaluating:
                    break
        return logs

    @traceback_utils.filter_traceback
    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        batches = _steps.Epochs(x=x, batch_size=batch_size, steps_per_epoch=steps, shuffle=False,
                                steps_per_execution=self.steps_per_execution)
        if not isinstance(callbacks, callbacks_module.CallbackList):
            callbacks = callbacks_module.CallbackList(callbacks, add_progbar=verbose != 0, verbose=verbose, epochs=1,
                                                      steps=batches.num_batches, model=self)
        self._rows_vary = False
        self.make_predict_function()
        self.stop_predicting = False
        callbacks.on_predict_begin()
        whole = self._whole_epoch(batches, callbacks, "predict", self.predict_function)
        if whole is not None:
            callbacks.on_predict_end()
            return tree.map_structure(_steps.to_numpy, whole)
        outputs = []
        with batches.catch_stop_iteration():
            for begin_step, end_step, iterator in batches:
                callbacks.on_predict_batch_begin(begin_step)
                made = self.predict_function(_steps.take(iterator, self.steps_per_execution))
                outputs.append(made)
                callbacks.on_predict_batch_end(end_step, {"outputs": made})
                if self.stop_predicting:
                    break
        callbacks.on_predict_end()
        if not outputs:
            raise ValueError("`predict` got no data: the input has no batches.")
        joined = tree.map_structure(lambda *parts: _steps.concat(parts), *outputs)
        return tree.map_structure(_steps.to_numpy, joined)

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError("Arguments `sample_weight` and `class_weight` cannot be specified at the same time. Received: "
                                 f"sample_weight={sample_weight}, class_weight={class_weight}")
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        self._maybe_symbolic_build(data_batch=(x, y, sample_weight))
        return self._on_batch(self.make_train_function(), (x, y, sample_weight), return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._assert_compile_called("test_on_batch")
        self._maybe_symbolic_build(data_batch=(x, y, sample_weight))
        return self._on_batch(self.make_test_function(), (x, y, sample_weight), return_dict)

    def _on_batch(self, function, data, return_dict):
        self._rows_vary = False
        self.reset_metrics()
        logs = pythonify_logs(function(iter([data])))
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    def predict_on_batch(self, x):
        self.make_predict_function()
        return tree.map_structure(_steps.to_numpy, self.predict_function([(x,)]))

    # Names from before Keras 3.

    @property
    def compiled_metrics(self):
        trainer = self

        class DeprecatedCompiledMetric:
            def update_state(self, y, y_pred, sample_weight=None):
                return trainer._compiled_metrics_update_state(y, y_pred, sample_weight=sample_weight)

        return DeprecatedCompiledMetric()

    def _compiled_metrics_update_state(self, y, y_pred, sample_weight=None):
        warnings.warn("`model.compiled_metrics()` is deprecated. Instead, use e.g.:\n```\nfor metric in self.metrics:\n    "
                      "metric.update_state(y, y_pred)\n```\n", stacklevel=2)
        for metric in self.metrics:
            if isinstance(metric, metrics_module.Mean):
                metric.update_state(y_pred, sample_weight=sample_weight)
            else:
                metric.update_state(y, y_pred, sample_weight=sample_weight)

    def compiled_loss(self, y, y_pred, sample_weight=None, regularization_losses=None):
        warnings.warn("`model.compiled_loss()` is deprecated. Instead, use `model.compute_loss(x, y, y_pred, sample_weight, "
                      "training)`.")
        return self.compute_loss(x=None, y=y, y_pred=y_pred, sample_weight=sample_weight)

    def loss(self, y, y_pred, sample_weight=None):
        warnings.warn("`model.loss()` is deprecated. Instead, use `model.compute_loss(x, y, y_pred, sample_weight, training)`.")
        return self.compute_loss(x=None, y=y, y_pred=y_pred, sample_weight=sample_weight)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Without a strategy variables are made when the first step is recorded, as in TensorFlow."""
        if self._distribute_strategy is None:
            return
        if iterator is not None:
            for _, _, batches in iterator:
                data_batch = next(batches)
                break
        with self.distribute_strategy.scope():
            self._symbolic_build(data_batch=data_batch)

    def _aggregate_additional_loss(self, loss):
        return loss_module.scale_loss_for_distribution(super()._aggregate_additional_loss(loss))
