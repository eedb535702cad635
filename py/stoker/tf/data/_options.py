"""tf.data.Options: every attribute of TensorFlow's is taken; those that mean something here are used."""
import enum


class AutoShardPolicy(enum.IntEnum):
    OFF, AUTO, FILE, DATA, HINT = -1, 0, 1, 2, 3


class ExternalStatePolicy(enum.Enum):
    WARN, IGNORE, FAIL = 0, 1, 2


class AutotuneAlgorithm(enum.Enum):
    DEFAULT, HILL_CLIMB, GRADIENT_DESCENT, MAX_PARALLELISM, STAGE_BASED = 0, 1, 2, 3, 4


class _Attributes:
    _names = {}

    def __init__(self):
        for name, default in self._names.items():
            object.__setattr__(self, name, default() if isinstance(default, type) else default)

    def __setattr__(self, name, value):
        if name not in self._names:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        object.__setattr__(self, name, value)

    def __eq__(self, other):
        return type(self) is type(other) and all(getattr(self, n) == getattr(other, n) for n in self._names)

    __hash__ = None

    def merge(self, other):
        """A copy in which what `other` sets wins."""
        made = type(self)()
        for name, default in self._names.items():
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, _Attributes):
                object.__setattr__(made, name, mine.merge(theirs))
            else:
                object.__setattr__(made, name, mine if theirs == default else theirs)
        return made


class AutotuneOptions(_Attributes):
    _names = dict.fromkeys(("enabled", "cpu_budget", "ram_budget", "autotune_algorithm", "initial_parallelism", "min_parallelism"))


class DistributeOptions(_Attributes):
    _names = {"auto_shard_policy": AutoShardPolicy.AUTO, "num_devices": None}


class OptimizationOptions(_Attributes):
    _names = dict.fromkeys(("apply_default_optimizations", "filter_fusion", "filter_parallelization", "inject_prefetch",
                            "map_and_batch_fusion", "map_and_filter_fusion", "map_fusion", "map_parallelization",
                            "noop_elimination", "parallel_batch", "shuffle_and_repeat_fusion", "seq_interleave_prefetch",
                            "autotune", "autotune_buffers", "autotune_cpu_budget", "map_vectorization"))


class ThreadingOptions(_Attributes):
    _names = dict.fromkeys(("max_intra_op_parallelism", "private_threadpool_size"))


class ServiceOptions(_Attributes):
    _names = dict.fromkeys(("pinned",))


class Options(_Attributes):
    _names = {"autotune": AutotuneOptions, "deterministic": None, "experimental_deterministic": None,
              "experimental_distribute": DistributeOptions, "experimental_external_state_policy": None,
              "experimental_optimization": OptimizationOptions, "experimental_service": ServiceOptions,
              "experimental_slack": None, "experimental_symbolic_checkpoint": None, "experimental_threading": ThreadingOptions,
              "experimental_warm_start": None, "dataset_name": None, "framework_type": None, "threading": ThreadingOptions}

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "experimental_deterministic":
            object.__setattr__(self, "deterministic", value)
