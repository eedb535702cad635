"""Which name lives where: TensorFlow's public modules as one table, resolved when a name is first used.

A room is a public module such as tf.math. Its names come from internal modules (`_array`, `_math` ...), from the
operations of the C extension (`C`), or from other rooms. `name=other` gives a name its value under another one.
"""
import importlib
import importlib.machinery
import sys
import types

from stoker import _stoker
from stoker.tf._symbols import SYMBOLS


def _parse():
    rooms = {}
    for line in SYMBOLS.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not line.startswith(" "):
            room, source = line.rstrip(":").split(" from ")
            names = rooms.setdefault("" if room == "tf" else room[3:], {})
            continue
        for word in line.split():
            name, _, other = word.partition("=")
            names[name] = source, other or name
    return rooms


_TABLE = _parse()
_TABLE["dtypes"].update((name, ("dtypes", name)) for name in list(_stoker.dtypes) + ["double", "half"])


def names(room):
    """Public names of a room, with the rooms inside of it."""
    inner = {r[len(room) + 1 if room else 0:].partition(".")[0] for r in _TABLE if r.startswith(room + "." if room else "")}
    return sorted(set(_TABLE.get(room, ())) | (inner - {""}))


def _c_operation(name):
    return _stoker.ops[name]


def _load(source, name):
    if source == "C":
        return _c_operation(name)
    if source == "dtypes":
        return _stoker.DType(name)
    value = importlib.import_module("stoker.tf." + source)
    return getattr(value, name)


_GRAPHS = frozenset("""Session InteractiveSession placeholder placeholder_with_default global_variables_initializer
    local_variables_initializer get_variable variable_scope get_collection add_to_collection GraphKeys ConfigProto layers Saver FileWriter
    AdamOptimizer GradientDescentOptimizer MomentumOptimizer RMSPropOptimizer""".split())


def _missing(room, name):
    if name in _GRAPHS:
        return AttributeError(f"tf.{room + '.' if room else ''}{name} belongs to TensorFlow 1's graphs and sessions, which Stoker does not have: it runs programs "
                              "of TensorFlow 2 (eager tensors, tf.Variable, tf.function, Keras).", name=name)
    path = "tensorflow" + ("." + room if room else "")
    public = path.replace("tensorflow", "tf")
    import difflib  # only for those who err

    near = [f"{public}.{n}" for n in difflib.get_close_matches(name, names(room), 2, 0.75)]
    near += [("tf." + r if r else "tf") + "." + name for r in _TABLE if name in _TABLE[r] and r != room]
    hint = f". Nearest: {', '.join(near[:3])}" if near else ""
    return AttributeError(f"module '{path}' has no attribute '{name}'{hint}. `python -m stoker check --list` shows "
                          "what there is.", name=name)


def find(room, name):
    """The value of a name in a room; AttributeError when there is none."""
    entry = _TABLE.get(room, {}).get(name)
    if entry is not None:
        try:
            return _load(*entry)
        except (KeyError, AttributeError):
            raise _missing(room, name) from None
    inner = f"{room}.{name}" if room else name
    if inner == "compat.v2" or inner in _TABLE or any(r.startswith(inner + ".") for r in _TABLE):
        return module(inner)
    for old in ("compat.v1", "compat.v2"):  # what is not listed there has TensorFlow 2's arguments
        if room == old or room.startswith(old + "."):
            return _same_in_2(room[len(old) + 1:], room, name)
    raise _missing(room, name)


def _same_in_2(room, asked, name):
    try:
        return getattr(module(room) if room else sys.modules["stoker.tf"], name)
    except AttributeError:
        raise _missing(asked, name) from None


def module(room):
    """The module object of a room: a file of its own where there is one."""
    full = "stoker.tf." + room
    if full in sys.modules:
        return sys.modules[full]
    try:
        return importlib.import_module(full)
    except ModuleNotFoundError as error:
        if error.name is None or not full.startswith(error.name):
            raise
    parent, _, last = room.rpartition(".")
    made = types.ModuleType(full)
    made.__path__, made.__package__ = [], full
    made.__spec__ = importlib.machinery.ModuleSpec(full, None, origin="stoker", is_package=True)
    made.__getattr__, made.__dir__ = lazy(room, made.__dict__)
    sys.modules[full] = made
    if parent:
        setattr(module(parent), last, made)
    return made


def lazy(room, namespace):
    """__getattr__ and __dir__ of a room's module; found values are kept in its namespace."""

    def __getattr__(name):
        if name.startswith("__") and name != "__internal__" and name not in _TABLE.get(room, {}):
            raise AttributeError(f"module has no attribute '{name}'", name=name)
        value = namespace[name] = find(room, name)
        return value

    def __dir__():
        return sorted(set(names(room)) | {n for n in namespace if not n.startswith("_")})

    return __getattr__, __dir__
