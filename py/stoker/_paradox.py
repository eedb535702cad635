"""python -m stoker paradox: why a small training is slow, measured here.

    python -m stoker paradox [--only 3,5] [--device NAME,...] [--seconds S] [--html FILE] [--json] [--python]

First what `stoker paradox` measures, on every device: six causes, each as people write it and cured, in turns. Then the same six in Python, as a
program of TensorFlow and Keras has them. --python: that part alone. doc/paradox.md explains the rows.
"""
import argparse
import itertools
import json
import math
import sys
import time

from stoker import _stoker

SECONDS = 1.0  # of turns for a row in Python, about
_CRITICAL = {6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 12: 13}  # Wilcoxon's signed ranks, 95 %


# ---- the rows: each gives (as written, cured), two functions that do the same work -------------------------------------------------


def _tools():
    import keras
    import numpy as np
    import tensorflow as tf

    return np, tf, keras, np.random.default_rng(1)


def _dense(keras):
    model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def _rows(np, rng, count):
    x = rng.random((count, 32), "float32")
    return x, (x[:, 0] * 10).astype("int32")


def pictures():
    np, tf, keras, rng = _tools()
    x, y = rng.random((256, 48, 48, 3), "float32"), rng.integers(0, 10, 256)

    def augment(image, label):
        image = tf.image.random_flip_left_right(image)
        image = tf.image.random_saturation(tf.image.random_brightness(image, 0.2), 0.7, 1.3)
        return tf.image.random_contrast(image, 0.7, 1.3), label

    def training(data):
        model = keras.Sequential([keras.Input((48, 48, 3)), keras.layers.Conv2D(8, 3, 2, activation="relu"),
                                  keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)])
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return lambda: model.fit(data, verbose=0, shuffle=False)

    data = tf.data.Dataset.from_tensor_slices((x, y))
    return (training(data.map(augment).batch(32)),
            training(data.map(augment, num_parallel_calls=tf.data.AUTOTUNE).batch(32).prefetch(tf.data.AUTOTUNE)))


def start():
    np, tf, keras, rng = _tools()
    x, y = _rows(np, rng, 32)
    once = _dense(keras)
    return lambda: _dense(keras).train_on_batch(x, y), lambda: once.train_on_batch(x, y)


def batches():
    np, tf, keras, rng = _tools()
    x, y = _rows(np, rng, 4096)
    small, large = _dense(keras), _dense(keras)
    return (lambda: small.fit(x, y, batch_size=8, verbose=0, shuffle=False),
            lambda: large.fit(x, y, batch_size=512, verbose=0, shuffle=False))


def epoch():
    np, tf, keras, rng = _tools()
    data = tf.data.Dataset.from_tensor_slices(_rows(np, rng, 20000))

    def scale(x, y):
        return (x - 0.5) * 2, y

    def training(data):
        model = _dense(keras)
        return lambda: model.fit(data, verbose=0, shuffle=False)

    return (training(data.map(scale).batch(250)),
            training(data.batch(250).map(scale, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)))


def _calls(operation):
    np, tf, keras, rng = _tools()
    a, b = (tf.constant(rng.random((1000, 10, 10), "float32")) for _ in range(2))
    pairs = list(zip(tf.unstack(a), tf.unstack(b)))

    def one_by_one():
        for x, y in pairs:
            operation(tf, x, y)

    return one_by_one, lambda: operation(tf, a, b)


def adds():
    return _calls(lambda tf, x, y: x + y)


def products():
    return _calls(lambda tf, x, y: tf.matmul(x, y))


def host_layer():
    np, tf, keras, rng = _tools()
    x, y = rng.random((256, 24, 24, 3), "float32"), rng.integers(0, 10, 256)

    class Swish(keras.layers.Layer):
        def __init__(self, native):
            super().__init__()
            self.native = native

        def compute_output_shape(self, shape):
            return shape

        def call(self, x):
            if self.native:
                return x * tf.sigmoid(x)
            y = tf.py_function(lambda x: x * tf.sigmoid(x), [x], tf.float32)
            return tf.ensure_shape(y, x.shape)

    def training(native):
        model = keras.Sequential([keras.Input((24, 24, 3)), keras.layers.Conv2D(16, 3), Swish(native),
                                  keras.layers.Conv2D(16, 3, 2), keras.layers.GlobalAveragePooling2D(),
                                  keras.layers.Dense(10)])
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return lambda: model.fit(x, y, batch_size=32, verbose=0, shuffle=False)

    return training(False), training(True)


def read_back():
    np, tf, keras, rng = _tools()
    x, y = (tf.constant(part) for part in _rows(np, rng, 32))
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def loop(read):
        model, optimizer = _dense(keras), keras.optimizers.Adam()
        optimizer.build(model.trainable_variables)

        @tf.function
        def step(x, y):
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True))
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
            return loss

        def run():
            for _ in range(100):
                loss = step(x, y)
                if read:
                    float(loss)
            return float(loss)

        return run

    return loop(True), loop(False)


