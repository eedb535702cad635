#!/usr/bin/env python3
"""The zoo: many kinds of models, Stoker's `train` loop against Keras' fit on TensorFlow, torch and jax (each with and without
its compiler; the better counts). bench/run starts it for ROWS=zoo.

    bench/zoo/run.py [--build build] [--models vgg,lstm] [--rounds 2] [--seconds 1] [--peers tf,tf-jit,torch,torch-jit,jax]
                     [--precision float32]

For each model the programs take turns; the figure is the median over rounds. Columns: ms per step, ratio to the best peer, share
of the roofline (what the machine could do at best in Stoker's kernels, weighted by their time), the dearest op."""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
from models import ZOO  # noqa: E402

PEERS = {"tf": ("tensorflow", 0), "tf-jit": ("tensorflow", 1), "torch": ("torch", 0), "torch-jit": ("torch", 1),
         "jax": ("jax", 1)}


def arguments():
    parser = argparse.ArgumentParser(description="Stoker against Keras' fit on many models")
    parser.add_argument("--build", default=str(HERE.parent.parent / "build"))
    parser.add_argument("--models", default=os.environ.get("ZOO", ""), help="a,b,c; default all")
    parser.add_argument("--peers", default="tf,tf-jit,torch,torch-jit,jax", help="or none")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0, help="per program, model and round")
    parser.add_argument("--threads", type=int, default=0, help="of Stoker; default all")
    parser.add_argument("--precision", default="float32", help="float32, or float32,mixed_bfloat16 for both of Stoker")
    options = parser.parse_args()
    options.build = pathlib.Path(options.build).resolve()
    names = [name for name, _, _ in ZOO]
    options.models = [m for m in options.models.split(",") if m] or names
    unknown = [m for m in options.models if m not in names]
    options.peers = [] if options.peers == "none" else options.peers.split(",")
    unknown += [p for p in options.peers if p not in PEERS]
    if unknown:
        sys.exit(f"zoo: no {', '.join(unknown)}; models: {', '.join(names)}; peers: {', '.join(PEERS)}")
    return options


def peers_python(options):
    where = pathlib.Path(os.environ.get("STOKER_PEERS", options.build / "peers"))
    python = where / "bin" / "python"
    if not python.exists():
        subprocess.run([str(HERE.parent / "setup-peers")], env={**os.environ, "STOKER_PEERS": str(where)})
    if not python.exists():
        sys.exit(f"zoo: no Keras in {where}; bench/setup-peers makes it, STOKER_PEERS names another place")
    return python


class Peer:
    """One fit_keras.py process; an error is an answer, and a process that ended stays away."""

    def __init__(self, python, name, log):
        backend, jit = PEERS[name]
        self.name = name
        self.process = subprocess.Popen([str(python), str(HERE / "fit_keras.py"), backend, str(jit)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self.answer()

    def answer(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        return {"error": "the process ended; see zoo.log"}

    def measure(self, model, seconds):
        try:
            self.process.stdin.write(f"{model} {seconds}\n")
            self.process.stdin.flush()
        except (BrokenPipeError, OSError):
            return {"error": "the process ended before; see zoo.log"}
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


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
    time = sum(op["seconds"] for op in ops)
    dearest = max(ops, key=lambda op: op["seconds"])
    return {"ms": 1e3 * report["step"]["median"], "share": sum(op["seconds"] * min(op["roof"], 1) for op in ops) / time,
            "rss_mb": report["memory"]["peak_rss"] / 2**20,
            "dearest": f"{dearest['op']} by {dearest['implementation']} {100 * dearest['seconds'] / time:.0f}%"}


def steps_for(options, model, seconds):
    """As many steps as fit into the time, by a short run before; it also elects the kernels."""
    first = measure_stoker(options, model, options.precision.split(",")[0], 12)
    if "error" in first:
        return 12
    return int(min(max(seconds * 1e3 / first["ms"], 12), 5000))


def median_of(answers, key="ms"):
    values = [a[key] for a in answers if key in a]
    return statistics.median(values) if values else None


def measure_model(options, model, peers):
    count = steps_for(options, model, options.seconds)
    answers = {}
    for _ in range(options.rounds):
        for precision in options.precision.split(","):
            answers.setdefault(precision, []).append(measure_stoker(options, model, precision, count))
        for peer in peers:
            answers.setdefault(peer.name, []).append(peer.measure(model, options.seconds))
    return answers


def row_of(options, model, answers):
    own = answers[options.precision.split(",")[0]]
    row = {"model": model, "stoker_ms": median_of(own), "share": median_of(own, "share"),
           "dearest": own[-1].get("dearest", own[-1].get("error")), "rss_mb": median_of(own, "rss_mb"),
           "peers_ms": {p: median_of(answers[p]) for p in options.peers},
           "errors": {who: a[-1]["error"] for who, a in answers.items() if "error" in a[-1]},
           "precisions_ms": {p: median_of(answers[p]) for p in options.precision.split(",")}}
    known = {p: ms for p, ms in row["peers_ms"].items() if ms}
    row["best_peer"] = min(known, key=known.get) if known else None
    row["ratio"] = known[row["best_peer"]] / row["stoker_ms"] if known and row["stoker_ms"] else None
    return row


def text_of(options, row):
    def number(value, form):
        return format(value, form) if value is not None else "-"

    cells = [f"{row['model']:21}", f"{number(row['stoker_ms'], '9.3f')}"]
    cells += [f"{number(row['precisions_ms'][p], '9.3f'):>9}" for p in options.precision.split(",")[1:]]
    cells += [f"{number(row['peers_ms'][p], '9.2f'):>9}" for p in options.peers]
    cells += [f"{number(row['ratio'], '6.2f'):>6}", f"{number(100 * row['share'] if row['share'] else None, '4.0f'):>4}%",
              f"{number(row['rss_mb'], '6.0f'):>6}", row["dearest"] or ""]
    return " ".join(cells)


def main():
    options = arguments()
    python = peers_python(options)
    folder = options.build / "bench" / "zoo"
    missing = [m for m in options.models if not (folder / f"{m}.about").exists()]
    if missing:
        subprocess.run([str(python), str(HERE / "write_models.py"), str(folder), *missing], check=True,
                       stdout=subprocess.DEVNULL)
    rows = []
    with open(options.build / "bench" / "zoo.log", "w") as log:
        peers = [Peer(python, name, log) for name in options.peers]
        more = options.precision.split(",")[1:]
        print(" ".join([f"{'model (ms per step)':21}", f"{'stoker':>9}", *(f"{p[:9]:>9}" for p in more + options.peers),
                        f"{'x best':>6}", "roof", "    MB", "dearest op"]), flush=True)
        try:
            for model in options.models:
                rows.append(row_of(options, model, measure_model(options, model, peers)))
                print(text_of(options, rows[-1]), flush=True)
                (options.build / "bench" / "zoo.json").write_text(json.dumps(rows, indent=1) + "\n")
        finally:
            for peer in peers:
                peer.close()
    ratios = [row["ratio"] for row in rows if row["ratio"]]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\n{len(ratios)} models: geometric mean {mean:.2f}x the best peer, least {min(ratios):.2f}x")
    for row in rows:
        for who, error in row["errors"].items():
            print(f"{row['model']}: {who}: {error}")
    print(f"written: {options.build / 'bench' / 'zoo.json'}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nzoo: interrupted; models that were finished are in zoo.json")
