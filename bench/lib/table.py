"""The text that bench/run prints: what was measured on, and one aligned table."""
from . import programs

BUSY = 0.05  # share of the machine in other hands from which figures are called provisional
SHORT = {"tensorflow": "tf", "tensorflow_loop": "tf loop", "torch": "torch", "jax": "jax",
         "jax_scan": "jax scan", "tensorflow_half": "tf half"}


def header(about, stoker, python):
    lines = [f"{about['cpu']}, {about['processors']} processors; {about['rounds']} rounds of "
             f"{about['seconds_per_round']:g} s, {about['threads']} threads"]
    if about["peers"]:
        lines.append("peers: " + ", ".join(f"{n} {v}" for n, v in about["peers"].items()))
    if not python:
        lines.append("peers: none, so no ratios (bench/setup-peers installs them)")
    if stoker.problem:
        lines.append(f"stoker: {stoker.problem}; its column stays empty")
    if about["peak"]:
        best = {t: max(f["best"] for f in about["peak"]["flops"] if f["threads"] == t)
                for t in sorted({f["threads"] for f in about["peak"]["flops"]})}
        lines.append("peak: " + ", ".join(f"{v:.0f} GFLOP/s on {t}" for t, v in best.items()))
    else:
        lines.append("peak: bench_peak is not built, so there is no limit column")
    if about["busy_at_start"] > BUSY:
        lines.append(f"NOTE: others use {about['busy_at_start']:.0%} of this machine (load "
                     f"{about['load_average'][0]:.1f}): figures are provisional")
    return lines


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def remarks(result):
    words = []
    for goal in result["goals"]:
        words.append(f"{'ok' if goal['met'] else '??' if goal['met'] is None else 'MISSED'} "
                     f"{goal['goal']}")
    if result["slower_with_threads"]:
        words.append("SLOWER WITH THREADS")
    if result["busy_by_others"] > BUSY:
        words.append(f"busy {result['busy_by_others']:.0%}")
    if result["same_work"]:
        words.append("same values: " + ", ".join(SHORT.get(c, c) for c in result["same_work"]))
    if "stoker" in result["errors"]:
        words.append("stoker: " + result["errors"]["stoker"])
    return "; ".join(words)


def spread(result):
    """Stoker's own, then the best peer's."""
    parts = [result["spread"].get(c) for c in ("stoker", result["best_peer"])]
    return "/".join("-" if p is None else f"{p:.0%}" for p in parts)


def render(results, about):
    order = [c for columns in programs.PEER_SCRIPTS.values() for c in columns]
    shown = [c for c in order if any(c in r["peers"] for r in results)]
    head = (["row", "unit", "stoker", "1 thread"] + [SHORT.get(c, c) for c in shown] +
            ["x best", "limit", "of limit", "spread", "goals"])
    body = []
    for r in results:
        share = r["limit_share"]
        body.append([r["row"], r["unit"], number(r["stoker"]), number(r["stoker_1t"])] +
                    [number(r["peers"].get(c)) for c in shown] +
                    [number(r["ratio_best"]), number(r["limit"]),
                     "-" if share is None else f"{share:.0%}", spread(r), remarks(r)])
    widths = [max(len(line[i]) for line in [head] + body) for i in range(len(head))]
    lines = []
    for line in [head] + body:
        cells = [cell.ljust(w) if i < 2 or i == len(head) - 1 else cell.rjust(w)
                 for i, (cell, w) in enumerate(zip(line, widths))]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(len(line) for line in lines))
    if about["busy_by_others"] > BUSY:
        lines.append(f"NOTE: others used up to {about['busy_by_others']:.0%} of the machine "
                     "meanwhile: figures are provisional")
    return lines
