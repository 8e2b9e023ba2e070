#!/usr/bin/env python3
"""A folder uses only what stands below it: `layers.py ROOT` prints every include that breaks the table in
docs/internals/folders.md, every folder that the table leaves out, every circle of files that call each other which
that page does not list and explain, and every use of the environment outside of control/settings, and fails.

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
CIRCLE = re.compile(r"^\|((?: `[\w./]+\.c`,?)+) \|", re.M)
CIRCLES_MAX = 10
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", re.S)
DEFINITION = re.compile(r"^(?!typedef\b|extern\b)([A-Za-z_][\w \*]*?[ \*])(\w+)\([^;{}]*\)\s*\{", re.M)
LOCAL = re.compile(r"\bstatic\b|^[A-Z][A-Z_]+\b")  # macros of that kind hide the word
CALL = re.compile(r"(?<![.>\w])(\w+)\(")
PRELOADED = ("apps/simulate/clock.c", "apps/kernels/messages.c")  # define functions of libc and MPI


def rows_read(root):
    """Folder or header -> its row, counted from the top."""
    with open(os.path.join(root, PAGE), encoding="utf-8") as file:
        rows = [re.findall(r"`([\w./]+)`", match.group(1)) for match in ROW.finditer(file.read().partition("\n## ")[0])]
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


def calls_read(root):
    """Source file -> the other source files whose functions it calls by name, where the name is defined once."""
    texts, definitions, own = {}, {}, {}
    for path in sources(root):
        if path.endswith(".c") and path not in PRELOADED:
            with open(os.path.join(root, path), encoding="utf-8") as file:
                texts[path] = COMMENT.sub('""', file.read())
            found = DEFINITION.findall(texts[path])
            own[path] = {name for _, name in found}
            for name in {name for head, name in found if not LOCAL.search(head)}:
                definitions.setdefault(name, []).append(path)
    once = {name: paths[0] for name, paths in definitions.items() if len(paths) == 1}
    return {path: {once[name] for name in CALL.findall(text) if name in once and name not in own[path]} for path, text in texts.items()}


def circles(calls):
    """The sets of files that reach each other by calls (strongly connected components, by Kosaraju)."""
    order, seen, callers = [], set(), {}
    for path in sorted(calls):
        stack = [(path, iter(sorted(calls[path])))] if path not in seen else []
        seen.add(path)
        while stack:
            at, rest = stack[-1]
            following = next((each for each in rest if each not in seen), None)
            if following is None:
                order.append(stack.pop()[0])
            else:
                seen.add(following)
                stack.append((following, iter(sorted(calls[following]))))
        for called in calls[path]:
            callers.setdefault(called, set()).add(path)
    found, placed = set(), set()
    for path in reversed(order):
        group, waiting = set(), [path] if path not in placed else []
        placed.add(path)
        while waiting:
            at = waiting.pop()
            group.add(at)
            waiting += [each for each in callers.get(at, ()) if each not in placed]
            placed.update(callers.get(at, ()))
        if len(group) > 1:
            found.add(frozenset(group))
    return found


def circles_check(root):
    with open(os.path.join(root, PAGE), encoding="utf-8") as file:
        listed = {frozenset(re.findall(r"`([\w./]+)`", match.group(1))) for match in CIRCLE.finditer(file.read())}
    found = circles(calls_read(root))
    wrong = [f"files that call each other in a circle, which {PAGE} does not list: {', '.join(sorted(each))}" for each in found - listed]
    wrong += [f"{PAGE}: these files do not call each other in a circle: {', '.join(sorted(each))}" for each in listed - found]
    return wrong + ([f"{len(found)} circles of files, at most {CIRCLES_MAX} are allowed"] if len(found) > CIRCLES_MAX else [])


def main():
    root = sys.argv[1]
    rows, wrong = rows_read(root), circles_check(root)
    wrong += [f"{PAGE}: there is no {name}" for name in rows if not os.path.exists(os.path.join(root, name))]
    for path in sources(root):
        row = row_of(rows, path)
        if row is None:
            wrong.append(f"{path}: its folder is not in {PAGE}")
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        for match in ENVIRONMENT.finditer(text) if path not in ENVIRONMENT_USERS else []:
            wrong.append(f"{path}:{text.count(chr(10), 0, match.start(1)) + 1}: {match.group(1)}: only control/settings uses the environment")
        for match in INCLUDE.finditer(text):
            used = match.group(1)
            if os.path.exists(os.path.join(root, used)) and (row_of(rows, used) is None or row_of(rows, used) < row):
                line = text.count("\n", 0, match.start(1)) + 1
                wrong.append(f"{path}:{line}: uses {used}, which does not stand below it")
    print("\n".join(wrong))
    sys.exit(bool(wrong) or not rows)


main()
