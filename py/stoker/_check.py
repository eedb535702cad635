"""python -m stoker check: what a program uses of tensorflow and keras that Stoker does not have.

Nothing of the program runs. Its syntax tree gives the names bound by imports of tensorflow and keras; every chain
of attributes that starts at such a name is looked up in the modules themselves.
"""
import ast
import difflib
import importlib
import sys
import types

_ROOTS = ("tensorflow", "keras")


class Uses(ast.NodeVisitor):
    """Collects dotted names such as tensorflow.nn.relu with the lines that use them."""

    def __init__(self):
        self.alias = {}
        self.found = {}

    def _note(self, dotted, node):
        self.found.setdefault(dotted, []).append(node.lineno)

    def visit_Import(self, node):
        for name in node.names:
            if name.name.split(".")[0] in _ROOTS:
                self.alias[name.asname or name.name.split(".")[0]] = name.name if name.asname else name.name.split(".")[0]
                self._note(name.name, node)

    def visit_ImportFrom(self, node):
        if node.level or (node.module or "").split(".")[0] not in _ROOTS:
            return
        for name in node.names:
            dotted = node.module if name.name == "*" else f"{node.module}.{name.name}"
            self._note(dotted, node)
            if name.name != "*":
                self.alias[name.asname or name.name] = dotted

    def visit_Attribute(self, node):
        parts, base = [], node
        while isinstance(base, ast.Attribute):
            parts.append(base.attr)
            base = base.value
        if isinstance(base, ast.Name) and base.id in self.alias:
            self._note(".".join([self.alias[base.id]] + parts[::-1]), node)
        else:
            self.generic_visit(node)


def uses(text, file="<string>"):
    tree = ast.parse(text, file)
    visitor = Uses()
    for node in ast.walk(tree):  # imports first: a function may use a name bound below it
        if isinstance(node, ast.Import):
            visitor.visit_Import(node)
        elif isinstance(node, ast.ImportFrom):
            visitor.visit_ImportFrom(node)
    for node in ast.iter_child_nodes(tree):
        _visit_uses(visitor, node)
    return visitor.found


def _visit_uses(visitor, node):
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return
    if isinstance(node, ast.Attribute):
        visitor.visit_Attribute(node)
        return
    for child in ast.iter_child_nodes(node):
        _visit_uses(visitor, child)


def resolve(dotted):
    """None when the name exists, else (what is missing, nearest names). Members of objects are not followed."""
    parts = dotted.split(".")
    try:
        here = importlib.import_module(parts[0])
    except ImportError as error:
        return str(error), []
    for n, part in enumerate(parts[1:], 1):
        if not isinstance(here, (types.ModuleType, type)):
            return None  # tf.float32.name, a method of a value: seen at run time
        try:
            here = getattr(here, part)
            continue
        except AttributeError:
            pass
        except Exception:  # a class attribute that needs an instance
            return None
        try:
            here = importlib.import_module(".".join(parts[:n + 1]))
        except ImportError:
            return ".".join(parts[:n + 1]), nearest(here, part, ".".join(parts[:n]))
    return None


def nearest(owner, name, path="tensorflow"):
    """Names like `name` in a module or class, by spelling first, then the same word in another room."""
    prefix = "tf" + path[len("tensorflow"):] if path.startswith("tensorflow") else path
    names = [n for n in dir(owner) if not n.startswith("_")]
    close = [f"{prefix}.{n}" for n in difflib.get_close_matches(name, names, 3, 0.72)]
    if path.startswith("tensorflow"):
        close += [n for n in all_names() if n.rpartition(".")[2] == name and n not in close]
    return close[:3]


def all_names():
    """Every public name of stoker.tf, dotted from tf."""
    tf = importlib.import_module("stoker.tf")
    found = []

    def walk(module, prefix, depth):
        for name in sorted(set(dir(module))):
            if name.startswith("_") or name in ("keras", "losses", "metrics", "optimizers", "initializers"):
                continue
            try:
                value = getattr(module, name)
            except AttributeError:
                continue
            if isinstance(value, types.ModuleType):
                if value.__name__.startswith("stoker.tf") and depth < 3:
                    walk(value, f"{prefix}.{name}", depth + 1)
            else:
                found.append(f"{prefix}.{name}")

    walk(tf, "tf", 0)
    return found


def check_file(path, out=sys.stdout):
    """Prints what is missing; returns how many names are."""
    from stoker.__main__ import _notebook_text

    with open(path, "rb") as file:
        text = file.read()
    if path.endswith(".ipynb"):
        text = _notebook_text(text)
    found = uses(text, path)
    chains = [d for d in found if not any(o.startswith(d + ".") for o in found)]
    missing = {}
    for dotted in chains:
        verdict = resolve(dotted)
        if verdict is not None:
            lines, near = missing.setdefault(verdict[0], ([], verdict[1]))
            lines += found[dotted]
    for name, (lines, near) in sorted(missing.items()):
        shown = ", ".join(str(n) for n in sorted(set(lines))[:5])
        hint = f"; nearest: {', '.join(near)}" if near else ""
        print(f"{path}:{shown}: {name.replace('tensorflow.', 'tf.', 1)} is missing{hint}", file=out)
    print(f"{path}: {len(chains) - len(missing)} of {len(chains)} names are there", file=out)
    return len(missing)


def check_names(path, out=sys.stdout):
    """A file with a name in each line: prints those that are missing, and how many there are."""
    with open(path) as file:
        names = [line.split()[0] for line in file if line.strip() and not line.startswith("#")]
    missing = [n for n in names if resolve("tensorflow" + n[2:] if n.startswith("tf.") else n) is not None]
    for name in missing:
        print(f"{name} is missing", file=out)
    print(f"{path}: {len(names) - len(missing)} of {len(names)} names are there", file=out)
    return 1 if missing else 0


def main(arguments):
    from stoker import _hook

    _hook.install()
    if arguments[:1] == ["--list"]:
        wanted = arguments[1] if len(arguments) > 1 else ""
        print("\n".join(n for n in all_names() if wanted in n))
        return 0
    if arguments[:1] == ["--names"] and len(arguments) == 2:
        return check_names(arguments[1])
    if not arguments:
        print("usage: python -m stoker check program.py... | --list [part of a name] | --names FILE (a name in each line)", file=sys.stderr)
        return 2
    missing = 0
    for path in arguments:
        try:
            missing += check_file(path)
        except (OSError, SyntaxError) as error:
            print(f"stoker check: {error}", file=sys.stderr)
            return 2
    return 1 if missing else 0
