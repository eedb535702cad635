"""What a user of an NVIDIA card sees, over the driver that is none (fake_cuda.h): books of a profile, and what is said when something is wrong with card,
driver or compiler, each in a process of its own (a driver is opened once). Exit code 77 (skipped) where there is no OpenCL device for it to stand on.

    cuda_outside_test.py path/to/stoker path/to/libstk_fake_cuda.so
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

STOKER, FAKE = (os.path.abspath(path) for path in sys.argv[1:3])


def run(*arguments, **variables):
    environment = {**os.environ, "STOKER_CUDA": FAKE, "STOKER_NVRTC": FAKE, **variables}
    done = subprocess.run([STOKER, *arguments], env=environment, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


def npy(kind, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def dense(units, activation):
    return {"class_name": "Dense", "config": {"units": units, "activation": activation}}


class Profile(unittest.TestCase):
    def test_books_and_rows(self):
        rows, width = 320, 16
        with tempfile.TemporaryDirectory() as folder:
            model, data, trace = (os.path.join(folder, name) for name in ("m.json", "d.npz", "t.json"))
            layers = [{"class_name": "InputLayer", "config": {"batch_shape": [None, width]}}, dense(32, "relu"), dense(3, "softmax")]
            with open(model, "w", encoding="utf-8") as f:
                json.dump({"class_name": "Sequential", "config": {"name": "m", "layers": layers}}, f)
            with zipfile.ZipFile(data, "w") as z:
                x = [(i * 7 % 11) / 11 for i in range(rows * width)]
                z.writestr("x.npy", npy("<f4", (rows, width), struct.pack(f"<{len(x)}f", *x)))
                z.writestr("y.npy", npy("<i8", (rows,), struct.pack(f"<{rows}q", *(i % 3 for i in range(rows)))))
            code, text = run("profile", model, data, "--device", "gpu:0", "--count", "40", "--trace", trace)
            self.assertEqual(code, 0, text)
            for word in ("kernels", "optimizer", "matmul", "tiled", "all on gpu:0"):
                self.assertIn(word, text)
            with open(trace, encoding="utf-8") as f:
                seen = f.read()
            self.assertIn("gpu:0 queue", seen)


class Faults(unittest.TestCase):
    def devices(self, *words, card=False, **variables):
        code, text = run("devices", **variables)
        self.assertEqual(code, 0)
        self.assertEqual("gpu:0  " in text, card, text)
        for word in words:
            self.assertIn(word, text)
        return text

    def test_all_is_well(self):
        text = self.devices("compute capability 7.5", card=True)
        self.assertNotIn("not usable", text)

    def test_no_compiler(self):
        self.devices("not usable: an NVIDIA driver for CUDA 13.0", "STOKER_NVRTC=/no/such/file", STOKER_NVRTC="/no/such/file")

    def test_a_compiler_that_is_newer_than_the_driver(self):
        self.devices("CUDA 12.0", "newer (NVRTC 13.0)", "pip install 'nvidia-cuda-nvrtc-cu12<13'", STK_FAKE_CUDA_VERSION="12")

    def test_an_older_compiler_is_fine(self):
        self.devices(card=True, STK_FAKE_NVRTC_VERSION="12")

    def test_a_card_older_than_the_compiler_knows(self):
        self.devices("compute capability 6.1", "NVRTC 13.0", STK_FAKE_CUDA_SM="61")

    def test_a_card_that_is_closed(self):
        self.devices("prohibited", "nvidia-smi -c 0", STK_FAKE_CUDA_MODE="2")

    def test_a_driver_that_does_not_start(self):
        fault = "cuInit:803"
        self.devices("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)", "restart the machine", STK_FAKE_CUDA_FAULT=fault)
        code, text = run("selftest", "iota", "--device", "gpu:0", STK_FAKE_CUDA_FAULT=fault)
        self.assertNotEqual(code, 0)
        self.assertIn('no device "gpu:0"', text)
        self.assertIn("restart the machine", text)

    def test_no_driver_is_nothing_to_talk_about(self):
        text = self.devices(STOKER_CUDA="")
        self.assertNotIn("not usable", text)

    def test_a_card_that_another_program_has(self):
        self.devices("cannot be opened", "CUDA_ERROR_DEVICE_UNAVAILABLE (46)", "exclusive process", card=True,
                     STK_FAKE_CUDA_FAULT="cuDevicePrimaryCtxRetain:46")

    def test_a_card_without_free_memory(self):
        self.devices("cannot be opened", "CUDA_ERROR_OUT_OF_MEMORY (2)", "nvidia-smi lists them", card=True,
                     STK_FAKE_CUDA_FAULT="cuDevicePrimaryCtxRetain:2")

    def iota(self, **variables):
        with tempfile.TemporaryDirectory() as folder:  # compiled here and now
            return run("selftest", "iota", "--device", "gpu:0", STOKER_CACHE=folder, **variables)

    def test_a_card_newer_than_the_compiler(self):
        code, text = self.iota(STK_FAKE_CUDA_SM="130")
        self.assertEqual((code, "0 wrong" in text), (0, True), text)

    def test_a_driver_older_than_the_compilers_ptx(self):
        """The card's elder sister's machine code where there is one; else it is said."""
        code, text = self.iota(STK_FAKE_CUDA_SM="122", STK_FAKE_CUDA_NO_PTX="1")
        self.assertEqual((code, "0 wrong" in text), (0, True), text)
        code, text = self.iota(STK_FAKE_CUDA_SM="130", STK_FAKE_CUDA_NO_PTX="1")
        self.assertNotEqual(code, 0)
        for word in ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "Unsupported .version 9.0", "newer driver helps"):
            self.assertIn(word, text)


if __name__ == "__main__":
    if "gpu:0" not in run("devices")[1]:
        print("no OpenCL device for the driver that is none: nothing checked")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
