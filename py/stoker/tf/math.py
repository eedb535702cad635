"""tf.math: names from the table in _symbols.py."""
from stoker.tf import _rooms

__getattr__, __dir__ = _rooms.lazy("math", globals())
