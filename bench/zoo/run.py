#!/usr/bin/env python3
"""The zoo: many kinds of models, Stoker's training loop against Keras' fit on TensorFlow, torch and jax (TensorFlow with XLA and
without, torch with torch.compile and without; the better counts). bench/run starts it for ROWS=zoo.

    bench/zoo/run.py [--build build] [--models vgg,lstm] [--rounds 2] [--seconds 1] [--peers tf,tf-jit,torch,torch-jit,jax]
                     [--precision float32,mixed_bfloat16] [--resume] [--limit 120] [--peer-limit 120]

For each model the programs take turns; the figure is the median over rounds. A model's result is written to zoo.json before the
next one begins: with --limit the run ends in time, and --resume goes on with the models that are missing.

Columns: ms per step; how many times faster bfloat16 is; the peers' ms; ratio to the best peer; share of the roofline (what the
machine could do at best in Stoker's kernels, weighted by their time); share of the peak of multiply-adds over all convolutions,
forward and backward; peak memory of Stoker and of TensorFlow, and their ratio;
the dearest op."""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
from models import ZOO  # noqa: E402
from peers import PEERS, Peer, find_python  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description="Stoker against Keras' fit on many models")
    parser.add_argument("--build", default=str(HERE.parent.parent / "build"))
    parser.add_argument("--models", default=os.environ.get("ZOO", ""), help="a,b,c; default all")
    parser.add_argument("--peers", default=",".join(PEERS), help="or none")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0, help="per program, model and round")
    parser.add_argument("--threads", type=int, default=0, help="of Stoker; default all")
    parser.add_argument("--precision", default="float32,mixed_bfloat16", help="of Stoker; ratios are those of the first")
    parser.add_argument("--resume", action="store_true", help="only models that zoo.json lacks; its other rows stay")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which no further model is begun")
    parser.add_argument("--peer-limit", type=float, default=120.0, help="seconds after which a peer is cut, per model")
    parser.add_argument("--out", type=pathlib.Path, help="default zoo.json in the build folder's bench/")
    parser.add_argument("--show", action="store_true", help="print the table of zoo.json and measure nothing")
    options = parser.parse_args()
    options.build = pathlib.Path(options.build).resolve()
    names = [name for name, _, _ in ZOO]
    options.models = [m for m in options.models.split(",") if m] or names
    unknown = [m for m in options.models if m not in names]
    options.peers = [] if options.peers == "none" else options.peers.split(",")
    options.precision = options.precision.split(",")
    unknown += [p for p in options.peers if p not in PEERS]
    if unknown:
        sys.exit(f"zoo: no {', '.join(unknown)}; models: {', '.join(names)}; peers: {', '.join(PEERS)}")
    return options


def conv_share(convs):
    """Multiply-adds of all convolutions and their gradients over what the threads could do in the time these took."""
    seconds = sum(c["seconds"] for c in convs)
    return {"conv": sum(c["seconds"] * c["share"] for c in convs) / seconds} if seconds else {}


def measure_stoker(options, model, precision, count):
    folder = options.build / "bench" / "zoo"
    about = json.loads((folder / f"{model}.about").read_text())
    command = [str(options.build / "stoker"), "profile", str(folder / f"{model}.json"), str(folder / f"{model}.npz"),
               "--batch", str(about["batch"]), "--count", str(count), "--precision", precision, "--json"]
    if options.threads:
        command += ["--threads", str(options.threads)]
    ran = subprocess.run(command, capture_output=True, text=True,
                         env={**os.environ, "XDG_CACHE_HOME": str(options.build / "bench" / "cache")})
    if ran.returncode:
        return {"error": (ran.stdout + ran.stderr).strip()[-200:]}
    report = json.loads(ran.stdout)
    ops = [op for op in report["ops"] if op["seconds"] > 0]
    seconds = sum(op["seconds"] for op in ops)
    dearest = max(ops, key=lambda op: op["seconds"])
    return {"ms": 1e3 * report["step"]["median"], "share": sum(op["seconds"] * min(op["roof"], 1) for op in ops) / seconds,
            "rss_mb": report["memory"]["peak_rss"] / 2**20, **conv_share(report["convolutions"]),
            "dearest": f"{dearest['op']} by {dearest['implementation']} {100 * dearest['seconds'] / seconds:.0f}%"}


def steps_for(options, model, precision, seconds):
    """As many steps as fit into the time, by a short run before; it also elects the kernels."""
    first = measure_stoker(options, model, precision, 12)
    return 12 if "error" in first else int(min(max(seconds * 1e3 / first["ms"], 12), 5000))


def measure_model(options, model, python, log):
    """Lists of answers by precision and by peer. Peers start at once, so that they load while Stoker elects its kernels."""
    peers = [Peer(python, name, log, options.peer_limit) for name in options.peers]
    answers = {}
    try:
        counts = {p: steps_for(options, model, p, options.seconds) for p in options.precision}
        for peer in peers:
            peer.start()
        for _ in range(options.rounds):
            for precision in options.precision:
                answers.setdefault(precision, []).append(measure_stoker(options, model, precision, counts[precision]))
            for peer in peers:
                answers.setdefault(peer.name, []).append(peer.measure(model, options.seconds))
    finally:
        for peer in peers:
            peer.close()
    return answers


def median_of(answers, key="ms"):
    values = [a[key] for a in answers if key in a]
    return statistics.median(values) if values else None


