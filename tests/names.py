#!/usr/bin/env python3
"""Every source file that a comment or a document names exists, and every page that a document links to: `names.py ROOT` prints those that do not, and fails.

A name is the end of a path: that of a file, or of a template (mpi.h.in). Other projects' files stand in angle brackets,
behind a colon, or in FOREIGN.
"""
import os
import re
import sys

NAME = re.compile(r"(?<![\w/.<:*-])((?:[\w-]+/)*[a-z][\w-]*\.(?:c|h|py|lua|sh))\b(?![>(])")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
READ = (".c", ".h", ".md")
# Users' own files in examples, headers that the build makes, and those of other projects.
FOREIGN = {"app.c", "program.c", "mpif.h", "abi_rows.h", "build/mpi/mpi_functions.h", "linux/capability.h", "cmocka.h"}


def files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [each for each in folders if not each.startswith((".", "build"))]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), root)


def main():
    root = sys.argv[1]
    there = {path.removesuffix(".in") for path in files(root)}
    ends = {path[at:] for path in there for at in [0] + [i + 1 for i, c in enumerate(path) if c == "/"]}
    wrong = 0
    for path in sorted(there):
        if not path.endswith(READ):
            continue
        path += "" if os.path.exists(os.path.join(root, path)) else ".in"
        text = open(os.path.join(root, path), errors="replace").read()
        parts = [(m.start(), m.group()) for m in COMMENT.finditer(text)] if path.endswith((".c", ".h")) else [(0, text)]
        for match in LINK.finditer(text) if path.endswith(".md") else []:
            if not os.path.exists(os.path.join(root, os.path.dirname(path), match.group(1))):
                print(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: there is no {match.group(1)}")
                wrong += 1
        for start, part in parts:
            for match in NAME.finditer(part):
                name = match.group(1)
                if name not in ends and name not in FOREIGN:
                    line = text.count("\n", 0, start + match.start()) + 1
                    print(f"{path}:{line}: there is no {name}")
                    wrong += 1
    sys.exit(wrong > 0)


main()
