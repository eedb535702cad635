"""The graph of objects in a checkpoint, as TensorFlow has it: who holds what under which name, and where values are.

Nodes are numbered from the root, breadth first; a value's key is the shortest way to it. Restoring walks along the names of both
graphs at once. What a program makes later (an attribute, an item of a list, the weights of a layer) gets its value when it comes.
"""
import collections
import functools

import numpy as np

from stoker.tf._base import Variable, tensor
from stoker.tf._event_messages import message
from stoker.tf._wrappers import wrapped

GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
VALUE, STATE = "VARIABLE_VALUE", "ITERATOR_STATE"

_Child = message("ObjectReference", {1: ("node_id", "int"), 2: ("local_name", "string")})
_Stored = message("SerializedTensor", {1: ("name", "string"), 2: ("full_name", "string"), 3: ("checkpoint_key", "string")})
_Bool = message("BoolValue", {1: ("value", "bool")})
_Node = message("TrackableObject", {1: ("children", [_Child]), 2: ("attributes", [_Stored]), 5: ("has_checkpoint_values", _Bool)})
ObjectGraph = message("TrackableObjectGraph", {1: ("nodes", [_Node])})


# What counts as a part of what.

def is_variable(x):
    return isinstance(x, Variable) or (hasattr(x, "assign") and hasattr(x, "shape") and hasattr(x, "dtype"))


def is_keras(x):
    return any(c.__module__.startswith("keras.") for c in type(x).__mro__)


def is_iterator(x):
    return hasattr(x, "_save") and hasattr(x, "_restore")


def _is_metric(x):
    """Keras' metrics are no parts of a model's checkpoint, in TensorFlow neither."""
    return hasattr(x, "update_state") and hasattr(x, "reset_state")


def is_trackable(x):
    from stoker.tf._checkpoint import Checkpoint
    from stoker.tf._module import Module

    if isinstance(x, (list, tuple, dict, Module, Checkpoint)) or is_variable(x) or is_iterator(x):
        return True
    if hasattr(x, "_checkpoint_parts"):
        return True
    return is_keras(x) and not _is_metric(x) and (hasattr(x, "trainable_variables") or hasattr(x, "_trainable_variables"))


def children(x):
    """{name: part} of an object."""
    if hasattr(x, "_checkpoint_parts"):
        return x._checkpoint_parts()
    if isinstance(x, dict):
        found = {str(k): v for k, v in x.items()}
    elif isinstance(x, (list, tuple)):
        found = {str(n): v for n, v in enumerate(x)}
    elif is_variable(x) or is_iterator(x):
        return {}
    else:
        found = dict(getattr(x, "__dict__", {}))
        if "_layers" in found and is_keras(x):  # a layer's own lists of what it holds, which has names of its own
            for name in ("_trainable_variables", "_non_trainable_variables") + (("_layers",) if found.get("_functional", 0) is not None else ()):
                found.pop(name, None)
    return {k: v for k, v in found.items() if is_trackable(v)}


def _escape(name):
    return name.replace(".", "..").replace("/", ".S")


def _walk(root):
    """[(object, key of its path, {name: number of the part})], breadth first; each object once."""
    number, order, ways = {id(root): 0}, [root], [""]
    parts, at = [], 0
    while at < len(order):
        found = {}
        for name, child in children(order[at]).items():
            if id(child) not in number:
                number[id(child)] = len(order)
                order.append(child)
                ways.append((ways[at] + "/" if ways[at] else "") + _escape(name))
            found[name] = number[id(child)]
        parts.append(found)
        at += 1
    return list(zip(order, ways, parts))


def _full_name(variable):
    name = getattr(variable, "path", None) or getattr(variable, "name", None) or "Variable"
    return str(name).partition(":")[0]


def collect(root):
    """{key: value} of everything below an object, the graph among them."""
    nodes = _walk(root)
    holds = [is_variable(x) or is_iterator(x) for x, _, _ in nodes]
    changed = True
    while changed:  # objects with values somewhere below them
        changed = False
        for n, (_, _, parts) in enumerate(nodes):
            if not holds[n] and any(holds[m] for m in parts.values()):
                holds[n] = changed = True
    kept = {n: k for k, n in enumerate(n for n in range(len(nodes)) if holds[n] or n == 0)}
    graph, values = ObjectGraph(), {}
    for n in kept:
        x, way, parts = nodes[n]
        node = _Node(has_checkpoint_values=_Bool(value=True))
        node.children.extend(_Child(node_id=kept[m], local_name=name) for name, m in parts.items() if m in kept)
        if holds[n] and not parts and (is_variable(x) or is_iterator(x)):
            kind = VALUE if is_variable(x) else STATE
            key = f"{way}/.ATTRIBUTES/{kind}"
            node.attributes.append(_Stored(name=kind, full_name=_full_name(x), checkpoint_key=key))
            values[key] = np.asarray(x.numpy()) if kind == VALUE else x._save()
        graph.nodes.append(node)
    values[GRAPH_KEY] = graph.SerializeToString()
    return values


