"""tf.nest: structures of tuples, lists, dicts, namedtuples and attrs; dicts are flattened by sorted key."""
import collections.abc as _abc


def _is_namedtuple(x):
    return isinstance(x, tuple) and hasattr(x, "_fields")


def _is_attrs(x):
    return hasattr(type(x), "__attrs_attrs__")


def is_nested(structure):
    return isinstance(structure, (list, tuple, _abc.Mapping)) or _is_attrs(structure)


is_nested_or_composite = is_nested


def _components(structure, expand_composites):
    """The flat children of a composite tensor (ragged, sparse), or None."""
    if expand_composites and hasattr(structure, "_to_components"):
        return structure._to_components()
    return None


def _keys(mapping):
    try:
        return sorted(mapping)
    except TypeError:
        raise TypeError(f"tf.nest: keys of a dict must be sortable, got {list(mapping)!r}") from None


def _children(structure):
    if isinstance(structure, _abc.Mapping):
        return [structure[k] for k in _keys(structure)]
    if _is_attrs(structure):
        return [getattr(structure, a.name) for a in type(structure).__attrs_attrs__]
    return list(structure)


def _rebuild(structure, children):
    """A structure of the same type with other children; `children` in the order of _children."""
    children = list(children)
    if isinstance(structure, _abc.Mapping):
        by_key = dict(zip(_keys(structure), children))
        items = [(k, by_key[k]) for k in structure]
        if hasattr(structure, "default_factory"):
            return type(structure)(structure.default_factory, items)
        try:
            return type(structure)(items)
        except TypeError:
            return dict(items)
    if _is_namedtuple(structure) or _is_attrs(structure):
        return type(structure)(*children)
    return type(structure)(children)


def flatten(structure, expand_composites=False):
    flat = []

    def walk(value):
        if is_nested(value):
            for child in _children(value):
                walk(child)
            return
        parts = _components(value, expand_composites)
        if parts is None:
            flat.append(value)
        else:
            for part in parts:
                walk(part)

    walk(structure)
    return flat


def pack_sequence_as(structure, flat_sequence, expand_composites=False):
    if not is_nested(flat_sequence):
        raise TypeError("Attempted to pack value:\n  {}\ninto a structure, but found incompatible type `{}` instead."
                        .format(flat_sequence, type(flat_sequence)))
    values = list(flat_sequence)
    at = 0

    def take(value):
        nonlocal at
        if is_nested(value):
            return _rebuild(value, [take(c) for c in _children(value)])
        parts = _components(value, expand_composites)
        if parts is not None:
            return value._from_components([take(p) for p in parts])
        if at >= len(values):
            raise ValueError(f"Structure had more atoms than flat_sequence: {len(flatten(structure))} against "
                             f"{len(values)}. Structure: {structure!r}, flat_sequence: {flat_sequence!r}.")
        at += 1
        return values[at - 1]

    if not is_nested(structure) and _components(structure, expand_composites) is None and len(values) != 1:
        raise ValueError(f"The target structure is of type `{type(structure)}`\n  {structure}\nHowever the input is a "
                         f"sequence ({type(flat_sequence)}) of length {len(values)}.\n  {flat_sequence}\nnest cannot "
                         "guarantee that it is safe to map one to the other.")
    packed = take(structure)
    if at != len(values):
        raise ValueError(f"Could not pack sequence. Structure had {at} atoms, but flat_sequence had {len(values)} "
                         f"items. Structure: {structure!r}, flat_sequence: {flat_sequence!r}.")
    return packed


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False):
    def walk(a, b):
        if is_nested(a) != is_nested(b):
            one, other = (a, b) if is_nested(a) else (b, a)
            raise ValueError("The two structures don't have the same nested structure.\n\nFirst structure: "
                             f"type={type(nest1).__name__} str={nest1}\n\nSecond structure: type="
                             f"{type(nest2).__name__} str={nest2}\n\nMore specifically: Substructure \"type="
                             f"{type(one).__name__} str={one}\" is a sequence, while substructure \"type="
                             f"{type(other).__name__} str={other}\" is not")
        if not is_nested(a):
            return
        mappings = isinstance(a, _abc.Mapping) and isinstance(b, _abc.Mapping)
        if check_types and type(a) is not type(b) and not mappings:
            raise TypeError("The two structures don't have the same sequence type. First structure has type "
                            f"{type(a)}, while second structure has type {type(b)}.")
        if mappings and set(a) != set(b):
            raise ValueError("The two dictionaries don't have the same set of keys. First structure has keys "
                             f"{list(a)}, while second structure has keys {list(b)}.")
        x, y = _children(a), _children(b)
        if len(x) != len(y):
            raise ValueError("The two structures don't have the same number of elements.\n\nFirst structure: "
                             f"type={type(nest1).__name__} str={nest1}\n\nSecond structure: "
                             f"type={type(nest2).__name__} str={nest2}")
        for one, other in zip(x, y):
            walk(one, other)

    walk(nest1, nest2)


def map_structure(func, *structure, check_types=True, expand_composites=False, **kwargs):
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}.")
    if not structure:
        raise ValueError("Must provide at least one structure.")
    if kwargs:
        raise ValueError(f"Only valid keyword arguments are `check_types` and `expand_composites`, not: {list(kwargs)}")
    first, rest = structure[0], structure[1:]
    for other in rest:
        assert_same_structure(first, other, check_types, expand_composites)
    flats = [flatten(s, expand_composites) for s in structure]
    return pack_sequence_as(first, [func(*values) for values in zip(*flats)], expand_composites)


def map_structure_up_to(shallow_tree, func, *inputs, **kwargs):
    flats = [flatten_up_to(shallow_tree, i) for i in inputs]
    return pack_sequence_as(shallow_tree, [func(*values, **kwargs) for values in zip(*flats)])


def flatten_up_to(shallow_tree, input_tree, check_types=True, expand_composites=False):
    if not is_nested(shallow_tree):
        return [input_tree]
    if isinstance(shallow_tree, _abc.Mapping):
        pairs = [(shallow_tree[k], input_tree[k]) for k in _keys(shallow_tree)]
    else:
        pairs = list(zip(_children(shallow_tree), _children(input_tree)))
    return [leaf for s, i in pairs for leaf in flatten_up_to(s, i)]


def list_to_tuple(structure):
    """Lists become tuples, as tf.data does with what a map function returns."""
    if isinstance(structure, list):
        return tuple(list_to_tuple(s) for s in structure)
    if is_nested(structure):
        return _rebuild(structure, [list_to_tuple(c) for c in _children(structure)])
    return structure
