"""Messages of event files, and the bytes of tensors as another type."""
import glob

import numpy as np
import pytest

import stoker.tf as tf


def test_events_are_read_back(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        tf.summary.scalar("loss", 0.5, step=3)
        tf.summary.histogram("weights", np.arange(4.0), step=-1)
    writer.close()
    head, loss, weights = tf.compat.v1.train.summary_iterator(glob.glob(str(tmp_path / "*"))[0])
    assert head.file_version == "brain.Event:2" and head.WhichOneof("what") == "file_version"
    value = loss.summary.value[0]
    assert (loss.step, value.tag, value.WhichOneof("value")) == (3, "loss", "tensor")
    assert value.metadata.plugin_data.plugin_name == "scalars"
    assert np.frombuffer(value.tensor.tensor_content, "f4") == [0.5] and value.tensor.dtype == 1
    assert weights.step == -1 and [d.size for d in weights.summary.value[0].tensor.tensor_shape.dim] == [30, 3]


def test_messages_are_written_and_checked():
    from tensorflow.core.util import event_pb2

    event = event_pb2.Event(wall_time=1.5, step=7)
    event.summary.value.append(tf.compat.v1.Summary.Value(tag="a", simple_value=0.0))
    again = event_pb2.Event.FromString(event.SerializeToString())
    assert again == event and again.summary.value[0].WhichOneof("value") == "simple_value"
    metadata = tf.compat.v1.SummaryMetadata()
    metadata.plugin_data.plugin_name = "scalars"
    assert metadata.SerializeToString() == b"\n\t\n\x07scalars"
    with pytest.raises(AttributeError, match="no field 'stepp'"):
        event.stepp = 1
    with pytest.raises(ValueError, match="ends in the middle"):
        event_pb2.Event.FromString(event.SerializeToString()[:-1])


def test_bitcast_changes_the_last_dimension():
    x = tf.constant([[1, 1 << 32], [-1, 0]], tf.int64)
    parts = tf.bitcast(x, tf.uint32)
    assert parts.shape == (2, 2, 2) and parts.numpy()[0].tolist() == [[1, 0], [0, 1]]
    assert np.array_equal(tf.bitcast(parts, tf.int64), x)
    assert tf.bitcast(tf.constant(1.0), tf.int32).numpy() == 0x3F800000
    assert np.array_equal(tf.function(lambda t: tf.bitcast(t + 0, tf.uint32))(x), parts)
    with pytest.raises(ValueError, match="last dimension must be 2"):
        tf.bitcast(tf.constant([1, 2, 3]), tf.int64)
