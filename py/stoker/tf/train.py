"""tf.train: records, checkpoints."""
from stoker.tf._checkpoint import (Checkpoint, CheckpointManager, CheckpointOptions, CheckpointReader,  # noqa: F401
                                   CheckpointState, checkpoints_iterator, get_checkpoint_state, latest_checkpoint,
                                   list_variables, load_checkpoint, load_variable, update_checkpoint_state)
from stoker.tf._messages import (BytesList, Example, Feature, FeatureList, FeatureLists, Features, FloatList,  # noqa: F401
                                 Int64List, SequenceExample)


def __getattr__(name):
    from stoker.tf import _rooms

    return _rooms.find("train", name)
