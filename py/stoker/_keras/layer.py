"""What layers get from the backend."""


class TFLayer:
    """Keras' Layer inherits from this; Stoker needs no tracking beside Keras' own."""

    def __init__(self, *args, **kwargs):
        self._saved_model_inputs_spec = None
        self._saved_model_arg_spec = None
        self._tracked = []

    def _set_save_spec(self, inputs, args=None, kwargs=None):
        """SavedModel is not written by Stoker: there is no specification to keep."""

    @property
    def _default_save_signature(self):
        return None
