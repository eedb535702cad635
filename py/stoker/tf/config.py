"""tf.config: what devices there are, and switches. Switches of TensorFlow that have no meaning here are kept as given."""
import collections as _collections

from stoker import _stoker
from stoker.tf._function import functions_run_eagerly, run_functions_eagerly  # noqa: F401

PhysicalDevice = _collections.namedtuple("PhysicalDevice", "name device_type")
LogicalDevice = _collections.namedtuple("LogicalDevice", "name device_type")
_settings = {"visible": None, "soft": True, "jit": "", "determinism": False, "growth": {}, "intra": 0, "inter": 0,
             "tf32": True, "options": {}, "logical": {}}


class LogicalDeviceConfiguration:
    """memory_limit is kept as given: the engine takes what a program needs, and no more."""

    def __init__(self, memory_limit=None, experimental_priority=None, experimental_device_ordinal=0):
        self.memory_limit = memory_limit
        self.experimental_priority, self.experimental_device_ordinal = experimental_priority, experimental_device_ordinal

    def __repr__(self):
        return f"LogicalDeviceConfiguration(memory_limit={self.memory_limit})"


_reports = []


def _all_reports():
    """What the engine says about each device; asked once, since drivers are opened for it."""
    if not _reports:
        _reports.extend(_stoker.device_list())
    return _reports


def _physical(report):
    name = report["name"].upper()
    return PhysicalDevice(f"/physical_device:{name}", name.split(":")[0])


def _engine_name(device):
    """The engine's name of a physical or logical device, or of its name."""
    from stoker.tf import _device

    name = getattr(device, "name", device)
    if name.startswith("/physical_device:"):
        return name[len("/physical_device:"):].lower()
    return _device.engine_name(name)


def _report(device):
    name = _engine_name(device)
    for report in _all_reports():
        if report["name"] == name:
            return report
    raise ValueError(f"No matching devices found for '{getattr(device, 'name', device)}'")


def list_physical_devices(device_type=None):
    devices = [_physical(r) for r in _all_reports()]
    return [d for d in devices if device_type in (None, d.device_type)]


def _logical():
    """(LogicalDevice, the engine's name) of all that programs may use."""
    counts, found = {}, []
    for physical in get_visible_devices():
        for _ in range(len(_settings["logical"].get(physical) or [None])):
            n = counts.get(physical.device_type, 0)
            counts[physical.device_type] = n + 1
            found.append((LogicalDevice(f"/device:{physical.device_type}:{n}", physical.device_type),
                          _engine_name(physical)))
    return found


def list_logical_devices(device_type=None):
    return [d for d, _ in _logical() if device_type in (None, d.device_type)]


def get_visible_devices(device_type=None):
    visible = list_physical_devices() if _settings["visible"] is None else _settings["visible"]
    return [d for d in visible if device_type in (None, d.device_type)]


def set_visible_devices(devices, device_type=None):
    """As in TensorFlow, what is visible is used: the first device that is not the processor becomes the default, and
    without one (set_visible_devices([], "GPU")) the processor is."""
    wanted = list(devices) if isinstance(devices, (list, tuple)) else [devices]
    known = list_physical_devices()
    for d in wanted:
        if d not in known:
            raise ValueError(f"Unrecognized device: {d!r}")
        if device_type is not None and d.device_type != device_type:
            raise ValueError(f"Unrecognized device: {d!r}")
    others = [d for d in get_visible_devices() if device_type is not None and d.device_type != device_type]
    if device_type is None and not any(d.device_type == "CPU" for d in wanted):
        others = list_physical_devices("CPU")
    _settings["visible"] = [d for d in known if d in wanted or d in others]
    chosen = [d for d in wanted if d.device_type != "CPU"]
    now = _stoker.device_default(None)
    if chosen:
        _stoker.device_default(_engine_name(chosen[0]))
    elif now not in [_engine_name(d) for d in _settings["visible"]]:
        _stoker.device_default("cpu:0")


def get_logical_device_configuration(device):
    return _settings["logical"].get(device)


def set_logical_device_configuration(device, logical_devices):
    if device not in list_physical_devices():
        raise ValueError(f"Unrecognized device: {device!r}")
    _settings["logical"][device] = list(logical_devices)


def get_soft_device_placement():
    return _settings["soft"]


def set_soft_device_placement(enabled):
    _settings["soft"] = bool(enabled)
    _stoker.device_strict(not enabled)


class optimizer:
    @staticmethod
    def set_jit(enabled):
        _settings["jit"] = enabled

    @staticmethod
    def get_jit():
        return _settings["jit"]

    @staticmethod
    def set_experimental_options(options):
        _settings["options"].update(options)

    @staticmethod
    def get_experimental_options():
        return {}


class threading:
    @staticmethod
    def set_intra_op_parallelism_threads(num_threads):
        _settings["intra"] = num_threads

    @staticmethod
    def get_intra_op_parallelism_threads():
        return _settings["intra"]

    @staticmethod
    def set_inter_op_parallelism_threads(num_threads):
        _settings["inter"] = num_threads

    @staticmethod
    def get_inter_op_parallelism_threads():
        return _settings["inter"]


class experimental:
    list_physical_devices = staticmethod(list_physical_devices)
    list_logical_devices = staticmethod(list_logical_devices)
    get_visible_devices = staticmethod(get_visible_devices)
    set_visible_devices = staticmethod(set_visible_devices)
    VirtualDeviceConfiguration = LogicalDeviceConfiguration
    set_virtual_device_configuration = staticmethod(set_logical_device_configuration)

    get_virtual_device_configuration = staticmethod(get_logical_device_configuration)

    @staticmethod
    def set_memory_growth(device, enable):
        """Kept: memory grows with what programs need, always."""
        if device not in list_physical_devices():
            raise ValueError(f"Unrecognized device: {device!r}")
        _settings["growth"][device] = bool(enable)

    @staticmethod
    def get_memory_growth(device):
        if device not in list_physical_devices():
            raise ValueError(f"Unrecognized device: {device!r}")
        return _settings["growth"].get(device, False)

    @staticmethod
    def get_memory_info(device):
        """Bytes that tensors, variables and programs hold there. For the processor: the process, at its largest."""
        name = _report(device)["name"]
        if not name.startswith("cpu"):
            current, peak = _stoker.device_memory(name)
            return {"current": current, "peak": peak}
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {"current": peak, "peak": peak}

    @staticmethod
    def get_memory_usage(device):
        return experimental.get_memory_info(device)["current"]

    @staticmethod
    def reset_memory_stats(device):
        name = _report(device)["name"]
        if not name.startswith("cpu"):
            _stoker.device_memory(name, True)

    @staticmethod
    def get_device_details(device):
        report = _report(device)
        return {"device_name": report["detail"] or report["name"]}

    @staticmethod
    def enable_op_determinism():
        _settings["determinism"] = True

    @staticmethod
    def enable_tensor_float_32_execution(enabled):
        _settings["tf32"] = bool(enabled)

    @staticmethod
    def tensor_float_32_execution_enabled():
        return _settings["tf32"]

    @staticmethod
    def set_synchronous_execution(enable):
        pass

    @staticmethod
    def get_synchronous_execution():
        return True


def disable_op_determinism():
    _settings["determinism"] = False


def is_op_determinism_enabled():
    return _settings["determinism"]


def experimental_run_functions_eagerly(run_eagerly):
    run_functions_eagerly(run_eagerly)


def experimental_functions_run_eagerly():
    return functions_run_eagerly()


def experimental_connect_to_cluster(*args, **kwargs):
    raise NotImplementedError("clusters are not in Stoker: one machine, one process")
