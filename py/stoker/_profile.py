"""stoker profile and stoker doctor of Python programs: the books of a run, by part and by line.

The extension books its own parts exactly (py/src/books.c); a thread looks a few hundred times a second at which line of the
program is being worked on. What is on no book is Python itself.
"""
import builtins
import collections
import json
import linecache
import math
import os
import sys
import threading
import time

from stoker import _host_books, _stoker

EVERY = 0.004  # seconds between two looks
_PARTS = [("import", "importing modules"), ("trace", "recording functions"), ("compile", "compiling programs"),
          ("input", "waiting for input"), ("epochs", "whole epochs in the engine"), ("program", "programs"),
          ("eager", "single operations"), ("host", "Python functions inside of programs"),
          ("read", "results read back"), ("python", "Python")]


class Books:
    """Everything that is known about one run."""

    def __init__(self):
        self.importing, self._depth, self.began = 0.0, 0, time.perf_counter()
        self.lines, self.looks = collections.Counter(), 0
        self._stop = threading.Event()
        self._main = threading.get_ident()
        self._import = builtins.__import__
        self.trainers = []

    # Imports: only the outermost counts.

    def _timed_import(self, *args, **kwargs):
        if self._depth or threading.get_ident() != self._main:
            return self._import(*args, **kwargs)
        self._depth, start = 1, time.perf_counter()
        try:
            return self._import(*args, **kwargs)
        finally:
            self._depth = 0
            self.importing += time.perf_counter() - start

    def _look(self):
        while not self._stop.wait(EVERY):
            frame = sys._current_frames().get(self._main)
            if self._depth:
                continue
            self.looks += 1
            place = None
            while frame is not None:
                file = frame.f_code.co_filename
                if _host_books.is_users(file):
                    place = file, frame.f_lineno
                    break
                frame = frame.f_back
            if place is not None:
                self.lines[place] += 1
            del frame

    def __enter__(self):
        builtins.__import__ = self._timed_import
        _stoker.books_switch(True)
        _host_books.switch(True)
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._stop.set()
        self._thread.join()
        builtins.__import__ = self._import
        _stoker.books_switch(False)
        self.wall = time.perf_counter() - self.began
        return False

    # What came of it.

    def result(self):
        booked = _stoker.books()
        seconds = {name: booked[name][0] for name, _ in _PARTS if name in booked}
        times = {name: booked[name][1] for name, _ in _PARTS if name in booked}
        inside = sum(seconds.values())
        seconds["import"] = self.importing
        seconds["python"] = max(0.0, self.wall - inside - self.importing)
        return {"wall": self.wall, "seconds": seconds, "times": times, "lines": self._top_lines(),
                "ways": _ways(), "eager_functions": _eager_functions(), "host_functions": _host_books.table(),
                "retraced": _host_books.retraced(), "maps": _maps()}

    def _top_lines(self, most=8):
        rows = []
        for (file, line), looks in self.lines.most_common(most):
            rows.append({"file": os.path.relpath(file) if file.startswith("/") else file, "line": line,
                         "share": looks / max(1, self.looks), "text": linecache.getline(file, line).strip()})
        return rows


def _ways():
    """How fit, evaluate and predict were run, if Keras is there."""
    whole = sys.modules.get("keras.src.backend.tensorflow._whole")
    return dict(whole.ways) if whole is not None else {}


def _maps():
    """Functions of tf.data that run as Python, with the reason."""
    function = sys.modules.get("stoker.tf.data._function")
    return [{"name": title, "why": why, "calls": calls} for title, why, calls in (function.bill() if function else [])]


def _eager_functions():
    function = sys.modules.get("stoker.tf._function")
    rows = []
    for f in function.runs_eagerly if function is not None else []:
        code = getattr(f._python_function, "__code__", None)
        place = f"{os.path.relpath(code.co_filename)}:{code.co_firstlineno}" if code is not None else ""
        rows.append({"name": f._name, "place": place, "why": f._why_eager})
    return rows


# Verdict: what the steady part of the run was bound by.

def _place(row):
    return f"{row['name']} ({row['file']}:{row['line']})"


