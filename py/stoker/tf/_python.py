"""The few names of TensorFlow's inside (tensorflow.python.*, tensorflow.core.*) that Keras and programs import."""
import types

_made = {}


def _list_wrapper():
    from stoker.tf._wrappers import ListWrapper, _DictWrapper

    return {"ListWrapper": ListWrapper, "_DictWrapper": _DictWrapper, "wrap_or_unwrap": lambda x: x,
            "NoDependency": lambda x: x}


def _context():
    class Context:
        def clear_kernel_cache(self):
            pass

        def executing_eagerly(self):
            from stoker.tf import _control

            return _control.executing_eagerly()

        def list_physical_devices(self, device_type=None):
            from stoker.tf import config

            return config.list_physical_devices(device_type)

        def num_gpus(self):
            from stoker.tf import config

            return len(config.list_logical_devices("GPU"))

        def ensure_initialized(self):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *exc):
            return False

    one = Context()
    return {"context": lambda: one, "executing_eagerly": one.executing_eagerly, "Context": Context, "num_gpus": one.num_gpus,
            "eager_mode": lambda: one, "_reset_context": lambda: None, "async_wait": lambda: None}


def _framework_config():
    from stoker.tf import config

    return {"is_op_determinism_enabled": config.is_op_determinism_enabled,
            "list_physical_devices": config.list_physical_devices,
            "enable_op_determinism": config.experimental.enable_op_determinism,
            "disable_op_determinism": config.disable_op_determinism}


def _registry():
    from stoker.tf import _specs

    return {"register": lambda name: lambda cls: cls, "get_name": lambda cls: cls.__name__, "lookup": lambda name: getattr(
        _specs, name)}


def _tensor_util():
    from stoker.tf import _array, _module

    return {"is_tf_type": _module.is_tensor, "is_tensor": _module.is_tensor, "constant_value": _array.get_static_value,
            "make_ndarray": lambda t: t, "is_symbolic_tensor": _module.is_symbolic_tensor}


def _ops():
    from stoker import _stoker
    from stoker.tf import _control, _device, _module, _other

    return {"Tensor": _stoker.Tensor, "EagerTensor": _other.EagerTensor, "Operation": _other.Operation, "Graph": _other.Graph,
            "convert_to_tensor": _module.convert_to_tensor, "executing_eagerly": _control.executing_eagerly,
            "name_scope": _control.name_scope, "init_scope": _control.init_scope, "reset_default_graph":
            _other.reset_default_graph, "device": _device.device}


def _tf_record():
    from stoker.tf import io

    def tf_record_iterator(path, options=None):
        from stoker.tf import data

        for record in data.TFRecordDataset(path):
            yield record.numpy()

    return {"tf_record_iterator": tf_record_iterator, "TFRecordWriter": io.TFRecordWriter}


def _ragged():
    from stoker.tf import _ragged as ragged

    return {"RaggedTensor": ragged.RaggedTensor}


def _sparse():
    from stoker.tf import _sparse as sparse

    return {"SparseTensor": sparse.SparseTensor}


def _xla():
    def dynamic_update_slice(x, updates, start):
        """x with a block replaced; the start may be known only when the program runs."""
        from stoker.tf._base import dims, o, tensor

        x, updates, start = tensor(x), tensor(updates), o.cast(tensor(start), "int64")
        import numpy as np

        block = np.stack(np.meshgrid(*[np.arange(d) for d in dims(updates)], indexing="ij"), -1).astype(np.int64)
        return o.tensor_scatter_nd_update(x, tensor(block) + start, updates)

    return {"dynamic_update_slice": dynamic_update_slice}


def _messages(*names):
    from stoker.tf import _event_messages

    return {name: getattr(_event_messages, name) for name in names}


_CONTENTS = {  # below tensorflow.python and tensorflow.compiler; what is below tensorflow.core says so
    "tf2xla.python.xla": _xla,
    "trackable.data_structures": _list_wrapper,
    "training.tracking.data_structures": _list_wrapper,
    "eager.context": _context,
    "framework.config": _framework_config,
    "framework.type_spec_registry": _registry,
    "framework.tensor_util": _tensor_util,
    "framework.ops": _ops,
    "lib.io.tf_record": _tf_record,
    "ops.ragged.ragged_tensor": _ragged,
    "framework.sparse_tensor": _sparse,
    "framework.tensor": lambda: {"TensorSpec": __import__("stoker.tf._specs", fromlist=["_"]).TensorSpec,
                                 "Tensor": __import__("stoker._stoker", fromlist=["_"]).Tensor},
    "data.ops.dataset_ops": lambda: {n: getattr(__import__("stoker.tf.data", fromlist=["_"]), n) for n in (
        "Dataset", "DatasetV2", "DatasetSpec", "AUTOTUNE", "Options")},
    "data.ops.iterator_ops": lambda: {n: getattr(__import__("stoker.tf.data", fromlist=["_"]), "Iterator") for n in (
        "OwnedIterator", "IteratorBase")},
    "framework.test_util": lambda: {},
    "ops.linalg.sparse.sparse_csr_matrix_ops": lambda: {},
    "ops.math_ops": lambda: {"is_nan": __import__("stoker.tf._base", fromlist=["o"]).o.is_nan},
    "client.device_lib": lambda: {"list_local_devices": lambda: _framework_config()["list_physical_devices"]()},
    "framework.errors_impl": lambda: vars(__import__("stoker.tf.errors", fromlist=["errors"])),
    "platform.tf_logging": lambda: {"get_logger": __import__("logging").getLogger},
    "core.util.event_pb2": lambda: _messages("Event"),
    "core.framework.summary_pb2": lambda: _messages("Summary", "SummaryMetadata", "HistogramProto"),
    "core.framework.tensor_pb2": lambda: _messages("TensorProto"),
    "core.framework.tensor_shape_pb2": lambda: _messages("TensorShapeProto"),
    "util.nest": lambda: vars(__import__("stoker.tf.nest", fromlist=["nest"])),
}


def module(name):
    """The stand-in for a module tensorflow.python...; None when there is none."""
    if name in _made:
        return _made[name]
    path = name.removeprefix("tensorflow.python").removeprefix("tensorflow.compiler").removeprefix("tensorflow").removeprefix(".")
    inner = [p for p in _CONTENTS if p == path or p.startswith(path + ".") or not path]
    if not inner:
        return None
    made = types.ModuleType(name)
    made.__path__ = []
    if path in _CONTENTS:
        made.__dict__.update({k: v for k, v in _CONTENTS[path]().items() if not k.startswith("__")})

    def __getattr__(attribute):
        child = f"{name}.{attribute}"
        if module(child) is not None:
            import importlib

            return importlib.import_module(child)
        raise AttributeError(f"module '{name}' has no attribute '{attribute}'")

    made.__getattr__ = __getattr__
    _made[name] = made
    return made


def hint(path):
    """The public name that programs should use instead, where there is one."""
    last = path.rpartition(".")[2]
    public = {"keras": "tensorflow.keras", "dataset_ops": "tf.data", "math_ops": "tf.math", "array_ops": "tf",
              "nn_ops": "tf.nn", "backprop": "tf.GradientTape", "summary": "tf.summary"}
    return f" (try {public[last]})" if last in public else ""
