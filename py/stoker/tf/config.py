"""tf.config: what devices there are, and switches. Most switches of TensorFlow have no meaning here and are kept as given."""
import collections as _collections

from stoker.tf._function import functions_run_eagerly, run_functions_eagerly  # noqa: F401

PhysicalDevice = _collections.namedtuple("PhysicalDevice", "name device_type")
LogicalDevice = _collections.namedtuple("LogicalDevice", "name device_type")
_settings = {"visible": None, "soft": True, "jit": "", "determinism": False, "growth": {}, "intra": 0, "inter": 0,
             "tf32": True, "options": {}}


class LogicalDeviceConfiguration:
    def __init__(self, memory_limit=None, experimental_priority=None, experimental_device_ordinal=0):
        self.memory_limit = memory_limit


def list_physical_devices(device_type=None):
    devices = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    return [d for d in devices if device_type in (None, d.device_type)]


def list_logical_devices(device_type=None):
    return [d for d in [LogicalDevice("/device:CPU:0", "CPU")] if device_type in (None, d.device_type)]


def get_visible_devices(device_type=None):
    visible = list_physical_devices() if _settings["visible"] is None else _settings["visible"]
    return [d for d in visible if device_type in (None, d.device_type)]


def set_visible_devices(devices, device_type=None):
    _settings["visible"] = list(devices) if isinstance(devices, (list, tuple)) else [devices]
    if device_type in (None, "GPU") and not any(d.device_type == "CPU" for d in _settings["visible"]):
        _settings["visible"] += list_physical_devices("CPU")


def get_logical_device_configuration(device):
    return _settings["options"].get(device)


def set_logical_device_configuration(device, logical_devices):
    _settings["options"][device] = logical_devices


def get_soft_device_placement():
    return _settings["soft"]


def set_soft_device_placement(enabled):
    _settings["soft"] = bool(enabled)


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

    @staticmethod
    def set_memory_growth(device, enable):
        _settings["growth"][device] = bool(enable)

    @staticmethod
    def get_memory_growth(device):
        return _settings["growth"].get(device, False)

    @staticmethod
    def get_memory_info(device):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {"current": peak, "peak": peak}

    @staticmethod
    def reset_memory_stats(device):
        pass

    @staticmethod
    def get_device_details(device):
        return {"device_name": "CPU"}

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
