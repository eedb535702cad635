#!/usr/bin/env python3
"""Stoker and numpy read each other's files and share each other's memory.

    numpy_test.py libstoker.so [folder of builds]

Goes through the public C functions by ctypes. Without numpy only what Python itself can judge (the
archives, by zipfile) is tested; the folder's peers/ or numpy-venv/ is used when numpy lives there.
"""
import ctypes
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

LIBRARY = sys.argv[1] if len(sys.argv) > 1 else ""
BUILD = sys.argv[2] if len(sys.argv) > 2 else ""

try:
    import numpy as np
except ImportError:
    np = None
    for name in ("peers", "numpy-venv"):
        python = os.path.join(BUILD, name, "bin", "python")
        if os.environ.get("STK_NUMPY_TEST") is None and os.path.exists(python):
            environment = dict(os.environ, STK_NUMPY_TEST="1")
            sys.exit(subprocess.call([python] + sys.argv, env=environment))

RANK = 8
NAMES = ["float32", "float64", "float16", None, "int8", "uint8", "int16", "uint16", "int32",
         "uint32", "int64", "uint64", "bool"]  # by number; None = bfloat16
F32, BF16 = 0, 3


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 1024)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("shape", ctypes.c_int64 * RANK), ("stride", ctypes.c_int64 * RANK)]


def load_library():
    library = ctypes.CDLL(LIBRARY)
    library.stk_tensor_at.restype = ctypes.c_double
    library.stk_tensor_at.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    library.stk_npz_find.restype = ctypes.c_void_p
    library.stk_npz_find.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    for name in ("stk_tensor_release", "stk_npz_release"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
        getattr(library, name).restype = None
    return library


class Base(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stk = load_library()
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def call(self, name, *arguments):
        error = Error()
        status = getattr(self.stk, name)(*arguments, ctypes.byref(error))
        self.assertEqual(status, 0, error.message.decode())

    def tensor(self, dtype, shape, data):
        out = ctypes.c_void_p()
        self.call("stk_tensor_from", dtype, len(shape), (ctypes.c_int64 * RANK)(*shape), data,
                  ctypes.byref(out))
        return out

    def save_npz(self, path, tensors):
        names = (ctypes.c_char_p * len(tensors))(*[n.encode() for n in tensors])
        handles = (ctypes.c_void_p * len(tensors))(*[t.value for t in tensors.values()])
        self.call("stk_npz_save", path.encode(), len(tensors), names, handles)


class Archives(Base):
    def test_python_finds_our_archives_good(self):
        path = self.path("a.npz")
        one = self.tensor(F32, [2, 3], (ctypes.c_float * 6)(1, 2, 3, 4, 5, 6))
        self.save_npz(path, {"w": one, "deep/name \u00e9": one})
        with zipfile.ZipFile(path) as archive:
            self.assertIsNone(archive.testzip())
            self.assertEqual(archive.namelist(), ["w.npy", "deep/name \u00e9.npy"])
            self.assertEqual(archive.read("w.npy")[:6], b"\x93NUMPY")
            self.assertEqual(archive.read("w.npy")[-4:], b"\x00\x00\xc0\x40")
        self.stk.stk_tensor_release(one)


@unittest.skipIf(np is None, "numpy is not installed here")
class Numpy(Base):
    def arrays(self):
        for number, name in enumerate(NAMES):
            if name:
                yield number, (np.arange(24).reshape(2, 3, 4) % 7).astype(name)

    def test_numpy_reads_our_files(self):
        tensors = {}
        for number, array in self.arrays():
            t = self.tensor(number, array.shape, array.tobytes())
            tensors[NAMES[number]] = t
            self.call("stk_npy_save", self.path("x.npy").encode(), t)
            read = np.load(self.path("x.npy"))
            self.assertEqual(read.dtype, array.dtype)
            np.testing.assert_array_equal(read, array)
        self.save_npz(self.path("all.npz"), tensors)
        with np.load(self.path("all.npz")) as archive:
            for number, array in self.arrays():
                np.testing.assert_array_equal(archive[NAMES[number]], array)
        half = np.arange(4, dtype="<u2")
        t = self.tensor(BF16, half.shape, half.tobytes())
        self.call("stk_npy_save", self.path("bf16.npy").encode(), t)
        np.testing.assert_array_equal(np.load(self.path("bf16.npy")).view("<u2"), half)
        for t in list(tensors.values()) + [t]:
            self.stk.stk_tensor_release(t)

    def check_values(self, handle, number, array):
        t = ctypes.cast(handle, ctypes.POINTER(Tensor)).contents
        self.assertEqual(t.dtype, number)
        self.assertEqual(tuple(t.shape[:t.rank]), array.shape)
        for i, value in enumerate(array.flatten().tolist()):
            self.assertEqual(self.stk.stk_tensor_at(handle, i), float(value))

    def test_we_read_numpy_files(self):
        for save in (np.savez, np.savez_compressed):
            named = {}
            for number, array in self.arrays():
                for order in "<>":
                    out = ctypes.c_void_p()
                    turned = np.asfortranarray(array.astype(array.dtype.newbyteorder(order)))
                    np.save(self.path("y.npy"), turned)
                    self.call("stk_npy_load", self.path("y.npy").encode(), ctypes.byref(out))
                    self.check_values(out.value, number, array)
                    self.stk.stk_tensor_release(out)
                named[NAMES[number]] = array
            save(self.path("y.npz"), **named)
            npz = ctypes.c_void_p()
            self.call("stk_npz_load", self.path("y.npz").encode(), ctypes.byref(npz))
            for number, array in self.arrays():
                found = self.stk.stk_npz_find(npz, NAMES[number].encode())
                self.check_values(found, number, array)
            self.stk.stk_npz_release(npz)

    def test_numpy_sees_our_memory(self):
        api = ctypes.pythonapi
        api.PyCapsule_New.restype = ctypes.py_object
        api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

        class Shared:
            def __init__(self, managed):
                self.managed = managed

            def __dlpack__(self, **_):
                return api.PyCapsule_New(self.managed, b"dltensor", None)

            def __dlpack_device__(self):
                return (1, 0)

        for number, array in self.arrays():
            t = self.tensor(number, array.shape, array.tobytes())
            turned, managed = ctypes.c_void_p(), ctypes.c_void_p()
            self.call("stk_tensor_transpose", t, None, ctypes.byref(turned))
            self.call("stk_dlpack_export", turned, ctypes.byref(managed))
            self.stk.stk_tensor_release(turned)
            self.stk.stk_tensor_release(t)
            seen = np.from_dlpack(Shared(managed.value))
            np.testing.assert_array_equal(seen, array.T)
            self.assertEqual(seen.dtype, array.dtype)

    def test_we_see_numpy_memory(self):
        api = ctypes.pythonapi
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
        for number, array in self.arrays():
            view = array[:, ::-1, 1:3]
            capsule = view.__dlpack__()
            out = ctypes.c_void_p()
            managed = ctypes.c_void_p(api.PyCapsule_GetPointer(capsule, b"dltensor"))
            self.call("stk_dlpack_import", managed, ctypes.byref(out))
            api.PyCapsule_SetName(capsule, b"used_dltensor")
            self.check_values(out.value, number, view)
            count = sys.getrefcount(view)
            self.stk.stk_tensor_release(out)
            self.assertEqual(sys.getrefcount(view), count - 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
