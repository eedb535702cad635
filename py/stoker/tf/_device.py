"""Devices by TensorFlow's names. The engine's "gpu:0" is "/device:GPU:0" here, "opencl:0" is "/device:OPENCL:0"."""
import contextlib
import re

from stoker import _stoker

_SPEC = re.compile(r"^(?:/?(?:job|replica|task):[^/]*)*(?:/?(?:device:)?([A-Za-z_]+)(?::(\d+|\*))?)?/?$")


def parse(name):
    """(type, index) of a device's name; (None, None) where it names none, as "/job:localhost" does."""
    text = name.decode() if isinstance(name, bytes) else str(name)
    found = _SPEC.match(text.strip())
    if found is None:
        raise ValueError(f"Unknown attribute is encountered while parsing the device spec: '{text}'")
    kind, index = found.groups()
    if kind is None:
        return None, None
    return kind.upper(), 0 if index in (None, "*") else int(index)


def engine_name(name):
    """The engine's name of a logical device, or None where there is no such device."""
    kind, index = parse(name)
    if kind == "CPU" and index == 0:
        return "cpu:0"
    from stoker.tf import config

    of_kind = [engine for logical, engine in config._logical() if logical.device_type == kind]
    return of_kind[index] if index < len(of_kind) else None


async_scope = contextlib.nullcontext  # devices compute behind Python's back as it is


class device:
    """tf.device: what is made and computed inside goes there. A name without a device ("/job:localhost") changes nothing."""

    def __init__(self, device_name):
        if callable(device_name):
            raise RuntimeError("tf.device does not support functions when eager execution is enabled.")
        name = getattr(device_name, "name", device_name)  # tf.config.LogicalDevice
        if hasattr(device_name, "to_string"):  # tf.DeviceSpec
            name = device_name.to_string()
        self.same, self.wanted, self.outer = False, None, []
        if name is None or name in ("", b""):
            return
        if parse(name)[0] is None:
            self.same = True
            return
        self.wanted = engine_name(name)
        if self.wanted is None:
            from stoker.tf import config, errors

            if not config.get_soft_device_placement():
                known = ", ".join(d.name for d in config.list_logical_devices())
                errors.invalid(f"Could not satisfy device specification '{name}': unknown device. enable_soft_placement=0. "
                               f"All available devices [{known}].")
            self.wanted = "cpu:0"

    def __enter__(self):
        self.outer.append(None if self.same else (_stoker.device_scope(self.wanted),))

    def __exit__(self, *exc):
        before = self.outer.pop()
        if before is not None:
            _stoker.device_scope(before[0])
        return False


class DeviceSpec:
    """tf.DeviceSpec: a device's name in parts."""

    def __init__(self, job=None, replica=None, task=None, device_type=None, device_index=None):
        self.job, self.replica, self.task = job, replica, task
        self.device_type = device_type.upper() if device_type else None
        self.device_index = device_index

    @classmethod
    def from_string(cls, spec):
        parts = dict(re.findall(r"/(job|replica|task):([^/]+)", spec))
        kind, index = parse(spec)
        return cls(parts.get("job"), int(parts["replica"]) if "replica" in parts else None,
                   int(parts["task"]) if "task" in parts else None, kind, index)

    def to_string(self):
        parts = [f"/{name}:{value}" for name, value in (("job", self.job), ("replica", self.replica), ("task", self.task))
                 if value is not None]
        if self.device_type is not None:
            parts.append(f"/device:{self.device_type}:{'*' if self.device_index is None else self.device_index}")
        return "".join(parts)

    def replace(self, **changed):
        names = "job", "replica", "task", "device_type", "device_index"
        return DeviceSpec(**{n: changed.get(n, getattr(self, n)) for n in names})

    def __eq__(self, other):
        return isinstance(other, DeviceSpec) and self.to_string() == other.to_string()

    def __hash__(self):
        return hash(self.to_string())

    def __repr__(self):
        return f"<DeviceSpec {self.to_string()}>"
