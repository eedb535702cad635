"""What the peer scripts share: the jobs (same shapes and data for all), the timing, the protocol.

A peer script names its ways of doing a row as `Way`s; this file times them the same way that
bench/harness.c times Stoker: warm up, choose an iteration count that fills a slice, then take
slices until the time is used, one sample per slice.

Protocol, one JSON object per line on standard output (bench/README.md describes the keys):

    script --row tiny_step --seconds 1          one row, then end
    script --serve                              lines "ROW SECONDS [PEER/VARIANT ...]" on stdin;
                                                each answered by its samples and {"done": ROW}
"""
import argparse
import dataclasses
import json
import math
import sys
import time
import traceback
from typing import Callable

import numpy as np

SLICE_SECONDS = 0.02
MIN_SLICES = 5
FEW_SLICES = 3  # where these alone take more than twice the time
WARM_SLICES = 5
SANITY_RINGS = 3
UNIT_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


@dataclasses.dataclass(frozen=True)
class Job:
    """One training row: a network, a batch size and `ring` batches that are used in turn."""
    kind: str            # "mlp" or "cnn"
    sizes: tuple         # mlp: layer widths; cnn: input height, width, channels
    batch: int
    ring: int
    loss: str            # "ce" (integer labels) or "mse"
    rate: float = 1e-3   # Adam's learning rate


BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-7

JOBS = {
    "tiny_step": Job("mlp", (100, 128, 10), 10, 100, "ce"),
    "tiny_step_b32": Job("mlp", (100, 128, 10), 32, 100, "ce"),
    "mlp_b512": Job("mlp", (128, 256, 128, 1), 512, 20, "mse"),
    "cnn_step": Job("cnn", (64, 64, 3), 32, 8, "ce", 1e-4),
}
UNITS = {"tiny_step": "us", "tiny_step_b32": "us", "mlp_b512": "us", "cnn_step": "ms",
         "data_images": "ms", "data_shuffle": "ms", "eager_add": "ns", "eager_matmul": "ns",
         "build_time": "ms", "rss": "MB",
         "fit_tiny_step": "us", "fit_tiny_step_b32": "us", "fit_mlp_b512": "us",
         "fit_cnn_step": "ms", "fit_start": "ms", "fit_rss": "MB",
         "record_pipeline": "ms", "photo_folder": "ms", "photo_folder_scaled": "ms", "csv_table": "ms",
         "py_add": "ns", "py_matmul": "ns", "py_step": "us", "py_fit_b32": "us", "py_fit_b512": "us",
         "py_fit_cnn": "ms", "py_batches": "us", "py_import": "ms", "py_first_step": "ms", "py_memory": "MB",
         "record_write": "ms", "record_write_small": "ms", "record_verify": "ms"}
CNN_FILTERS, CNN_CLASSES = 32, 10


def make_data(job):
    """-> x [ring, batch, ...], y [ring, batch] or [ring, batch, 1].

    The second half of the ring repeats the inputs of the first with another answer, so the loss
    cannot reach 0 however long the loop runs. Otherwise gradients would vanish into denormal
    numbers and the row would measure how a framework treats those.
    """
    rng = np.random.default_rng(7)
    half, features = job.ring // 2, int(np.prod(job.sizes[:1] if job.kind == "mlp" else job.sizes))
    shape = (job.ring, job.batch) + (job.sizes[:1] if job.kind == "mlp" else job.sizes)
    x = rng.standard_normal((half, job.batch, features), dtype=np.float32)
    if job.loss == "mse":
        clean = x @ (rng.standard_normal((features, 1)) / math.sqrt(features))
        y = np.concatenate([clean + 0.5, clean - 0.5]).astype(np.float32)
    else:
        first = np.argmax(x @ rng.standard_normal((features, 10)), axis=-1)
        other = (first + rng.integers(1, 10, first.shape)) % 10
        y = np.concatenate([first, other]).astype(np.int32)
    return np.concatenate([x, x]).reshape(shape), y


def glorot(rng, *shape):
    receptive = int(np.prod(shape[:-2]))
    limit = math.sqrt(6.0 / (receptive * (shape[-2] + shape[-1])))
    return rng.uniform(-limit, limit, shape).astype(np.float32)


