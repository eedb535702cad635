"""AutoGraph, last part: from a Python function to its rewritten twin, and errors that name the user's lines.

`convert(f)` gives a function of the same arguments, globals and closure cells whose control flow may depend on
tensors; a function that cannot be rewritten (no source, a generator, two lambdas on a line) is returned as it is,
with one warning: then it is traced plainly, and a symbolic `if` raises.
"""
import ast
import functools
import inspect
import linecache
import sys
import textwrap
import types
import warnings
import weakref

from stoker import _autograph_rewrite as rewrite

_LIBRARIES = {"tensorflow", "stoker", "keras", "numpy", "pandas", "matplotlib", "PIL", "absl", "scipy", "h5py",
              "optree", "jax", "torch", "sklearn", "tqdm", "pytest", "_pytest", "rich", "six", "wrapt", "IPython",
              "google", "tensorboard", "tensorflow_datasets"}
_STANDARD = set(sys.stdlib_module_names) - {"__main__"}
_cache = weakref.WeakKeyDictionary()  # code object -> rewritten code object, or None


class NoSource(Exception):
    pass


def is_users(function):
    """May this function be rewritten? Only code of the user's own modules is."""
    module = getattr(function, "__module__", None) or ""
    top = module.partition(".")[0]
    return top not in _LIBRARIES and top not in _STANDARD


def do_not_convert(func=None):
    """Decorator: leave this function as it is."""
    if func is None:
        return do_not_convert
    if isinstance(func, types.FunctionType):
        func.__ag_plain__ = True
        return func

    @functools.wraps(func)
    def plain(*args, **kwargs):
        return func(*args, **kwargs)

    plain.__ag_plain__ = True
    return plain


