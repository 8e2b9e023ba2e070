#!/usr/bin/env python3
"""`packages`, which ./setup installs, and debian/control name the same: `package_lists.py ROOT` prints what differs, and fails.

What is built with is in Build-Depends; what is loaded or started, and so in no shlibs, is named by a binary package.
"""
import os
import re
import sys

ESSENTIAL = {"gcc", "libc6-dev"}                # build-essential: debian/control does not name them
TESTS = {"libcmocka-dev"}                       # the package is built without the tests
USED = {"gnuplot-nox"}                          # in [build], since ./demo wants them; a package suggests them
LOADED = re.compile(r"librte-(net|mempool)-|libpmix2$|libssl3$|ibverbs-providers$")


def lists_read(root):
    with open(os.path.join(root, "packages"), encoding="utf-8") as file:
        parts = re.split(r"^\[(\w+)\]$", file.read(), flags=re.M)
    return {name: set(re.findall(r"^([a-z][\w.+-]+) ", text, re.M)) for name, text in zip(parts[1::2], parts[2::2])}


def control_read(root):
    """Names in Build-Depends; names that the binary packages depend on, recommend and suggest."""
    with open(os.path.join(root, "debian/control"), encoding="utf-8") as file:
        text = file.read()
    built, used = set(), set()
    ours = set(re.findall(r"^Package: (\S+)", text, re.M))
    for field, value in re.findall(r"^(Build-Depends|Depends|Recommends|Suggests):((?:.*\n)(?: .*\n)*)", text, re.M):
        names = {re.sub(r"[ (\[].*", "", each.strip(), flags=re.S) for each in value.split(",")}
        (built if field == "Build-Depends" else used).update(name for name in names if name and not name.startswith("${"))
    return built - {"debhelper-compat"}, used - ours


def main():
    lists, (built, used) = lists_read(sys.argv[1]), control_read(sys.argv[1])
    wanted = {"Build-Depends": (lists["build"] - ESSENTIAL - TESTS - USED, built),
              "Depends, Recommends, Suggests": ({name for name in lists["run"] if LOADED.match(name)} | USED, used - {"gcc", "gfortran"})}
    wrong = 0
    for field, (expected, found) in wanted.items():
        for name in sorted(expected ^ found):
            print(f"{name}: " + (f"in packages, not in debian/control, {field}" if name in expected else f"in debian/control, {field}, not in packages"))
            wrong += 1
    sys.exit(wrong > 0 or not built)


main()
