"""Functions for sizes that are not known before: recorded for several, and compared.

Shapes are concrete while a function is traced. So a function with open sizes is recorded a few times with different ones; an integer that
differs is a formula of the open sizes, (factor * product of sizes + rest) // divisor + offset, or of a size of a value that was computed
before, or the function cannot be saved. Constants that
differ are computed again, where the operations that made them are known, or filled, counted up, or made of such integers.
"""
import fractions
import itertools
import math

import numpy as np

from stoker.tf import errors
from stoker.tf._recording import CannotSave, record

# Sizes of the first, second ... open place, one row per recording. Many divisors, so that splits and reshapes work; further rows,
# which may fail, tell a division that rounds down or up from one that is even.
_TRIALS = (((24, 36, 60, 48, 72, 84), (36, 60, 24, 84, 48, 120), (60, 24, 84, 36, 120, 48), (29, 41, 37, 31, 43, 47), (31, 29, 41, 43, 47, 37)),
           ((240, 336, 360, 480, 420, 504), (336, 480, 240, 360, 504, 420), (480, 240, 420, 504, 360, 336), (251, 257, 263, 269, 271, 277),
            (269, 251, 257, 271, 277, 263)),
           ((4, 6, 8, 10, 12, 14), (6, 8, 4, 12, 14, 10), (8, 4, 10, 14, 6, 12), (5, 7, 9, 11, 13, 15), (7, 5, 11, 13, 15, 9)))
_MUST = 3
_FAILURES = (ValueError, TypeError, IndexError, errors.OpError)


def open_places(specs):
    """[(input, axis)] of the sizes that are open."""
    return [(n, axis) for n, (_, shape) in enumerate(specs) for axis, d in enumerate(shape) if d is None]


def _assignments(places):
    """How the open places share sizes: each its own; then those of one axis the same, as inputs of one batch have it; then all the same."""
    yield list(range(len(places)))
    axes = sorted({axis for _, axis in places})
    if len(axes) < len(places):
        yield [axes.index(axis) for _, axis in places]
    if len(places) > 1:
        yield [0] * len(places)


def recordings(name, body, specs, rebuild, may_pin=True):
    """([Recording], places, sizes of the places in each, the specifications with what had to be closed)."""
    places = open_places(specs)
    if not places:
        return [record(name, body, specs, rebuild)], places, [[]], specs
    failure = None
    for shares, rows in itertools.product(_assignments(places), _TRIALS):
        try:
            return _record_all(name, body, specs, rebuild, places, shares, rows)
        except CannotSave:
            raise
        except _FAILURES as error:
            failure = failure or error
    pinned = _pinned(name, body, specs, rebuild, places, failure) if may_pin else None
    if pinned is None:
        raise failure
    return recordings(name, body, pinned, rebuild, False)


def _pinned(name, body, specs, rebuild, places, failure):
    """Specifications with one open size closed, where the function takes a single number there (columns of a table, say)."""
    for which, axis in reversed(places):
        for d in sorted({*range(1, 65), *getattr(failure, "sizes", ())}, reverse=True):
            closed = [(dtype, list(shape)) for dtype, shape in specs]
            closed[which][1][axis] = d
            try:
                record(name, body, [(dtype, [_TRIALS[0][0][0] if s is None else s for s in shape]) for dtype, shape in closed], rebuild)
                return closed
            except _FAILURES:
                continue
    return None


def _record_all(name, body, specs, rebuild, places, shares, rows):
    made, sizes = [], []
    for n, row in enumerate(rows):
        chosen = [row[s % len(row)] for s in shares]
        known = [(dtype, list(shape)) for dtype, shape in specs]
        for (which, axis), d in zip(places, chosen):
            known[which][1][axis] = d
        try:
            made.append(record(name, body, known, rebuild))
            sizes.append(chosen)
        except _FAILURES:
            if n < _MUST:
                raise
    return made, places, sizes, specs


# Integers.

def formula(values, sizes):
    """An integer, or [factor, places, rest, divisor, offset] that gives values[n] for sizes[n]; None: there is none."""
    if len(set(values)) == 1:
        return int(values[0])
    count = len(sizes[0])
    for degree in (1, 2, 3):
        for places in itertools.combinations_with_replacement(range(count), degree):
            products = [math.prod(row[p] for p in places) for row in sizes]
            found = _line(values, products)
            if found is not None:
                factor, rest, divisor, offset = found
                return [factor, list(places), rest, divisor, offset]
    return None


