#!/usr/bin/env python3
"""The library as programs outside of this tree meet it: installed, it compiles and runs the example in C and in C++, shows its own symbols and nothing else, and refuses what is wrong in one line.

usage: library_usage.py BUILD EXAMPLE SANITIZERS COMPILER...     SANITIZERS: as -fsanitize takes them, or none
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpi"))
from expectation import HANG_S, exit_code, expect

build, example, sanitizers, *compilers = sys.argv[1:]
LINES_MAX = 60


def run(command, **how):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANG_S, **how)


def library_of(folder):
    for root, _, names in os.walk(folder):
        if "libcauseway.so" in names:
            return root
    return sys.exit("there is no libcauseway.so")


def words_of(libraries, folder):
    environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(libraries, "pkgconfig"), PKG_CONFIG_SYSROOT_DIR=folder)
    return run(["pkg-config", "--cflags", "--libs", "causeway"], env=environment).stdout.split()


def example_run(compiler, folder, libraries):
    language = "c++" if "++" in compiler else "c"
    program = os.path.join(folder, "put")
    sanitize = [] if sanitizers == "none" else [f"-fsanitize={sanitizers}"]
    made = run([compiler, "-Wall", "-Wextra", "-Werror", *sanitize, "-x", language, example, *words_of(libraries, folder), "-o", program])
    expect(made.returncode == 0, f"{compiler} compiles the example: {made.stdout}")
    if made.returncode == 0:
        there = set(os.listdir("/tmp"))
        done = run([program], env=dict(os.environ, LD_LIBRARY_PATH=libraries))
        expect(done.returncode == 0 and re.fullmatch(r"\d+ bytes: .+\n", done.stdout), f"{compiler}: one line tells what came: {done.returncode} {done.stdout}")
        left = [name for name in set(os.listdir("/tmp")) - there if name.startswith("put-")]
        expect(not left, f"{compiler}: nothing stays behind: {left}")


with tempfile.TemporaryDirectory() as folder:
    installed = run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder])
    expect(installed.returncode == 0, f"it is installed: {installed.stdout[-2000:]}")
    libraries = library_of(folder)
    exported = [line.split()[-1] for line in run(["nm", "-D", "--defined-only", os.path.join(libraries, "libcauseway.so")]).stdout.splitlines()]
    wrong = [name for name in exported if not re.fullmatch(r"cw_\w+@@CAUSEWAY_\d+|CAUSEWAY_\d+", name)]
    expect(not wrong and len(exported) > 40, f"cw_ symbols with a version and no others: {wrong} of {len(exported)}")
    expect(sum(1 for _ in open(example)) <= LINES_MAX, f"the example has {LINES_MAX} lines at most")
    for compiler in filter(shutil.which, compilers):
        example_run(compiler, folder, libraries)

sys.exit(exit_code())
