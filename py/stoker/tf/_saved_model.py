"""tf.saved_model: objects with their variables and traced functions, in a folder of our own form (_saved_file.py).

A function is written as the operations that it calls (_recording.py), for all sizes that its specification leaves open (_sizes.py), and
is run again by _replay.py: it can be called, differentiated and trained as before. TensorFlow's own SavedModel holds graphs that only
TensorFlow runs: such folders are neither read nor written.
"""
import contextlib
import json
import os
import shutil

import numpy as np

from stoker.tf import errors, nest
from stoker.tf._base import Variable, eager_scope, tensor
from stoker.tf._function import Function
from stoker.tf._recording import CannotSave
from stoker.tf._saved_file import (CONSTANTS, FORMAT, FUNCTIONS, NOTE, VARIABLES, VERSION, Constants, Reader, damaged, read_functions,
                                   write_functions, write_note, write_values)
from stoker.tf._saved_functions import RestoredFunction, Signature, describe_function, describe_signature, specs_of
from stoker.tf._specs import TensorSpec
from stoker.tf._trackables import children, is_variable
from stoker.tf._wrappers import ListWrapper, _DictWrapper

SERVING = "serving_default"


class SaveOptions:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)


LoadOptions = SaveOptions


class Asset:
    """A file that is saved along; after loading, asset_path is where it is then."""

    def __init__(self, path):
        if not os.path.isfile(os.fspath(path)):
            errors.raise_(5, f"{os.fspath(path)}; No such file or directory")
        self._path = os.fspath(path)

    @property
    def asset_path(self):
        return tensor(self._path)

    def _checkpoint_parts(self):
        return {}


class TrackableResource:
    """Tables of the program: none of ours is one."""


class TrackableView:
    """The objects below an object."""

    def __init__(self, root):
        self._root = root

    @property
    def root(self):
        return self._root

    @classmethod
    def children(cls, obj, save_type="checkpoint", **kwargs):
        return children(obj)

    def descendants(self):
        found, todo = {}, [self._root]
        while todo:
            x = todo.pop(0)
            if id(x) not in found:
                found[id(x)] = x
                todo += self.children(x).values()
        return list(found.values())


# Writing.

def _functions_of(x):
    """{name: function}: attributes and methods of an object that are tf.functions."""
    if isinstance(x, (list, tuple, dict)) or is_variable(x):
        return {}
    found = {}
    for name in dir(type(x)):
        if isinstance(getattr(type(x), name, None), Function):
            found[name] = getattr(x, name)
    for name, value in getattr(x, "__dict__", {}).items():
        if isinstance(value, (Function, RestoredFunction)):
            found[name] = value
    return found


def _memory(x):
    """The tf.Variable of a variable of Keras."""
    return x if isinstance(x, Variable) else x._value


