#!/usr/bin/env python3
"""Writes the small .npy and .npz files that test/base/test_npy.c and test_npz.c read, with numpy.

    build/numpy-venv/bin/python tools/make_numpy_fixtures.py          into test/fixtures/numpy/

They are committed, so that the tests need no numpy. Values follow one rule per kind, which the
tests know: the base array is 0 1 2 / 3 4 100.
"""
import os
import sys
import zipfile

import numpy as np
from numpy.lib import format as npy_format

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "fixtures", "numpy")
BASE = np.array([[0, 1, 2], [3, 4, 100]])


def values(code):
    if code[0] == "f":
        return (BASE * 0.5 - 1).astype(code)
    if code[0] == "i":
        return (BASE - 2).astype(code)
    if code == "b1":
        return BASE % 2 == 1
    return BASE.astype(code)


def path(name):
    return os.path.join(FOLDER, name)


def write_version(name, array, version):
    with open(path(name), "wb") as file:
        npy_format.write_array(file, array, version=version)


def main():
    os.makedirs(FOLDER, exist_ok=True)
    codes = ["f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "b1"]
    for code in codes:
        np.save(path(code + ".npy"), values(code))
        if code[1] != "1":
            np.save(path(code + "_big.npy"), values(code).astype(">" + code))
    # 0.5 i - 1 is exact in bfloat16: its bits are the upper half of the float's.
    upper = (values("f4").view("<u4") >> 16).astype("<u2")
    np.save(path("bf16.npy"), upper.view("V2"))
    np.save(path("fortran.npy"), np.asfortranarray(values("f4")))
    np.save(path("fortran3.npy"), np.asfortranarray(np.arange(24, dtype="<i4").reshape(2, 3, 4)))
    write_version("version2.npy", values("f4"), (2, 0))
    write_version("version3.npy", values("f4"), (3, 0))
    np.save(path("scalar.npy"), np.float32(2.5))
    np.save(path("empty.npy"), np.zeros((0, 3), "<f4"))
    np.save(path("one_axis.npy"), np.arange(5, dtype="<i8"))
    np.save(path("eight_axes.npy"), np.arange(4, dtype="u1").reshape(1, 2, 1, 1, 1, 2, 1, 1))
    np.save(path("bytes.npy"), np.array([[b"a", b"", b"long"], [b"x\0y", b"\xff", b"z"]]))
    words = np.array([["a", "", "h\u00e9"], ["\u20ac", "\U0001f600!", "z"]])
    np.save(path("words.npy"), words)
    np.save(path("words_big.npy"), words.astype(words.dtype.newbyteorder(">")))
    np.save(path("refused_object.npy"), np.array([{}, None], dtype=object), allow_pickle=True)
    np.save(path("refused_record.npy"), np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]))
    np.save(path("refused_complex.npy"), np.zeros(2, dtype="<c8"))
    np.save(path("refused_date.npy"), np.zeros(2, dtype="<M8[s]"))
    np.save(path("refused_nine_axes.npy"), np.zeros((1,) * 9, "u1"))
    named = {"weights": values("f4"), "layer/bias": values("i8"), "flags": values("b1"),
             "zeros": np.zeros((50, 50), "<f4"), "name with \u00e9": values("u1")}
    np.savez(path("plain.npz"), **named)
    np.savez_compressed(path("packed.npz"), **named)
    with zipfile.ZipFile(path("mixed.npz"), "w") as archive:
        archive.writestr("readme.txt", "not a tensor")
        for value in (1, 2):  # the later one counts
            with archive.open("twice.npy", "w", force_zip64=True) as member:
                npy_format.write_array(member, np.array([value], "<i4"))
    with zipfile.ZipFile(path("nothing.npz"), "w"):
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
