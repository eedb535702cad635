#!/usr/bin/env python3
"""`stoker data` from outside: what it prints, its exit codes, and that a conversion which is killed leaves whole shards
and goes on where it was.

    data_test.py STOKER GOLDEN
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

STOKER, GOLDEN = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*arguments):
    done = subprocess.run([STOKER, "data", *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class DataCommand(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def test_inspect(self):
        code, out, _ = run("inspect", GOLDEN / "examples.tfrecord")
        self.assertEqual(code, 0)
        self.assertIn("3 records, 387 bytes", out)
        self.assertRegex(out, r"weights +float32 +3 +3 +36")
        self.assertRegex(out, r"optional +float32 +1 +1 +4")

    def test_stats(self):
        code, out, _ = run("stats", GOLDEN / "examples.tfrecord")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"label +int64 +1 +3 +24 +-7 +3 +-1.33333")

    def test_verify_and_repair(self):
        data = bytearray((GOLDEN / "records.tfrecord").read_bytes())
        data[70] ^= 1
        bad, good = self.path / "bad", self.path / "good"
        bad.write_bytes(data)
        self.assertEqual(run("verify", GOLDEN / "records.tfrecord", GOLDEN / "records.gz")[0], 0)
        code, out, _ = run("verify", bad)
        self.assertEqual(code, 4)
        self.assertIn("byte 62", out)
        self.assertEqual(run("verify", self.path / "absent")[0], 3)
        self.assertEqual(run("repair", bad, good)[0], 0)
        code, out, _ = run("verify", good)
        self.assertEqual((code, "4 records" in out), (0, True))

    def test_there_and_back(self):
        table = self.path / "t.csv"
        table.write_text('a,b,c\n1,2.5,hello\n-2,0.1,"x,""y"\n')
        self.assertEqual(run("convert", table, self.path / "t.tfrecord")[0], 0)
        self.assertEqual(run("convert", self.path / "t.tfrecord", self.path / "u.csv")[0], 0)
        self.assertEqual((self.path / "u.csv").read_text(),
                         'a,b,c\n1,2.5,hello\n-2,0.100000001,"x,""y"\n')
        self.assertEqual(run("convert", self.path / "t.tfrecord", self.path / "u.npz")[0], 0)
        self.assertIn("string[2]", run("inspect", self.path / "u.npz")[1])

    def test_arrays(self):
        table, archive = self.path / "t.csv", self.path / "t.npz"
        table.write_text("a,b\n1,nan\n2,0.5\n")
        self.assertRegex(run("stats", table)[1], r"(?m)^b +float32\[2\] +0.5 +0.5 +0.5 +1$")
        arrays = json.loads(run("stats", table, "--json")[1])["arrays"]
        self.assertEqual(arrays[1], {"name": "b", "type": "float32", "shape": [2], "min": 0.5, "max": 0.5, "mean": 0.5,
                                     "not_finite": 1})
        self.assertEqual(run("verify", table), (0, f"{table}: good\n", ""))
        self.assertEqual(run("convert", table, self.path / "t.tfrecord")[0], 0)
        self.assertRegex(run("stats", self.path / "t.tfrecord")[1], r"(?m)^b +float32 +1 +2 +8 +0.5 +0.5 +0.5 +1$")
        self.assertEqual(run("convert", self.path / "t.tfrecord", archive)[0], 0)
        self.assertEqual(run("verify", archive)[0], 0)
        archive.write_bytes(archive.read_bytes()[:-40])
        self.assertEqual(run("verify", archive)[0], 4)

    def test_wrong_kinds_of_files(self):
        table, text = self.path / "t.csv", self.path / "notes"
        table.write_text("a,b\n1,2\n")
        text.write_text("nothing of the kind, but long enough for a record")
        for words, message in ((("head", table), "head shows records of TFRecord files; `stoker data stats "),
                               (("repair", table, self.path / "r"), "repair takes TFRecord files; "),
                               (("convert", table, self.path / "u.npz"), "only those become .npz or .csv"),
                               (("convert", table, self.path / "u.foo"), "u.foo: what is written is told by the ending of the "
                                "name: .tfrecord (also .tfrecords and .tfrec), .csv or .npz\n"),
                               (("convert", table, self.path / "u.tfrecrd"), ".csv or .npz; did you mean .tfrecord?\n"),
                               (("convert", table, self.path / "u.npy"), ".csv or .npz; did you mean .npz?\n"),
                               (("convert", table, self.path / "v1.csv" / "u"), ".csv or .npz\n"),
                               (("convert", table, table), "would be written over itself")):
            code, out, err = run(*words)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(message, err)
        self.assertEqual(table.read_text(), "a,b\n1,2\n")
        self.assertEqual(sorted(f.name for f in self.path.iterdir()), ["notes", "t.csv"])
        for ending in (".tfrecords", ".TFREC"):
            self.assertEqual(run("convert", table, self.path / ("v" + ending), "--shards", 2)[0], 0)
            self.assertTrue((self.path / ("v-00001-of-00002" + ending)).exists())
        code, out, err = run("inspect", text)
        self.assertEqual((code, out), (4, ""))
        self.assertIn("is no TFRecord file", err)

    def test_usage(self):
        code, _, err = run("explian", "x")
        self.assertEqual(code, 2)
        self.assertIn("did you mean 'explain'", err)
        self.assertEqual(run("verify")[0], 2)

    def test_bench_and_explain(self):
        (self.path / "p.json").write_text(
            '{"ops": [{"op": "range", "stop": 1000}, {"op": "batch", "size": 10}]}')
        code, out, _ = run("explain", self.path / "p.json")
        self.assertEqual((code, "by number" in out), (0, True))
        code, out, _ = run("bench", self.path / "p.json", "--seconds", "0.1")
        self.assertEqual((code, "costs most" in out), (0, True))

    def test_killed_conversion_goes_on(self):
        table, target, shards, rows = self.path / "big.csv", self.path / "big.tfrecord", 16, 60000
        table.write_text("a,b\n" + "".join(f"{i},{i / 8}\n" for i in range(rows)))
        arguments = ["convert", table, target, "--shards", shards]
        kills = 0
        for wanted in (0, 1, 4, 9, shards + 1):  # killed as soon as so many shards are there; then left alone
            process = subprocess.Popen([STOKER, "data", *map(str, arguments)], stdout=subprocess.PIPE,
                                       text=True)
            begun = lambda: wanted or list(self.path.glob("*.tmp"))  # noqa: E731 - a shard is half written
            while process.poll() is None and not (
                    begun() and len(list(self.path.glob("big-*.tfrecord"))) >= wanted):
                time.sleep(0.0005)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += process.returncode == -signal.SIGKILL
            there = list(self.path.glob("big-*.tfrecord"))
            if there:
                self.assertEqual(run("verify", *there)[0], 0)  # each is whole
        self.assertEqual(process.returncode, 0)
        self.assertGreater(kills, 0)
        files = sorted(self.path.glob("big-*.tfrecord"))
        self.assertEqual(len(files), shards)
        code, out, _ = run("verify", *files)
        self.assertEqual(code, 0)
        self.assertEqual(sum(int(line.split(": ")[1].split(" ")[0]) for line in out.splitlines()), rows)
        whole = self.path / "whole"
        whole.mkdir()
        self.assertEqual(run("convert", table, whole / "big.tfrecord", "--shards", shards)[0], 0)
        for file in files:  # as if it had never been killed
            self.assertEqual(file.read_bytes(), (whole / file.name).read_bytes(), file.name)
        self.assertEqual([f.name for f in self.path.iterdir() if "tmp" in f.name or "converting" in f.name], [])
        code, out, _ = run("head", files[-1], "--count", "1")
        self.assertIn(f"a: {rows * (shards - 1) // shards}", out)
        again = self.path / "state.tfrecord"
        (self.path / "state.tfrecord.converting").write_text("stoker convert 1\nfrom elsewhere\n")
        self.assertNotEqual(run("convert", table, again)[0], 0)
        self.assertEqual(run("convert", table, again, "--restart")[0], 0)


if __name__ == "__main__":
    os.environ.setdefault("STOKER_CACHE", "")
    unittest.main(argv=sys.argv[:1])