# id, the function above, per, how many `per` one call of it is, as written, cured
ROWS = (
    ("1", pictures, "picture", 256, "ds.map(augment).batch(32)",
     "ds.map(augment, num_parallel_calls=AUTOTUNE).batch(32).prefetch(AUTOTUNE)"),
    ("2", start, "step", 1, "model = make(); model.train_on_batch(x, y)", "model.train_on_batch(x, y), the model made before"),
    ("3", batches, "1000 samples", 4.096, "model.fit(x, y, batch_size=8)", "model.fit(x, y, batch_size=512)"),
    ("4", epoch, "100 000 samples", 0.2, "ds.map(scale).batch(250)",
     "ds.batch(250).map(scale, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)"),
    ("5a", adds, "million adds", 0.001, "for x, y in pairs: x + y", "a + b, both stacked"),
    ("5b", products, "million products", 0.001, "for x, y in pairs: tf.matmul(x, y)", "tf.matmul(a, b), both stacked"),
    ("6a", host_layer, "step", 8, "tf.py_function(swish, [x], tf.float32)", "x * tf.sigmoid(x)"),
    ("6b", read_back, "step", 100, "float(step(x, y)) in every step", "float(loss) behind the loop"),
)


# ---- measuring by turns --------------------------------------------------------------------------------------------------------------


def _interval(logs):
    """Hodges-Lehmann's estimate and the 95 % interval of Wilcoxon's signed ranks, as the engine has them (src/watch/stats.c)."""
    means = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(logs, 2))
    k = _CRITICAL[len(logs)]
    middle = (means[(len(means) - 1) // 2] + means[len(means) // 2]) / 2
    return math.exp(middle), math.exp(means[k]), math.exp(means[-1 - k])


def _turn(function, times):
    begun = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - begun) / times


def _measure(make, seconds):
    """Seconds of one call as written, and the gain with its interval."""
    sides = make()
    times = []
    for side in sides:
        side()  # records and compiles
        once = min(_turn(side, 1), _turn(side, 1))
        times.append(max(1, round(seconds / 20 / max(once, 1e-7))))
    logs, written, until = [], [], time.perf_counter() + seconds
    while len(logs) < 6 or (len(logs) < max(_CRITICAL) and time.perf_counter() < until):
        order = (0, 1) if len(logs) % 2 == 0 else (1, 0)
        took = {side: _turn(sides[side], times[side]) for side in order}
        written.append(took[0])
        logs.append(math.log(took[0] / took[1]))
    return sorted(written)[len(written) // 2], _interval(logs)


def _judge(low, high):
    if low > 1:
        return "faster"
    if high < 1:
        return "slower"
    return "no difference" if high / low < 1.15 else "too noisy"


def _time(seconds):
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.3g} ns"


def run(only, seconds, tell):
    """The rows that are asked for, as dicts; tell(text) as they come."""
    found = []
    if tell:
        tell(f"\nIn Python:\n     {'experiment':36} {'as written':>11} {'cured':>11}   gain\n")
    for name, make, per, count, written, cured in ROWS:
        if only and not any(name == word or name.rstrip("ab") == word or word == name + "a" for word in only):
            continue
        took, (best, low, high) = _measure(make, seconds)
        judged = _judge(low, high)
        row = {"id": name, "per": per, "written": written, "cured": cured, "judged": judged,
               "as_written_seconds": took / count, "cured_seconds": took / count / best,
               "gain": {"best": best, "low": low, "high": high}}
        found.append(row)
        if tell:
            digits = 2 if best < 9.995 else 1 if best < 99.95 else 0
            tell(f"{name:5}{'per ' + per:36} {_time(took / count):>11} {_time(took / count / best):>11}   "
                 f"{best:.{digits}f}x ({low:.{digits}f}-{high:.{digits}f}){'' if low > 1 else ' ' + judged}\n"
                 f"     what   {written}\n     cured  {cured}\n")
    return found


def main(arguments):
    parser = argparse.ArgumentParser(prog="python -m stoker paradox", usage=__doc__.split("\n\n")[1].strip(),
                                     description="\n".join(__doc__.split("\n\n")[2:]))
    for option, text in (("--only", "these causes (3) or rows (5b) alone"), ("--device", "these devices of the engine"),
                         ("--html", "write a page about the devices")):
        parser.add_argument(option, help=text)
    parser.add_argument("--seconds", type=float, default=30.0, help="about how long to measure on each device")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--python", action="store_true", help="the rows in Python alone")
    options = parser.parse_args(arguments)
    if options.seconds <= 0:
        parser.error("--seconds must be above 0")
    only = [word for word in (options.only or "").replace(",", " ").split()]
    known = {name for row in ROWS for name in (row[0], row[0].rstrip("ab"))} | {"1a", "1b"}
    for word in only:
        if word not in known:
            parser.error(f"there is no experiment '{word}'; there are {', '.join(sorted(known))}")

    def tell(text):
        print(text, end="", flush=True)

    listener = None if options.json else tell
    told = {}
    try:
        if not options.python:
            devices = tuple((options.device or "").replace(",", " ").split())
            told = json.loads(_stoker.paradox(options.only, devices, options.seconds, options.html, listener))
        told["python"] = run(only, min(SECONDS, options.seconds / 10), listener)
    except KeyboardInterrupt:
        print("\npython -m stoker paradox: interrupted", file=sys.stderr)
        return 130
    if options.json:
        print(json.dumps(told, indent=2))
    return 0
