"""Devices as Keras' distribution API sees them; programs run on one of them."""
from stoker.tf import config as _config


def list_devices(device_type=None):
    """Of one type; without one the GPUs, or the processor where there are none."""
    kind = device_type.upper() if device_type else "GPU" if _config.list_logical_devices("GPU") else "CPU"
    return [d.name[len("/device:"):].lower() for d in _config.list_logical_devices(kind)]


def get_device_count(device_type=None):
    return len(list_devices(device_type))


def distribute_value(value, tensor_layout):
    return value


def distribute_tensor(value, tensor_layout):
    return value


def distribute_variable(value, layout):
    return value


def initialize(job_addresses, num_processes, process_id):
    raise NotImplementedError("Stoker runs in one process; keras.distribution.initialize has nothing to join")


def num_processes():
    return 1


def process_id():
    return 0


def __getattr__(name):
    if name.startswith("_to_backend"):
        raise NotImplementedError("Stoker has one device: layouts over several are not supported")
    raise AttributeError(f"module 'keras.src.backend.tensorflow.distribution_lib' has no attribute '{name}'")
