"""python -m stoker: run TensorFlow and Keras programs on Stoker.

    python -m stoker program.py [arguments...]     run a program
    python -m stoker -m module [arguments...]      run a module, as python -m does
    python -m stoker -c 'text'                     run a line
    python -m stoker profile program.py [arguments...]   run it, then tell where its time went  (--json FILE, --html FILE before it)
    python -m stoker doctor program.py [arguments...]    the same, then probes on its own fit or loop: what would make it faster
    python -m stoker --device gpu:0 program.py     run it on another device (as STOKER_DEVICE=gpu:0; `auto`: a GPU if there is one)
    python -m stoker check program.py...           list what a program uses that Stoker does not have; runs nothing
    python -m stoker check --list [name]           list the names that Stoker has
    python -m stoker paradox                       why is it slow? six causes and cures, measured here  (--help)
"""
import os
import sys
import types

from stoker import _hook


def _run_code(code, file):
    """Run code as __main__ so that pickling, multiprocessing and tracebacks see what they see under plain python."""
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    if file is not None:
        main.__file__ = file
    sys.modules["__main__"] = main
    try:
        exec(code, main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        trace = error.__traceback__.tb_next  # without our own frame
        sys.stdout.flush()
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        if isinstance(error, KeyboardInterrupt):
            sys.exit(130)
        sys.exit(1)


def run_script(path, arguments):
    import io

    sys.argv = [path] + arguments
    try:
        with io.open_code(os.path.abspath(path)) as file:
            text = file.read()
    except OSError as error:
        sys.exit(f"stoker: cannot open {path}: {error.strerror}")
    if path.endswith(".ipynb"):
        text = _notebook_text(text)
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    _run_code(compile(text, path, "exec"), path)


def _notebook_text(text):
    """The code cells of a notebook; lines for the shell or the notebook itself are left out."""
    import json

    cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    lines = []
    for cell in cells:
        source = "".join(cell["source"])
        if source.startswith("%%"):
            continue
        for line in source.split("\n"):
            bare = line.strip()
            lines.append("pass" if bare[:1] in "%!" and bare else line)
    return "\n".join(lines).encode()


def run_module(name, arguments):
    import runpy

    sys.path[0] = os.getcwd()
    sys.argv = [name] + arguments
    sys.argv[0] = _module_file(name)
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _module_file(name):
    import importlib.util

    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(name + ".__main__")
    if spec is None:
        sys.exit(f"stoker: no module named {name}")
    return spec.origin


def main(arguments=None):
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        import stoker

        print("stoker", stoker.__version__)
        return 0
    while arguments and arguments[0].startswith("--device"):
        arguments = _choose_device(arguments)
    if not arguments:
        print("stoker: --device needs a program to run on it", file=sys.stderr)
        return 2
    word, rest = arguments[0], arguments[1:]
    if word == "check":
        from stoker import _check

        return _check.main(rest)
    _hook.install(claim_distribution=True)
    if word == "paradox":
        from stoker import _paradox

        return _paradox.main(rest)
    if word in ("profile", "doctor"):
        from stoker import _profile

        return _profile.main(word, rest, lambda program: _run(program[0], program[1:]))
    if word == "run" and rest:
        word, rest = rest[0], rest[1:]
    return _run(word, rest)


def _choose_device(arguments):
    """--device X or --device=X: the default device of this program and of those that it starts. Gives the rest."""
    word, _, name = arguments[0].partition("=")
    rest = arguments[1:]
    if word != "--device" or not (name or rest):
        sys.exit("stoker: --device needs a name, as gpu:0; `stoker devices` lists them")
    if not name:
        name, rest = rest[0], rest[1:]
    if name == "auto":
        from stoker import _stoker

        gpus = [d["name"] for d in _stoker.device_list() if not d["shares_memory"] and not d["only_by_name"]]
        name = gpus[0] if gpus else "cpu:0"
    os.environ["STOKER_DEVICE"] = name
    from stoker import _stoker

    try:
        _stoker.device_default(name)
    except Exception as error:
        sys.exit(f"stoker: {error}")
    return rest


def _run(word, rest):
    if word == "-m" and rest:
        run_module(rest[0], rest[1:])
    elif word == "-c" and rest:
        sys.path[0] = ""
        sys.argv = ["-c"] + rest[1:]
        _run_code(compile(rest[0], "<string>", "exec"), None)
    elif word.startswith("-"):
        print(f"stoker: unknown option {word}\n\n{__doc__}", file=sys.stderr)
        return 2
    else:
        run_script(word, rest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