class _Saver:
    """Objects by number, and what they are."""

    def __init__(self):
        self.nodes, self.values, self.assets, self.constants = [], {}, {}, Constants()
        self._known, self._kept, self._functions = {}, [], []

    def add(self, x, path):
        """The number of an object; its parts come along."""
        key = id(_memory(x)) if is_variable(x) else id(x)
        if key in self._known:
            return self._known[key]
        self._known[key] = number = len(self.nodes)
        self._kept.append(x)
        self.nodes.append(None)
        if is_variable(x):
            self.nodes[number] = self._variable(_memory(x), path, getattr(x, "name", None))
        elif isinstance(x, (Function, RestoredFunction)):
            self._functions.append((number, x, path))
        elif isinstance(x, Asset):
            self.nodes[number] = {"kind": "asset", "file": self._asset(x)}
        else:
            kind = next((k for k, c in (("list", list), ("tuple", tuple), ("dict", dict)) if isinstance(x, c)), "object")
            parts = {name: self.add(value, f"{path}/{name}") for name, value in {**_parts(x), **_functions_of(x)}.items()}
            self.nodes[number] = {"kind": kind, "children": parts}
        return number

    def _variable(self, v, path, name):
        key = path.strip("/") or "variable"
        value = v.numpy()
        self.values[key] = np.asarray(value, dtype=object) if v.dtype.name == "string" else np.asarray(value)
        return {"kind": "variable", "key": key, "dtype": v.dtype.name, "trainable": bool(v.trainable),
                "name": str(name or getattr(v, "name", None) or "Variable").partition(":")[0]}

    def _asset(self, x):
        name, n = os.path.basename(x._path), 1
        while name in self.assets and self.assets[name] != x._path:
            name, n = f"{n}_{os.path.basename(x._path)}", n + 1
        self.assets[name] = x._path
        return name

    def functions(self, signatures):
        """Functions come last: all variables have numbers then."""
        for number, function, path in self._functions:
            told = describe_function(function, path.strip("/").split("/")[-1] or function._name, self.constants)
            self.nodes[number] = {"kind": "function", "function": self._with_nodes(told["concretes"], told)}
        return {name: self._with_nodes([told], told) for name, told in
                ((name, describe_signature(given, name, self.constants)) for name, given in signatures.items())}

    def _with_nodes(self, concretes, told):
        for concrete in concretes:
            for variant in concrete["variants"]:
                if isinstance(variant["variables"], list):  # done already
                    continue
                variant["variables"] = [[n, self._node_of(v)] for n, v in variant["variables"].items()]
                by_variable = {id(self._by_node[node]): n for n, node in variant["variables"]}
                for v, _ in variant["assigned"]:
                    if id(v) not in by_variable:
                        by_variable[id(v)] = -1 - len(by_variable)
                        variant["variables"].append([by_variable[id(v)], self._node_of(v)])
                variant["assigned"] = [[by_variable[id(v)], value] for v, value in variant["assigned"]]
        return told

    @property
    def _by_node(self):
        return {self._known[id(_memory(x))]: _memory(x) for x in self._kept if is_variable(x)}

    def _node_of(self, v):
        if id(v) not in self._known:
            raise AssertionError(f"Tried to export a function which references an 'untracked' resource: the variable {v.name!r} of shape "
                                 f"{tuple(v.shape)}. Variables that functions use must be attributes of the object that is saved, or of "
                                 "its parts.")
        return self._known[id(v)]


def _parts(x):
    found = children(x)
    assets = {k: v for k, v in getattr(x, "__dict__", {}).items() if isinstance(v, Asset)} if not isinstance(x, (list, tuple, dict)) else {}
    return {**found, **assets}


def _default_signature(obj, store):
    """The one function of the object that has an input_signature, if its results can be a signature's."""
    given = [(name, f) for name, f in _functions_of(obj).items() if specs_of(f)]
    if len(given) != 1 or given[0][1].input_signature is None:
        return {}
    name, function = given[0]
    store.names[id(function)] = name
    try:
        describe_signature(function, SERVING, store)
    except ValueError:
        return {}
    return {SERVING: function}


def _serving(model):
    """The function of a Keras model that its default signature calls; None: nobody knows what the model takes."""
    given = getattr(getattr(model, "_functional", None) or model, "input", None)
    if given is not None:
        spec = nest.map_structure(lambda x: TensorSpec(list(x.shape), x.dtype), given)
    else:
        shapes = list(getattr(model, "_build_shapes_dict", None) or {})
        if len(shapes) != 1:
            return None
        from keras import tree

        spec = tree.map_shape_structure(lambda s: TensorSpec(s, model.input_dtype), model._build_shapes_dict[shapes[0]])
    return Function(lambda inputs: model(inputs, training=False) if model._call_has_training_arg else model(inputs), "serve", (spec,),
                    autograph=False)


class _Served:
    """A Keras model as an object of functions, lists of variables and its own attributes."""

    def __init__(self, model):
        self.__dict__.update({name: part for name, part in _parts(model).items() if name[0] != "_" and name != "optimizer"})
        self.__dict__.update(_functions_of(model))
        serve = _serving(model)
        if serve is not None:
            self.serve = serve
        self.variables = list(model.variables)
        self.trainable_variables = list(model.trainable_variables)
        self.non_trainable_variables = list(model.non_trainable_variables)


def _save_model(model, export_dir):
    served = _Served(model)
    own = served.__dict__
    calls = {"__call__": "serve"} if "serve" in own and "__call__" not in own else {}
    try:
        _write(served, export_dir, {SERVING: own["serve"]} if "serve" in own else None, calls)
    except CannotSave:  # strings, tables ...: Keras itself can run it
        if not model.built:
            raise
        _write_keras(model, export_dir)