def _line(values, products):
    (v0, p0), (v1, p1) = (values[0], products[0]), next(((v, p) for v, p in zip(values, products) if p != products[0]), (0, products[0]))
    if p0 == p1 or v0 == v1:
        return None
    slope = fractions.Fraction(v1 - v0, p1 - p0)
    factor, divisor = slope.numerator, slope.denominator
    if divisor > 64:
        return None
    for rest in sorted(range(divisor), key=lambda r: r not in (0, divisor - 1)):  # down, up, else
        offset = v0 - (factor * p0 + rest) // divisor
        if all((factor * p + rest) // divisor + offset == v for v, p in zip(values, products)):
            return factor, rest, divisor, offset
    return None


def value_of(number, sizes):
    """What a formula gives."""
    if isinstance(number, int):
        return number
    factor, places, rest, divisor, offset = number
    return (factor * math.prod(sizes[p] for p in places) + rest) // divisor + offset


# Constants.

def _array(t):
    return np.asarray(t.numpy(), dtype=object) if t.dtype.name == "string" else np.asarray(t.numpy())


def _same(arrays):
    first = arrays[0]
    return all(a.shape == first.shape and a.dtype == first.dtype and a.tobytes() == first.tobytes() for a in arrays[1:])


def constant_formula(arrays, formula):
    """How a constant follows the sizes, as data for _replay; None: not in a way that is known. formula(values) is that of an integer."""
    first = arrays[0]
    if any(a.ndim != first.ndim or a.dtype != first.dtype for a in arrays) or first.dtype == object:
        return None
    if all(a.shape == first.shape for a in arrays) and first.dtype.kind in "iu" and first.size <= 64:
        each = [formula([int(a.reshape(-1)[n]) for a in arrays]) for n in range(first.size)]
        return None if None in each else {"ints": each, "shape": list(first.shape)}
    if all(a.shape == () for a in arrays) and first.dtype.kind == "f":
        return _scalar_formula(arrays, formula)
    shape = [formula([a.shape[n] for a in arrays]) for n in range(first.ndim)]
    if None in shape:
        return None
    flat = [a.reshape(-1) for a in arrays]
    if all(a.size and (a == flat[0][0]).all() for a in flat):
        return {"fill": first.reshape(-1)[0].item(), "shape": shape}
    if first.ndim == 1:
        return _counting(flat, shape, formula) if first.dtype.kind in "iuf" else None
    return _band(arrays, shape, formula)


def banded(rows, columns, low, high, inside, outside):
    """A matrix with `inside` where low <= column - row <= high (None: no border), and `outside` elsewhere."""
    offset = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    return np.where((True if low is None else offset >= low) & (True if high is None else offset <= high), inside, outside)


def _band(arrays, shape, formula):
    """Triangles and diagonals, as masks of attention are."""
    values = np.unique(arrays[0])
    if len(values) != 2 or any(math.prod(a.shape[:-2]) != 1 for a in arrays):
        return None
    for inside, outside in (values, values[::-1]):
        lows, highs = [], []
        for a in arrays:
            rows, columns = np.nonzero(a.reshape(a.shape[-2:]) == inside)
            if not rows.size:
                return None
            low, high = int((columns - rows).min()), int((columns - rows).max())
            lows.append(None if low == 1 - a.shape[-2] else low)
            highs.append(None if high == a.shape[-1] - 1 else high)
        fits = all((a.reshape(a.shape[-2:]) == banded(*a.shape[-2:], low, high, inside, outside)).all() for a, low, high in zip(arrays, lows, highs))
        borders = [None if None in b else formula(b) for b in (lows, highs)]
        if fits and all(b is not None or set(known) == {None} for b, known in zip(borders, (lows, highs))):
            return {"band": borders, "in": inside.item(), "out": outside.item(), "shape": shape}
    return None


def counted(size, start, step, each, period):
    """start, start + step ...: each number `each` times, from the start again after `period` numbers."""
    return start + step * (np.arange(size) // max(each, 1) % max(period, 1))


def _counting(flat, shape, formula):
    """tf.range, and what tf.repeat and tf.tile make of it."""
    changes = [np.flatnonzero(a != a[0]) for a in flat]
    if any(not c.size for c in changes):
        return None
    each = [int(c[0]) for c in changes]
    start, step = flat[0][0].item(), (flat[0][each[0]] - flat[0][0]).item()
    again = [np.flatnonzero(a[e:] == a[0]) for a, e in zip(flat, each)]
    periods = [(int(r[0]) + e) // e if r.size else -(-a.size // e) for a, e, r in zip(flat, each, again)]
    if not all((a == counted(a.size, start, step, e, p).astype(a.dtype)).all() for a, e, p in zip(flat, each, periods)):
        return None
    each, period = formula(each), formula(periods)
    return None if each is None or period is None else {"from": start, "step": step, "each": each, "period": period, "shape": shape}


def _scalar_formula(arrays, formula):
    """A float that is a size: tf.cast(tf.shape(x)[0], tf.float32) written in Python."""
    values = [float(a) for a in arrays]
    if all(v == int(v) for v in values if math.isfinite(v)) and all(map(math.isfinite, values)):
        found = formula([int(v) for v in values])
        return None if found is None else {"ints": [found], "shape": []}
    return None


# Comparing.

class Merged:
    """Recordings of one function as one description of it."""

    def __init__(self, name, made, places, sizes, keep):
        """keep(array) stores a constant and gives its name."""
        self.name, self.made, self.sizes, self.keep = name, made, [list(row) for row in sizes], keep
        self.first = made[0]
        self.open = len(places)
        self.places = [[self.first.inputs[n], axis] for n, axis in places]  # (value, axis): of the inputs, then of what is computed
        self.constants, self.variables, self.prelude = {}, {}, []
        self._makers, self._asked = {}, set()  # number of a value -> (recordings' events that make it)
        for events in self._parallel([m.root for m in made]):
            for number in events[0].outputs:
                self._makers[number] = events

    def _differ(self, event=None):
        raise CannotSave(f"{self.name} cannot be saved: it does other things for other sizes of its inputs"
                         f"{event.where() if event else ''}. Give its input_signature fixed sizes.")

    def _parallel(self, blocks):
        """Events of all recordings side by side, bodies included; eager ones too."""
        counts = {len(b.events) for b in blocks}
        if len(counts) != 1:
            self._differ(next((e for e in blocks[0].events), None))
        for events in zip(*[b.events for b in blocks]):
            a = events[0]
            for b in events[1:]:
                alike = (a.kind, a.inputs, a.outputs, a.fixed, len(a.numbers), len(a.blocks)) == \
                    (b.kind, b.inputs, b.outputs, b.fixed, len(b.numbers), len(b.blocks))
                if not alike:
                    self._differ(a)
            for inner in zip(*[e.blocks for e in events]):
                yield from self._parallel(inner)
            yield events

    def _need(self, number):
        """Marks what a value is made of."""
        todo = [number]
        while todo:
            number = todo.pop()
            if number is None or number in self._asked:
                continue
            self._asked.add(number)
            recorder = self.first.recorder
            if number in recorder.variables:
                self.variables[number] = recorder.variables[number]
            elif number in recorder.constants:
                todo += self._constant(number)
            elif number in self._makers:
                todo += self._uses(self._makers[number][0])

    def _uses(self, event):
        used = list(event.inputs)
        for block in event.blocks:
            used += block.outputs
            for inner in block.events:
                if _has_effect(inner):
                    used += self._uses(inner)
        if event.kind == "gradient":
            used += [n for e in self._events_of_tape(event.fixed[0]) for n in e.inputs]
        return used

    def _events_of_tape(self, tape):
        return [e for block in _all_blocks(self.first.root) for e in block.events if e.kind == "tape" and e.fixed[0] == tape]

    def _constant(self, number):
        """A constant that is the same in all recordings is kept; else what it is made of is asked for."""
        tensors = [m.recorder.constants.get(number) for m in self.made]
        if any(t is None for t in tensors):
            self._differ()
        arrays = [_array(t) for t in tensors]
        dtype = tensors[0].dtype.name
        if _same(arrays):
            self.constants[number] = {"dtype": dtype, "key": self.keep(arrays[0])}
            return []
        if number in self._makers:
            events = self._makers[number]
            if all(v is not None for v in self._formulas(events)):
                if events not in self.prelude:
                    self.prelude.append(events)
                return events[0].inputs
        found = constant_formula(arrays, lambda values: self._formula(values, number))
        if found is None:
            event = self._makers.get(number, (None,))[0]
            self._differ_by_constant(number, event)
        self.constants[number] = {"dtype": dtype, **found}
        return []

    def _differ_by_constant(self, number, event):
        user = event or next((e for b in _all_blocks(self.first.root) for e in b.events if number in e.inputs), None)
        raise CannotSave(f"{self.name} cannot be saved: it uses a constant that depends on the sizes of its inputs in a way that is not "
                         f"known{user.where() if user else ''}. Compute it with TensorFlow's functions, or give its input_signature fixed sizes.")

    def _formulas(self, events):
        before = min(events[0].outputs, default=self.first.recorder.count)
        return [self._formula(list(values), before) for values in zip(*[e.numbers for e in events])]

    def _formula(self, values, before):
        """A formula of the open sizes, or of those of a value that is there before the one of this number is."""
        found = formula(values, [row[:self.open] for row in self.sizes])
        if found is not None or not self.open:
            return found
        for number, shape in self.first.recorder.shapes.items():
            if number >= before or number not in self._makers:
                continue
            for axis in range(len(shape)):
                column = [m.recorder.shapes[number][axis] for m in self.made]
                line = _line(values, column)
                if line is not None:
                    self._need(number)
                    factor, rest, divisor, offset = line
                    return [factor, [self._place(number, axis, column)], rest, divisor, offset]
        return None

    def _place(self, number, axis, column):
        if [number, axis] not in self.places:
            self.places.append([number, axis])
            for row, d in zip(self.sizes, column):
                row.append(d)
        return self.places.index([number, axis])

    # Writing.

    def _event(self, events):
        event, numbers = events[0], self._formulas(events)
        if None in numbers:
            values = [e.numbers[numbers.index(None)] for e in events]
            raise CannotSave(f"{self.name} cannot be saved: {event.fixed[0] if event.kind == 'op' else event.kind}{event.where()} has a number "
                             f"that follows the sizes of the inputs in a way that is not known ({values} for {self.sizes}). "
                             "Give its input_signature fixed sizes.")
        inner = [self._block(bodies) for bodies in zip(*[e.blocks for e in events])]
        fixed = [list(f) if isinstance(f, tuple) else f for f in event.fixed]
        return [event.kind, event.inputs, event.outputs, numbers, fixed, inner]

    def _wanted(self, event, tapes):
        if event.kind == "tape":
            return event.fixed[0] in tapes
        return not event.eager and (any(n in self._asked for n in event.outputs) or _has_effect(event))

    def _block(self, blocks):
        first = blocks[0]
        tapes = {e.fixed[0] for b in _all_blocks(self.first.root) for e in b.events
                 if e.kind == "gradient" and any(n in self._asked for n in e.outputs)}
        events = [self._event(events) for events in zip(*[b.events for b in blocks]) if self._wanted(events[0], tapes)]
        return {"inputs": first.inputs, "events": events, "outputs": first.outputs}

    def describe(self):
        """The function as JSON has it; self.variables says which numbers are variables."""
        first = self.first
        for other in self.made[1:]:
            if (other.outputs, other.leaves, [n for _, n in other.assigned]) != (first.outputs, first.leaves, [n for _, n in first.assigned]):
                self._differ()
        for number in first.outputs + [n for _, n in first.assigned]:
            self._need(number)
        for block in _all_blocks(first.root):
            for event in block.events:
                if _has_effect(event):
                    for number in self._uses(event):
                        self._need(number)
        asked = -1
        while asked != len(self._asked):  # a formula may ask for the sizes of a value that nobody else needs
            asked = len(self._asked)
            block = self._block([m.root for m in self.made])
            prelude = [self._event(events) for events in self.prelude]
        return {"inputs": first.inputs, "places": self.places, "constants": {str(n): c for n, c in self.constants.items()},
                "prelude": prelude, "events": block["events"], "outputs": first.outputs, "leaves": first.leaves,
                "results": [[d, [s if all(m.shapes[k][1][n] == s for m in self.made) else None for n, s in enumerate(shape)]]
                            for k, (d, shape) in enumerate(first.shapes)]}


def _has_effect(event):
    return event.kind == "host" or any(_has_effect(e) for b in event.blocks for e in b.events)


def _all_blocks(block):
    yield block
    for event in block.events:
        for inner in event.blocks:
            yield from _all_blocks(inner)
