"""tf.data: input pipelines of the library under TensorFlow's names."""
from stoker.tf._specs import OptionalSpec  # noqa: F401
from stoker.tf.data import _transforms  # noqa: F401  (adds the methods)
from stoker.tf.data._dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, DatasetV2  # noqa: F401
from stoker.tf.data._iterator import OwnedIterator as Iterator  # noqa: F401
from stoker.tf.data._options import Options, ThreadingOptions  # noqa: F401
from stoker.tf.data._sources import FixedLengthRecordDatasetV2 as FixedLengthRecordDataset  # noqa: F401
from stoker.tf.data._sources import TextLineDatasetV2 as TextLineDataset  # noqa: F401
from stoker.tf.data._sources import TFRecordDatasetV2 as TFRecordDataset  # noqa: F401
from stoker.tf.data._structure import DatasetSpec  # noqa: F401
from stoker.tf.data import _docs  # noqa: F401, E402, I001  (tells about the methods that the others added)

Dataset = DatasetV2
NumpyIterator = Iterator


def __getattr__(name):
    if name == "experimental":
        import importlib

        return importlib.import_module("stoker.tf.data.experimental")
    raise AttributeError(f"module 'tensorflow.data' has no attribute '{name}'", name=name)
