#!/usr/bin/env python3
"""Event files that libstoker writes, read by TensorBoard's own reader. Skipped (77) where the wheel is not installed: neither
for this Python nor in the folder tensorboard/ beside the library, where .ci/run puts it.

    test/watch/tensorboard_test.py build/libstoker.so
"""
import ctypes
import os
import sys
import tempfile

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    python = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "tensorboard", "bin", "python")
    if os.path.exists(python) and os.path.abspath(sys.prefix) != os.path.dirname(os.path.dirname(python)):
        os.execv(python, [python, *sys.argv])
    print("tensorboard is not installed: skipped")
    sys.exit(77)


def main():
    lib = ctypes.CDLL(os.path.abspath(sys.argv[1]))
    lib.stk_events_scalar.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64,
                                      ctypes.c_double, ctypes.c_void_p]
    lib.stk_events_close.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    with tempfile.TemporaryDirectory() as folder:
        events = ctypes.c_void_p()
        assert lib.stk_events_new(folder.encode(), ctypes.byref(events), None) == 0
        for step in range(300):
            assert lib.stk_events_scalar(events, b"train/loss", step * 1000, 1 / (step + 1), None) == 0
            assert lib.stk_events_scalar(events, "größe".encode(), step, -step, None) == 0
        assert lib.stk_events_close(events, None) == 0
        read = EventAccumulator(folder)
        read.Reload()
        assert sorted(read.Tags()["scalars"]) == ["größe", "train/loss"], read.Tags()
        loss = read.Scalars("train/loss")
        assert [e.step for e in loss] == [s * 1000 for s in range(300)]
        assert all(abs(e.value - 1 / (i + 1)) < 1e-7 for i, e in enumerate(loss))
        assert read.Scalars("größe")[-1].value == -299
    print("600 scalars read back")


main()
