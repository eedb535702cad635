"""Outputs that are no plain files, disks without room, signals, odd inputs: the command from outside.

    files_test.py path/to/stoker source-folder
"""
import gzip
import json
import os
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time
import unittest
import zipfile

from cli_test import ROOT, STOKER, Command

FULL = os.access("/dev/full", os.W_OK)


def masked_crc(data):
    """CRC32C as TFRecord stores it."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 * (crc & 1)
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def measured(words, **more):
    """Exit code, what it said and its largest resident set in MB."""
    child = subprocess.Popen([STOKER, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    said = child.stdout.read()
    child.stdout.close()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, said, usage.ru_maxrss / 1024


class Inputs(Command):
    def test_a_record_that_claims_everything(self):
        """300 MB of zeros behind a head that promises 2^40 bytes, in 300 kB of gzip."""
        head = struct.pack("<Q", 1 << 40)
        with gzip.open(self.path("bomb.tfrecord.gz"), "wb", 1) as f:
            f.write(head + struct.pack("<I", masked_crc(head)))
            for _ in range(300):
                f.write(bytes(1 << 20))
        code, said, peak = measured(["data", "verify", "bomb.tfrecord.gz"], cwd=self.folder)
        self.assertEqual(code, 4, said)
        self.assertRegex(said, r"  1 damaged places?, 3145\d+ bytes lost; the last: byte 0: the record "
                         r"claims 1099511627776 bytes; of a compressed file, records of up to \d+ are read")
        self.assertLess(peak, 200)

    def test_models_that_are_wrong_end_with_4(self):
        def model(layer, file, **options):
            config = {"name": "m", "layers": [
                {"class_name": "InputLayer", "config": {"batch_shape": [None, 4], "dtype": "float32", "name": "in"}},
                {"class_name": layer, "config": options}]}
            with open(self.path(file), "w") as f:
                json.dump({"class_name": "Sequential", "config": config}, f)
        model("Dropout", "rate.json", rate=1.5)
        model("Dense", "long.json", units=3, name="n" * 5000)
        model("Dense", "none.json", units=None)
        model("Dropout", "huge.json", rate=0.25)
        for name, text in (("deep.json", "[" * 5000 + "]" * 5000),
                           ("huge.json", open(self.path("huge.json")).read().replace("0.25", "1e999"))):
            with open(self.path(name), "w") as f:
                f.write(text)
        for name, says in (("rate.json", "it takes 0 to 1"), ("long.json", "longer than"), ("deep.json", "nested deeper"),
                           ("none.json", "'units' is None; it takes a whole number"), ("huge.json", "too large for a double")):
            code, said, _ = measured(["summary", name], cwd=self.folder)
            self.assertEqual(code, 4, said)
            self.assertIn(says, said)

    @unittest.skipUnless(shutil.which("readelf"), "needs readelf: apt install binutils")
    def test_no_library_is_looked_for_in_the_current_folder(self):
        said = subprocess.run(["readelf", "-d", STOKER], capture_output=True, text=True, check=True).stdout
        for path in re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", said):
            self.assertNotIn("", path.split(":"))

    def test_pipes_are_refused(self):
        os.mkfifo(self.path("pipe.npz"))
        for name in ("pipe.npy", "pipe.csv", "pipe.json", "pipe.tfrecord", "pipe.safetensors"):
            os.mkfifo(self.path(name))
        message = r"pipe\.\w+: is a pipe, which has no size and can be read only once; a file is expected here\n$"
        for words in (["train", "m.json", "pipe.npz"], ["train", "m.json", "pipe.npy", "pipe.npy"],
                      ["train", "m.json", "pipe.csv"], ["train", "m.json", "pipe.json"], ["summary", "pipe.json"],
                      ["train", "pipe.json", "d.npz"], ["train", "m.json", "d.npz", "--weights", "pipe.safetensors"],
                      ["train", "m.json", "d.npz", "--settings", "pipe.json"], ["data", "verify", "pipe.tfrecord"],
                      ["data", "stats", "pipe.csv"], ["data", "head", "pipe.tfrecord"],
                      ["data", "convert", "pipe.csv", "out.tfrecord"]):
            with self.subTest(words):
                self.fails_like(3, message, *words)

    def test_a_pipe_as_the_kernel_cache(self):
        os.mkfifo(self.path("kernels.txt"))
        env = dict(os.environ, STOKER_CACHE=self.folder)
        done = self.run_it("train", "m.json", "d.npz", "--quiet", env=env)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_types_of_a_table_that_change_late(self):
        rows = ["a,b,c,d,y"] + ["%s,%s,0.5,1,%d" % ("2.5" if i == 1500 else "1", "7", i % 2) for i in range(2000)]
        self.write("t.csv", "\n".join(rows) + "\n")
        self.run_ok("train", "m.json", "t.csv", "--quiet")
        for words in (["stats", "t.csv"], ["verify", "t.csv"], ["convert", "t.csv", "t.tfrecord"]):
            self.run_ok("data", *words)
        self.write("old.csv", "a,b,c,d,y\r1,2,3,4,0\r1,2,3,4,1\r")
        self.fails_like(4, r"old\.csv: its lines end in CR alone", "train", "m.json", "old.csv")
        self.fails_like(4, r"old\.csv: its lines end in CR alone", "data", "stats", "old.csv")


def npy_head(kind, shape):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, str(tuple(shape)))
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()


class Memory(Command):
    """Data beyond what may be taken. ulimit -d counts what a process asks for, and neither mapped files nor arrays that
    lie on a disk, so it stands for the limit of a container, which tests may not set."""
    ROWS, WIDTH, LIMIT = 75000, 1000, 150 << 20  # 300 MB of x

    def setUp(self):
        super().setUp()
        self.run_ok("init", "mlp", "--input", str(self.WIDTH), "--classes", "2", "--out", "wide.json", "--quiet")

    def limited(self, *words):
        return self.run_it(*words, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_DATA, (self.LIMIT, resource.RLIM_INFINITY)))

    def works(self, *words):
        done = self.limited(*words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_npy_is_mapped(self):
        for name, kind, shape, size in (("x.npy", "<f4", (self.ROWS, self.WIDTH), 4 * self.WIDTH),
                                        ("y.npy", "<i8", (self.ROWS,), 8)):
            with open(self.path(name), "wb") as f:
                f.write(npy_head(kind, shape))
                f.truncate(f.tell() + self.ROWS * size)
        self.works("train", "wide.json", "x.npy", "y.npy", "--steps", "20", "--quiet")
        self.works("data", "verify", "x.npy")

    def test_addresses_are_limited(self):
        with open(self.path("x.npy"), "wb") as f:
            f.write(npy_head("<f4", (1 << 20, 1000)))
            f.truncate(f.tell() + (4000 << 20))
        done = self.run_it("data", "verify", "x.npy", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (2 << 30, resource.RLIM_INFINITY)))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"x\.npy: its 4194\.3 MB do not fit under the limit of addresses, 2147\.5 MB .*ulimit -v")

    def test_npz_goes_to_a_disk(self):
        with zipfile.ZipFile(self.path("big.npz"), "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
            with z.open("x.npy", "w", force_zip64=True) as m:
                m.write(npy_head("<f4", (self.ROWS, self.WIDTH)))
                for _ in range(self.ROWS // 1000):
                    m.write(bytes(4000 * self.WIDTH))
            z.writestr("y.npy", npy_head("<i8", (self.ROWS,)) + bytes(8 * self.ROWS))
        self.works("train", "wide.json", "big.npz", "--steps", "20", "--quiet")
        code, said, peak = measured(["data", "verify", "big.npz"], cwd=self.folder)
        self.assertEqual((code, said), (0, "big.npz: good\n"))
        self.assertLess(peak, 100)

    def test_csv_goes_to_a_disk(self):
        row = ",".join(["0"] * self.WIDTH) + ",1\n"
        self.write("big.csv", ",".join("c%d" % i for i in range(self.WIDTH + 1)) + "\n" + row * 16000)  # 128 MB as int64
        self.works("train", "wide.json", "big.csv", "--steps", "20", "--quiet")
        self.works("data", "verify", "big.csv")

    def test_a_model_without_room_is_refused_before_the_start(self):
        self.run_ok("init", "mlp", "--input", "400000", "--classes", "2", "--out", "huge.json", "--quiet")
        began = time.time()
        done = self.limited("train", "huge.json", "d.npz")  # 51 million weights
        self.assertLess(time.time() - began, 30)
        self.assertEqual((done.returncode, done.stdout), (6, ""))
        self.assertRegex(done.stderr, r"^stoker train: model 'mlp' needs \d+ MiB of memory, has [\d.]+ MiB: \d+ MiB of weights "
                         r"and \d+ MiB of optimizer state \(2 numbers per weight\); use a smaller model, an optimizer with "
                         r"less state, or a machine with more\n$")
        done = self.limited("train", "huge.json", "d.npz", "--optimizer", "sgd")
        self.assertNotIn("optimizer state", done.stderr)


class Faults(Command):
    def test_a_file_that_becomes_shorter(self):
        rows = 200000
        for name, kind, shape, size in (("x.npy", "<f4", (rows, 4), 16), ("y.npy", "<i8", (rows,), 8)):
            with open(self.path(name), "wb") as f:
                f.write(npy_head(kind, shape) + bytes(rows * size))
        child = subprocess.Popen([STOKER, "train", "m.json", "x.npy", "y.npy", "--epochs", "100000", "--batch", "1024"],
                                 cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child.stdout.readline()
        child.stdout.readline()
        os.truncate(self.path("x.npy"), 4096)
        err = child.communicate(timeout=100)[1]
        self.assertEqual(child.returncode, 3, err)
        self.assertRegex(err, r"x\.npy: became shorter while it was read: nothing is left from byte \d+ on")

    def test_weights_that_are_no_numbers(self):
        self.run_ok("train", "m.json", "d.npz", "--save-weights", "w.safetensors", "--quiet")
        data = bytearray(self.read("w.safetensors"))
        data[-8:-4] = struct.pack("<f", float("nan"))
        with open(self.path("nan.safetensors"), "wb") as f:
            f.write(data)
        for words in (["evaluate"], ["predict"], ["train"]):
            self.fails_like(4, r"nan\.safetensors: 1 of the \d+ numbers of '\S+' are NaN, the first is number \d+; the run that "
                            r"wrote them had gone wrong, use older weights\n$", *words, "m.json", "d.npz", "--weights",
                            "nan.safetensors")


class Outputs(Command):
    """--history, --out and their kin go where the name leads."""

    def commands(self):
        self.run_ok("train", "m.json", "d.npz", "--save-weights", "w", "--quiet")
        return (("history", ["train", "m.json", "d.npz", "--history"]),
                ("csv", ["train", "m.json", "d.npz", "--csv"]),
                ("predictions", ["predict", "m.json", "d.npz", "--weights", "w", "--out"]),
                ("model", ["init", "mlp", "--input", "4", "--classes", "2", "--out"]))

    def test_links_stay_links(self):
        os.mkdir(self.path("far"))
        for name, words in self.commands():
            for there in (True, False):
                target, link = "far/%s%d" % (name, there), "%s%d" % (name, there)
                if there:
                    self.write(target, "old")
                os.symlink(target, self.path(link))
                self.run_ok(*words, link, "--quiet")
                self.assertTrue(os.path.islink(self.path(link)), name)
                self.assertGreater(len(self.read(target)), 10, name)

    @unittest.skipUnless(ROOT, "only root may make a device: run it with sudo")
    def test_devices_are_written_through(self):
        for name, words in self.commands():
            device = self.path("null-" + name)
            try:
                os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
                open(device, "w").close()
            except OSError as e:
                self.skipTest("devices cannot be used in %s: %s" % (self.folder, e))
            self.run_ok(*words, device, "--quiet")
            self.assertTrue(stat.S_ISCHR(os.stat(device).st_mode), name)

    def test_pipes_are_written_through(self):
        for name, words in self.commands():
            pipe = self.path("pipe-" + name)
            os.mkfifo(pipe)
            child = subprocess.Popen([STOKER, *words, pipe, "--quiet"], cwd=self.folder)
            with open(pipe, "rb") as f:
                self.assertGreater(len(f.read()), 10, name)
            self.assertEqual(child.wait(60), 0)
            self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode), name)

    def test_left_overs_of_the_dead_go_and_those_of_the_living_stay(self):
        import fcntl
        for name in ("c.ckpt.1-2-3.tmp", "c.ckpt.7f-1-abc.tmp", "other.ckpt.1-2-3.tmp", "c.ckpt.mine.tmp"):
            self.write(name, "half")
        with open(self.path("c.ckpt.7f-1-abc.tmp")) as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            self.run_ok("train", "m.json", "d.npz", "--checkpoint", "c.ckpt", "--quiet")
        self.assertEqual(sorted(n for n in os.listdir(self.folder) if "ckpt" in n),
                         ["c.ckpt", "c.ckpt.7f-1-abc.tmp", "c.ckpt.mine.tmp", "other.ckpt.1-2-3.tmp"])

    def test_killed_in_the_middle_leaves_nothing_for_long(self):
        words = ["train", "m.json", "d.npz", "--epochs", "100000", "--checkpoint", "k.ckpt", "--quiet"]
        for _ in range(5):
            child = subprocess.Popen([STOKER, *words], cwd=self.folder)
            try:
                child.wait(0.3)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self.run_ok("train", "m.json", "d.npz", "--checkpoint", "k.ckpt", "--quiet")
        self.assertEqual([n for n in os.listdir(self.folder) if n.endswith(".tmp")], [])


@unittest.skipUnless(FULL, "there is no /dev/full here")
class FullDisk(Command):
    def full(self, option, *more):
        env = dict(os.environ, TMPDIR=self.folder)
        return self.run_it("train", "m.json", "d.npz", "--epochs", "3", option, "/dev/full", *more, env=env)

    def test_training_goes_on_and_the_weights_are_saved(self):
        what = {"--csv": "write to the log", "--checkpoint": "write to it"}
        for option in what:
            done = self.full(option)
            self.assertEqual(done.returncode, 3)
            self.assertEqual(len(re.findall(r"^Epoch", done.stdout, re.M)), 3, done.stdout)
            no_room = r"stoker%%s: /dev/full: cannot %s: No space left on device; " % what[option]
            self.assertRegex(done.stderr, "^" + no_room % "" + r"the training goes on, and it is tried again\n"
                             + no_room % " train" + r"the training itself is done; the weights are in \S+\n$")
            rescue = re.search(r"the weights are in (\S+)\n$", done.stderr).group(1)
            self.run_ok("evaluate", "m.json", "d.npz", "--weights", rescue, "--quiet")
            done = self.full(option, "--save-weights", "w", "--history", "h.json")
            self.assertRegex(done.stderr, r"; the weights are in w\n$")
            self.run_ok("evaluate", "m.json", "d.npz", "--weights", "w", "--quiet")
            self.assertIn(b'"loss"', self.read("h.json"))
            os.remove(self.path("w"))

    def test_a_log_with_room_again_has_all_its_lines(self):
        """A pipe that nobody empties for a while would block; a limit on the size of files does not."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (60, resource.RLIM_INFINITY))
        done = self.run_it("train", "m.json", "d.npz", "--epochs", "4", "--csv", "log.csv", preexec_fn=limit)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"log\.csv: cannot write to the log: File too large; the training goes on")
        lines = self.read("log.csv")
        self.assertEqual(len(lines), 60)
        self.assertTrue(lines.startswith(b"epoch,"))


