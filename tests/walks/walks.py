#!/usr/bin/env python3
"""The four walks of ARCHITECTURE.md, with their numbers: which functions, files and folders a put, a send, a broadcast
by multicast and an all-reduce enter in each of RUNS runs, on all sides together, from the call until it returns. (What
one run enters and another does not is a timer that fired, a packet that came again, a wait that slept.)

walks.py [--functions] [BUILD]   builds in BUILD (build-walks) without optimization, with a note of each function that
                                 is entered, and prints a line a walk; --functions: and all that it enters, by file
"""
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

RUNS = 9

# name, options of `causeway run`, program and its arguments
WALKS = [
    ("a put of 64 bytes, two processes", None, ["put"]),
    ("a send of 64 bytes, one host", ["-n", "2"], ["calls", "send", "64"]),
    ("a broadcast of 64 bytes by multicast, four hosts", ["-n", "4", "--emulate", "4,memif"], ["calls", "bcast", "64"]),
    ("an all-reduce of 64 bytes, one host", ["-n", "2"], ["calls", "allreduce", "64"]),
]


def build(folder):
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        subprocess.run(["meson", "setup", folder, "-Doptimization=0", "-Db_lundef=false", "-Dfortran=disabled", "-Dwerror=false", "-Dtests=false",
                        "-Dc_args=-finstrument-functions"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "CC": os.environ.get("CC", "clang")})
    subprocess.run(["ninja", "-C", folder], check=True, stdout=subprocess.DEVNULL)


def functions(module, offsets):
    """(function, file) of each offset; files of the project only."""
    text = subprocess.run(["addr2line", "-f", "-e", module, *offsets], check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = text.splitlines()
    for name, place in zip(lines[::2], lines[1::2]):
        path = os.path.relpath(os.path.realpath(place.rsplit(":", 1)[0]), ROOT)
        if not path.startswith(("..", "build", "tests/walks", "?")):
            yield name, path


def walk(program, options, launcher, environment):
    with tempfile.TemporaryDirectory() as folder:
        command = program if options is None else [launcher, "run", *options, *program]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**environment, "WALK_FILE": os.path.join(folder, "walk")})
        entered = {}
        for name in sorted(glob.glob(os.path.join(folder, "walk.*"))):
            by_module = {}
            with open(name, encoding="utf-8") as file:
                for line in file:
                    module, offset = line.split()
                    by_module.setdefault(module, []).append(offset)
            for module, offsets in by_module.items():
                entered.update(dict.fromkeys(functions(module, offsets)))
        return list(entered)


def main():
    arguments = sys.argv[1:]
    shows = "--functions" in arguments
    arguments = [each for each in arguments if each != "--functions"]
    if len(arguments) > 1 or any(each.startswith("-") for each in arguments):
        sys.exit(__doc__)
    folder = os.path.abspath(arguments[0] if arguments else os.path.join(ROOT, "build-walks"))
    build(folder)
    with tempfile.TemporaryDirectory() as work:
        compiler = os.environ.get("CC", "clang").split()
        hook = os.path.join(work, "hook.so")
        subprocess.run([*compiler, "-shared", "-fPIC", "-O1", "-o", hook, os.path.join(HERE, "hook.c")], check=True)
        subprocess.run([os.path.join(folder, "mpi/mpicc"), "-o", os.path.join(work, "calls"), os.path.join(HERE, "calls.c")], check=True)
        library = os.path.join(folder, "dataplane/install")
        subprocess.run([*compiler, "-I", ROOT, "-o", os.path.join(work, "put"), os.path.join(HERE, "put.c"), "-L", library, "-lcauseway",
                        "-Wl,-rpath," + library], check=True)
        print(f"{'walk':50} {'functions':>9} {'files':>6} {'folders':>8}")
        for name, options, program in WALKS:
            runs = [walk([os.path.join(work, program[0]), *program[1:]], options, os.path.join(folder, "causeway"), {**os.environ, "LD_PRELOAD": hook})
                    for _ in range(RUNS)]
            entered = [each for each in runs[0] if all(each in run for run in runs[1:])]
            files = list(dict.fromkeys(path for _, path in entered))
            folders = list(dict.fromkeys(os.path.dirname(path) for path in files))
            print(f"{name:50} {len(entered):9} {len(files):6} {len(folders):8}   {' '.join(folders)}")
            for each in files if shows else []:
                print(f"    {each}: {' '.join(function for function, path in entered if path == each)}")


main()
