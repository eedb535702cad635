"""The door to Keras' own TensorFlow backend for functions that Stoker does not have of its own yet."""
from stoker import _hook


def fallback(module, namespace):
    """A module's __getattr__: the name from Keras' own file over stoker.tf, kept once it was found."""

    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(f"module '{namespace['__name__']}' has no attribute '{name}'")
        value = getattr(_hook.keras_own(module), name)
        namespace[name] = value
        return value

    return __getattr__


def replace(module, **functions):
    """Functions of Keras' own file that its other functions should find in our version."""
    vars(_hook.keras_own(module)).update(functions)
