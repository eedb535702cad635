"""One golden case and its file.

    test/golden/<name>.npz          zip of .npy members, same bytes whenever the values are the same
      meta       uint8[n]           JSON text, see below
      <input>    as named           arguments of the op, e.g. x, w, bias
      out_<o>    results
      up_<o>     gradient that flows into result o (absent where no gradients are recorded)
      grad_<i>   d(sum over o of sum(out_o * up_o)) / d(input i)

    meta: {"op": "conv2d", "name": "conv2d_same_stride2_even", "source": "tensorflow 2.21.0",
           "attributes": {"strides": [2, 2], "padding": "same", ...},
           "inputs": ["x", "w"], "outputs": ["y"], "gradients": ["x", "w"], "tolerance": 1e-05}

`tolerance` is relative to the largest magnitude in the array that is compared.
"""
import dataclasses
import io
import json
import zipfile
import zlib

import numpy as np
import tensorflow as tf

MAX_FILE_BYTES = 50_000


@dataclasses.dataclass
class Case:
    name: str
    op: str
    attributes: dict
    inputs: dict            # name -> array, in the order the function takes them
    function: callable      # (*tensors) -> tensor or {output: tensor}
    gradients: tuple = ()   # names of inputs
    tolerance: float = 1e-5


class Values:
    """Random arrays that depend on the case's name alone, so cases can be added and moved."""

    def __init__(self, name):
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def normal(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def uniform(self, *shape, low=0.0, high=1.0):
        return self.rng.uniform(low, high, shape).astype(np.float32)

    def integers(self, high, *shape):
        return self.rng.integers(0, high, shape).astype(np.int32)


def compute(case):
    """-> {member: array} without meta"""
    tensors = {name: tf.constant(value) for name, value in case.inputs.items()}
    with tf.GradientTape(persistent=True) as tape:
        for name in case.gradients:
            tape.watch(tensors[name])
        results = case.function(*tensors.values())
        if not isinstance(results, dict):
            results = {"y": results}
        members = dict(case.inputs)
        total = 0.0
        for name, value in results.items():
            members[f"out_{name}"] = np.asarray(value)
            if case.gradients and value.dtype.is_floating:
                up = Values(f"{case.name}/{name}").normal(*value.shape)
                members[f"up_{name}"] = up
                total += tf.reduce_sum(value * up)
    for name in case.gradients:
        gradient = tape.gradient(total, tensors[name])
        if gradient is None:
            raise ValueError(f"{case.name}: no gradient for {name}")
        members[f"grad_{name}"] = tf.convert_to_tensor(gradient).numpy()
    return members, list(results)


def meta(case, outputs):
    text = json.dumps({
        "op": case.op, "name": case.name, "source": f"tensorflow {tf.__version__}",
        "attributes": case.attributes, "inputs": list(case.inputs), "outputs": outputs,
        "gradients": list(case.gradients), "tolerance": case.tolerance})
    return np.frombuffer(text.encode(), np.uint8)


def pack(members):
    """-> bytes of an .npz whose zip entries carry no time, unlike numpy.savez"""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in members.items():
            piece = io.BytesIO()
            np.lib.format.write_array(piece, np.ascontiguousarray(array), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, piece.getvalue())
    return out.getvalue()


def build(case):
    members, outputs = compute(case)
    for name, array in members.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{case.name}: {name} is not finite")
    data = pack({"meta": meta(case, outputs), **members})
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"{case.name}: {len(data)} bytes, at most {MAX_FILE_BYTES}")
    return data


def differences(case, path):
    """-> list of what differs between the stored file and a new computation"""
    if not path.exists():
        return ["file is missing"]
    members, _ = compute(case)
    found = []
    with np.load(path) as stored:
        for name, array in members.items():
            if name not in stored:
                found.append(f"{name} is missing")
                continue
            old = stored[name]
            if old.shape != array.shape or old.dtype != array.dtype:
                found.append(f"{name}: {old.dtype}{old.shape}, now {array.dtype}{array.shape}")
            elif array.size:
                scale = max(1e-30, float(np.abs(array).max()))
                error = float(np.abs(old.astype(np.float64) - array).max()) / scale
                if error > case.tolerance:
                    found.append(f"{name}: differs by {error:.1e}")
    return found