# Restoring.

class Restoration:
    """One call of restore: values that found their objects, and those that still wait."""

    def __init__(self, reader, nodes):
        self.reader, self.nodes = reader, nodes
        self.used, self.bound, self._kept = set(), set(), []

    def bind(self, root, node):
        """Gives values to an object and everything below it that is named alike."""
        todo = collections.deque([(root, node)])
        seen = set()
        while todo:
            x, number = todo.popleft()
            if (id(x), number) in seen:
                continue
            seen.add((id(x), number))
            stored = self.nodes[number]
            self._take(x, number, stored)
            mine = children(x)
            waits = False
            for child in stored.children:
                if child.local_name in mine:
                    todo.append((self._waitable(x, child.local_name, mine[child.local_name], child.node_id), child.node_id))
                else:
                    waits = True
            if waits or not getattr(x, "built", True):
                self._wait(x, number)

    def _take(self, x, number, stored):
        if (id(x), number) in self.bound:
            return
        self.bound.add((id(x), number))
        self._kept.append(x)  # so that no other object gets its id
        for one in stored.attributes:
            if one.name == VALUE and is_variable(x):
                assign(x, self.reader.get_tensor(one.checkpoint_key), one.checkpoint_key)
                self.used.add(one.checkpoint_key)
            elif one.name == STATE and is_iterator(x):
                x._restore(self.reader.get_tensor(one.checkpoint_key))
                self.used.add(one.checkpoint_key)

    def _waitable(self, owner, name, value, number):
        """A plain list or dict that more may come into is replaced by one that tells of it."""
        if type(value) not in (list, dict) or is_keras(owner) or not hasattr(owner, "__dict__") or owner.__dict__.get(name) is not value:
            return value
        if all(c.local_name in children(value) for c in self.nodes[number].children):
            return value
        value = wrapped(value)
        owner.__dict__[name] = value
        return value

    def _wait(self, x, number):
        if is_keras(x):
            if not isinstance(x, (list, tuple, dict)) and not getattr(x, "built", True):
                self._wait_for_build(x, number)
        elif hasattr(x, "__dict__") and not isinstance(x, tuple):
            waiting = [w for w in x.__dict__.get("_waiting", ()) if w[0] is not self] + [(self, number)]
            x.__dict__["_waiting"] = waiting[-1:]  # a later restore takes the place of an earlier one

    def _wait_for_build(self, x, number):
        """A Keras object without variables yet: they are set as soon as build has made them."""
        build = x.build
        if getattr(build, "_restores", None) is self:
            return

        @functools.wraps(build)
        def build_and_restore(*args, **kwargs):
            result = build(*args, **kwargs)
            object.__setattr__(x, "build", build)
            self.bind(x, number)
            return result

        build_and_restore._restores = self
        object.__setattr__(x, "build", build_and_restore)

    def arrived(self, number, name, value):
        """An attribute that was set on an object that waits."""
        for child in self.nodes[number].children:
            if child.local_name == name and is_trackable(value):
                value = wrapped(value)
                self.bind(value, child.node_id)
        return value

    # What is left.

    def unused(self):
        return [one.checkpoint_key for node in self.nodes for one in node.attributes
                if one.checkpoint_key not in self.used and not one.checkpoint_key.startswith("save_counter/")]

    def unmatched(self, root):
        found = {i for i, _ in self.bound}
        return [way or "the root" for x, way, _ in _walk(root) if is_variable(x) and id(x) not in found and way != "save_counter"]


def arrived(owner, name, value):
    """Called by objects whose attributes may be waited for, when one is set."""
    for restoration, number in owner.__dict__.get("_waiting", ()):
        value = restoration.arrived(number, name, value)
    return value


def assign(variable, value, key):
    value = np.asarray(value)
    if list(variable.shape) != list(value.shape):
        raise ValueError(f"Received incompatible tensor with shape {value.shape} when attempting to restore variable with shape "
                         f"{tuple(variable.shape)} and name {key}.")
    variable.assign(tensor(value) if not is_keras(variable) else value)
