#!/usr/bin/env python3
"""Run the tests that the installed Keras wheel ships on Stoker, and print them beside TensorFlow's.

    test/keras/run.py [--python build/python/bin/python] [--engine stoker|tensorflow] [--jobs 2]
                      [--only layers/core] [--results build/keras-test] [--write-list] [--green]

One interpreter runs a handful of files, so that imports are paid rarely; a crash costs the test that crashed, the
rest is taken up again. Two lists stand beside this file:

    tensorflow.txt   what TensorFlow's own backend does not pass (the rest passes), made with
                     --engine tensorflow --write-list
    exclusions.txt   what Stoker does not try: one pattern and one reason a line
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "tensorflow.txt")
EXCLUSIONS = os.path.join(HERE, "exclusions.txt")
GREEN = os.path.join(HERE, "green.txt")
FILES_PER_RUN = 6


def keras_of(python):
    """The installed wheel: its folder and version, found without importing it."""
    code = ("import importlib.metadata as m, importlib.util as u;"
            "print(u.find_spec('keras').submodule_search_locations[0]); print(m.version('keras'))")
    return subprocess.run([python, "-c", code], check=True, text=True, capture_output=True).stdout.split()


def test_files(root, only):
    found = []
    for folder, _, files in os.walk(root):
        for file in files:
            path = os.path.relpath(os.path.join(folder, file), root)
            if file.endswith("_test.py") and (not only or any(path.startswith(o) for o in only)):
                found.append(path)
    return sorted(found)


def folder_of(test):
    return test.split("/")[0]


class Run:
    """One interpreter over a few files, started again after a crash until every test has an outcome."""

    def __init__(self, args, root, files, number):
        self.args, self.root, self.files = args, root, files
        self.results = os.path.join(args.results, f"{args.engine}-{number:03d}.jsonl")

    def environment(self):
        env = dict(os.environ)
        env.update(KERAS_BACKEND="tensorflow", KERAS_TEST_ENGINE=self.args.engine,
                   KERAS_TEST_RESULTS=self.results, KERAS_TEST_ROOT=self.root,
                   KERAS_TEST_LIMIT=str(self.args.limit), TF_CPP_MIN_LOG_LEVEL="3",
                   CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu", PYTHONDONTWRITEBYTECODE="1",
                   MPLBACKEND="agg")
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [HERE, os.environ.get("PYTHONPATH")]))
        return env

    def once(self):
        command = [self.args.python, "-m", "pytest", "-q", "-x" if self.args.first else "-q", "-p", "plugin",
                   "-p", "no:cacheprovider", "--continue-on-collection-errors", "--no-header", "--tb=short", "--rootdir", self.root,
                   "-c", os.devnull, "-W", "ignore"]
        command += [os.path.join(self.root, file) for file in self.files]
        try:
            done = subprocess.run(command, cwd=self.args.results, env=self.environment(),
                                  timeout=self.args.run_limit, text=True, errors="replace",
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            return done.returncode in (0, 1, 2, 5), done.stdout
        except subprocess.TimeoutExpired as late:
            return False, (late.stdout or b"").decode(errors="replace")

    def outcomes(self):
        state = {}
        if os.path.exists(self.results):
            for line in open(self.results):
                outcome, name, why = json.loads(line)
                if outcome != "start" or name not in state:
                    state[name] = [outcome, why]
        return state

    def __call__(self):
        if self.args.fresh and os.path.exists(self.results):
            os.remove(self.results)
        for _ in range(20):
            whole, text = self.once()
            crashed = [n for n, (outcome, _) in self.outcomes().items() if outcome == "start"]
            with open(self.results, "a") as out:
                for name in crashed:
                    out.write(json.dumps(["crashed", name, text[-400:]]) + "\n")
            if whole or not crashed:
                break
        with open(self.results[:-6] + ".log", "w") as log:
            log.write(text)
        return self.outcomes()


def read_patterns(path):
    """Lines `pattern  # reason`."""
    rows = []
    if os.path.exists(path):
        for line in open(path):
            pattern, _, reason = line.rstrip("\n").partition("  # ")
            if pattern and not pattern.startswith("#"):
                rows.append((pattern.strip(), reason))
    return rows


def write_list(state, version):
    """Only what does not pass is written, grouped by file; counts let a reader see that nothing is lost."""
    with open(LIST, "w") as out:
        out.write(f"# Keras {version} on TensorFlow's backend: every test that is not listed passes.\n"
                  "# file  passed failed skipped, then the names that do not pass (s = skipped, f = failed)\n")
        files = collections.defaultdict(dict)
        for name, (outcome, _) in sorted(state.items()):
            file, _, test = name.partition("::")
            files[file][test] = outcome
        for file, tests in sorted(files.items()):
            kinds = collections.Counter(tests.values())
            bad = sum(kinds.values()) - kinds["passed"] - kinds["skipped"]
            out.write(f"{file} {kinds['passed']} {bad} {kinds['skipped']}\n")
            for test, outcome in sorted(tests.items()):
                if outcome != "passed":
                    out.write(f" {'s' if outcome == 'skipped' else 'f'} {test}\n")


def read_list():
    counts, others = {}, set()
    if os.path.exists(LIST):
        file = None
        for line in open(LIST):
            if line.startswith("#"):
                continue
            if line.startswith(" "):
                others.add(file + "::" + line[3:].rstrip("\n"))
            else:
                file, *numbers = line.split()
                counts[file] = [int(n) for n in numbers]
    return counts, others


def report(state, args):
    counts, others = read_list()
    excluded = read_patterns(EXCLUSIONS)
    rows = collections.defaultdict(collections.Counter)
    for file, (passed, failed, skipped) in counts.items():
        if not args.only or any(file.startswith(o) for o in args.only):
            rows[folder_of(file)]["tf"] += passed
    failures = []
    for name, (outcome, why) in sorted(state.items()):
        row = rows[folder_of(name)]
        if any(fnmatch.fnmatchcase(name, pattern) for pattern, _ in excluded):
            row["excluded"] += 1
            continue
        row[outcome if outcome in ("passed", "skipped") else "failed"] += 1
        if name not in others:
            row["both"] += outcome == "passed"
            if outcome not in ("passed", "skipped"):
                failures.append((name, outcome, why))
    print(f"{'folder':16} {'passed':>7} {'failed':>7} {'skipped':>7} {'excluded':>8} {'TensorFlow':>10} {'share':>7}")
    total = collections.Counter()
    for folder, row in sorted(rows.items()):
        total.update(row)
        print_row(folder, row)
    print_row("all", total)
    with open(os.path.join(args.results, "failures.txt"), "w") as out:
        for name, outcome, why in failures:
            out.write(f"{outcome} {name}\n    " + "\n    ".join(why.splitlines()[-4:]) + "\n")
    return failures


def print_row(name, row):
    share = f"{100 * row['both'] / row['tf']:6.1f}%" if row["tf"] else "      -"
    print(f"{name:16} {row['passed']:7} {row['failed']:7} {row['skipped']:7} {row['excluded']:8} {row['tf']:10} {share}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--engine", default="stoker", choices=["stoker", "tensorflow"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", action="append", default=[], help="prefix of a test file, e.g. layers/core")
    parser.add_argument("--results", default="build/keras-test")
    parser.add_argument("--limit", type=int, default=120, help="seconds a test may take")
    parser.add_argument("--run-limit", type=int, default=1800, help="seconds one interpreter may take")
    parser.add_argument("--keep", dest="fresh", action="store_false", help="go on where the last run stopped")
    parser.add_argument("--first", action="store_true", help="stop a chunk at its first failure")
    parser.add_argument("--write-list", action="store_true")
    parser.add_argument("--green", action="store_true", help="only the files of green.txt, which must all pass")
    args = parser.parse_args()
    args.python = os.path.abspath(args.python) if os.sep in args.python else args.python
    args.results = os.path.abspath(args.results)
    os.makedirs(args.results, exist_ok=True)
    keras, version = keras_of(args.python)
    root = os.path.join(keras, "src")
    if args.green:
        args.only = [pattern for pattern, _ in read_patterns(GREEN)]
    files = test_files(root, args.only)
    size = min(FILES_PER_RUN, max(1, len(files) // max(1, args.jobs)))
    chunks = [files[i:i + size] for i in range(0, len(files), size)]
    state = {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = [pool.submit(Run(args, root, chunk, n)) for n, chunk in enumerate(chunks)]
        for done in concurrent.futures.as_completed(runs):
            state.update(done.result())
            if sys.stderr.isatty():
                print(f"\r{sum(r.done() for r in runs)}/{len(runs)} chunks", end="", file=sys.stderr)
    if args.write_list:
        write_list(state, version)
    failures = report(state, args)
    print(f"Keras {version}, engine {args.engine}; failures in {os.path.relpath(args.results)}/failures.txt")
    return 1 if args.green and failures else 0


if __name__ == "__main__":
    sys.exit(main())