def _retraced(r, work):
    """The function that is recorded again and again, if that is what the time goes into."""
    spent = r["seconds"]["trace"] + r["seconds"]["compile"]
    if not r["retraced"] or r["retraced"][0]["times"] < 6 or spent < 0.3 * (spent + work):
        return None
    f = r["retraced"][0]
    changed = f"; argument '{f['argument']}' was {f['was']}, then {f['is']}" if f["argument"] else ""
    advice = (["pad batches to a few lengths (padded_batch, bucket_by_sequence_length), and batch(..., drop_remainder=True)"]
              if f["shapes"] else ["Python numbers are part of a signature: pass tensors, tf.constant(x)"])
    return ("retrace-bound", f"{_place(f)} was recorded {f['times']} times, which took {_time(spent)} of {_time(r['wall'])}"
            f"{changed}.", advice)


def _fallback(r, work):
    """A function without a program, or Python in the middle of one: with its line."""
    share = {n: s / work if work else 0.0 for n, s in r["seconds"].items()}
    hosts = [h for h in r["host_functions"] if h["kind"] != "from_generator"]
    if hosts and hosts[0]["seconds"] > 0.3 * work:
        h = hosts[0]
        return ("fallback-bound", f"{h['kind']} {_place(h)} runs as Python: {h['calls']} calls take {_time(h['seconds'])} of "
                f"{_time(work)} and move {_size(h['bytes'])}.",
                ["say it with TensorFlow's operations: they are recorded and run by the engine's threads, Python is called each time"])
    if r["eager_functions"] and share["eager"] + share["python"] > 0.5:
        f = r["eager_functions"][0]
        return ("fallback-bound", f"{f['name']} ({f['place']}) runs without a program: {f['why']}.",
                ["take what needs Python out of the function, or tell the shape of its result"])
    return None


def _input(r, share):
    """Input-bound, with what the batches come from."""
    who = next((h for h in r["host_functions"] if h["kind"] in ("from_generator", "map")), None)
    named = f" {_place(who)} makes them: {who['calls']} calls, {_time(who['seconds'])}." if who is not None else ""
    return ("input-bound", f"The program waits for its next batch in {share:.0%} of the time.{named}",
            ["map with num_parallel_calls=tf.data.AUTOTUNE, cache() what fits into memory, prefetch()"])


