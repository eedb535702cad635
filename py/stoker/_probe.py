"""The doctor's probes on a program's own training, after it has ended.

What `fit` ran as whole epochs becomes a job of the C library's doctor: the recorded step and the batches it ran over, with one thing
changed at a time. A loop of the program's own is run once more without the rest of the program: its recorded step over its
dataset, with one part taken away at a time. Both take turns; what the steps write is put back.
"""
import json
import math
import os
import time

from stoker import _host_books, _stoker

SLICE = 0.025  # seconds of a turn
SECONDS = float(os.environ.get("STOKER_DOCTOR_SECONDS", "12"))


class Kept:
    """The variables of programs, as they are now; back() puts them there again, with the place of their random numbers."""

    def __init__(self, concretes):
        concretes = list(concretes)
        self._variables, self._programs = {}, [c._program for c in concretes]
        for c in concretes:
            for v in c.variables:
                if id(v) not in self._variables:
                    self._variables[id(v)] = v, v.numpy()

    def back(self):
        for v, value in self._variables.values():
            v.assign(value)
        for p in self._programs:
            p.set_step(p.runs)


# fit, by the doctor of the library.

def examine_fit():
    """(text, report, HTML) of the longest fit; None: there was none that ran as whole epochs."""
    rows = [r for r in _host_books.fits.values() if r["count"] >= 2]
    if not rows:
        return None
    row = max(rows, key=lambda r: r["seconds"])
    source, function = row["source"], row["steps"].function
    kept, known = Kept(c for c, _ in row["steps"].made.values()), {}

    def program_for(parts, threads):
        key = threads, tuple((p.dtype.name, tuple(p.shape.as_list())) for p in parts)
        if key not in known:
            known[key] = _program(function, source.pack(parts), parts, threads)
        return known[key]

    in_batches = source.in_batches
    source.epochs.end()
    _host_books.on = False  # what follows is no part of the program
    try:
        text, report, page = _stoker.examine(row["model"], source.epochs, program_for, in_batches, source.samples or 0,
                                             row["count"] // row["epochs"], row["count"], SECONDS)
    finally:
        kept.back()
    return text, json.loads(report), page


def _program(function, batch, parts, threads):
    """(program, part of each input, nothing else) of the step for a batch like this one."""
    from stoker.tf import _function

    call = _function._Call((batch,), {})
    if threads:
        _stoker.program_threads(threads)
        try:
            concrete = function._record(call)
        finally:
            _stoker.program_threads(0)
    else:
        concrete = function._traces.get(call.key) or function._trace(call)
    if not isinstance(concrete, _function.Concrete):
        raise RuntimeError("the step has no program for this batch")
    place = {id(p): n for n, p in enumerate(parts)}
    return concrete._program, [place[id(t)] for t in call.tensors], []


# Loops of the program's own.

def gain_of(ratios):
    """(best, low, high) of log ratios: Hodges-Lehmann with the 95 % interval of Wilcoxon's signed ranks."""
    n = len(ratios)
    means = sorted((ratios[i] + ratios[j]) / 2 for i in range(n) for j in range(i, n))
    share = [1.0]
    for rank in range(1, n + 1):
        share = [(share[s] if s < len(share) else 0.0) / 2 + (share[s - rank] / 2 if s >= rank and s - rank < len(share) else 0.0)
                 for s in range(rank * (rank + 1) // 2 + 1)]
    below, k = 0.0, -1
    while below + share[k + 1] <= 0.025:
        k += 1
        below += share[k]
    middle = (means[(len(means) - 1) // 2] + means[len(means) // 2]) / 2
    k = max(k, 0)
    return tuple(math.exp(v) for v in (middle, means[k], means[-1 - k]))


class Variant:
    def __init__(self, name, run):
        self.name, self.run, self.steps = name, run, 1

    def turn(self):
        """Seconds of a step."""
        self.run(max(1, self.steps // 4))
        begun = time.perf_counter()
        self.run(self.steps)
        return (time.perf_counter() - begun) / self.steps

    def settle(self):
        while True:
            begun = time.perf_counter()
            self.run(self.steps)
            took = time.perf_counter() - begun
            if took > SLICE / 2 or self.steps >= 1 << 16:
                self.steps = max(1, int(self.steps * SLICE / max(took, 1e-9)))
                return
            self.steps *= 2


def compare(a, b, seconds, least=6, most=20):
    """How much faster b is than a, and the seconds of a step of both."""
    ratios, times, until = [], ([], []), time.perf_counter() + seconds
    while len(ratios) < least or (len(ratios) < most and time.perf_counter() < until):
        order = (0, 1) if len(ratios) % 2 == 0 else (1, 0)
        took = [0.0, 0.0]
        for which in order:
            took[which] = (a, b)[which].turn()
        times[0].append(took[0]), times[1].append(took[1])
        ratios.append(math.log(took[0] / took[1]))
    return gain_of(ratios), min(times[0]), min(times[1])


class Loop:
    """The recorded step that ran most often, and the dataset whose batches it takes."""

    def __init__(self, function, concrete, dataset, leaf, reads):
        self.function, self.concrete, self.dataset, self.leaf, self.reads = function, concrete, dataset, leaf, reads
        self.given = [None if n >= 0 else t for n, t in zip(leaf, concrete._call.tensors)]
        self.program = concrete._program
        self.endless = dataset.repeat()
        self._walk, self._batch = iter(self.endless), None
        self.epochs = _stoker.Epochs(self.endless._pipe)
        self.epochs.begin(0)

    def _next(self):
        from stoker.tf import nest

        while True:
            parts = nest.flatten(next(self._walk))
            if all(n < 0 or parts[n].shape.as_list() == t.shape.as_list() for n, t in zip(self.leaf, self.concrete._call.tensors)):
                return [parts[n] if n >= 0 else g for n, g in zip(self.leaf, self.given)]

    def as_it_is(self, steps):
        for _ in range(steps):
            made = self.program(*self._next())
            if self.reads and made:
                made[0].numpy()

    def without_reading(self, steps):
        for _ in range(steps):
            self.program(*self._next())

    def one_batch(self, steps):
        if self._batch is None:
            self._batch = self._next()
        for _ in range(steps):
            made = self.program(*self._batch)
            if self.reads and made:
                made[0].numpy()

    def only_batches(self, steps):
        for _ in range(steps):
            self._next()

    def in_engine(self, steps):
        done = 0
        while done < steps:
            self.epochs.again()
            end, now, _ = self.epochs.run(self.program, self.leaf, self.given, steps - done, 0.0)
            done += now
            if end == "shape":
                self.epochs.take()
            elif end != "steps":
                self.epochs.begin(0)


def _fits(concrete, dataset):
    """Which part of the dataset's elements each input of the program is; None: they have nothing in common."""
    epochs = _stoker.Epochs(dataset._pipe)
    epochs.begin(0)
    parts = epochs.peek()
    epochs.end()
    free = list(range(len(parts or ())))
    leaf = []
    for t in concrete._call.tensors:
        same = [n for n in free if parts[n].dtype == t.dtype and parts[n].shape.as_list() == t.shape.as_list()]
        leaf.append(same[0] if same else -1)
        if same:
            free.remove(same[0])
    return leaf if any(n >= 0 for n in leaf) else None


def find_loop(times):
    """times: of the books."""
    from stoker.tf.data import _structure

    found = []
    for f in _host_books.recorded:
        for c in f._traces.values():
            if hasattr(c, "_program") and c._program.runs >= 10:
                found.append((c._program.runs, f, c))
    for runs, f, c in sorted(found, key=lambda row: -row[0])[:4]:
        for dataset in reversed(list(_host_books.walked.values())):
            plain = all(hasattr(s, "dtype") and s.dtype.name != "string" for s in _structure.leaves(dataset.element_spec))
            leaf = _fits(c, dataset) if plain and dataset._pipe is not None else None
            if leaf is not None:
                return Loop(f, c, dataset, leaf, times.get("read", 0) > runs / 2), runs
    return None, 0


PARTS = [("in the engine", "in_engine", "the same steps run by the engine (model.fit, whole epochs)"),
         ("one batch", "one_batch", "one batch used again and again (free input)"),
         ("not read", "without_reading", "results not read back at every step"),
         ("batches alone", "only_batches", "batches made and thrown away (free model)")]


def examine_loop(times):
    """What the program's own loop could gain at most; None: there is no loop that could be run again."""
    loop, runs = find_loop(times)
    if loop is None:
        return None
    _host_books.on = False
    kept = Kept([loop.concrete])
    try:
        base, twin = Variant("loop", loop.as_it_is), Variant("loop", loop.as_it_is)
        base.settle()
        twin.steps = base.steps
        each = SECONDS / (len(PARTS) + 1) / 2
        same, step, _ = compare(base, twin, each)
        noise = max(abs(math.log(same[1])), abs(math.log(same[2])))
        rows = []
        for key, run, text in PARTS:
            if key == "not read" and not loop.reads:
                continue
            other = Variant(key, getattr(loop, run))
            other.settle()
            gain, _, seconds = compare(base, other, each)
            rows.append({"part": key, "text": text, "gain": dict(zip(("best", "low", "high"), gain)), "step_seconds": seconds})
    finally:
        kept.back()
    name, file, line = _host_books.place_of(loop.function)
    return {"function": name, "file": _host_books.short(file), "line": line, "runs": runs, "noise": noise, "step_seconds": step,
            "ceilings": rows}
