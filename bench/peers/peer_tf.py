#!/usr/bin/env python3
"""TensorFlow's side of the benchmark rows.

    function        @tf.function step with the Keras Adam optimizer, called once per step
    function_raw    the same with the fused ResourceApplyAdam kernel, called as concrete function
    xla             function_raw with jit_compile=True
    while           the whole ring in one call, an in-graph loop around function_raw's body
    while_xla       the same with jit_compile=True
"""
import itertools
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import common
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

if __name__ == "__main__":
    common.Peer(ROWS, {"build_time": build_time, "rss": rss}).main({"tensorflow": tf.__version__})
