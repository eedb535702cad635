#!/usr/bin/env python3
"""The checker checked: plants one violation of each rule into a small tree, expects each to be
named with file and line, and expects silence about the same tree without them."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
CHECK = os.path.join(HERE, "..", "..", "tools", "check")
REPOSITORY = os.path.join(HERE, "..", "..")

# A tree that keeps every rule, close calls included.
CLEAN = {
    "include/stoker/thing.h": """/* thing.h - a thing.
 *
 *     stk_thing_do();
 */
#ifndef STOKER_THING_H
#define STOKER_THING_H
#include <stddef.h>
__attribute__((visibility("default"))) int stk_thing_do(void);
#endif
""",
    "include/stoker/thing.def": """#ifndef THING
#error "define THING(suffix, number, text) before including thing.def"
#endif
THING(A, 0, "same text, with a comma")
THING(B, 1, "same text, with a comma")
#undef THING
""",
    "include/stoker/status.def": 'STK_STATUS(OK, 0, "ok")\n',
    "doc/errors.md": "| `STK_OK` | 0 | ok | Fine. |\n",
    "include/stoker/graph.h": """/* graph.h - what a later folder does.
 *
 *     stk_thing_do();
 */
""",
    "include/stoker/all.h": """/* all.h - everything.
 *
 *     stk_thing_do();
 */
#include "graph.h"
""",
    "src/base/thing.h": """/* thing.h - used by thing.c and src/device/kernel.c; not.a.file, y.h, *.c and x.json are none. */
typedef struct stk_pair stk_pair;
typedef struct stk_pair {
    int a;
} stk_pair;
int stk_thing_helper(void);
""",
    "src/base/thing.c": """#include "base/thing.h"

#include "stoker/thing.h"

/* We never printf() or exit() or abort() here, and "malloc(" in a text is fine. */
static const char text[] = "printf(stderr) malloc( exit(";

int stk_thing_helper(void) { return text[0]; }
int stk_thing_do(void) { return stk_thing_helper(); }
""",
    "src/device/kernel.c": """#include "base/thing.h"

#include <assert.h>

int stk_kernel(int n);
int stk_kernel(int n)
{
    assert(n > 0);
    return n;
}
""",
    "src/data/line.c": """#include <stdlib.h>