def save(obj, export_dir, signatures=None, options=None):
    import keras

    if signatures is not None and not isinstance(signatures, dict):
        signatures = {SERVING: signatures}
    if isinstance(obj, keras.Model) and signatures is None:
        return _save_model(obj, export_dir)
    if not hasattr(obj, "__dict__") and not isinstance(obj, (list, dict)):
        raise ValueError(f"Expected an object that is trackable, such as a tf.Module, for export. Got {obj!r}.")
    _write(obj, export_dir, signatures, {}, getattr(options, "function_aliases", None))


def _write(obj, export_dir, signatures, calls, aliases=None):
    folder = os.fspath(export_dir)
    saver = _Saver()
    for function in _functions_of(obj).values():  # the first trace may make variables
        if isinstance(function, Function) and function.input_signature is not None and not function._traces:
            with contextlib.suppress(ValueError, errors.OpError):  # sizes that do not fit: _sizes.py looks for others
                function.get_concrete_function()
    saver.add(obj, "")
    if signatures is None:
        signatures = _default_signature(obj, saver.constants)
    told = {"signatures": saver.functions(signatures)}
    root = saver.nodes[0]["children"]
    root.update({alias: root[name] for alias, name in calls.items()})
    told["aliases"] = {alias: saver._known[id(f)] for alias, f in (aliases or {}).items() if id(f) in saver._known}
    told["nodes"] = saver.nodes
    told["functions"] = [n["function"] for n in saver.nodes if n["kind"] == "function"]
    for node, number in zip([n for n in saver.nodes if n["kind"] == "function"], range(len(told["functions"]))):
        node["function"] = number
    os.makedirs(folder, exist_ok=True)
    for name, path in saver.assets.items():
        os.makedirs(os.path.join(folder, "assets"), exist_ok=True)
        shutil.copyfile(path, os.path.join(folder, "assets", name))
    write_values(os.path.join(folder, VARIABLES), saver.values)
    if saver.constants.arrays:
        write_values(os.path.join(folder, CONSTANTS), saver.constants.arrays)
    write_functions(folder, told)
    write_note(folder, version=VERSION)


def _write_keras(model, export_dir):
    folder = os.fspath(export_dir)
    os.makedirs(folder, exist_ok=True)
    model.save(os.path.join(folder, "model.keras"))
    inputs = [[x.name, list(x.shape), x.dtype] for x in nest.flatten(getattr(model, "inputs", None) or [])]
    write_note(folder, version=1, signature=inputs)


# Reading.

def contains_saved_model(export_dir):
    names = (NOTE, "saved_model.pb", "saved_model.pbtxt")
    return any(os.path.exists(os.path.join(os.fspath(export_dir), name)) for name in names)


def load(export_dir, tags=None, options=None):
    folder = os.fspath(export_dir)
    if not os.path.exists(os.path.join(folder, NOTE)):
        if contains_saved_model(folder):
            raise NotImplementedError(f"{folder} is a SavedModel of TensorFlow: it holds graphs that only TensorFlow runs. Save the Keras "
                                      "model there as .keras and load that file; tf.train.load_checkpoint reads the folder's variables.")
        raise OSError(f"SavedModel file does not exist at: {folder}/{{saved_model.pbtxt|saved_model.pb}}")
    try:
        with open(os.path.join(folder, NOTE)) as file:
            note = json.load(file)
        version = note["version"] if note["format"] == FORMAT else None
    except (ValueError, KeyError, TypeError) as error:
        damaged(folder, f"{NOTE} says nothing that makes sense ({error})")
    if version == 1:
        import keras

        return Loaded(keras.models.load_model(os.path.join(folder, "model.keras")), note["signature"])
    if version != VERSION:
        errors.raise_(12, f"{folder} was written by another version of Stoker (form {version}; this one reads 1 and {VERSION})")
    told = read_functions(folder)
    try:
        with eager_scope():
            return _Loader(folder, told).root()
    except (KeyError, TypeError, IndexError, ValueError, AttributeError, RecursionError) as error:
        damaged(folder, f"{FUNCTIONS} does not hold what it should ({type(error).__name__}: {error})")


