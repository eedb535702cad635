"""Writes the zoo's models as Keras JSON and their data as .npz: write_models.py FOLDER [NAME ...]"""
import json
import os
import pathlib
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras  # noqa: E402
import numpy  # noqa: E402

from models import ROWS, ZOO, arrays  # noqa: E402

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, builder, batch in ZOO:
    if sys.argv[2:] and name not in sys.argv[2:]:
        continue
    model, inputs, classes = builder(keras)
    x, y = arrays(numpy, inputs, classes, model, ROWS * batch)
    (folder / f"{name}.json").write_text(model.to_json())
    named = {"x": x[0]} if len(x) == 1 else {f"x{i}": one for i, one in enumerate(x)}
    numpy.savez(folder / f"{name}.npz", y=y, **named)
    about = {"batch": batch, "classes": classes, "parameters": int(model.count_params())}
    (folder / f"{name}.about").write_text(json.dumps(about))
    print(json.dumps({"model": name, **about}), flush=True)