def _find_node(function):
    """The node of a function in its file, by the code object's first line (and, for lambdas, its names)."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise NoSource("its source is not at hand")
    start = code.co_firstlineno
    try:
        block = inspect.getblock(lines[start - 1:]) if code.co_name != "<lambda>" else None
        tree = ast.parse(textwrap.dedent("".join(block))) if block else ast.parse("".join(lines))
    except (SyntaxError, IndentationError) as error:
        raise NoSource(f"its source could not be parsed: {error}") from None
    if block:
        ast.increment_lineno(tree, start - 1)
        if isinstance(tree.body[0], ast.FunctionDef):
            return tree.body[0]
        raise NoSource("its source is not a plain function")
    return _find_lambda(tree, code)


def _find_lambda(tree, code):
    matches = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            arguments = rewrite._arguments(node.args)
            if tuple(arguments) == code.co_varnames[:len(arguments)]:
                matches.append(node)
    if len(matches) > 1 and hasattr(code, "co_positions"):
        columns = {p[2] for p in code.co_positions() if p[2] is not None and p[0] == code.co_firstlineno}
        exact = [m for m in matches if columns and m.body.col_offset <= max(columns) and m.end_col_offset > max(columns)
                 and m.body.col_offset <= min(c for c in columns if c > 0 or len(columns) == 1)]
        matches = exact or matches
    if len(matches) != 1:
        raise NoSource("several lambdas with the same arguments stand on its line")
    return matches[0]


def _compile(function):
    """The rewritten code object: compiled inside a factory that binds its free names, so that they stay cells."""
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise NoSource("it is a generator or coroutine")
    node = _find_node(function)
    count = iter(range(1 << 30))

    def fresh(what):
        return f"ag_{what}_{next(count)}"

    if isinstance(node, ast.Lambda):
        made = rewrite.rewrite_lambda(node, fresh)
    else:
        made = rewrite.rewrite_function(node, fresh)
    made.decorator_list, made.returns = [], None
    for argument in ast.walk(made.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    made.args.defaults = [ast.copy_location(ast.Constant(None), made) for _ in made.args.defaults]
    made.args.kw_defaults = [d and ast.copy_location(ast.Constant(None), made) for d in made.args.kw_defaults]
    made.name = fresh("function")  # its own name, inside of it, is what the user's scope says: the decorated function, not this one
    free = list(code.co_freevars)
    outer = rewrite.function("ag_factory", [made, ast.Return(rewrite.name(made.name))], [rewrite.AG] + free)
    module = ast.Module([rewrite.fix(outer, made)], [])
    ast.fix_missing_locations(module)
    whole = compile(module, code.co_filename, "exec")
    factory = next(c for c in whole.co_consts if isinstance(c, types.CodeType) and c.co_name == "ag_factory")
    inner = next(c for c in factory.co_consts if isinstance(c, types.CodeType) and c.co_name == made.name)
    return inner.replace(co_name=code.co_name)


def _rewritten(function):
    code = function.__code__
    if code not in _cache:
        try:
            _cache[code] = _compile(function)
        except NoSource as why:
            _cache[code] = None
            if code.co_name != "<lambda>" or "several" in str(why):
                warnings.warn(f"AutoGraph could not convert {function.__qualname__} and traces it as it is: {why}",
                              stacklevel=4)
    return _cache[code]


def convert(function):
    """The rewritten twin of a Python function; the function itself where there is none."""
    if not isinstance(function, types.FunctionType) or getattr(function, "__ag_plain__", False) \
            or getattr(function, "__ag_converted__", False):
        return function
    twin = function.__dict__.get("__ag_twin__")
    if twin is not None and twin[0] is function.__code__:
        return twin[1]
    code = _rewritten(function)
    if code is None:
        return function
    from stoker import _autograph_ops

    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells[rewrite.AG] = types.CellType(_autograph_ops)
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__,
                              tuple(cells[n] for n in code.co_freevars))
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    made.__ag_converted__ = True
    try:
        function.__ag_twin__ = (function.__code__, made)
    except AttributeError:
        pass
    return made


def tf_convert(f, ctx=None, convert_by_default=True, user_requested=False):
    """tf.__internal__.autograph.tf_convert: a callable that runs the rewritten twin."""
    from stoker import _autograph_ops

    @functools.wraps(f)
    def run(*args, **kwargs):
        return _autograph_ops.call(f, *args, **kwargs)

    run.__ag_plain__ = True
    return run


# Errors.

def _is_users_frame(frame):
    module = frame.f_globals.get("__name__", "")
    top = module.partition(".")[0]
    return top not in _LIBRARIES and top not in _STANDARD and not frame.f_code.co_name.startswith("ag_")


def explain(error):
    """An exception of the same class whose text starts with the user's own frames, as TensorFlow's does; or None."""
    if getattr(error, "__ag_told__", False):
        return None
    lines, trace, seen = [], error.__traceback__, None
    while trace is not None:
        frame = trace.tb_frame
        title = frame.f_code.co_name
        if title.startswith("ag_"):  # a body function: its lines are the function's around it
            title = seen
        if title is not None and (frame.f_code.co_name.startswith("ag_") or _is_users_frame(frame)):
            star = "  *" if rewrite.AG in frame.f_code.co_freevars else ""
            file, line = frame.f_code.co_filename, trace.tb_lineno
            text = linecache.getline(file, line, frame.f_globals).strip()
            entry = f'    File "{file}", line {line}, in {title}{star}\n        {text}\n'
            if not lines or lines[-1] != entry:
                lines.append(entry)
            seen = title
        trace = trace.tb_next
    if not lines:
        return None
    message = "in user code:\n\n" + "".join(lines) + f"\n    {type(error).__name__}: " + str(error).replace("\n", "\n    ") + "\n"
    made = _same_class(error, message)
    if made is not None:
        made.__ag_told__ = True
    return made


class _KeyError(KeyError):
    def __str__(self):
        return self.args[0]


def _same_class(error, message):
    kind = type(error)
    if hasattr(error, "error_code") and hasattr(error, "node_def"):
        return kind(error.node_def, error.op, message, error.error_code)
    if kind is KeyError:
        return _KeyError(message)
    if kind.__init__ in (Exception.__init__, ValueError.__init__) or kind.__module__ == "builtins":
        try:
            return kind(message)
        except Exception:
            return None
    return None
