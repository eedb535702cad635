"""`stoker paradox` from outside: what it prints, for people and for machines, what it refuses, and how it ends.

    paradox_test.py path/to/stoker
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

STOKER = os.path.abspath(sys.argv[1])
QUICK = ["--seconds", "0.3"]
ROWS = ["1a", "1b", "2", "3", "4", "5a", "5b", "6a", "6b"]
BOOKS = {"input wait", "host code", "dispatch", "thread wait", "upload", "kernels", "optimizer", "download", "islands", "sync",
         "callbacks", "residual", "building"}


class Paradox(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.environment = {k: v for k, v in os.environ.items() if k not in ("STOKER_APART", "STOKER_DEVICE")}
        self.environment["TMPDIR"] = self.folder.name

    def run_it(self, *words, **environment):
        return subprocess.run([STOKER, "paradox", *words], capture_output=True, text=True, timeout=280, cwd=self.folder.name,
                              env={**self.environment, **environment})

    def run_ok(self, *words, **environment):
        done = self.run_it(*words, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def fails(self, code, pattern, *words):
        done = self.run_it(*words)
        self.assertRegex(done.stderr, pattern)
        self.assertEqual((done.returncode, done.stdout), (code, ""))

    def test_every_row_for_people(self):
        out = self.run_ok(*QUICK, "--device", "cpu:0")
        self.assertEqual(re.findall(r"^(\d\w?)  +\w", out, re.M), ROWS)
        gains = re.findall(r"^     cpu:0, per [\w ]+? +[\d.]+ [mun]?s +[\d.]+ [mun]?s   "
                           r"[\d.]+x \([\d.]+-[\d.]+\)(?: too noisy| no difference| slower)?$", out, re.M)
        self.assertEqual(len(gains), len(ROWS), out)
        for word in ("what", "books", "cause", "cure"):
            self.assertEqual(len(re.findall(rf"^     {word} ", out, re.M)), len(ROWS), word)
        self.assertIn("There is no GPU among these devices", out)
        self.assertLessEqual(max(map(len, out.splitlines())), 100)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_for_machines_and_as_a_page(self):
        told = json.loads(self.run_ok(*QUICK, "--json", "--only", "5a,2", "--html", "p.html"))
        self.assertEqual(told["stoker_paradox"], 1)
        self.assertEqual([row["id"] for row in told["rows"]], ["2", "5a"])
        names = [device["name"] for device in told["devices"]]
        self.assertEqual(names[0], "cpu:0")
        self.assertFalse([name for name in names if name.startswith("opencl")])
        for row in told["rows"]:
            self.assertEqual([cell["device"] for cell in row["devices"]], names)
            for text in ("name", "per", "written", "cured", "cause", "cure"):
                self.assertTrue(row[text])
            for cell in row["devices"]:
                self.assertIn(cell["judged"], ("faster", "slower", "no difference", "too noisy"))
                self.assertTrue(0 < cell["gain"]["low"] <= cell["gain"]["best"] <= cell["gain"]["high"])
                self.assertAlmostEqual(cell["as_written"]["seconds"] / cell["cured"]["seconds"] / cell["gain"]["best"], 1)
                for side in ("as_written", "cured"):
                    books = cell[side]["books"]
                    self.assertLessEqual(set(books), BOOKS)
                    self.assertAlmostEqual(sum(books.values()), 1, delta=0.01)
        self.assertRegex(told["rows"][0]["devices"][0]["note"], r"^the first time here: model .*, first step ")
        with open(os.path.join(self.folder.name, "p.html")) as file:
            page = file.read()
        self.assertTrue(page.startswith("<!doctype html>") and page.endswith("</html>\n"))
        self.assertIn("<b>5a</b> a million tiny adds", page)
        self.assertEqual(os.listdir(self.folder.name), ["p.html"])

    def test_a_device_beside_the_processor(self):
        out = self.run_ok(*QUICK, "--only", "5a", STOKER_APART="1")
        self.assertRegex(out, r"(?m)^     cpu:0, per million adds .*\n     apart:0, per million adds ")
        self.assertRegex(out, r"(?m)^apart:0 beside cpu:0:\n  5a a million tiny adds +[\d.]+x slower as written, ")
        only = self.run_ok(*QUICK, "--only", "5a", "--device", "apart:0", STOKER_APART="1")
        self.assertNotIn("cpu:0,", only)

    def test_what_is_refused(self):
        self.fails(2, r"^stoker paradox: there is no experiment '9'; there are 1a, 1b, 2, 3, 4, 5a, 5b, 6a, 6b, ", "--only", "3,9")
        self.fails(1, r'^stoker paradox: .*no device "gpu:9"; there is "cpu:0"', "--device", "cpu:0,gpu:9", "--only", "5a")
        self.fails(2, r"^stoker paradox: --device takes 8 names at most\n", "--device", ",".join(["cpu:0"] * 9))
        self.fails(2, r"^stoker paradox: 'x' is one argument too many\n", "x")
        self.fails(3, r"^stoker paradox: none/f: cannot write into the folder 'none'", "--html", "none/f")
        self.assertIn("examples:\n", self.run_ok("--help"))

    def test_interrupted_at_once(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            child = subprocess.Popen([STOKER, "paradox", "--html", "p.html", "--only", "1b,4"], env=self.environment,
                                     cwd=self.folder.name, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(1)
            begun = time.monotonic()
            child.send_signal(number)
            out, err = child.communicate(timeout=60)
            self.assertLess(time.monotonic() - begun, 5)  # a busy machine; it is milliseconds elsewhere
            self.assertEqual((child.returncode, out), (130, ""))
            self.assertEqual(err, "\nstoker paradox: interrupted; nothing was written\n")
            self.assertEqual(os.listdir(self.folder.name), [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
