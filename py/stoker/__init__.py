"""Stoker: TensorFlow and Keras programs on a small, fast engine. `python -m stoker script.py` runs one."""