def _python(r, share):
    t, advice = r["times"], []
    if t["eager"] > 20 * max(1, t["program"]):
        advice.append(f"{t['eager']} single operations were called one by one: put the step into a @tf.function")
    if t["read"] > max(50, t["program"] // 2):
        advice.append(f"results were read back {t['read']} times: look at the loss every 100 steps, not at every one")
    for way in r["ways"].values():
        if way.startswith("step by step"):
            advice.append(f"fit went {way}; without that whole epochs run in the engine")
    advice = advice or ["use model.fit, or give the loop larger batches"]
    top = r["lines"][0] if r["lines"] else None
    where = f" Most of it at {top['file']}:{top['line']}: {top['text'][:60]}" if top is not None else ""
    return ("python-bound", f"Python between the steps takes {share:.0%}.{where}", advice)


def _work(seconds):
    """Without what is done once."""
    return sum(seconds[n] for n in ("input", "epochs", "program", "eager", "host", "read", "python"))


def verdict(r, started=True):
    """(name, sentence, advice); started: a run that hardly did more than start is told so"""
    s, t = r["seconds"], r["times"]
    work = _work(s)
    setup = s["import"] + s["trace"] + s["compile"]
    share = {n: s[n] / work if work else 0.0 for n in s}
    found = _retraced(r, work)
    if found is None and started and work < 0.5 * setup:
        return ("warm-up", f"Importing, recording and compiling took {_time(setup)} of {_time(r['wall'])}; there was little "
                "else to do.", ["measure longer runs; times per step of this one mean nothing"])
    found = found or _fallback(r, work)
    if found is not None:
        return found
    if share["input"] > 0.4:
        return _input(r, share["input"])
    if share["python"] > 0.4:
        return _python(r, share["python"])
    if share["eager"] > 0.4:
        return ("overhead-bound", f"{t['eager']} single operations take {share['eager']:.0%}.",
                ["put them into a @tf.function: they become one program"])
    return ("compute-bound", "Most of the time is arithmetic.", ["smaller model, or mixed precision, or more processors"])


# What the probes found.

def _gain(g):
    return f"{g['best']:.2f}x ({g['low']:.2f}-{g['high']:.2f})"


def examine(r):
    """Probes on the program's own fit or loop; adds what they say to r. Gives (text, HTML) of the library's report, or None."""
    from stoker import _probe

    s = r["seconds"]
    try:
        made = _probe.examine_fit() if s["epochs"] >= s["program"] else None
        if made is not None:
            r["examined"] = made[1]
            return made[0], made[2]
        r["loop"] = _probe.examine_loop(r["times"])
    except Exception as error:  # the program's numbers stand, whatever becomes of the probes
        r["not_probed"] = f"{type(error).__name__}: {error}"
    return None


def probed_verdict(r, found):
    """The verdict with what was measured: (name, sentence, advice)."""
    name, sentence, advice = found
    d = r["examined"]["doctor"] if r.get("examined") else None
    if name == "warm-up" and r.get("loop"):
        name, sentence, advice = found = verdict(r, False)
    if name in ("retrace-bound", "fallback-bound") or (name == "warm-up" and d is None):
        return found
    if d is not None:
        lines = [f"{a['text']}: {_gain(a['gain'])}" + ("; changes the mathematics" if a["changes_mathematics"] else "")
                 for a in d["advice"]]
        evidence = [line for line in d["evidence"].split("\n") if line]
        who = " " + _input(r, 0)[1].partition(".")[2].strip() if d["verdict"] == "input-bound" else ""
        return d["verdict"], d["headline"].partition(". ")[0] + "." + who, lines or evidence or advice
    loop = r.get("loop")
    if loop is None:
        return found
    return _loop_verdict(r, loop, found)


def _loop_verdict(r, loop, found):
    name, sentence, advice = found
    least = max(1.05, math.exp(loop["noise"]))
    sure = [c for c in loop["ceilings"] if c["gain"]["low"] > least and c["part"] != "batches alone"]
    if not sure:  # the books are exact; a gain is promised only where it is larger than the noise
        return found
    lines = [f"{c['text']}: {_gain(c['gain'])}" for c in sorted(sure, key=lambda c: -c["gain"]["best"])]
    parts = {c["part"]: c["gain"]["best"] for c in sure}
    where = f" around {loop['function']} ({loop['file']}:{loop['line']})"
    if loop["step_seconds"] * loop["runs"] < 0.5 * _work(r["seconds"]):  # what stands between the steps takes longer than they do
        return name, sentence, lines + advice
    if parts.get("one batch", 0) >= parts.get("in the engine", 0):
        return _input(r, r["seconds"]["input"] / r["wall"])[:2] + (lines + advice,)
    if name in ("python-bound", "compute-bound", "overhead-bound"):
        text = (f"The loop{where} spends its time in Python: a step takes {_time(loop['step_seconds'])} there and would take "
                f"{_time(loop['step_seconds'] / parts['in the engine'])} in the engine.") if "in the engine" in parts else sentence
        return "python-bound", text, lines + (advice if name == "python-bound" else [])
    return name, sentence, lines + advice


# Text.

def _time(seconds):
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.1f} ms"


def _size(n):
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000 or unit == "GB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1000


def _detail_lines(r):
    lines = []
    if r["host_functions"]:
        lines += ["", "  functions that run as Python"]
        for h in r["host_functions"]:
            lines.append(f"    {_time(h['seconds']):>10} {h['calls']:>8} calls {_size(h['bytes']):>10}  {h['kind']} {_place(h)}")
    for f in r["retraced"]:
        changed = f": {f['argument']} was {f['was']}, then {f['is']}" if f["argument"] else ""
        lines.append(f"  {_place(f)} was recorded {f['times']} times{changed}")
    for m in r["maps"]:
        lines.append(f"  map {m['name']} runs as Python: {m['why']}")
    for mode, way in r["ways"].items():
        lines.append(f"  {mode}: {way}")
    for f in r["eager_functions"]:
        lines.append(f"  {f['name']} ({f['place']}) runs eagerly: {f['why']}")
    return lines


