#!/usr/bin/env python3
"""TensorFlow's side of the benchmark rows.

    function        @tf.function step with the Keras Adam optimizer, called once per step
    function_raw    the same with the fused ResourceApplyAdam kernel, called as concrete function
    xla             function_raw with jit_compile=True
    while           the whole ring in one call, an in-graph loop around function_raw's body
    while_xla       the same with jit_compile=True
    fit             Keras' fit over shuffled arrays (rows fit_*)
    fit_xla         the same with jit_compile=True
"""
import itertools
import os
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import common
import inputs
import tensorflow as tf


def forward(job, parameters, x):
    if job.kind == "cnn":
        kernel, bias, *parameters = parameters
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "VALID"), bias))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.reshape(x, (x.shape[0], -1))
    while len(parameters) > 2:
        x = tf.nn.relu(tf.nn.bias_add(x @ parameters[0], parameters[1]))
        parameters = parameters[2:]
    return tf.nn.bias_add(x @ parameters[0], parameters[1])


class Training:
    def __init__(self, job):
        self.job = job
        self.x, self.y = (tf.constant(a) for a in common.make_data(job))
        self.parameters = [tf.Variable(p) for p in common.make_parameters(job)]
        self.batches = [(self.x[i], self.y[i]) for i in range(job.ring)]

    def loss(self, x, y):
        out = forward(self.job, self.parameters, x)
        if self.job.loss == "ce":
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=out)
            return tf.reduce_mean(each)
        return tf.reduce_mean(tf.math.squared_difference(out, y))

    def gradients(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss(x, y)
        return loss, tape.gradient(loss, self.parameters)

    def keras_step(self):
        optimizer = tf.keras.optimizers.Adam(self.job.rate, common.BETA1, common.BETA2,
                                             common.EPSILON)
        optimizer.build(self.parameters)

        def step(x, y):
            loss, gradients = self.gradients(x, y)
            optimizer.apply_gradients(zip(gradients, self.parameters))
            return loss

        return step

    def raw_step(self):
        moments = [(tf.Variable(tf.zeros_like(p)), tf.Variable(tf.zeros_like(p)))
                   for p in self.parameters]
        power1, power2 = tf.Variable(common.BETA1), tf.Variable(common.BETA2)

        def step(x, y):
            loss, gradients = self.gradients(x, y)
            now1, now2 = power1.read_value(), power2.read_value()
            for p, (m, v), g in zip(self.parameters, moments, gradients):
                tf.raw_ops.ResourceApplyAdam(
                    var=p.handle, m=m.handle, v=v.handle, beta1_power=now1, beta2_power=now2,
                    lr=self.job.rate, beta1=common.BETA1, beta2=common.BETA2,
                    epsilon=common.EPSILON, grad=g)
            power1.assign(now1 * common.BETA1)
            power2.assign(now2 * common.BETA2)
            return loss

        return step

    def evaluate(self):
        loss = tf.function(self.loss)
        return sum(float(loss(x, y)) for x, y in self.batches) / len(self.batches)

    def per_step(self, step, xla=False, concrete=True):
        function = tf.function(step, jit_compile=xla)
        if concrete:
            function = function.get_concrete_function(*self.batches[0])

        turn = itertools.cycle(self.batches)

        def run(count):
            for x, y in itertools.islice(turn, count):
                loss = function(x, y)
            loss.numpy()
            return count

        return common.Timed(run, self.evaluate)

    def in_loop(self, step, xla=False):
        def ring_of_steps(x, y):
            loss = tf.constant(0.0)
            for i in tf.range(self.job.ring):
                loss = step(x[i], y[i])
            return loss

        function = tf.function(ring_of_steps, jit_compile=xla)
        function = function.get_concrete_function(self.x, self.y)

        def run(count):
            calls = -(-count // self.job.ring)
            for _ in range(calls):
                loss = function(self.x, self.y)
            loss.numpy()
            return calls * self.job.ring

        return common.Timed(run, self.evaluate)


def make(job, kind, xla=False):
    training = Training(job)
    if kind == "function":
        return training.per_step(training.keras_step(), concrete=False)
    if kind == "while":
        return training.in_loop(training.raw_step(), xla)
    return training.per_step(training.raw_step(), xla)


def keras_model(job, xla=False):
    layers = tf.keras.layers
    if job.kind == "cnn":
        parts = [layers.Input(job.sizes), layers.Conv2D(common.CNN_FILTERS, 3, activation="relu"),
                 layers.MaxPooling2D(2), layers.Flatten(), layers.Dense(common.CNN_CLASSES)]
    else:
        parts = [layers.Input(job.sizes[:1])]
        parts += [layers.Dense(n, activation="relu") for n in job.sizes[1:-1]]
        parts += [layers.Dense(job.sizes[-1])]
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True) if job.loss == "ce" else "mse"
    model = tf.keras.Sequential(parts)
    model.compile(tf.keras.optimizers.Adam(job.rate), loss, jit_compile=xla)
    return model


def fit(job, xla=False):
    x, y = common.make_data(job)
    x, y = x.reshape((-1,) + x.shape[2:]), y.reshape((-1,) + y.shape[2:])
    model = keras_model(job, xla)

    def run(count):
        epochs = -(-count // job.ring)
        model.fit(x, y, batch_size=job.batch, epochs=epochs, shuffle=True, verbose=0)
        return epochs * job.ring

    return common.Timed(run, lambda: model.evaluate(x, y, batch_size=job.batch, verbose=0))


FIRST_STEP = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np, tensorflow as tf
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input((100,)), layers.Dense(128, activation="relu"), layers.Dense(10)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(np.ones((10, 100), "f4"), np.arange(10), batch_size=10, verbose=0)
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")][0])
"""


def first_step():
    """-> seconds from the start of a process to the end of its first step, and its peak in MB."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", FIRST_STEP], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, int(done.stdout.split()[-1]) / 1024.0


def fit_start():
    first_step()  # brings the files into memory
    return "tensorflow", "fit", first_step()[0] * 1e3


def fit_rss():
    return "tensorflow", "fit", first_step()[1]


def eager(operation):
    a, b = tf.random.uniform((10, 10)), tf.random.uniform((10, 10))

    def run(count):
        for _ in range(count):
            c = operation(a, b)
        c.numpy()
        return count

    return common.Timed(run)


def build_time():
    training = Training(common.JOBS["tiny_step"])
    start = time.perf_counter()
    training.per_step(training.raw_step()).run(1)
    return "tensorflow", "function_raw", (time.perf_counter() - start) * 1e3


def rss():
    make(common.JOBS["tiny_step"], "function_raw").run(200)
    return "tensorflow", "function_raw", common.peak_rss_mb()


def training_ways(row):
    job = common.JOBS[row]
    ways = [common.Way("tensorflow", "function", lambda: make(job, "function")),
            common.Way("tensorflow", "function_raw", lambda: make(job, "function_raw")),
            common.Way("tensorflow_loop", "while", lambda: make(job, "while"))]
    if job.kind == "mlp":  # XLA's convolution on a CPU is several times slower than any other
        ways += [common.Way("tensorflow", "xla", lambda: make(job, "function_raw", True)),
                 common.Way("tensorflow_loop", "while_xla", lambda: make(job, "while", True))]
    return ways


ROWS = {row: training_ways(row) for row in common.JOBS}
ROWS["eager_add"] = [
    common.Way("tensorflow", "operator", lambda: eager(lambda a, b: a + b)),
    common.Way("tensorflow", "raw_ops", lambda: eager(lambda a, b: tf.raw_ops.AddV2(x=a, y=b)))]
ROWS["eager_matmul"] = [
    common.Way("tensorflow", "operator", lambda: eager(lambda a, b: a @ b)),
    common.Way("tensorflow", "raw_ops", lambda: eager(lambda a, b: tf.raw_ops.MatMul(a=a, b=b)))]

for row, job in common.JOBS.items():
    ROWS["fit_" + row] = [common.Way("tensorflow", "fit", lambda job=job: fit(job))]
    if job.kind == "mlp":
        ROWS["fit_" + row].append(common.Way("tensorflow", "fit_xla", lambda job=job: fit(job, True)))

ROWS.update(inputs.tf_rows(tf))

if __name__ == "__main__":
    common.Peer(ROWS, {"build_time": build_time, "rss": rss, "fit_start": fit_start,
                       "fit_rss": fit_rss}).main({"tensorflow": tf.__version__})
