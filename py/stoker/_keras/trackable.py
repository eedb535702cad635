"""Stand-in for the bridge between Keras' and TensorFlow's tracking of objects: Keras' own is all there is."""
from stoker.tf import _other


class KerasAutoTrackable(_other.AutoTrackable):
    pass
