"""The machine under the benchmark: what it can do at most, and who else is using it."""
import json
import os
import pathlib
import platform
import resource
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds():
    """-> seconds all processors were busy (steal included), and stolen by the host alone"""
    field = [int(f) for f in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _wait, irq, softirq, steal = field
    return (user + nice + system + irq + softirq + steal) / TICKS, steal / TICKS


def process_seconds(pid):
    try:
        after_name = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / TICKS
    except (OSError, IndexError, ValueError):
        return 0.0


class Watch:
    """From its making to others(): the share of the machine that neither this program, its
    finished children nor the given processes used. 0 is quiet, 1 is all processors taken."""

    def __init__(self, pids):
        self.pids = pids
        self.start = self.state()

    def state(self):
        ours = sum(process_seconds(pid) for pid in self.pids)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            usage = resource.getrusage(who)
            ours += usage.ru_utime + usage.ru_stime
        return time.monotonic(), cpu_seconds()[0], ours

    def others(self):
        then, now = self.start, self.state()
        elapsed, busy, ours = (b - a for a, b in zip(then, now))
        if elapsed < 0.05:
            return 0.0
        return round(min(1.0, max(0.0, (busy - ours) / (elapsed * (os.cpu_count() or 1)))), 3)


def busy_now(seconds=0.5):
    watch = Watch([])
    time.sleep(seconds)
    return watch.others()


def measure_peak(program, options):
    """-> what bench_peak prints, or None (then there is no limit column)"""
    if not program.exists():
        return None
    command = [str(program), "--threads", str(options.threads)]
    if options.quick:
        command += ["--seconds", "0.03"]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return None


def best_gflops(peak, threads):
    return max((f["best"] for f in peak["flops"] if f["threads"] == threads), default=None)


def best_gbs(peak, level, threads):
    return max((b["best"] for b in peak["bandwidth"]
                if b["level"] == level and b["threads"] == threads), default=None)


def cpu_name():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def peer_versions(python):
    if not python:
        return {}
    code = ("import importlib.metadata as m, json\nv = {}\n"
            "for n in ('tensorflow-cpu', 'torch', 'jax', 'keras', 'grain', 'pandas', 'numpy'):\n"
            "    try: v[n] = m.version(n)\n"
            "    except m.PackageNotFoundError: pass\n"
            "print(json.dumps(v))")
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True)
    return json.loads(done.stdout or "{}")


def describe(peak, python, options):
    return {"cpu": cpu_name(), "processors": os.cpu_count(), "threads": options.threads,
            "load_average": os.getloadavg(), "busy_at_start": busy_now(),
            "peers": peer_versions(python), "rounds": options.rounds,
            "seconds_per_round": options.seconds, "peak": peak}
