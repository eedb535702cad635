"""tf.train: records, and what else programs take from there."""
from stoker.tf._messages import (BytesList, Example, Feature, FeatureList, FeatureLists, Features, FloatList,  # noqa: F401
                                 Int64List, SequenceExample)
