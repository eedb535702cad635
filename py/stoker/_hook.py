"""The one finder that makes `import tensorflow` and `import keras` mean Stoker.

    tensorflow, tensorflow.X          -> stoker.tf, stoker.tf.X            (the same module objects)
    tensorflow.keras[.X]              -> keras._tf_keras.keras[.X]         (the same module objects)
    tensorflow.python.X, .core.X      -> small stand-ins, see stoker/tf/_python.py
    keras.src.backend.tensorflow      -> stoker/_keras, with Keras' own folder behind it on the path: a module
                                         that we do not have is Keras' own, running over stoker.tf
    keras.src.backend.config          -> Keras' own, then the backend is set to "tensorflow"
    jax.experimental.jax2tf           -> stoker/_jax2tf.py: the standard one speaks to TensorFlow's inside
    multiprocessing.spawn             -> the standard one, whose children install this finder too

No file of Keras is changed. `install()` is idempotent; it refuses when the real TensorFlow is already loaded, because
half of each would be worse than either.
"""
import importlib
import importlib.machinery
import importlib.util
import os
import sys

TENSORFLOW_VERSION = "2.21.0"  # the API that stoker.tf follows
_HERE = os.path.dirname(os.path.abspath(__file__))
_KERAS = os.path.join(_HERE, "_keras")
_BACKEND = "keras.src.backend.tensorflow"


class _AliasLoader:
    """Gives an import name a module that exists under another name."""

    def __init__(self, target):
        self.target = target

    def create_module(self, spec):
        module = importlib.import_module(self.target)
        self._kept = getattr(module, "__spec__", None)
        if not hasattr(module, "__path__"):
            module.__path__ = []  # `import tensorflow.io.gfile` looks inside, and the finder knows what is there
        return module

    def exec_module(self, module):
        module.__spec__ = self._kept  # importlib put the alias' spec there


class _ReadyLoader:
    """Gives an import name an object that already exists."""

    def __init__(self, module):
        self.module = module

    def create_module(self, spec):
        self._kept = getattr(self.module, "__spec__", None)
        return self.module

    def exec_module(self, module):
        if self._kept is not None:
            module.__spec__ = self._kept


class _ThenLoader:
    """Runs the standard loader of a module and then a function on the module."""

    def __init__(self, loader, then):
        self.loader, self.then = loader, then

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        self.then(module)

    def __getattr__(self, name):  # get_source, get_filename ... for inspect and linecache
        return getattr(self.loader, name)


def _use_our_backend(config):
    asked = config._BACKEND
    if asked != "tensorflow":
        print(f"stoker: this program asks for Keras' {asked} backend; it runs on Stoker instead", file=sys.stderr)
    config._BACKEND = "tensorflow"


def _children_too(spawn):
    standard = spawn.get_command_line

    def get_command_line(**kwds):
        line = standard(**kwds)
        if "-c" in line:
            at = line.index("-c") + 1
            line[at] = "import stoker._hook as hook; hook.install(); " + line[at]
        return line

    spawn.get_command_line = get_command_line


# Parts of Keras that bring scikit-learn and matplotlib along where these are installed, a second of imports: loaded when
# somebody looks inside.
_WHEN_ASKED = {f"keras.{part}{name}" for name in ("wrappers", "visualization") for part in ("", "src.", "_tf_keras.keras.")}
_THEN = {"keras.src.backend.config": _use_our_backend, "multiprocessing.spawn": _children_too}


def _distribution():
    """What importlib.metadata.version("tensorflow") finds when a program runs under `python -m stoker`."""
    import importlib.metadata

    class Distribution(importlib.metadata.Distribution):
        def read_text(self, filename):
            if filename == "METADATA":
                return f"Metadata-Version: 2.1\nName: tensorflow\nVersion: {TENSORFLOW_VERSION}\nSummary: Stoker's tensorflow\n"
            return None

        def locate_file(self, path):
            return os.path.join(_HERE, os.fspath(path))

    return Distribution()


class Finder:  # no base class: importlib.abc and importlib.metadata bring 60 modules along
    def __init__(self):
        self.claims_distribution = False

    def find_spec(self, name, path=None, target=None):
        if name == "tensorflow" or name.startswith("tensorflow."):
            return _tensorflow_spec(name)
        if name == _BACKEND:
            return _backend_spec(name, path)
        if name == "jax.experimental.jax2tf":
            return _alias(name, "stoker._jax2tf", False)
        if name in _WHEN_ASKED:
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            if spec is not None:
                spec.loader = importlib.util.LazyLoader(spec.loader)
            return spec
        if name in _THEN:
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            if spec is not None:
                spec.loader = _ThenLoader(spec.loader, _THEN[name])
            return spec
        return None

    def find_distributions(self, context=None):
        if self.claims_distribution and getattr(context, "name", None) in ("tensorflow", "tensorflow-cpu", "tensorflow_cpu"):
            yield _distribution()


