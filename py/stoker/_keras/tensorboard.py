"""Profiles that Keras' TensorBoard callback asks for: Stoker's own traces."""
from stoker import tf as _tf


def start_trace(logdir):
    _tf.profiler.experimental.start(logdir)


def stop_trace(save):
    _tf.profiler.experimental.stop(save=save)


def start_batch_trace(batch):
    made = _tf.profiler.experimental.Trace("Profiled batch", step_num=batch)
    made.__enter__()
    return made


def stop_batch_trace(batch_trace_context):
    batch_trace_context.__exit__(None, None, None)