def text(r, title):
    lines = [f"{title}: {_time(r['wall'])}", ""]
    for name, words in _PARTS:
        seconds, times = r["seconds"].get(name, 0.0), r["times"].get(name)
        if seconds < 5e-4 and not times:
            continue
        count = f"{times:>9} times" if times else ""
        lines.append(f"  {words:36} {_time(seconds):>10} {seconds / r['wall']:>6.1%}  {count}")
    if r["lines"]:
        lines += ["", "  lines that were being worked on"]
        for row in r["lines"]:
            place = f"{row['file']}:{row['line']}"
            lines.append(f"    {row['share']:>6.1%}  {place:28} {row['text'][:70]}")
    return "\n".join(lines + _detail_lines(r))


def page(told, html):
    """One HTML file: the books of the script, and behind them the report of its training, if it was examined."""
    import html as _html

    part = f"<pre style=\"overflow-x:auto\">{_html.escape(told)}</pre>"
    if html is None:
        return f"<!doctype html><meta charset=\"utf-8\"><title>stoker</title><body>{part}</body>"
    head, body, rest = html.partition("<body>")
    return head + body + part + rest if body else part + html


def verdict_text(r, sentence, advice):
    lines = [f"VERDICT  {r['verdict']}", f"         {sentence}"]
    if r.get("examined"):
        d = r["examined"]["doctor"]
        lines += [f"       - {line}" for line in d["evidence"].split("\n") if line]
        lines += [f"       - {c['text']}: {_gain(c['gain'])}" for c in d["ceilings"]]
        lines.append(f"       - probes on the program's own fit took {_time(d['seconds'])}; weights were put back")
    if r.get("loop"):
        lines += [f"       - {c['text']}: {_gain(c['gain'])}" for c in r["loop"]["ceilings"]]
        lines.append(f"       - measured on the program's own step and dataset; effects below {r['loop']['noise']:.0%} cannot be told")
    if r.get("not_probed"):
        lines.append(f"       - not probed: {r['not_probed']}")
    return "\n".join(lines + [f"     {n}. {line}" for n, line in enumerate(advice, 1)])


def _options(word, arguments):
    """{option: file}, or None when one is not known."""
    given = {}
    while arguments and arguments[0].startswith("--"):
        option = arguments.pop(0)
        if option not in ("--json", "--html") or not arguments:
            print(f"stoker {word}: unknown option {option}; there are --json FILE and --html FILE", file=sys.stderr)
            return None
        given[option] = arguments.pop(0)
    if arguments:
        return given
    print(f"stoker {word}: which program?", file=sys.stderr)
    return None


def tell(books, doctor, title, ended_well=True):
    """(text, HTML of the library's report or None, all of it) of a run; a doctor probes and gives a verdict."""
    r = books.result()
    report = examine(r) if doctor and ended_well else None
    r["verdict"], sentence, advice = probed_verdict(r, verdict(r))
    told = text(r, title)
    if doctor:
        told += "\n\n" + verdict_text(r, sentence, advice)
    return told, report[1] if report is not None else None, dict(r, sentence=sentence, advice=advice)


def main(word, arguments, run):
    """run(arguments) runs the program. Options of ours stand before it: --json FILE, --html FILE."""
    given = _options(word, arguments)
    if given is None:
        return 2
    title, code, books = arguments[0], 0, Books()
    with books:
        try:
            run(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    told, html, r = tell(books, word == "doctor", title, code == 0)
    sys.stdout.flush()
    print(f"\n{told}", file=sys.stderr)
    if "--json" in given:
        with open(given["--json"], "w") as file:
            json.dump(r, file, indent=1)
    if "--html" in given:
        with open(given["--html"], "w") as file:
            file.write(page(told, html))
    return code