def _alias(name, target, package):
    spec = importlib.machinery.ModuleSpec(name, _AliasLoader(target), origin=target, is_package=package)
    return spec


def _tensorflow_spec(name):
    if name == "tensorflow":
        return _alias(name, "stoker.tf", True)
    rest = name[len("tensorflow."):]
    if rest == "keras" or rest.startswith("keras."):
        target = "keras._tf_keras." + rest
        if importlib.util.find_spec("keras") is None:
            raise ModuleNotFoundError("tf.keras needs the keras package: pip install keras", name=name)
        importlib.import_module("keras._tf_keras.keras")
        found = importlib.util.find_spec(target)
        return None if found is None else _alias(name, target, found.submodule_search_locations is not None)
    if rest.partition(".")[0] in ("python", "compiler", "core"):
        from stoker.tf import _python

        module = _python.module(name)
        if module is None:
            raise ModuleNotFoundError(
                f"No module named '{name}': Stoker has TensorFlow's public names, not its inside"
                + _python.hint(rest), name=name)
        return importlib.machinery.ModuleSpec(name, _ReadyLoader(module), origin="stoker", is_package=True)
    return _public_spec(name, rest)


def _public_spec(name, rest):
    target = "stoker.tf." + rest
    try:
        found = importlib.util.find_spec(target)
    except ModuleNotFoundError:
        found = None
    if found is not None and not rest.rpartition(".")[2].startswith("_"):
        return _alias(name, target, found.submodule_search_locations is not None)
    module = importlib.import_module("stoker.tf")
    try:  # rooms that are not files: tf.initializers, tf.compat.v2 ...
        for part in rest.split("."):
            module = getattr(module, part)
    except AttributeError as error:
        raise ModuleNotFoundError(f"No module named '{name}': {error}", name=name) from None
    if not isinstance(module, type(sys)):
        return None
    return importlib.machinery.ModuleSpec(name, _ReadyLoader(module), origin="stoker", is_package=True)


def _backend_spec(name, path):
    real = importlib.machinery.PathFinder.find_spec(name, path)
    if real is None or not os.path.exists(os.path.join(_KERAS, "__init__.py")):
        return real
    folders = [_KERAS] + list(real.submodule_search_locations or [])
    return importlib.util.spec_from_file_location(
        name, os.path.join(_KERAS, "__init__.py"), submodule_search_locations=folders)


def keras_own(module):
    """Keras' own file for a module of its TensorFlow backend ("numpy", "core" ...), loaded once under a private name.

    Our modules take from there a function that a newer Keras has and we do not have yet.
    """
    private = f"{_BACKEND}._own_{module}"
    if private not in sys.modules:
        folder = os.path.dirname(importlib.util.find_spec("keras").origin)
        file = os.path.join(folder, "src", "backend", "tensorflow", module + ".py")
        spec = importlib.util.spec_from_file_location(private, file)
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[private] = loaded
        spec.loader.exec_module(loaded)
    return sys.modules[private]


def _is_ours(module):
    return getattr(module, "__stoker__", False)


finder = Finder()


def install(claim_distribution=False):
    """Put the finder in front. Safe to call again."""
    loaded = sys.modules.get("tensorflow")
    if loaded is not None and not _is_ours(loaded):
        raise RuntimeError(
            "the real TensorFlow is already imported in this process, so Stoker cannot take its name.\n"
            "Import stoker.tf before anything that imports tensorflow, or run the program with"
            " `python -m stoker program.py`.")
    backend = sys.modules.get("keras.src.backend")
    if backend is not None and finder not in sys.meta_path:
        raise RuntimeError(
            "keras is already imported on another backend.\n"
            "Import stoker.tf before keras, or run the program with `python -m stoker program.py`.")
    finder.claims_distribution |= claim_distribution
    if finder not in sys.meta_path:
        sys.meta_path.insert(0, finder)
        os.environ["KERAS_BACKEND"] = "tensorflow"
    if "multiprocessing.spawn" in sys.modules:
        spawn = sys.modules["multiprocessing.spawn"]
        if spawn.get_command_line.__module__ != __name__:
            _children_too(spawn)
