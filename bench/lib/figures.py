"""What the programs answered for one row, and the figure that stands for it."""
import statistics

from . import goals


class Figures:
    """All that was measured for one row: {column: {variant: [samples of round 1, ...]}}."""

    def __init__(self):
        self.rounds, self.notes, self.busy = {}, {}, []
        self.limits, self.check, self.same = [], None, []

    def add_stoker(self, column, line):
        self.add(column, line)
        if column == "stoker" and "limit" in line:
            self.limits.append(line["limit"])
        self.check = line.get("check", self.check)

    def add_peer(self, row, line):
        """A way whose values are compared counts only if they are Stoker's."""
        if "error" not in line and "same" in row and "check" in line:
            problem = goals.same_work(self.check, line["check"], row["same"])
            if problem:
                line = {**line, "error": problem}
            elif line["peer"] not in self.same:
                self.same.append(line["peer"])
        if "error" in line:
            print(f"  {line['peer']}/{line.get('variant', '')}: {line['error']}")
        self.add(line["peer"], line)

    def add(self, column, line):
        if "error" in line or not line.get("samples"):
            self.notes.setdefault(column, line.get("error", "no samples"))
        else:
            ways = self.rounds.setdefault(column, {})
            ways.setdefault(line.get("variant", ""), []).append(line["samples"])

    def best_variants(self):
        return {column: min(ways, key=lambda way: self.of(ways[way]))
                for column, ways in self.rounds.items()}

    @staticmethod
    def of(rounds):
        return statistics.median(statistics.median(samples) for samples in rounds)

    def summary(self, column):
        """-> value, relative spread p90 - p10 over all samples, variant; or None"""
        if column not in self.rounds:
            return None
        variant = self.best_variants()[column]
        rounds = self.rounds[column][variant]
        everything = sorted(s for samples in rounds for s in samples)
        last = len(everything) - 1
        value = self.of(rounds)
        p10, p90 = everything[round(0.1 * last)], everything[round(0.9 * last)]
        return {"value": value, "variant": variant, "p10": p10, "p90": p90,
                "spread": (p90 - p10) / value if value else 0.0}