def quotient(a, b):
    return a / b if a and b else None


def row_of(options, model, answers):
    own = answers[options.precision[0]]
    row = {"model": model, "stoker_ms": median_of(own), "share": median_of(own, "share"), "conv": median_of(own, "conv"),
           "dearest": own[-1].get("dearest", own[-1].get("error")), "rss_mb": median_of(own, "rss_mb"),
           "peers_ms": {p: median_of(answers[p]) for p in options.peers},
           "peers_mb": {p: max((a["rss_mb"] for a in answers[p] if "rss_mb" in a), default=None) for p in options.peers},
           "errors": {who: a[-1]["error"] for who, a in answers.items() if "error" in a[-1]},
           "precisions_ms": {p: median_of(answers[p]) for p in options.precision}}
    known = {p: ms for p, ms in row["peers_ms"].items() if ms}
    row["best_peer"] = min(known, key=known.get) if known else None
    row["ratio"] = quotient(known.get(row["best_peer"]), row["stoker_ms"])
    # The thriftier one of TensorFlow's two ways.
    row["tf_mb"] = min((mb for p, mb in row["peers_mb"].items() if mb and p in ("tf", "tf-jit")), default=None)
    row["memory_ratio"] = quotient(row["tf_mb"], row["rss_mb"])
    row["precision_ratios"] = {p: quotient(row["stoker_ms"], row["precisions_ms"][p]) for p in options.precision[1:]}
    return row


def header(options):
    cells = [f"{'model (ms per step)':21}", f"{'stoker':>8}"]
    cells += [f"{p.replace('mixed_', '')[:6]:>6}" for p in options.precision[1:]]
    cells += [f"{p:>9}" for p in options.peers]
    return " ".join(cells + ["x best", " roof", " conv", "   MB", "tf MB", "    x", "dearest op"])


def text_of(options, row):
    def number(value, width, digits):
        return f"{value:{width}.{digits}f}" if value is not None else f"{'-':>{width}}"

    cells = [f"{row['model']:21}", number(row["stoker_ms"], 8, 3)]
    cells += [number(row["precision_ratios"].get(p), 6, 2) for p in options.precision[1:]]
    cells += [number(row["peers_ms"].get(p), 9, 2) for p in options.peers]
    cells += [number(row["ratio"], 6, 2), number(100 * row["share"] if row["share"] else None, 4, 0) + "%",
              number(100 * row["conv"] if row.get("conv") else None, 4, 0) + "%", number(row["rss_mb"], 5, 0),
              number(row["tf_mb"], 5, 0), number(row["memory_ratio"], 5, 1), row["dearest"] or ""]
    return " ".join(cells)


def summary(options, rows):
    ratios = {row["model"]: row["ratio"] for row in rows if row["ratio"]}
    if ratios:
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        worst = min(ratios, key=ratios.get)
        yield f"{len(ratios)} models: geometric mean {mean:.2f}x the best peer, least {ratios[worst]:.2f}x ({worst})"
    memory = {row["model"]: row["memory_ratio"] for row in rows if row["memory_ratio"]}
    if memory:
        worst = min(memory, key=memory.get)
        yield f"memory: TensorFlow's peak is at least {memory[worst]:.1f}x Stoker's ({worst})"
    for precision in options.precision[1:]:
        gains = {r["model"]: r["precision_ratios"][precision] for r in rows if r["precision_ratios"].get(precision)}
        if gains:
            low, high = min(gains, key=gains.get), max(gains, key=gains.get)
            yield f"{precision}: {gains[low]:.2f}x ({low}) to {gains[high]:.2f}x ({high}) as fast as {options.precision[0]}"
    for row in rows:
        for who, error in row["errors"].items():
            yield f"{row['model']}: {who}: {error}"


def whole(options, row):
    """Whether an earlier run measured all that is asked for now."""
    return all(p in row["peers_ms"] for p in options.peers) and all(p in row["precisions_ms"] for p in options.precision)


def main():
    options = arguments()
    result = options.out or options.build / "bench" / "zoo.json"
    rows = json.loads(result.read_text()) if (options.resume or options.show) and result.exists() else []
    rows = {row["model"]: row for row in rows if whole(options, row)}
    print(header(options), flush=True)
    for model in [m for m in options.models if m in rows]:
        print(text_of(options, rows[model]), flush=True)
    wanted = [] if options.show else [m for m in options.models if m not in rows]
    begin = time.monotonic()
    if wanted:
        python = find_python(options.build)
        folder = options.build / "bench" / "zoo"
        missing = [m for m in wanted if not (folder / f"{m}.about").exists()]
        if missing:
            subprocess.run([str(python), str(HERE / "write_models.py"), str(folder), *missing], check=True,
                           stdout=subprocess.DEVNULL)
        with open(options.build / "bench" / "zoo.log", "a") as log:
            for model in wanted:
                if time.monotonic() - begin > options.limit:
                    break
                rows[model] = row_of(options, model, measure_model(options, model, python, log))
                print(text_of(options, rows[model]), flush=True)
                result.write_text(json.dumps(list(rows.values()), indent=1) + "\n")
    print("\n" + "\n".join(summary(options, list(rows.values()))))
    left = [m for m in wanted if m not in rows]
    if left:
        print(f"left for --resume: {', '.join(left)}")
    print(f"in {result}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nzoo: interrupted; models that were finished are in the result file")
