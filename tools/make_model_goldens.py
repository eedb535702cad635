#!/usr/bin/env python3
"""Writes test/golden/models/*.npz: small models trained by the real Keras (see tools/golden/model.py for what is in them).

    tools/make_model_goldens.py [NAME ...]          all cases, or those whose names contain one of the words
    tools/make_model_goldens.py --list              what there is

Run it with the interpreter of the peers (bench/setup-peers). Numbers may differ in their last digits between versions and
machines; files are only worth committing again when a case changed."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden"))

import numpy as np  # noqa: E402

import model  # noqa: E402
import models_augment  # noqa: E402, F401
import models_groups  # noqa: E402, F401
import models_layers  # noqa: E402, F401
import models_lookup  # noqa: E402, F401
import models_more  # noqa: E402, F401
import models_operations  # noqa: E402, F401
import models_sequence  # noqa: E402, F401
import models_states  # noqa: E402, F401
import models_training  # noqa: E402, F401


def main(words):
    if "--list" in words:
        print("\n".join(model.CASES))
        return 0
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "golden", "models")
    os.makedirs(folder, exist_ok=True)
    failed = 0
    for name in model.CASES:
        if words and not any(word in name for word in words):
            continue
        try:
            members = model.make(name)
        except Exception as reason:  # one bad case must not hide the next
            failed += 1
            print(f"{name}: {type(reason).__name__}: {str(reason)[:600]}", flush=True)
            continue
        path = os.path.join(folder, name + ".npz")
        np.savez_compressed(path, **members)
        print(f"{name}: {os.path.getsize(path)} bytes", flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
