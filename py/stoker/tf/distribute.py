"""tf.distribute as one device: programs written for several run on this one."""
import collections as _collections
import contextlib as _contextlib
import enum as _enum


class ReduceOp:
    SUM, MEAN = "SUM", "MEAN"


class InputContext:
    def __init__(self, num_input_pipelines=1, input_pipeline_id=0, num_replicas_in_sync=1):
        self.num_input_pipelines, self.input_pipeline_id = num_input_pipelines, input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size):
        return global_batch_size // self.num_replicas_in_sync


class _Extended:
    """What optimizers and callbacks ask a strategy's inside for."""

    _in_multi_worker_mode = staticmethod(lambda: False)

    def update(self, var, fn, args=(), kwargs=None, group=True):
        return fn(var, *args, **(kwargs or {}))

    def colocate_vars_with(self, colocate_with_variable):
        return _contextlib.nullcontext()

    def variable_created_in_scope(self, variable):
        return True


class ReplicaContext:
    replica_id_in_sync_group = 0
    num_replicas_in_sync = 1

    def __init__(self, strategy):
        self.strategy = strategy

    def all_reduce(self, reduce_op, value, options=None):
        return value

    def merge_call(self, merge_fn, args=(), kwargs=None):
        return merge_fn(self.strategy, *args, **(kwargs or {}))


class Strategy:
    num_replicas_in_sync = 1

    def __init__(self, *args, **kwargs):
        self.extended = _Extended()

    @_contextlib.contextmanager
    def scope(self):
        _scopes.append(self)
        try:
            yield self
        finally:
            _scopes.pop()

    def run(self, fn, args=(), kwargs=None, options=None):
        return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op, value, axis=None):
        from stoker.tf._base import o, tensor

        if axis is None:
            return value
        reduce = o.reduce_sum if reduce_op == ReduceOp.SUM else o.reduce_mean
        return reduce(tensor(value), axis=axis)

    def experimental_distribute_dataset(self, dataset, options=None):
        return dataset

    def distribute_datasets_from_function(self, dataset_fn, options=None):
        return dataset_fn(InputContext())

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_local_results(self, value):
        return (value,)

    def gather(self, value, axis):
        return value

    def experimental_distribute_values_from_function(self, value_fn):
        return value_fn(ReplicaContext(self))


class MirroredStrategy(Strategy):
    pass


class OneDeviceStrategy(Strategy):
    """Variables and steps on the device that is named."""

    def __init__(self, device):
        super().__init__()
        self._device = device
        self._place()  # a name that is none is told here

    def _place(self):
        from stoker.tf._device import device

        return device(self._device)

    @_contextlib.contextmanager
    def scope(self):
        with super().scope(), self._place():
            yield self

    def run(self, fn, args=(), kwargs=None, options=None):
        with self._place():
            return super().run(fn, args, kwargs, options)


class CollectiveAllReduceStrategy(Strategy):
    """tf.distribute.MultiWorkerMirroredStrategy, under the name that TensorFlow's class has; a cluster of this process alone."""

    @property
    def cluster_resolver(self):
        return _Resolver()


MultiWorkerMirroredStrategy = CollectiveAllReduceStrategy


class TPUStrategy(Strategy):
    def __init__(self, *args, **kwargs):
        raise RuntimeError("there is no TPU; tf.distribute.get_strategy() gives the strategy of this machine")


class ParameterServerStrategy(Strategy):
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("tf.distribute.ParameterServerStrategy: Stoker trains in one process")


class CrossDeviceOps:
    """How replicas exchange their gradients: with one device there is nothing to exchange, so any choice is fine."""

    def __init__(self, *args, **kwargs):
        pass


class HierarchicalCopyAllReduce(CrossDeviceOps):
    pass


class NcclAllReduce(CrossDeviceOps):
    pass


class ReductionToOneDevice(CrossDeviceOps):
    pass


class DistributedValues:
    """Never made: with one device a value is what it is. Programs ask whether something is one."""


InputReplicationMode = _enum.Enum("InputReplicationMode", "PER_WORKER PER_REPLICA")
InputOptions = _collections.namedtuple(
    "InputOptions", "experimental_fetch_to_device experimental_replication_mode experimental_place_dataset_on_device experimental_per_replica_buffer_size",
    defaults=(True, InputReplicationMode.PER_WORKER, False, 1))
RunOptions = _collections.namedtuple(
    "RunOptions", "experimental_enable_dynamic_batch_size experimental_bucketizing_dynamic_shape experimental_xla_options", defaults=(True, False, None))
StrategyExtended = _Extended


class experimental:
    """tf.distribute.experimental"""

    MultiWorkerMirroredStrategy = MultiWorkerMirroredStrategy
    TPUStrategy, ParameterServerStrategy = TPUStrategy, ParameterServerStrategy
    CommunicationImplementation = CollectiveCommunication = _enum.Enum("CommunicationImplementation", "AUTO RING NCCL")
    CommunicationOptions = _collections.namedtuple("CommunicationOptions", "bytes_per_pack timeout_seconds implementation", defaults=(0, None, None))

    class CentralStorageStrategy(Strategy):
        pass

    class ValueContext(InputContext):
        pass


class _Resolver:
    """Where the other machines are."""

    task_type = task_id = environment = rpc_layer = None

    def __init__(self, *args, **kwargs):
        pass


class cluster_resolver:
    """tf.distribute.cluster_resolver: programs look for a TPU, and take the default strategy when this raises."""

    ClusterResolver = SimpleClusterResolver = TFConfigClusterResolver = _Resolver

    class TPUClusterResolver(_Resolver):
        def __init__(self, tpu=None, *args, **kwargs):
            raise ValueError("Please provide a TPU Name to connect to.")

        @staticmethod
        def connect(tpu=None, zone=None, project=None):
            raise ValueError("Please provide a TPU Name to connect to.")


_default = Strategy()
_scopes = []


def get_strategy():
    return _scopes[-1] if _scopes else _default


def has_strategy():
    return bool(_scopes)


def in_cross_replica_context():
    return False


def get_replica_context():
    return ReplicaContext(get_strategy())


def strategy_supports_no_merge_call():
    return True


def experimental_set_strategy(strategy):
    _scopes[:] = [] if strategy is None else [strategy]


class DistributedDataset:
    """Never made: with one device a dataset is what it is. Keras asks whether something is one."""


class DistributedIterator:
    """As above."""


def initialize_tpu_system(cluster_resolver=None):
    """tf.tpu.experimental.initialize_tpu_system"""
    raise ValueError("there is no TPU; tf.distribute.get_strategy() gives the strategy of this machine")
