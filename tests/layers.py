#!/usr/bin/env python3
"""A folder uses only what stands below it: `layers.py ROOT` prints every include that breaks the table in
docs/internals/folders.md, every folder that the table leaves out, and every use of the environment outside of
control/settings/setting.c, and fails.

A row names folders, or single headers, in its first cell. Those that share a row may use each other.
"""
import os
import re
import sys

PAGE = "docs/internals/folders.md"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
ROW = re.compile(r"^\|((?: `[\w./]+`,?)+) \|", re.M)
ENVIRONMENT = re.compile(r"^[^/*\n]*\b((?:secure_)?getenv|setenv|unsetenv|putenv|clearenv)\(", re.M)
ENVIRONMENT_USERS = ("control/settings/setting.c", "control/settings/environment.c", "apps/kernels/messages.c")  # the latter is no part of Causeway: it is preloaded
FREE = ("tests/", "build")  # tests use everything


def rows_read(root):
    """Folder or header -> its row, counted from the top."""
    with open(os.path.join(root, PAGE), encoding="utf-8") as file:
        rows = [re.findall(r"`([\w./]+)`", match.group(1)) for match in ROW.finditer(file.read())]
    return {name: row for row, names in enumerate(rows) for name in names}


def row_of(rows, path):
    return rows.get(path, rows.get(os.path.dirname(path) + "/"))


def sources(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(each for each in folders if not each.startswith((".", "build")))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root)
            if name.endswith((".c", ".h")) and not path.startswith(FREE):
                yield path


def main():
    root = sys.argv[1]
    rows, wrong = rows_read(root), []
    wrong += [f"{PAGE}: there is no {name}" for name in rows if not os.path.exists(os.path.join(root, name))]
    for path in sources(root):
        row = row_of(rows, path)
        if row is None:
            wrong.append(f"{path}: its folder is not in {PAGE}")
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        for match in ENVIRONMENT.finditer(text) if path not in ENVIRONMENT_USERS else []:
            wrong.append(f"{path}:{text.count(chr(10), 0, match.start(1)) + 1}: {match.group(1)}: only control/settings/setting.c uses the environment")
        for match in INCLUDE.finditer(text):
            used = match.group(1)
            if os.path.exists(os.path.join(root, used)) and (row_of(rows, used) is None or row_of(rows, used) < row):
                line = text.count("\n", 0, match.start(1)) + 1
                wrong.append(f"{path}:{line}: uses {used}, which does not stand below it")
    print("\n".join(wrong))
    sys.exit(bool(wrong) or not rows)


main()
