#!/usr/bin/env python3
"""Makes an index-installed torch importable without the 2 GB of CUDA libraries it is linked to.

The wheel is one build for CPU and GPU: importing it loads libtorch_cuda.so, whose dynamic linker
entries name libcudart, libcublas, libcudnn and so on. Nothing of them is called on a CPU. This
reads, with readelf, which symbols the torch libraries expect from which of those libraries, and
compiles for each an empty shared library of the same name beside them, where torch's own
search path finds it first.

    library  libcudart.so.13     <- the name in DT_NEEDED
    version  libcudart.so.13     <- the symbol version torch was linked with, must exist
    symbols  cudaGetDevice, ...  <- all return 100, which is "no CUDA device" in that API;
                                    __cudaRegister* return 0 (called while loading)

It runs with the Python of the virtual environment that has torch. --remove takes the empty
libraries away again. Only bench/setup-peers calls it.
"""
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile

# Libraries that come from the GPU toolkit; the prefixes say where unversioned symbols belong.
GPU_LIBRARY = re.compile(r"^lib(cu[a-zA-Z]+|nv[a-zA-Z_]+|nccl)\.so\.\d+$")
UNVERSIONED = [("nccl", "libnccl"), ("cusparseLt", "libcusparseLt"), ("cuFile", "libcufile"),
               ("nvshmem", "libnvshmem_host")]
MARK = b"stoker-bench-empty-library"


def torch_libraries():
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("torch_without_cuda: torch is not installed in this environment")
    folder = pathlib.Path(spec.submodule_search_locations[0]) / "lib"
    return folder, [p for p in folder.glob("*.so*") if MARK not in p.read_bytes()[-65536:]]


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, str(path)], check=True, text=True,
                          capture_output=True).stdout


def expected(libraries):
    """-> {library: {version or "": set of symbols}} for every GPU library that is needed."""
    needed, home, wanted = set(), {}, set()
    for path in libraries:
        needed.update(n for n in re.findall(r"\(NEEDED\).*\[(.+?)\]", readelf("-d", path))
                      if GPU_LIBRARY.match(n))
        library = ""
        for line in readelf("-V", path).splitlines():
            if match := re.search(r"Version: \d+\s+File: (\S+)\s", line):
                library = match.group(1)
            elif match := re.search(r"Name: (\S+)\s+Flags:", line):
                if GPU_LIBRARY.match(library):
                    home[match.group(1)] = library
        for line in readelf("--dyn-syms", path).splitlines():
            part = line.split()
            if len(part) > 7 and part[6] == "UND":
                name, _, version = part[7].partition("@")
                wanted.add((name, version.lstrip("@")))
    result = {library: {} for library in needed}
    for name, version in wanted:
        library = home.get(version, "")
        if not version:
            stem = next((s for prefix, s in UNVERSIONED if name.startswith(prefix)), None)
            library = next((n for n in needed if stem and n.startswith(stem + ".so")), "")
        if library in result:
            result[library].setdefault(version, set()).add(name)
    return result


def compile_empty(target, versions, work):
    source = [f'const char stoker_mark[] = "{MARK.decode()}";']
    script = []
    for version, names in sorted(versions.items()):
        for name in sorted(names):
            value = 0 if name.startswith("__cuda") else 100
            source.append(f"long {name}(void); long {name}(void) {{ return {value}; }}")
        if version:
            script.append(f"{version} {{ global: {' '.join(n + ';' for n in sorted(names))} }};")
    (work / "empty.c").write_text("\n".join(source) + "\n")
    (work / "empty.map").write_text("\n".join(script) + "\n")
    command = ["cc", "-shared", "-fPIC", "-w", "-o", str(target), str(work / "empty.c"),
               f"-Wl,-soname,{target.name}"]
    if script:
        command.append(f"-Wl,--version-script={work / 'empty.map'}")
    subprocess.run(command, check=True)


def main():
    folder, libraries = torch_libraries()
    if "--remove" in sys.argv[1:]:
        for path in set(folder.glob("*.so*")) - set(libraries):
            path.unlink()
        return
    made = []
    with tempfile.TemporaryDirectory() as work:
        for library, versions in sorted(expected(libraries).items()):
            compile_empty(folder / library, versions, pathlib.Path(work))
            made.append(library)
    print(f"torch_without_cuda: {len(made)} empty libraries in {folder}: {', '.join(made)}")


if __name__ == "__main__":
    main()
