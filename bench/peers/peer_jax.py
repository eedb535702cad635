#!/usr/bin/env python3
"""JAX's side of the benchmark rows: jit with donated state, and lax.scan over the whole ring."""
import itertools
import time

import common
import inputs
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def forward(job, parameters, x):
    if job.kind == "cnn":
        kernel, bias, *parameters = parameters
        x = lax.conv_general_dilated(x, kernel, (1, 1), "VALID",
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x + bias)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = x.reshape(x.shape[0], -1)
    while len(parameters) > 2:
        x = jax.nn.relu(x @ parameters[0] + parameters[1])
        parameters = parameters[2:]
    return x @ parameters[0] + parameters[1]


def loss_function(job):
    def cross_entropy(parameters, x, y):
        log_p = jax.nn.log_softmax(forward(job, parameters, x))
        return -jnp.mean(jnp.take_along_axis(log_p, y[:, None], axis=1))

    def mean_square(parameters, x, y):
        return jnp.mean((forward(job, parameters, x) - y) ** 2)

    return cross_entropy if job.loss == "ce" else mean_square


def adam_step(job, loss):
    def step(state, batch):
        parameters, first, second, count = state
        value, gradients = jax.value_and_grad(loss)(parameters, *batch)
        count = count + 1
        rate = job.rate * jnp.sqrt(1 - common.BETA2**count) / (1 - common.BETA1**count)
        first = [common.BETA1 * m + (1 - common.BETA1) * g for m, g in zip(first, gradients)]
        second = [common.BETA2 * v + (1 - common.BETA2) * g * g for v, g in zip(second, gradients)]
        parameters = [p - rate * m / (jnp.sqrt(v) + common.EPSILON)
                      for p, m, v in zip(parameters, first, second)]
        return (parameters, first, second, count), value

    return step


class Training:
    def __init__(self, job):
        x, y = common.make_data(job)
        self.job, self.x, self.y = job, jnp.asarray(x), jnp.asarray(y)
        parameters = [jnp.asarray(p) for p in common.make_parameters(job)]
        self.state = (parameters, [jnp.zeros_like(p) for p in parameters],
                      [jnp.zeros_like(p) for p in parameters], jnp.float32(0))
        self.loss = loss_function(job)
        self.step = adam_step(job, self.loss)

    def evaluate(self):
        function = jax.jit(self.loss)
        batches = range(self.job.ring)
        return sum(float(function(self.state[0], self.x[i], self.y[i])) for i in batches) / len(batches)

    def per_step(self):
        step = jax.jit(self.step, donate_argnums=0)
        turn = itertools.cycle([(self.x[i], self.y[i]) for i in range(self.job.ring)])

        def run(count):
            state = self.state
            for batch in itertools.islice(turn, count):
                state, _ = step(state, batch)
            self.state = jax.block_until_ready(state)
            return count

        return common.Timed(run, self.evaluate)

    def in_scan(self):
        function = jax.jit(lambda state, x, y: lax.scan(self.step, state, (x, y)),
                           donate_argnums=0)

        def run(count):
            calls = -(-count // self.job.ring)
            for _ in range(calls):
                self.state, _ = function(self.state, self.x, self.y)
            jax.block_until_ready(self.state)
            return calls * self.job.ring

        return common.Timed(run, self.evaluate)


def eager(operation):
    a = jnp.asarray(common.np.random.default_rng(3).random((10, 10), common.np.float32))
    b = jnp.asarray(common.np.random.default_rng(4).random((10, 10), common.np.float32))

    def run(count):
        for _ in range(count):
            c = operation(a, b)
        jax.block_until_ready(c)
        return count

    return common.Timed(run)


def build_time():
    training = Training(common.JOBS["tiny_step"])
    batch = jax.block_until_ready((training.x[0], training.y[0]))
    start = time.perf_counter()
    jax.block_until_ready(jax.jit(training.step, donate_argnums=0)(training.state, batch))
    return "jax", "jit", (time.perf_counter() - start) * 1e3


def rss():
    Training(common.JOBS["tiny_step"]).per_step().run(200)
    return "jax", "jit", common.peak_rss_mb()


def training_ways(row):
    job = common.JOBS[row]
    return [common.Way("jax", "jit", lambda: Training(job).per_step()),
            common.Way("jax_scan", f"scan{job.ring}", lambda: Training(job).in_scan())]


ROWS = {row: training_ways(row) for row in common.JOBS}
ROWS["py_step"] = training_ways("tiny_step")
ROWS["eager_add"] = [
    common.Way("jax", "operator", lambda: eager(lambda a, b: a + b)),
    common.Way("jax", "jit", lambda: eager(jax.jit(lambda a, b: a + b)))]
ROWS["eager_matmul"] = [
    common.Way("jax", "operator", lambda: eager(lambda a, b: a @ b)),
    common.Way("jax", "jit", lambda: eager(jax.jit(lambda a, b: a @ b)))]


def input_images(threads):
    """grain is JAX's own input library; its threads, as its workers cost more on two processors. Read ahead are as many
    batches as there are threads: its own 500 would be 12 GB."""
    import grain
    images = inputs.make_images()

    class Augment(grain.transforms.RandomMap):
        def random_map(self, image, rng):
            image = image.astype(np.float32) / np.float32(255) + np.float32(rng.uniform(-0.1, 0.1))
            return image[:, ::-1] if rng.random() < 0.5 else image

    source = grain.MapDataset.source(images).seed(1).repeat()
    plain = source.map(lambda image: image.astype(np.float32) / np.float32(255))
    data = source.random_map(Augment())
    options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=threads)
    return inputs.stream(iter(plain.batch(inputs.BATCH).to_iter_dataset(options)),
                         iter(data.batch(inputs.BATCH).to_iter_dataset(options)), inputs.IMAGE_STEP, part=0.3,
                         check=lambda batches: inputs.check_images(next(batches)))


def input_shuffle():
    import grain
    source = grain.MapDataset.source(np.arange(inputs.SCALARS, dtype=np.float32))
    data = source.shuffle(seed=1).repeat().batch(inputs.BATCH)
    return inputs.stream(iter(source.batch(inputs.BATCH).to_iter_dataset()),
                         iter(data.to_iter_dataset()), inputs.SCALAR_STEP, part=0.05,
                         check=lambda it: inputs.check_shuffled([next(it) for _ in range(300)]))


ROWS["data_images"] = [common.Way("jax", "grain, 2 threads", lambda: input_images(2)),
                       common.Way("jax", "grain, 8 threads", lambda: input_images(8))]
ROWS["data_shuffle"] = [common.Way("jax", "grain", input_shuffle)]

if __name__ == "__main__":
    common.Peer(ROWS, {"build_time": build_time, "rss": rss}).main({"jax": jax.__version__})
