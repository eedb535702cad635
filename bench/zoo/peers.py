"""The other side of the zoo: Keras' fit on other engines, one process per model, so that its peak memory is that model's."""
import json
import os
import pathlib
import select
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PEERS = {"tf": ("tensorflow", 0), "tf-jit": ("tensorflow", 1), "torch": ("torch", 0), "torch-jit": ("torch", 1),
         "jax": ("jax", 1)}


def find_python(build):
    """The Python in which the peers are installed; bench/setup-peers makes it when it is missing."""
    where = pathlib.Path(os.environ.get("STOKER_PEERS", build / "peers"))
    python = where / "bin" / "python"
    if not python.exists():
        subprocess.run([str(HERE.parent / "setup-peers")], env={**os.environ, "STOKER_PEERS": str(where)})
    if not python.exists():
        sys.exit(f"zoo: no Keras in {where}; bench/setup-peers makes it, STOKER_PEERS names another place")
    return python


class Peer:
    """One fit_keras.py process. An error is an answer; a process that ended, or was cut for its slowness, stays away."""

    def __init__(self, python, name, log, limit):
        backend, jit = PEERS[name]
        self.name, self.limit, self.left, self.text, self.failed = name, limit, limit, b"", None
        self.process = subprocess.Popen([str(python), str(HERE / "fit_keras.py"), backend, str(jit)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)

    def line(self, until):
        """The next line of output, or None when the process ended or the time is up."""
        while b"\n" not in self.text:
            wait = until - time.monotonic()
            if wait <= 0 or not select.select([self.process.stdout], [], [], wait)[0]:
                self.failed = f"cut after {self.limit:.0f} s"
                self.process.kill()
                return None
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                self.failed = "the process ended; see zoo.log"
                return None
            self.text += more
        line, self.text = self.text.split(b"\n", 1)
        return line

    def answer(self):
        """The next line of JSON; what libraries print in between is passed over. Its time is taken off the peer's."""
        begin = time.monotonic()
        try:
            while True:
                line = self.line(begin + self.left)
                if line is None:
                    return {"error": self.failed}
                if line.startswith(b"{"):
                    return json.loads(line)
        finally:
            self.left -= time.monotonic() - begin

    def start(self):
        """Waits until its libraries are loaded, so that they are not while somebody else is measured."""
        self.answer()

    def measure(self, model, seconds):
        if self.failed:
            return {"error": self.failed}
        try:
            self.process.stdin.write(f"{model} {seconds}\n".encode())
            self.process.stdin.flush()
        except OSError:
            self.failed = "the process ended before; see zoo.log"
            return {"error": self.failed}
        return self.answer()

    def close(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
