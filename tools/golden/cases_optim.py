"""Optimizers: parameters after each of 6 updates with given gradients. The update order, where epsilon
stands, bias correction and weight decay differ between frameworks; these are Keras'."""
import keras
import numpy as np
import tensorflow as tf
from case import Case, Values

STEPS, SIZE = 6, 7

# name, class, arguments; everything else at Keras' default, written out in the attributes.
OPTIMIZERS = [
    ("sgd", keras.optimizers.SGD, {"learning_rate": 0.1}),
    ("sgd_momentum", keras.optimizers.SGD, {"learning_rate": 0.1, "momentum": 0.9}),
    ("sgd_nesterov", keras.optimizers.SGD,
     {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    ("adam", keras.optimizers.Adam, {"learning_rate": 0.01}),
    ("adam_amsgrad", keras.optimizers.Adam, {"learning_rate": 0.01, "amsgrad": True}),
    ("adamw", keras.optimizers.AdamW, {"learning_rate": 0.01, "weight_decay": 0.1}),
    ("adamax", keras.optimizers.Adamax, {"learning_rate": 0.01}),
    ("nadam", keras.optimizers.Nadam, {"learning_rate": 0.01}),
    ("rmsprop", keras.optimizers.RMSprop, {"learning_rate": 0.01}),
    ("rmsprop_centered_momentum", keras.optimizers.RMSprop,
     {"learning_rate": 0.01, "momentum": 0.9, "centered": True}),
    ("adagrad", keras.optimizers.Adagrad, {"learning_rate": 0.1}),
    ("adadelta", keras.optimizers.Adadelta, {"learning_rate": 1.0}),
    ("ftrl", keras.optimizers.Ftrl,
     {"learning_rate": 0.1, "l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02}),
    ("lion", keras.optimizers.Lion, {"learning_rate": 0.01}),
    ("adam_clipnorm", keras.optimizers.Adam, {"learning_rate": 0.01, "clipnorm": 0.5}),
]


def plain(config):
    keep = (bool, int, float, str, type(None))
    return {key: round(value, 8) if isinstance(value, float) else value
            for key, value in config.items() if isinstance(value, keep) and key != "name"}


def optimizer_case(name, kind, arguments):
    values = Values(f"optim_{name}")

    def function(start, gradients):
        variable, optimizer = tf.Variable(start), kind(**arguments)
        optimizer.build([variable])
        after = []
        for step in range(STEPS):
            optimizer.apply_gradients([(gradients[step], variable)])
            after.append(np.array(variable))
        return tf.constant(np.stack(after))

    return Case(f"optim_{name}", "optimizer", {"kind": name, **plain(kind(**arguments).get_config())},
                {"start": values.normal(SIZE), "gradients": values.normal(STEPS, SIZE)}, function)


def cases():
    for name, kind, arguments in OPTIMIZERS:
        yield optimizer_case(name, kind, arguments)
