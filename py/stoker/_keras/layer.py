"""What layers get from the backend."""


class TFLayer:
    """Keras' Layer inherits from this; Stoker needs no tracking beside Keras' own."""

    def __init__(self, *args, **kwargs):
        self._saved_model_inputs_spec = None
        self._saved_model_arg_spec = None
        self._tracked = []

    def _set_save_spec(self, inputs, args=None, kwargs=None):
        """Models are saved with the shapes of their inputs: there is no specification to keep."""

    @property
    def _default_save_signature(self):
        return None
