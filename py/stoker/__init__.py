"""Stoker: TensorFlow and Keras programs on a small, fast engine.

    python -m stoker script.py                 run a program that says `import tensorflow`
    import stoker; stoker.install()            the same from inside, as the first line of a script or notebook
    %load_ext stoker                           the same in a notebook; %%stoker_doctor tells why a cell is slow
    import stoker.tf as tf                     by its own name
"""


def install():
    """From here on `import tensorflow` and `import keras` give Stoker. Must come before either is imported."""
    from stoker import _hook

    _hook.install(claim_distribution=True)


def load_ipython_extension(shell):
    """%load_ext stoker: as install(), and the magics %%stoker_profile and %%stoker_doctor."""
    install()
    if shell is not None:
        from stoker import _notebook

        _notebook.register(shell)


def __getattr__(name):
    if name == "__version__":
        from stoker import _stoker

        return _stoker.version
    raise AttributeError(f"module 'stoker' has no attribute {name!r}")