class Signals(Command):
    WORDS = ["train", "m.json", "d.npz", "--epochs", "100000", "--checkpoint", "c.ckpt"]

    def begin(self, **more):
        child = subprocess.Popen([STOKER, *self.WORDS], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, **more)
        child.stdout.readline()
        child.stdout.readline()
        return child

    def test_hangup_writes_a_checkpoint(self):
        child = self.begin()
        child.send_signal(signal.SIGHUP)
        err = child.communicate(timeout=60)[1]
        self.assertEqual(child.returncode, 130)
        self.assertRegex(err, r"stopped in epoch \d+ of 100000 after step \d+; it can go on from c\.ckpt\n")

    def test_what_was_ignored_stays_ignored(self):
        for number in (signal.SIGINT, signal.SIGHUP):
            child = self.begin(preexec_fn=lambda n=number: signal.signal(n, signal.SIG_IGN))
            child.send_signal(number)
            for _ in range(20):
                self.assertNotEqual(child.stdout.readline(), "")
            child.send_signal(signal.SIGTERM)
            err = child.communicate(timeout=60)[1]
            self.assertEqual(child.returncode, 130)
            self.assertEqual(err.count("stopping after this step"), 1)

    def test_the_second_one_ends_at_once(self):
        child = self.begin()
        os.kill(child.pid, signal.SIGSTOP)
        os.kill(child.pid, signal.SIGINT)
        os.kill(child.pid, signal.SIGTERM)
        os.kill(child.pid, signal.SIGCONT)
        child.communicate(timeout=60)
        self.assertIn(child.returncode, (128 + signal.SIGINT, 128 + signal.SIGTERM))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
