#!/usr/bin/env python3
"""PyTorch's side of the benchmark rows: eager with plain and fused Adam, and torch.compile.

Convolutions are tried in both memory layouts. torch.compile is left out unless
STOKER_BENCH_COMPILE=1: it takes 20 s and more per row and is rarely the fastest at these sizes.
"""
import itertools
import os
import time

import common
import inputs
import torch
from torch.nn import functional


class Network(torch.nn.Module):
    def __init__(self, job):
        super().__init__()
        self.job = job
        values = [torch.from_numpy(p) for p in common.make_parameters(job)]
        if job.kind == "cnn":
            values[0] = values[0].permute(3, 2, 0, 1).contiguous()
        dense = values[2:] if job.kind == "cnn" else values
        dense[0::2] = [w.t().contiguous() for w in dense[0::2]]
        values = values[:2] + dense if job.kind == "cnn" else dense
        self.values = torch.nn.ParameterList([torch.nn.Parameter(v) for v in values])

    def forward(self, x):
        values = list(self.values)
        if self.job.kind == "cnn":
            kernel, bias, *values = values
            x = functional.max_pool2d(functional.relu(functional.conv2d(x, kernel, bias)), 2)
            x = x.flatten(1)
        while len(values) > 2:
            x = functional.relu(functional.linear(x, values[0], values[1]))
            values = values[2:]
        return functional.linear(x, values[0], values[1])


def training(job, fused, compiled=False, channels_last=False):
    x, y = (torch.from_numpy(a) for a in common.make_data(job))
    y = y.long() if job.loss == "ce" else y
    network = Network(job)
    if job.kind == "cnn":
        x = x.permute(0, 1, 4, 2, 3)
        x = [b if channels_last else b.contiguous() for b in x]
        if channels_last:
            network = network.to(memory_format=torch.channels_last)
    batches = list(zip(x, y))
    turn = itertools.cycle(batches)
    optimizer = torch.optim.Adam(network.parameters(), lr=job.rate,
                                 eps=common.EPSILON, fused=fused)
    measure = functional.cross_entropy if job.loss == "ce" else functional.mse_loss

    def loss_of(inputs, targets):
        return measure(network(inputs), targets)

    loss_function = torch.compile(loss_of) if compiled else loss_of

    def run(count):
        for inputs, targets in itertools.islice(turn, count):
            optimizer.zero_grad(set_to_none=True)
            loss_function(inputs, targets).backward()
            optimizer.step()
        return count

    def evaluate():
        with torch.no_grad():
            return sum(loss_of(a, b).item() for a, b in batches) / len(batches)

    return common.Timed(run, evaluate)


def eager(operation):
    a, b = torch.rand(10, 10), torch.rand(10, 10)

    def run(count):
        for _ in range(count):
            operation(a, b)
        return count

    return common.Timed(run)


def build_time():
    start = time.perf_counter()
    training(common.JOBS["tiny_step"], fused=True).run(1)
    return "torch", "fused", (time.perf_counter() - start) * 1e3


def rss():
    training(common.JOBS["tiny_step"], fused=True).run(200)
    return "torch", "fused", common.peak_rss_mb()


def training_ways(row):
    job = common.JOBS[row]
    cnn = job.kind == "cnn"
    layouts = {"": False, "_channels_last": True} if cnn else {"": False}
    ways = []
    for suffix, last in layouts.items():
        for variant, fused in (("adam", False), ("fused", True)):
            ways.append(common.Way("torch", variant + suffix,
                                   lambda f=fused, c=last: training(job, f, False, c)))
    if os.environ.get("STOKER_BENCH_COMPILE") == "1":
        ways.append(common.Way("torch", "compile_fused",
                               lambda: training(job, True, True, cnn)))
    return ways


ROWS = {row: training_ways(row) for row in common.JOBS}
ROWS["eager_add"] = [common.Way("torch", "operator", lambda: eager(lambda a, b: a + b)),
                     common.Way("torch", "function", lambda: eager(torch.add))]
ROWS["eager_matmul"] = [common.Way("torch", "operator", lambda: eager(lambda a, b: a @ b)),
                        common.Way("torch", "function", lambda: eager(torch.mm))]


class Images(torch.utils.data.Dataset):
    def __init__(self, augment):
        self.images, self.augment = torch.from_numpy(inputs.make_images()), augment

    def __len__(self):
        return 1 << 40  # repeated without end

    def __getitem__(self, index):
        image = self.images[index % len(self.images)].to(torch.float32) / 255
        if not self.augment:
            return image
        image = image + torch.empty(()).uniform_(-0.1, 0.1)
        return image.flip(1) if torch.rand(()) < 0.5 else image


class InOrder(torch.utils.data.Sampler):
    def __iter__(self):
        return iter(range(1 << 40))


def input_images():
    def loader(augment, workers):
        return iter(torch.utils.data.DataLoader(Images(augment), batch_size=inputs.BATCH,
                                                sampler=InOrder(), num_workers=workers))

    return inputs.stream(loader(False, 0), loader(True, 2), inputs.IMAGE_STEP, part=0.3,
                         check=lambda batches: inputs.check_images(next(batches)))


def input_shuffle(whole_batches):
    """No worker processes: for scalars they only cost. Repeated by starting again. whole_batches: indices of a batch
    are handed over together, and the batch is one gather."""
    utils = torch.utils.data
    data = utils.TensorDataset(torch.arange(inputs.SCALARS, dtype=torch.float32))

    def loader(shuffle):
        if not whole_batches:
            return utils.DataLoader(data, batch_size=inputs.BATCH, shuffle=shuffle)
        sampler = (utils.RandomSampler if shuffle else utils.SequentialSampler)(data)
        sampler = utils.BatchSampler(sampler, inputs.BATCH, drop_last=False)
        return utils.DataLoader(data, sampler=sampler, batch_size=None)

    def batches(shuffle):
        while True:
            for (batch,) in loader(shuffle):
                yield batch

    return inputs.stream(batches(False), batches(True), inputs.SCALAR_STEP, part=0.05,
                         check=lambda it: inputs.check_shuffled([next(it) for _ in range(300)]))


ROWS["data_images"] = [common.Way("torch", "DataLoader", input_images)]
ROWS["data_shuffle"] = [
    common.Way("torch", "DataLoader", lambda: input_shuffle(False)),
    common.Way("torch", "DataLoader, whole batches", lambda: input_shuffle(True))]

if __name__ == "__main__":
    common.Peer(ROWS, {"build_time": build_time, "rss": rss}).main({"torch": torch.__version__})
