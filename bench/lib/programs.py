"""Starts the programs that are measured and reads their JSON lines. The lines' keys and the
protocol are in bench/README.md. A program that fails gives a line with "error", never an
exception: one broken peer must not end the run."""
import json
import os
import pathlib
import selectors
import subprocess
import time

ANSWER_SECONDS = 600

# Columns each peer script can fill; the table takes its order from here.
PEER_SCRIPTS = {
    "tf": ("tensorflow", "tensorflow_loop", "tensorflow_half", "pandas"),
    "torch": ("torch",),
    "jax": ("jax", "jax_scan"),
    "py": ("tensorflow", "numpy"),
}


def json_lines(text):
    lines = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                lines.append(json.loads(line))
            except ValueError:
                lines.append({"error": f"not JSON: {line[:80]}"})
    return lines


class Stoker:
    """build/bench/bench_rows; one process per measurement, since starting it costs nothing."""

    def __init__(self, folder):
        self.path = folder / "bench_rows"
        # Its own cache folder: neither the user's cache nor an old benchmark decides a kernel.
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
        self.rows, self.problem = set(), None
        if not self.path.exists():
            self.problem = f"{self.path} is not built"
            return
        listed = subprocess.run([str(self.path), "--list"], capture_output=True, text=True)
        self.rows = set(listed.stdout.split())

    def measure_python(self, row, seconds):
        """Rows py_*: the program of the peer, on Stoker's package (make python)."""
        python = self.path.parent.parent / "python" / "bin" / "python"
        script = pathlib.Path(__file__).resolve().parent.parent / "peers" / "peer_py.py"
        if not python.exists():
            return [{"row": row, "error": "no Python package; run make python"}]
        command = [str(python), "-W", "ignore", "-m", "stoker", str(script), "--row", row, "--seconds", str(seconds)]
        # The package runs from its sources; its bytecode is kept, as an installer does for the peers.
        environment = {**self.environment, "PYTHONPYCACHEPREFIX": str(self.path.parent / "bytecode")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS, env=environment)
        if done.returncode:
            reason = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            return [{"row": row, "error": reason[0]}]
        return [line for line in json_lines(done.stdout) if "samples" in line or "error" in line]

    def measure(self, row, seconds, threads):
        if row.startswith("py_"):
            return self.measure_python(row, seconds) if threads != 1 else []
        if row not in self.rows:
            return []
        command = [str(self.path), "--row", row, "--seconds", str(seconds), "--threads", str(threads)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS,
                                  env=self.environment)
        except subprocess.TimeoutExpired:
            return [{"row": row, "error": f"no answer after {ANSWER_SECONDS} s"}]
        if done.returncode:
            reason = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            print(f"  stoker, {threads} threads: {reason[0]}", flush=True)
            return [{"row": row, "error": reason[0]}]
        return json_lines(done.stdout)


class OneShotPeer:
    """For rows about the start of a process: a new one each time."""
    pid = None

    def __init__(self, name, command, environment, log):
        self.name, self.columns, self.command = name, PEER_SCRIPTS[name], command
        self.environment, self.log = environment, log

    def measure(self, row, seconds, _only):
        command = self.command + ["--row", row, "--seconds", str(seconds)]
        try:
            with open(self.log, "a") as log:
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True,
                                      env=self.environment, timeout=ANSWER_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            return [{"peer": self.columns[0], "error": str(error)}]
        lines = json_lines(done.stdout)
        if done.returncode:
            lines.append({"peer": self.columns[0], "error": f"ended with {done.returncode}"})
        return lines

    def close(self):
        pass


class ServingPeer:
    """A peer that stays: imports and compiles once, then measures a row whenever asked."""

    def __init__(self, name, command, environment, log):
        self.name, self.columns, self.log = name, PEER_SCRIPTS[name], log
        self.pending, self.dead = b"", None
        with open(log, "a") as stderr:
            self.process = subprocess.Popen(command + ["--serve"], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=stderr, env=environment)
        self.pid = self.process.pid
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def read_line(self, until):
        while b"\n" not in self.pending:
            if not self.selector.select(max(0.0, until - time.monotonic())):
                raise OSError(f"no answer after {ANSWER_SECONDS} s")
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                raise OSError(f"ended with {self.process.wait()}; see {self.log}")
            self.pending += piece
        line, _, self.pending = self.pending.partition(b"\n")
        return json_lines(line.decode("utf-8", "replace"))

    def wait_ready(self):
        self.collect(lambda line: "ready" in line)

    def measure(self, row, seconds, only):
        if self.dead:
            return []
        request = " ".join([row, str(seconds), *only]) + "\n"
        try:
            self.process.stdin.write(request.encode())
            self.process.stdin.flush()
        except OSError:
            pass  # the read below says why it ended
        return self.collect(lambda line: "done" in line)

    def collect(self, is_last):
        lines, until = [], time.monotonic() + ANSWER_SECONDS
        try:
            while not self.dead:
                for line in self.read_line(until):
                    if is_last(line):
                        return lines
                    lines.append(line)
        except OSError as error:
            self.dead = str(error)
            lines.append({"peer": self.columns[0], "error": self.dead})
        return lines

    def close(self):
        self.selector.close()
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def start_peers(python, scripts, row, logs):
    """-> the peers of this row, all imported and waiting."""
    kind = OneShotPeer if row.get("fresh") else ServingPeer
    peers = []
    wanted = row.get("peers", list(PEER_SCRIPTS))
    for name in wanted:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1",
                       **row.get("peer_env", {}).get(name, {})}
        command = [str(python), str(scripts / f"peer_{name}.py")]
        peers.append(kind(name, command, environment, logs / f"peer_{name}.log"))
    for peer in peers:
        if isinstance(peer, ServingPeer):
            peer.wait_ready()
            if peer.dead:
                print(f"  {peer.name}: {peer.dead}", flush=True)
    return peers
