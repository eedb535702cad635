#!/usr/bin/env python3
"""Takes the example out of the head comment of a public header and makes a program of it.

    tools/header_example.py include/stoker/tensor.h build/headers/example_tensor.c

The example is the first indented block of the head comment, that is, the first run of lines that
start with " *" and at least four more spaces (blank comment lines inside it belong to it). A block
with its own main() is taken as it is; any other becomes the body of one, with all public headers
and the usual libc ones in front. Errors point into the header, not into the generated file.
"""
import os
import re
import sys

LIBC = ("math", "stdbool", "stdint", "stdio", "stdlib", "string")


def head_example(text):
    """(first line number, list of code lines) of the example, or (0, []) when there is none."""
    if not text.startswith("/*"):
        return 0, []
    head = text.split("*/", 1)[0].split("\n")
    start, code = 0, []
    for number, line in enumerate(head, 1):
        if number == 1:
            continue
        match = re.match(r" \* {4,}(\S.*)$", line)
        if match:
            if not code:
                start = number
            code.append(line[2:])
        elif code and line.strip() == "*":
            code.append("")
        elif code:
            break
    while code and not code[-1]:
        code.pop()
    return start, code


def program(header):
    with open(header, encoding="utf-8") as file:
        start, code = head_example(file.read())
    if not code:
        sys.exit(f"{header}:1: no example in the head comment; open the header with a block that "
                 "is indented by four spaces and shows its use")
    folder = os.path.dirname(header)
    place = f'#line {start} "{header}"'
    if any(re.search(r"\bint main\(", line) for line in code):
        return "\n".join([place, *code, ""])
    names = sorted(name for name in os.listdir(folder) if name.endswith(".h"))
    lines = [f'#include "stoker/{name}"' for name in names]
    lines += [f"#include <{name}.h>" for name in LIBC]
    lines += ["int main(void)", "{", place, *code, "    return 0;", "}", ""]
    return "\n".join(lines)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    text = program(sys.argv[1])
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
