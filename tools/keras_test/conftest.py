"""The helper that Keras' tests import from the conftest of its repository, which is not in the wheel."""
import keras
import pytest


def skip_if_backend(given_backend, reason):
    return pytest.mark.skipif(keras.backend.backend() == given_backend, reason=reason)