class _Loader:
    def __init__(self, folder, told):
        from stoker.tf._checkpoint import CheckpointReader

        self.folder, self.told, self.nodes = folder, told, told["nodes"]
        self.reader = CheckpointReader(os.path.join(folder, VARIABLES))
        self.constants, self.made, self.variables = Reader(folder), {}, {}
        for number, node in enumerate(self.nodes):
            if node["kind"] == "variable":
                value = tensor(self.reader.get_tensor(node["key"]), node["dtype"])
                self.made[number] = self.variables[number] = Variable(value, trainable=node["trainable"], name=node["name"], dtype=node["dtype"])

    def get(self, number):
        if number not in self.made:
            node = self.nodes[number]
            getattr(self, "_" + node["kind"])(number, node)
        return self.made[number]

    def _parts(self, node):
        return {name: self.get(child) for name, child in node["children"].items()}

    def _object(self, number, node):
        self.made[number] = made = _UserObject()
        for name, value in self._parts(node).items():
            if name == "__call__" and not isinstance(value, RestoredFunction):
                damaged(self.folder, "the __call__ of an object is no function")
            made.__dict__[name] = value

    def _list(self, number, node):
        self.made[number] = made = ListWrapper()
        made += self._parts(node).values()

    def _tuple(self, number, node):
        self.made[number] = tuple(self._parts(node).values())

    def _dict(self, number, node):
        self.made[number] = made = _DictWrapper()
        made.update(self._parts(node))

    def _function(self, number, node):
        self.made[number] = RestoredFunction(self.told["functions"][node["function"]], self.variables, self.constants)

    def _asset(self, number, node):
        if os.path.basename(node["file"]) != node["file"]:
            damaged(self.folder, f"the name of an asset is a path: {node['file']}")
        self.made[number] = Asset(os.path.join(self.folder, "assets", node["file"]))

    def root(self):
        root = self.get(0)
        if not isinstance(root, _UserObject):
            return root
        root.__dict__["signatures"] = _SignatureMap((name, Signature(name, told, self.variables, self.constants))
                                                    for name, told in self.told["signatures"].items())
        if self.told["aliases"]:
            root.__dict__["function_aliases"] = {name: self.get(node) for name, node in self.told["aliases"].items()}
        return root


class _SignatureMap(dict):
    def __repr__(self):
        return f"_SignatureMap({dict.__repr__(self)})"


class _UserObject:
    """What was saved, without its class: attributes, and methods that were tf.functions."""

    tensorflow_version = property(lambda self: "2.21.0")

    def __call__(self, *args, **kwargs):
        function = self.__dict__.get("__call__")
        if function is None:
            raise TypeError("'_UserObject' object is not callable: what was saved had no tf.function as its __call__")
        return function(*args, **kwargs)

    def __getattr__(self, name):
        if name in ("variables", "trainable_variables"):  # of the saved object, unless an attribute of it had that name
            found = {id(v): v for v in _variables_below(self, set())}
            return tuple(v for v in found.values() if name == "variables" or v.trainable)
        raise AttributeError(f"'_UserObject' object has no attribute '{name}'")


def _variables_below(x, seen):
    if id(x) in seen:
        return
    seen.add(id(x))
    if isinstance(x, Variable):
        yield x
    elif isinstance(x, _UserObject) or isinstance(x, (list, tuple, dict)):
        parts = x if isinstance(x, (list, tuple)) else (x.values() if isinstance(x, dict) else vars(x).values())
        for part in parts:
            yield from _variables_below(part, seen)


class Loaded:
    """A folder of version 1, a Keras model: callable, with the model's variables and its one signature."""

    def __init__(self, model, inputs):
        self._model, self._inputs = model, inputs
        self.signatures = {SERVING: self._signature}

    def __call__(self, *args, **kwargs):
        return self._model(*args, **kwargs)

    serve = __call__
    variables = property(lambda self: [v.value for v in self._model.variables])
    trainable_variables = property(lambda self: [v.value for v in self._model.trainable_variables])

    def _signature(self, *args, **kwargs):
        """Arguments by position or by the names of the model's inputs; results by position: output_0 ..."""
        given = list(args) or [kwargs[name] for name, _, _ in self._inputs if name in kwargs] or list(kwargs.values())
        given = [tensor(value) for value in given]
        made = self._model(given[0] if len(given) == 1 else given, training=False)
        return {f"output_{n}": value for n, value in enumerate(nest.flatten(made))}
