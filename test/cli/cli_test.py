"""The command from outside: exact messages, exit codes, files that survive. Needs nothing but Python and bash.

    cli_test.py path/to/stoker source-folder
"""
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import zipfile

STOKER = os.path.abspath(sys.argv[1])
SOURCE = os.path.abspath(sys.argv[2])
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def npy(kind, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, str(tuple(shape)))
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def write_npz(path, rows=200, width=4, names=("x", "y"), classes=2):
    """Label k has k in its first column; the rest is a pattern."""
    label = [i % classes for i in range(rows)]
    x = [float(label[i]) * 2 - 1 if k == 0 else ((i * 7 + k * 3) % 11) / 11 for i in range(rows) for k in range(width)]
    with zipfile.ZipFile(path, "w") as z:
        z.writestr(names[0] + ".npy", npy("<f4", (rows, width), struct.pack("<%df" % len(x), *x)))
        z.writestr(names[1] + ".npy", npy("<i8", (rows,), struct.pack("<%dq" % rows, *label)))


class Command(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        os.chmod(self.folder, 0o777)
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.run_ok("init", "mlp", "--input", "4", "--classes", "2", "--out", "m.json", "--quiet")
        write_npz(os.path.join(self.folder, "d.npz"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def run_it(self, *words, **more):
        return subprocess.run([STOKER, *words], cwd=self.folder, capture_output=True, text=True, timeout=120, **more)

    def run_ok(self, *words):
        done = self.run_it(*words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def fails(self, code, stderr, *words, **more):
        done = self.run_it(*words, **more)
        self.assertEqual(done.stderr, stderr)
        self.assertEqual((done.returncode, done.stdout), (code, ""))

    def fails_like(self, code, pattern, *words, **more):
        done = self.run_it(*words, **more)
        self.assertRegex(done.stderr, pattern)
        self.assertEqual((done.returncode, done.stdout), (code, ""))


class Usage(Command):
    def test_wrong_words(self):
        self.fails(2, "stoker: unknown command 'trian'; did you mean 'train'?\nsee: stoker help\n", "trian")
        self.fails(2, "stoker: unknown command 'fly'\nsee: stoker help\n", "fly")
        see = "\nsee: stoker help train\n"
        self.fails(2, "stoker train: missing argument: MODEL DATA..." + see, "train", "m.json")
        for words, message in (
                (["--epoch", "3"], "unknown option --epoch; did you mean --epochs?"),
                (["-e", "3"], "unknown option -e; options start with two dashes"),
                (["--epochs", "many"], "--epochs is 'many'; it must be a whole number from 0 up"),
                (["--epochs"], "--epochs needs a value: N"),
                (["--epochs=1", "--epochs", "2"], "--epochs was given twice"),
                (["--shuffle", "maybe"], "--shuffle is 'maybe'; say yes or no"),
                (["--resume"], "--resume needs --checkpoint FILE: where to go on from")):
            self.fails(2, "stoker train: " + message + see, "train", "m.json", "d.npz", *words)
        self.fails(2, "stoker init: there is no kind 'cn' (did you mean 'cnn'?); `stoker init` lists them\n"
                   "see: stoker help init\n", "init", "cn")
        self.fails(2, "stoker predict: --weights FILE is missing: the numbers of the model\nsee: stoker help predict\n",
                   "predict", "m.json", "d.npz")

    def test_help_and_version(self):
        self.assertIn("commands:\n  train ", self.run_ok())
        self.assertEqual(self.run_ok("help", "train"), self.run_ok("train", "--help"))
        self.assertEqual(json.loads(self.run_ok("version", "--json"))["version"], self.run_ok("--version").split()[1])

    def test_devices(self):
        listed = json.loads(self.run_ok("devices", "--json"))
        self.assertEqual((listed[0]["name"], listed[0]["shares_memory"]), ("cpu:0", True))
        lines = self.run_ok("devices").splitlines()
        self.assertEqual(lines[0].split(), ["name", "threads", "memory", "data", "what", "it", "is"])
        self.assertEqual([line.split()[0] for line in lines[1:]], [d["name"] for d in listed])
        self.assertEqual(self.run_ok("train", "m.json", "d.npz", "--device", "cpu:0", "--epochs", "1", "--quiet"), "")
        for command in ("train", "evaluate", "predict", "profile", "doctor"):
            done = self.run_it(command, "m.json", "d.npz", "--device", "gpu:9", "--weights", "w")
            self.assertIn('no device "gpu:9"; there is "cpu:0"', done.stderr)

    def test_devices_are_measured_and_chosen(self):
        measured = json.loads(self.run_ok("devices", "--calibrate", "--json"))
        self.assertEqual([d["name"] for d in measured], [d["name"] for d in json.loads(self.run_ok("devices", "--json"))])
        self.assertTrue(all(d["launch"] > 0 and d["flops"] > 0 and d["bytes"] > 0 for d in measured))
        done = self.run_it("train", "m.json", "d.npz", "--device", "auto", "--log-placement", "--epochs", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("auto: cpu:0", done.stderr)
        self.assertRegex(done.stderr, r"cpu:0 +matmul\S* +gemm ")

    def test_man_page_is_that_of_the_table(self):
        with open(os.path.join(SOURCE, "doc", "stoker.1")) as f:
            self.assertEqual(f.read(), self.run_ok("help", "--man"), "write it anew: stoker help --man > doc/stoker.1")

    def test_completion_is_bash(self):
        script = self.run_ok("completion", "bash")
        ask = script + '\nCOMP_WORDS=(stoker train --ep); COMP_CWORD=2; _stoker; echo "${COMPREPLY[@]}"\n'
        done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("--epochs\n", ""))


class Training(Command):
    def test_train_evaluate_predict(self):
        out = self.run_ok("train", "m.json", "d.npz", "--epochs", "3", "--val-split", "0.2", "--save-weights",
                          "w.safetensors", "--history", "h.json", "--csv", "l.csv", "--optimizer", "adam:lr=0.01")
        lines = out.splitlines()
        self.assertEqual(lines[0], "mlp: 9026 parameters, adam:lr=0.01, loss sparse_categorical_crossentropy, accuracy, "
                         "batches of 32")
        for i in range(3):
            self.assertRegex(lines[1 + i], r"^Epoch %d/3 - [\d.]+ s - [\d.]+[kM]? samples/s - loss \d\.\d+(e-\d+)? - "
                             r"accuracy \d\.\d{4} - val_loss \d\.\d+(e-\d+)? - val_accuracy \d\.\d{4}$" % (i + 1))
        self.assertEqual(lines[4:], ["weights: w.safetensors"])
        history = json.loads(self.read("h.json"))
        self.assertEqual(history["epoch"], [0, 1, 2])
        self.assertEqual(list(history["history"]), ["loss", "accuracy", "val_loss", "val_accuracy"])
        self.assertEqual(history["history"]["val_accuracy"][2], 1.0)
        self.assertEqual(self.read("l.csv").decode().splitlines()[0], "epoch,loss,accuracy,val_loss,val_accuracy")
        weights = ["m.json", "d.npz", "--weights", "w.safetensors"]
        self.assertEqual(json.loads(self.run_ok("evaluate", *weights, "--json"))["accuracy"], 1)
        self.assertEqual(self.run_ok("predict", *weights, "--classes"), "0\n1\n" * 100)
        self.assertEqual(self.run_ok("predict", *weights, "--out", "y.npy"), "y.npy: float32[200,2]\n")
        self.assertEqual(self.read("y.npy")[:6], b"\x93NUMPY")

    def test_files_of_keras(self):
        if json.loads(self.run_ok("version", "--json"))["features"]["hdf5"] == "no":
            self.fails_like(1, "this build has no HDF5", "init", "mlp", "--out", "m.keras")
            return
        self.run_ok("init", "mlp", "--input", "4", "--classes", "2", "--out", "m.keras", "--quiet")
        with zipfile.ZipFile(self.path("m.keras")) as z:
            self.assertEqual(z.namelist(), ["metadata.json", "config.json", "model.weights.h5"])
        self.assertEqual(self.run_ok("summary", "m.keras"), self.run_ok("summary", "m.json"))
        out = self.run_ok("train", "m.keras", "d.npz", "--epochs", "3", "--optimizer", "adam:lr=0.01", "--save", "t.keras",
                          "--save-weights", "t.weights.h5")
        self.assertEqual(out.splitlines()[-2:], ["weights: t.weights.h5", "model: t.keras"])
        want = self.run_ok("predict", "m.json", "d.npz", "--weights", "t.weights.h5")
        self.assertEqual(self.run_ok("predict", "t.keras", "d.npz"), want)
        # What it was compiled with is what goes on; 3 epochs of 7 steps were done.
        out = self.run_ok("train", "t.keras", "d.npz", "--save", "u.h5", "--json").splitlines()
        self.assertEqual(json.loads(out[-1])["steps"], 28)
        self.assertEqual(json.loads(self.run_ok("evaluate", "u.h5", "d.npz", "--json"))["accuracy"], 1)
        self.fails_like(2, "--save is 'm.txt'; its name must end in .keras or .h5", "train", "m.keras", "d.npz", "--save",
                        "m.txt")
        self.fails_like(4, "t.weights.h5: holds weights but no model", "summary", "t.weights.h5")
        with open(self.path("t.keras"), "r+b") as f:
            f.truncate(3000)
        self.fails_like(4, "^stoker summary: t.keras: ", "summary", "t.keras")

    def test_quiet_and_json(self):
        self.assertEqual(self.run_ok("train", "m.json", "d.npz", "--quiet"), "")
        lines = [json.loads(l) for l in self.run_ok("train", "m.json", "d.npz", "--epochs", "2", "--json").splitlines()]
        self.assertEqual([l.get("epoch") for l in lines], [1, 2, None])
        self.assertEqual((lines[2]["done"], lines[2]["steps"]), (True, 14))
        done = self.run_it("train", "m.json", "no.npz", "--json")
        self.assertEqual(json.loads(done.stdout)["error"]["exit"], 3)

    def test_csv_with_a_target(self):
        self.write("d.csv", "kind,a,b,c,d\n" + "".join("%d,%d,%g,0.5,1\n" % (i % 2, i % 2, i / 100) for i in range(100)))
        out = self.run_ok("train", "m.json", "d.csv", "--target", "kind", "--epochs", "20", "--optimizer", "adam:lr=0.02")
        self.assertIn("accuracy 1.0000", out.splitlines()[-1])
        self.fails(2, "stoker train: d.csv: has no column 'sort'; it has: kind, a, b, c, d\n", "train", "m.json", "d.csv",
                   "--target", "sort")

    def test_a_folder_of_pictures(self):
        for kind, colour in (("dark", 20), ("light", 220)):
            os.makedirs(self.path("pictures/" + kind))
            for i in range(24):
                pixels = bytes([(colour + 5 * i + k) % 256 if k % 7 == 0 else colour for k in range(8 * 8 * 3)])
                head = b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54)
                head += struct.pack("<IiiHHIIiiII", 40, 8, 8, 1, 24, 0, len(pixels), 2835, 2835, 0, 0)
                with open(self.path("pictures/%s/%d.bmp" % (kind, i)), "wb") as f:
                    f.write(head + pixels)
        self.run_ok("init", "cnn", "--input", "12,12,3", "--classes", "2", "--out", "c.json", "--quiet")
        out = self.run_ok("train", "c.json", "pictures", "--epochs", "4", "--batch", "8", "--val-split", "0.25",
                          "--save-weights", "cw")
        self.assertIn("val_accuracy 1.0000", out.splitlines()[4])
        self.assertEqual(self.run_ok("predict", "c.json", "pictures", "--weights", "cw", "--classes"),
                         "0\n" * 24 + "1\n" * 24)

    def test_a_pipeline(self):
        self.write("p.json", json.dumps({"ops": [{"op": "npz", "file": "d.npz", "arrays": ["x", "y"]}, {"op": "shuffle"},
                                                 {"op": "batch", "size": 20}]}))
        out = self.run_ok("train", "m.json", "p.json", "--epochs", "5", "--val", "d.npz", "--optimizer", "adam:lr=0.01")
        self.assertIn("val_accuracy 1.0000", out.splitlines()[-1])

    def on_a_terminal(self, columns, *words):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        child = subprocess.Popen([STOKER, *words], cwd=self.folder, stdout=slave,
                                 env=dict(os.environ, TERM="xterm", LC_ALL="C"))
        os.close(slave)
        text = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:
                break
            if not part:
                break
            text += part
        os.close(master)
        self.assertEqual(child.wait(), 0)
        return text.decode()

    def test_a_bar_on_a_terminal(self):
        words = ["train", "m.json", "d.npz", "--epochs", "2"]
        text = self.on_a_terminal(200, *words)
        self.assertRegex(text, r"\rEpoch 2/2 7/7 \[#{30}\] [^\r]*samples/s - loss [^\r]*\x1b\[K\r\n$")
        text = self.on_a_terminal(40, *words, "--val", "d.npz")  # the line that stays is whole, the others fit
        self.assertRegex(text, r"\rEpoch 2/2 - [^\r]*samples/s - loss [^\r]*val_accuracy \d\.\d{4}\x1b\[K\r\n$")
        for line in re.findall(r"\r(Epoch \d/2 \d[^\r\x1b]*)", text):
            self.assertLessEqual(len(line), 40)

    def test_demo(self):
        out = self.run_ok("demo", "out", "--epochs", "1")
        self.assertRegex(out, r"validation accuracy: 9\d\.\d\d %\nwhere the time went: [\d.]+ m?s, 313 steps, "
                         r"10000 samples, [\d.]+ (k )?samples/s\n")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["model.json", "model.safetensors", "shapes.npz"])


class Watching(Command):
    PIPELINE = {"ops": [{"op": "npz", "file": "d.npz", "arrays": ["x", "y"]}, {"op": "shuffle"},
                        {"op": "batch", "size": 20}]}

    def setUp(self):
        super().setUp()
        self.write("p.json", json.dumps(self.PIPELINE))

    def fits(self, text):
        for line in text.splitlines():
            self.assertLessEqual(len(line), 100, line)

    def test_times(self):
        words = ["train", "m.json", "d.npz", "--epochs", "60"]
        out = self.run_ok(*words, "--times")
        self.fits(out[out.index("where the time went"):])
        self.assertRegex(out, r"where the time went: .*, 420 steps, 12000 samples, .* samples/s\n")
        self.assertRegex(out, r"\n  kernels +[\d.]+ [mu]?s +[\d.]+ %")
        time = json.loads(self.run_ok(*words, "--json").splitlines()[-1])["time"]
        self.assertGreater(time["kernels"], 0)
        self.assertGreater(time["build"], 0)
        done = json.loads(self.run_ok(*words, "--json").splitlines()[-1])
        self.assertAlmostEqual(sum(done["time"].values()), done["seconds"], delta=0.02 * done["seconds"] + 1e-5)

    def test_one_line_when_the_input_is_slow(self):
        # Rows one by one through a serial shuffle with a small buffer: far more work than the model.
        slow = dict(self.PIPELINE, ops=[self.PIPELINE["ops"][0], {"op": "repeat", "times": 600},
                                        {"op": "shuffle", "buffer": 64}, {"op": "batch", "size": 1}])
        self.write("slow.json", json.dumps(slow))
        last = self.run_ok("train", "m.json", "slow.json").splitlines()[-1]
        if "Epoch" not in last:  # it took a second at least
            self.assertRegex(last, r"^time: \d+ % [a-z ]+, .*; `stoker doctor m\.json slow\.json` looks closer$")

    def test_settings_change_no_number(self):
        words = ["train", "m.json", "p.json", "--epochs", "3", "--deterministic", "--save-weights"]
        self.run_ok(*words, "a")
        self.write("s.json", json.dumps({"prefetch": 2, "workers": 2, "threads": 1}))
        out = self.run_ok(*words, "b", "--settings", "s.json")
        self.assertEqual(out.splitlines()[0], "settings: prefetch 2, workers 2, threads 1")
        self.assertTrue(out.splitlines()[1].endswith(", batches of the pipeline"), out)
        self.assertEqual(self.read("a"), self.read("b"))
        self.write("odd.json", '{"warp": 9}')
        self.fails_like(4, r'^stoker train: odd\.json: no setting "warp"', *words, "c", "--settings", "odd.json")
        self.fails_like(3, r"^stoker train: none\.json: ", *words, "c", "--settings", "none.json")

    def test_doctor_writes_and_applies(self):
        words = ["m.json", "p.json", "--epochs", "3", "--deterministic", "--save-weights"]
        out = self.run_ok("doctor", *words, "a", "--seconds", "1", "--apply", "--write", "s.json", "--html", "r.html",
                          "--report", "r.json")
        self.fits(out)
        self.assertIn("VERDICT", out)
        self.assertRegex(out, r"safe settings?[: ].*")
        self.assertIn("Epoch 3/3", out)
        json.loads(self.read("s.json"))
        self.assertIn(b"<svg", self.read("r.html"))
        report = json.loads(self.read("r.json"))
        self.assertGreater(len(report["places"]), 2)
        self.assertEqual(report["plan_steps"], 3 * 10)  # 200 rows in batches of 20
        self.run_ok("profile", "m.json", "p.json", "--report", "q.json", "--quiet")
        self.assertEqual(json.loads(self.read("q.json"))["plan_steps"], 0)  # nobody said how long it will be
        self.run_ok("train", *words, "b", "--settings", "s.json")
        self.assertEqual(self.read("a"), self.read("b"))  # probes leave no trace in the numbers

    def test_profile(self):
        out = self.run_ok("profile", "m.json", "p.json", "--count", "60")
        self.fits(out)
        for words in ("residual", "layers", "dense", "optimizer", "input pipeline", "memory", "the arena is fullest"):
            self.assertIn(words, out)

    def test_help_fits(self):
        commands = re.findall(r"^  ([a-z-]+)  ", self.run_ok().split("exit codes")[0], re.M)
        self.assertGreater(len(commands), 10)
        for command in commands:
            self.fits(self.run_ok("help", command))

    def write_pictures(self, each):
        """Two classes of 8 x 8 BMP files."""
        for label, name in enumerate(("dark", "light")):
            os.makedirs(self.path("pictures/" + name))
            for i in range(each):
                pixels = bytes((label * 128 + (i * 7 + k * 3) % 100) for k in range(192))
                head = struct.pack("<2sIIIIiiHHIIiiII", b"BM", 54 + 192, 0, 54, 40, 8, 8, 1, 24, 0, 192, 0, 0, 0, 0)
                with open(self.path("pictures/%s/%d.bmp" % (name, i)), "wb") as f:
                    f.write(head + pixels)

    def test_ready_models_take_any_shape(self):
        for kind, shape in (("mlp", "(None, 2)"), ("regression", "(None, 2)"), ("autoencoder", "(None, 6, 5, 3)")):
            self.run_ok("init", kind, "--input", "6,5,3", "--classes", "2", "--out", "k.json", "--quiet")
            rows = [line for line in self.run_ok("summary", "k.json").splitlines() if "(None" in line]
            self.assertIn(shape, rows[-1], kind)

    def test_what_is_applied_is_the_training(self):
        self.write_pictures(each=40)  # a folder is shuffled by train, so doctor has to
        self.run_ok("init", "cnn", "--input", "12,12,3", "--classes", "2", "--out", "c.json")
        words = ["c.json", "pictures", "--epochs", "2", "--batch", "16", "--deterministic", "--save-weights"]
        out = self.run_ok("doctor", *words, "a", "--seconds", "1", "--keep-mathematics", "--apply", "--report", "r.json")
        self.assertTrue(out.endswith("weights: a\n"), out[-200:])
        self.assertEqual(json.loads(self.read("r.json"))["batch"], 16)  # its batches may have a smaller last one
        self.run_ok("train", *words, "b")
        self.assertEqual(self.read("a"), self.read("b"))
        self.write("s.json", '{"cache": 1}')
        self.run_ok("train", *words, "c", "--settings", "s.json")
        self.assertEqual(self.read("a"), self.read("c"))
        self.run_ok("train", *words, "d", "--shuffle", "no")
        self.assertNotEqual(self.read("a"), self.read("d"))

    def test_settings_of_another_job(self):
        words = ["train", "m.json", "d.npz", "--settings", "s.json"]
        self.write("s.json", '{"cache": 3, "prefetch": 2, "threads": 1}')
        self.assertEqual(self.run_ok(*words).splitlines()[:2], [
            "settings: threads 1", "settings that play no part with this data: prefetch 2, cache of 3 MiB"])
        for name, value, range_ in (("prefetch", -3, "1..2147483647"), ("workers", 0, "1..4096"), ("cache", -1, "1..2147483647"),
                                    ("threads", 99999999999, "1..4096"), ("precision", 7, "16..32"), ("fused order", 2, "0..1")):
            self.write("s.json", json.dumps({name: value}))
            self.fails(4, 'stoker train: s.json: "%s" is %d, it takes %s\n' % (name, value, range_), *words)

    def test_reports_and_what_reads_them(self):
        self.run_ok("profile", "m.json", "p.json", "--count", "40", "--report", "r.json", "--trace", "t.json", "--tensorboard",
                    "logs", "--quiet")
        self.assertEqual(json.loads(self.read("r.json"))["batch"], 20)
        self.assertRegex(" ".join(os.listdir(self.path("logs"))), r"^events\.out\.tfevents\.\S+$")  # others are not looked at
        open_ends = {}
        spans = [e for e in json.loads(self.read("t.json"))["traceEvents"] if e["ph"] == "X"]
        for e in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
            ends = open_ends.setdefault(e["tid"], [])
            while ends and ends[-1] <= e["ts"] + 0.0015:  # written with three digits
                ends.pop()
            if ends:
                self.assertLessEqual(e["ts"] + e["dur"], ends[-1] + 0.0015, e)
            ends.append(e["ts"] + e["dur"])
        both = json.loads(self.run_ok("compare", "r.json", "r.json", "--json"))
        self.assertAlmostEqual(sum(b for _, b in both["books"].values()), both["b"], delta=1e-3 * both["b"])
        self.fits(self.run_ok("compare", "r.json", "r.json"))
        self.assertIn("NVIDIA T4", self.run_ok("what-if", "r.json", "--card", "T4, a100"))
        self.fails_like(2, r'^stoker what-if: no card "foo"; there are t4 ', "what-if", "r.json", "--card", "foo")
        self.write("next.json", '{"stoker_report": 2}')
        self.fails(4, "stoker compare: next.json: a stoker report of format 2, this program reads format 1; it was written by a "
                   "newer one\n", "compare", "next.json", "r.json")
        self.write("empty.json", '{"stoker_report": 1}')
        self.fails(4, "stoker compare: report B has no settled steps to compare; profile more of them (--count)\n", "compare",
                   "r.json", "empty.json")
        self.fails_like(4, r"^stoker what-if: the report has no steps", "what-if", "empty.json")

    def test_outputs_are_looked_at_first(self):
        before = self.read("m.json")
        for command, option in (("doctor", "--html"), ("doctor", "--write"), ("profile", "--trace"), ("profile", "--report")):
            words = [command, "m.json", "d.npz", option]
            self.fails(2, "stoker %s: m.json: is read by this command, so nothing can be written there; give another name\n"
                       % command, *words, "m.json")
            self.fails(3, "stoker %s: none/f: cannot write into the folder 'none': No such file or directory\n" % command,
                       *words, "none/f")
        self.fails(2, "stoker doctor: f: is named by --html and by --report; give them different names\n", "doctor", "m.json",
                   "d.npz", "--report", "f", "--html", "f")
        self.fails(2, "stoker profile: d.npz: is a file; TensorBoard reads folders, give the name of one\n", "profile", "m.json",
                   "d.npz", "--tensorboard", "d.npz")
        self.fails(2, "stoker doctor: --save-weights needs --apply: without it nothing is trained\nsee: stoker help doctor\n",
                   "doctor", "m.json", "d.npz", "--save-weights", "w")
        self.assertEqual(self.read("m.json"), before)

    def test_doctor_is_interrupted(self):
        before = sorted(os.listdir(self.folder))
        for number in (signal.SIGINT, signal.SIGTERM):
            child = subprocess.Popen([STOKER, "doctor", "m.json", "p.json", "--seconds", "60", "--html", "h", "--write", "s"],
                                     cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            def catches():
                with open("/proc/%d/status" % child.pid) as f:
                    return int(re.search(r"^SigCgt:\s*(\w+)", f.read(), re.M).group(1), 16) >> (number - 1) & 1
            while child.poll() is None and not catches():
                time.sleep(0.02)
            time.sleep(0.3)
            child.send_signal(number)
            out, err = child.communicate(timeout=60)
            self.assertEqual((child.returncode, out), (130, ""))
            self.assertEqual(err, "\nstopping after this step; once more ends at once\n"
                             "stoker doctor: interrupted while measuring; nothing was written\n")
            self.assertEqual(sorted(os.listdir(self.folder)), before)


class Mistakes(Command):
    def touch(self, name, data=b""):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return name

    def test_bad_files(self):
        t = "stoker train: "
        self.fails_like(3, r"^stoker train: no\.json: .*No such file or directory\n$", "train", "no.json", "d.npz")
        self.fails_like(3, r"^stoker train: no\.npz: .*No such file or directory\n$", "train", "m.json", "no.npz")
        self.fails_like(4, r"^stoker train: d\.npz: .*\n$", "train", "d.npz", "d.npz")
        self.fails_like(4, r"^stoker train: cut\.json: .*\n$", "train", self.touch("cut.json", self.read("m.json")[:200]),
                        "d.npz")
        self.fails_like(4, r"^stoker train: cut\.npz: .*\n$", "train", "m.json",
                        self.touch("cut.npz", self.read("d.npz")[:1000]))
        self.fails(4, t + "m.txt: is no kind of data file that is known here (.npz, .npy, .csv, .json for a "
                   "pipeline, or a folder of pictures)\n", "train", "m.json", self.touch("m.txt"))
        self.fails_like(4, r"^stoker predict: w: says its header has \d+ bytes, .*\n$", "predict", "m.json", "d.npz",
                        "--weights", self.touch("w", b"nothing of the kind"))

    def test_unknown_layer(self):
        self.write("odd.json", self.read("m.json").decode().replace('"Dense"', '"Dence"'))
        self.fails_like(4, r"^stoker summary: .*Dence.*Dense.*\n$", "summary", "odd.json")

    def test_wrong_shape(self):
        write_npz(self.path("wide.npz"), width=5)
        self.fails(5, "stoker train: rows of x 0 are [5], input 'input_layer' of the model wants [4]; reshape the "
                   "data or change the model's input\n", "train", "m.json", "wide.npz", "--quiet")
        write_npz(self.path("names.npz"), names=("a", "b"))
        self.fails(2, "stoker train: names.npz: has no array 'x'; it has: a, b (name what is meant with option x)\n", "train",
                   "m.json", "names.npz")
        self.run_ok("train", "m.json", "names.npz", "--x", "a", "--y", "b")

    def test_unknown_loss(self):
        self.fails_like(2, r"^stoker train: no loss is called 'hingee' \(did you mean 'hinge'\?\); there are: .*\n$",
                        "train", "m.json", "d.npz", "--loss", "hingee")
        self.fails_like(2, r"^stoker train: no optimizer is called 'adm' \(did you mean 'adam'\?\); .*\n$", "train", "m.json",
                        "d.npz", "--optimizer", "adm")
        self.fails(2, "stoker: unknown command 'trian'; did you mean 'train'?\nsee: stoker help\n", "help", "trian")

    def test_numbers_out_of_range(self):
        for option, value, range in (("threads", "5000", "from 1 to 4096"), ("batch", "0", "from 1 up")):
            self.fails(2, "stoker train: --%s is '%s'; it must be a whole number %s\nsee: stoker help train\n"
                       % (option, value, range), "train", "m.json", "d.npz", "--" + option, value)
        self.fails_like(5, r"Conv2D.* needs 4; --input is '28', cnn takes sizes like 28,28,1\n$", "init", "cnn", "--input",
                        "28")

    def test_labels_without_a_class(self):
        self.run_ok("train", "m.json", "d.npz", "--quiet", "--save-weights", "w")
        write_npz(self.path("more.npz"), classes=3)
        self.write("p.json", json.dumps([{"op": "npz", "file": "more.npz", "arrays": ["x", "y"]}, {"op": "skip", "count": 3},
                                         {"op": "batch", "size": 2}]))
        for words in (["train"], ["evaluate", "--weights", "w"], ["profile"]):
            for data, where in (("more.npz", "y 0"), ("p.json", "batch 2 of the dataset: y 0")):
                self.fails_like(5, r"^stoker %s: (batch 1 of the dataset: )?%s: loss sparse_categorical_crossentropy: label \d+ "
                                "is 2, but the model has 2 outputs, for classes 0 to 1; give the last layer more units, or "
                                "correct the labels\n$" % (words[0], where), words[0], "m.json", data, "--quiet", *words[1:])
        self.fails_like(5, r"^stoker train: validation data: y 0: loss .*: label 2 is 2, ", "train", "m.json", "d.npz", "--val",
                        "more.npz", "--quiet")

    def test_a_model_without_layers(self):
        empty = {"class_name": "Sequential", "config": {"name": "s", "layers": []}}
        self.write("e.json", json.dumps(empty))
        self.fails(1, "stoker train: model 's' has no layers; add some, as stk_model_add(m, \"Dense(10)\") does it or as entries "
                   "of \"layers\" in its JSON\n", "train", "e.json", "d.npz")
        empty["config"]["layers"].append({"class_name": "Dense", "config": {"units": 2}})
        self.write("e.json", json.dumps(empty))
        self.fails_like(1, "^stoker train: model 's' is not built: .* begin it with an Input layer, ", "train", "e.json", "d.npz")

    def test_swapped_arguments(self):
        self.fails_like(4, r"^stoker train: d\.npz: has no config\.json inside.*; a model is JSON, \.keras or \.h5, as `stoker init` or Keras "
                        r"writes it, and stands before the data\n$", "train", "d.npz", "m.json")
        self.fails_like(4, r"^stoker train: m\.json: expected \{\"ops\": \[\.\.\.\]\} .*\n$", "train", "m.json", "m.json")
        self.fails_like(4, r"write one with `stoker profile --report FILE`\n$", "compare", "m.json", "m.json")
        os.mkdir(self.path("folder.json"))
        self.fails(3, "stoker summary: folder.json: is a folder; a file is expected here\n", "summary", "folder.json")

    def test_pipeline_names(self):
        ops = [{"op": "npz", "file": "d.npz"}, {"op": "shufle"}]
        for ops, message in ((ops, 'ops[1] (shufle): there is no op "shufle". Did you mean shuffle or hue?'),
                             ([ops[0], {"op": "batch"}], 'ops[1] (batch): it needs "size", a whole number'),
                             ([ops[0], {"op": "batch", "siez": 3}],
                              'ops[1] (batch): it has no option "siez"; it knows size drop_remainder. Did you mean size?'),
                             ([ops[0], {"op": "batch", "size": 3, "drop": 1}],
                              'ops[1] (batch): it has no option "drop"; it knows size drop_remainder')):
            self.write("p.json", json.dumps({"ops": ops}))
            self.fails(4, "stoker data: p.json: %s\n" % message, "data", "explain", "p.json")

    def test_nan_ends_it(self):
        self.fails_like(1, r"^stoker train: the loss is \w+ after step \d+ of epoch \d+(, after step \d+ it was not)?; training ends here .*\n$", "train",
                        "m.json", "d.npz", "--optimizer", "sgd:lr=1e30", "--epochs", "5", "--quiet")


class Readme(Command):
    def test_the_program_in_c(self):
        build = os.path.dirname(os.path.abspath(STOKER))
        library = os.path.join(build, "libstoker.so")
        if "san" in os.path.basename(build) or not os.path.exists(library) or not shutil.which("cc"):
            self.skipTest("needs cc and an ordinary shared library: apt install gcc, and build without SAN or TSAN")
        with open(os.path.join(SOURCE, "README.md")) as f:
            text = f.read().split("## In C\n")[1].split("\nAfter `make demo`")[0]
        self.write("digits.c", "\n".join(line[4:] for line in text.splitlines()))
        os.mkdir(self.path("build"))
        self.run_ok("demo", "build/demo", "--epochs", "1", "--quiet")
        done = subprocess.run(["cc", "digits.c", "-I" + os.path.join(SOURCE, "include"), library, "-Wl,-rpath," + build, "-o",
                               "digits"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = subprocess.run(["./digits"], cwd=self.folder, capture_output=True, text=True)
        self.assertRegex(done.stdout, r"^accuracy 0\.9\d\d\n$")


class Safety(Command):
    def test_inputs_are_never_written_over(self):
        before = self.read("m.json"), self.read("d.npz")
        for option in ("--checkpoint", "--save-weights", "--history", "--csv"):
            for name in ("m.json", "d.npz"):
                self.fails(2, "stoker train: %s: is read by this command, so nothing can be written there; give another "
                           "name\n" % name, "train", "m.json", "d.npz", option, name)
        self.assertEqual((self.read("m.json"), self.read("d.npz")), before)

    def folder_is_open(self):
        """May others go into the folder of this test? Its own rights are ours to give."""
        os.chmod(self.folder, 0o755)
        above = os.path.abspath(self.folder)
        while above != "/":
            if not os.stat(above).st_mode & 0o001:
                return False
            above = os.path.dirname(above)
        return True

    def test_read_only_folder(self):
        os.mkdir(self.path("closed"), 0o555)
        drop = None
        if ROOT:  # root may write anywhere
            def drop():
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            try:
                refused = subprocess.run([STOKER, "version"], preexec_fn=drop, capture_output=True, cwd="/").returncode
            except PermissionError:
                refused = True
            if refused or not self.folder_is_open():
                self.skipTest("others may not run %s or enter %s; to get this test run it as an ordinary user, or in a clone "
                              "that everybody can enter, such as one in /tmp" % (STOKER, self.folder))
        for option in ("--checkpoint", "--save-weights", "--history", "--csv"):
            self.fails(3, "stoker train: closed/f: cannot write into the folder 'closed': Permission denied\n", "train",
                       "m.json", "d.npz", option, "closed/f", preexec_fn=drop)

    def test_full_disk(self):
        full = self.path("full")
        os.mkdir(full)
        if not ROOT or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", full],
                                      capture_output=True).returncode:
            self.skipTest("a small file system needs the right to mount one: run it as root, in a container with --cap-add SYS_ADMIN")
        self.addCleanup(subprocess.run, ["umount", full])
        words = ["train", "m.json", "d.npz", "--quiet"]
        self.run_ok(*words, "--save-weights", "full/w")
        before = self.read("full/w")
        with open(self.path("full/filler"), "wb") as f:
            f.write(bytes(70000))
        done = self.run_it(*words, "--save-weights", "full/w", env=dict(os.environ, TMPDIR=self.folder))
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        found = re.match(r"^stoker train: \S*full/w: .*No space left on device.*; the weights are in (\S+) instead\n$",
                         done.stderr)
        self.assertTrue(found, done.stderr)
        with open(found.group(1), "rb") as f:
            self.assertEqual(f.read(), before)
        self.assertEqual(self.read("full/w"), before)
        done = self.run_it(*words, "--checkpoint", "full/c")
        self.assertEqual(done.returncode, 3)
        self.assertIn("No space left on device", done.stderr)
        self.assertEqual(sorted(os.listdir(full)), ["filler", "w"])

    def interrupt(self, words, number):
        """Interrupted in the middle; a run that was through before the signal came is begun anew."""
        before = self.read("c.ckpt") if os.path.exists(self.path("c.ckpt")) else None
        for _ in range(10):
            code, err = self.interrupt_once(words, number)
            if code != 0:
                break
            os.remove(self.path("c.ckpt"))
            if before is not None:
                with open(self.path("c.ckpt"), "wb") as f:
                    f.write(before)
        return code, err

    def interrupt_once(self, words, number):
        child = subprocess.Popen([STOKER, *words], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child.stdout.readline()
        child.stdout.readline()  # one epoch is done
        child.send_signal(number)
        err = child.communicate(timeout=60)[1]
        return child.returncode, err

    def test_interrupted_and_resumed(self):
        words = ["train", "m.json", "d.npz", "--epochs", "400", "--checkpoint", "c.ckpt", "--save-weights", "w",
                 "--deterministic"]
        self.run_ok(*[w.replace("c.ckpt", "whole.ckpt") for w in words], "--quiet")
        whole = self.read("w")
        for number in (signal.SIGINT, signal.SIGTERM):
            code, err = self.interrupt(words + ["--resume"] * (number == signal.SIGTERM), number)
            self.assertEqual(code, 130, err)
            self.assertRegex(err, r"^\nstopping after this step; once more ends at once\n"
                             r"stoker train: stopped in epoch \d+ of 400 after step \d+; it can go on from c\.ckpt\n"
                             r"go on with: stoker train m\.json d\.npz --epochs 400 --checkpoint c\.ckpt --save-weights w "
                             r"--deterministic --resume\nthe weights so far are in w\n$")
        self.run_ok(*words, "--resume", "--quiet")
        self.assertEqual(self.read("w"), whole)
        self.fails(2, "stoker train: c.ckpt: was made with seed 0, here it is 4; give the same one\n", *words, "--resume",
                   "--quiet", "--seed", "4")

    def test_damaged_checkpoint(self):
        words = ["train", "m.json", "d.npz", "--checkpoint", "c.ckpt", "--quiet"]
        self.run_ok(*words)
        data = bytearray(self.read("c.ckpt"))
        data[-100] ^= 1
        with open(self.path("c.ckpt"), "wb") as f:
            f.write(data)
        self.fails_like(4, r"^stoker train: c\.ckpt: the checksum of '.*' is wrong; the checkpoint is damaged, use an older "
                        r"one\n$", *words, "--resume", "--epochs", "2")
        self.assertEqual(self.read("c.ckpt"), bytes(data))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