void stk_line(char *line);
void stk_line(char *line)
{
    line[0] = 0;
    free(line); /* check: allow heap, getline() took it from malloc */
}
""",
    "cli/main.c": '#include "stoker/thing.h"\n\nint main(void) { return stk_thing_do(); }\n',
    "test/test_thing.c": '#include "base/thing.h"\n',
}

# (file, text to append, line of the violation counted from the first appended line, rule, words)
PLANTED = [
    ("src/base/thing.c", '#include "graph/ir.h"\n', 1, "include-order", "may not include"),
    ("src/device/kernel.c", '#include "layers/dense.h"\n', 1, "include-order", "may not include"),
    ("src/base/thing.c", '#include "thing.h"\n', 1, "include-order", "base/thing.h"),
    ("src/base/thing.c", '#include "zlib.h"\n', 1, "include-order", "names no folder"),
    ("src/misc/a.c", '#include <stdio.h>\n', 1, "include-order", "not a known folder"),
    ("cli/main.c", '#include "base/memory.h"\n', 1, "include-order", "users of the library"),
    ("examples/e.c", '#include "base/memory.h"\n', 1, "include-order", "users of the library"),
    ("include/stoker/thing.h", '#include "base/memory.h"\n', 1, "include-order", "neighbours"),
    ("src/device/kernel.c", '#include "stoker/graph.h"\n', 1, "include-order", "declares what src/graph/ does"),
    ("src/data/line.c", '#include "stoker/all.h"\n', 1, "include-order", "declares what src/graph/ does"),
    ("src/data/line.c", "struct stk_pair {\n    int b;\n};\n", 1, "type-names", "src/base/thing.h:"),
    ("src/data/line.c", "typedef int (*stk_pair)(void);\n", 1, "type-names", "src/base/thing.h:"),
    ("src/data/line.c", "extern int stk_far;\n", 1, "lone-externs", "in the header"),
    ("src/data/line.c", "/* as in gone.c */\n", 1, "named-files", "gone.c does not exist"),
    ("src/data/line.c", "int b;\n// see base/gone.h\n", 2, "named-files", "base/gone.h does not exist"),
    ("doc/a.md", "text\n`src/base/gone.c`\n", 2, "named-files", "src/base/gone.c does not exist"),
    ("src/data/line.c", "struct s {\n    bool\n        durable; /* or not */\n};\n", 2, "split-declarations",
     "goes on in the next line"),
    ("src/graph/long.c", "int x;\n" * 901, 901, "file-size", "901 lines"),
    ("src/graph/a.c", "void f(void)\n{\n    abort();\n}\n", 3, "ends-process", "abort"),
    ("src/graph/a.c", "void f(void)\n{\n    exit(1);\n}\n", 3, "ends-process", "exit"),
    ("src/graph/a.c", 'void f(void) { printf("x"); }\n', 1, "prints", "printf"),
    ("src/graph/a.c", 'void f(void) { puts("x"); }\n', 1, "prints", "puts"),
    ("src/graph/a.c", 'void f(void) { fprintf(stderr, "x"); }\n', 1, "prints", "stderr"),
    ("src/graph/a.c", "void *f(void) { return malloc(3); }\n", 1, "heap", "malloc"),
    ("src/graph/a.c", "void f(int n) { assert(n); }\n", 1, "assert", "assert"),
    ("src/graph/a.c", "/* TO" "DO: later */\n", 1, "unfinished", "TO" "DO"),
    ("doc/a.md", "text\nFIX" "ME\n", 2, "unfinished", "FIX" "ME"),
    ("doc/a.md", "see /ho" "me/me/notes\n", 1, "machine-paths", "absolute path"),
    ("include/stoker/bare.h", "/* bare.h - nothing shown. */\n", 1, "header-examples", "example"),
    ("include/stoker/thing.def", 'THING(A, 2, "x")\n', 1, "def-lists", "A stands in line 4"),
    ("include/stoker/thing.def", 'THING(C, 1, "x")\n', 1, "def-lists", "1 stands in line 5"),
    ("include/stoker/status.def", 'STK_STATUS(ERR_NEW, 99, "new")\n', 1, "error-table", "ERR_NEW"),
    ("src/base/thing.c", "int   stk_ugly( void ){return 1;}\n", 1, "format", "make format"),
    ("src/graph/a.c", "int stk_f(void)\n{\n    int a[2] = {0, 0};\n    return a[2];\n}\n", 4,
     "cppcheck", "arrayIndexOutOfBounds"),
]

SYMBOLS = [
    ("src/base/thing.c", "int stk_x(void);\nint stk_y(void);\nint stk_y(void) { return stk_x(); }\n",
     "stk_x is used but written nowhere"),
    ("src/base/thing.c", "int bare_name(void) { return 1; }\n", "bare_name is visible outside"),
    ("src/base/thing.c", '__attribute__((visibility("default"))) int stk_secret;\n',
     "stk_secret is exported but in no public header"),
    ("include/stoker/thing.h",
     '__attribute__((visibility("default"))) int\nstk_forgotten(void);\n',
     "include/stoker/thing.h:10: symbols: stk_forgotten is declared but not in the library"),
]

failures = []


def plant(root, files):
    for name, text in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def new_tree():
    root = tempfile.mkdtemp()
    plant(root, CLEAN)
    os.makedirs(os.path.join(root, "tools"))
    shutil.copy(os.path.join(REPOSITORY, "tools", "cppcheck.txt"), os.path.join(root, "tools"))
    shutil.copy(os.path.join(REPOSITORY, ".clang-format"), root)
    return root


def build(root):
    folder = os.path.join(root, "build")
    os.makedirs(folder)
    sources = [os.path.join(root, n) for n in
               ("src/base/thing.c", "src/device/kernel.c", "src/data/line.c")]
    flags = ["-fPIC", "-fvisibility=hidden", f"-I{root}/src", f"-I{root}/include"]
    subprocess.run(["cc", *flags, "-shared", "-o", f"{folder}/libstoker.so", *sources], check=True)
    subprocess.run(["cc", *flags, "-c", *sources], check=True, cwd=folder)
    subprocess.run(["ar", "rc", "libstoker.a", "thing.o", "kernel.o", "line.o"], check=True, cwd=folder)


def check(root, *rules):
    done = subprocess.run([sys.executable, CHECK, "--root", root, *rules], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def expect(good, what, output):
    if not good:
        failures.append(what)
        print(f"FAILED {what}\n{output}")


def have(tool):
    return shutil.which(tool) is not None


def check_subjects(subject, findings):
    root = new_tree()
    date = "2030-01-01T00:00:00Z"
    environment = {**os.environ, "GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date}
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", root]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", subject]):
        subprocess.run([*git, *words], check=True, env=environment)
    code, output = check(root, "commit-subjects")
    expect(code == findings and f"{findings} findings" in output, f"commit-subjects: {subject}", output)
    shutil.rmtree(root)


def main():
    root = new_tree()
    build(root)
    code, output = check(root)
    expect(code == 0 and "0 findings" in output, "a clean tree gives no findings", output)
    shutil.rmtree(root)

    tool_of = {"format": "clang-format-14", "cppcheck": "cppcheck"}
    for name, text, line, kind, words in PLANTED:
        if kind in tool_of and not have(tool_of[kind]):
            print(f"skipped: {kind} needs {tool_of[kind]}")
            continue
        root = new_tree()
        before = CLEAN.get(name, "")
        plant(root, {name: before + text})
        place = f"{name}:{before.count(chr(10)) + line}: {kind}: "
        rules = [kind] if kind in tool_of else [
            "include-order", "file-size", "forbidden-calls", "unfinished", "machine-paths",
            "header-examples", "def-lists", "error-table", "type-names", "lone-externs",
            "named-files", "split-declarations"]
        code, output = check(root, *rules)
        found = [row for row in output.splitlines() if row.startswith(place) and words in row]
        expect(code == 1 and len(found) == 1 and "; " in found[0], f"{place}{words}", output)
        shutil.rmtree(root)

    for name, text, words in SYMBOLS:
        root = new_tree()
        plant(root, {name: CLEAN[name] + text})
        build(root)
        code, output = check(root, "symbols")
        expect(code == 1 and words in output, f"symbols: {words}", output)
        shutil.rmtree(root)

    check_subjects("Short", 0)
    check_subjects("A subject of many words that goes on and on and says in one line what belongs into the body", 1)

    print(f"{len(PLANTED) + len(SYMBOLS) + 3} cases, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
