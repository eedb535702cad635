"""What Keras' tests import from the conftest that the wheel does not ship."""
import pytest


def skip_if_backend(given_backend, reason):
    from keras.src.backend import backend

    return pytest.mark.skipif(backend() == given_backend, reason=reason)
