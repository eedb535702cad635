"""From samples to one record of results.json: ratios, the physical limit, and the goals."""
import statistics

from . import machine

UNIT_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
THREAD_TOLERANCE = 1.03


def limit_of(row, figures, peak, threads):
    """The time no program can beat here, in the row's unit: what the program measured itself, else
    the roofline of the row's least flops and bytes over the best multiply-add rate and bandwidth
    measured. None where it has none."""
    if figures.limits:
        return statistics.median(figures.limits)
    if not peak or "level" not in row:
        return None
    gflops = machine.best_gflops(peak, threads)
    gbs = machine.best_gbs(peak, row["level"], threads)
    if not gflops or not gbs:
        return None
    seconds = max(row.get("flops", 0) / (gflops * 1e9), row.get("bytes", 0) / (gbs * 1e9))
    return seconds / UNIT_SECONDS[row["unit"]]


def same_work(ours, theirs, tolerance):
    """-> None, or what is different between two lists of numbers."""
    if not ours or not theirs or len(ours) != len(theirs):
        return f"nothing to compare: {ours} and {theirs}"
    for a, b in zip(ours, theirs):
        if not abs(a - b) <= tolerance * max(abs(a), abs(b)):
            return f"other values came out: {b:.9g}, Stoker's are {a:.9g}"
    return None


def check(goal, stoker, peers, share):
    """-> (text, met) with met None where it could not be measured"""
    if "at_most" in goal:
        return f"<= {goal['at_most']:g}", stoker <= goal["at_most"]
    if "limit_share" in goal:
        met = None if share is None else share >= goal["limit_share"]
        return f">= {goal['limit_share']:.0%} of limit", met
    text = f">= {goal['times']:g}x {goal['vs']}"
    against = min(peers.values(), default=None) if goal["vs"] == "best" else peers.get(goal["vs"])
    return text, None if against is None else against / stoker >= goal["times"]


def is_slower_with_threads(row, figures):
    """In every round, so that what repeated runs differ by does not count. Rows of a whole process are not
    asked: there a second thread is something to make, not something to work with."""
    ways = [figures.rounds.get(c, {}) for c in ("stoker", "stoker_1t")]
    if row.get("fresh") or not all(ways):
        return False
    many, one = ([statistics.median(samples) for samples in min(w.values(), key=figures.of)]
                 for w in ways)
    return all(m > THREAD_TOLERANCE * o for m, o in zip(many, one))


def judge(row, figures, peak, threads):
    columns = {c: figures.summary(c) for c in figures.rounds}
    peers = {c: s["value"] for c, s in columns.items() if not c.startswith("stoker")}
    one, many = columns.get("stoker_1t"), columns.get("stoker")
    stoker = many["value"] if many else None
    limit = limit_of(row, figures, peak, threads)
    share = limit / stoker if limit and stoker else None
    checks = [check(g, stoker, peers, share) for g in row.get("goals", []) if stoker]
    met = [m for _, m in checks]
    best = min(peers, key=peers.get) if peers else None
    return {
        "row": row["row"], "unit": row["unit"], "stoker": stoker, "peers": peers,
        "ratio_best": peers[best] / stoker if best and stoker else None,
        "limit": limit, "limit_share": share,
        "best_peer": best,
        "ratios": {c: v / stoker for c, v in peers.items()} if stoker else {},
        "variants": {c: s["variant"] for c, s in columns.items() if s["variant"]},
        "spread": {c: s["spread"] for c, s in columns.items()},
        "stoker_1t": one["value"] if one else None,
        "slower_with_threads": is_slower_with_threads(row, figures),
        "goal": ", ".join(text for text, _ in checks),
        "goals": [{"goal": text, "met": m} for text, m in checks],
        "goal_met": None if not met or None in met and False not in met else all(met),
        "busy_by_others": max(figures.busy, default=0.0),
        "same_work": figures.same,
        "errors": figures.notes,
        "samples": figures.rounds,
    }