def make_parameters(job):
    """-> list of numpy arrays w, b, w, b, ...; convolution weights are height, width, in, out."""
    rng = np.random.default_rng(11)
    if job.kind == "mlp":
        layers = [(a, b) for a, b in zip(job.sizes, job.sizes[1:])]
        return [p for a, b in layers for p in (glorot(rng, a, b), np.zeros(b, np.float32))]
    height, width, channels = job.sizes
    flat = ((height - 2) // 2) * ((width - 2) // 2) * CNN_FILTERS
    return [glorot(rng, 3, 3, channels, CNN_FILTERS), np.zeros(CNN_FILTERS, np.float32),
            glorot(rng, flat, CNN_CLASSES), np.zeros(CNN_CLASSES, np.float32)]


@dataclasses.dataclass
class Way:
    """One way a peer can do a row. `make()` builds it and returns what to time."""
    peer: str
    variant: str
    make: Callable[[], "Timed"]


class Timed:
    """run(n) does at least n iterations, finishes them and returns how many it did; or parts of n where an iteration
    would take too long.

    evaluate(), where given, is the mean loss over the ring without an update: it must fall.
    check, where given, are numbers that bench/run compares with Stoker's before any time counts.
    """

    def __init__(self, run, evaluate=None, check=None):
        self.run, self.evaluate, self.check = run, evaluate, check


def time_slices(run, seconds):
    """-> seconds per iteration, one number per slice."""
    count = 1
    while True:
        start = time.perf_counter()
        done = run(count)
        elapsed = time.perf_counter() - start
        if elapsed >= SLICE_SECONDS / 2:
            break
        count = max(count * 2, int(done * SLICE_SECONDS / max(elapsed, 1e-7) / 2))
    count = max(1, int(done * SLICE_SECONDS / elapsed))
    begin = time.perf_counter()
    for _ in range(WARM_SLICES):
        run(count)
        if time.perf_counter() - begin > seconds / 2:
            break
    samples, begin, used = [], time.perf_counter(), 0.0
    while used < seconds or len(samples) < (MIN_SLICES if used < 2 * seconds else FEW_SLICES):
        start = time.perf_counter()
        done = run(count)
        samples.append((time.perf_counter() - start) / done)
        used = time.perf_counter() - begin
    return samples


def peak_rss_mb():
    """VmHWM, not ru_maxrss: the latter survives exec and would count the caller's memory."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024.0
    raise OSError("no VmHWM in /proc/self/status")


class Peer:
    """The ways of one script, kept built between rounds so that each round is steady state."""

    def __init__(self, rows, once):
        self.rows = rows        # {row: [Way, ...]}
        self.once = once        # {row: function -> (peer, variant, value)}, one value per process
        self.built = {}

    def emit(self, **line):
        print(json.dumps(line), flush=True)

    def measure_way(self, row, way, seconds):
        unit, label = UNITS[row], (row, way.peer, way.variant)
        line = {"row": row, "unit": unit, "peer": way.peer, "variant": way.variant}
        if label not in self.built:
            timed = way.make()
            self.built[label] = (timed, timed.evaluate() if timed.evaluate else None)
            if timed.evaluate:
                timed.run(SANITY_RINGS * JOBS[row.removeprefix("fit_")].ring)  # enough for the loss to fall
        timed, loss_first = self.built[label]
        samples = time_slices(timed.run, seconds)
        line["samples"] = [round(s * UNIT_PER_SECOND[unit], 4) for s in samples]
        if timed.check:
            line["check"] = timed.check
        if timed.evaluate:
            line["loss_first"], line["loss_last"] = float(loss_first), float(timed.evaluate())
            if not line["loss_last"] < line["loss_first"]:
                line["error"] = "the loss did not go down"
        return line

    def measure(self, row, seconds, only):
        if row in self.once:
            peer, variant, value = self.once[row]()
            self.emit(row=row, unit=UNITS[row], peer=peer, variant=variant, samples=[value])
            return
        if row not in self.rows:
            self.emit(row=row, error="no such row in this peer")
        for way in self.rows.get(row, []):
            if only and f"{way.peer}/{way.variant}" not in only:
                continue
            try:
                self.emit(**self.measure_way(row, way, seconds))
            except Exception as error:  # one broken way must not take the others along
                traceback.print_exc()
                self.emit(row=row, peer=way.peer, variant=way.variant,
                          error=f"{type(error).__name__}: {str(error)[:300]}")

    def main(self, versions):
        parser = argparse.ArgumentParser()
        parser.add_argument("--row", action="append", default=[])
        parser.add_argument("--seconds", type=float, default=1.0)
        parser.add_argument("--serve", action="store_true")
        arguments = parser.parse_args()
        self.emit(ready=versions)
        for row in arguments.row:
            self.measure(row, arguments.seconds, set())
        if arguments.serve:
            for line in sys.stdin:
                row, seconds, *only = line.split()
                self.measure(row, float(seconds), set(only))
                self.emit(done=row)
