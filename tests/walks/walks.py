#!/usr/bin/env python3
"""The walks of ARCHITECTURE.md, with their numbers, and the budgets of these: which functions, files and folders a put, a
send, a broadcast by multicast and two all-reduces enter in each of RUNS runs, in all processes together, from the call
until it returns. A function that only some runs enter belongs to a timer that fired, a packet that came again, or a wait
that slept.

    walks.py [--functions] [--check] [--launcher CAUSEWAY] [BUILD]

Builds the libraries in BUILD (build-walks) without optimization, with a note of each function that is entered, and prints
a line for each walk.
  --functions  prints all functions that a walk enters, by file; another folder calls those with a *
  --check      fails if a number exceeds its budget
  --launcher   the command `causeway` of another build, so that BUILD needs no other than the libraries
"""
import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

RUNS = 9
RUNS_MAX = 60 # of a walk that exceeds its budget: on a busy machine, most runs wait somewhere

# Name -> options of `causeway run` (None: the program starts its processes), program and arguments, budgets: what a number
# may be now, and what it should become. Numbers:
#   functions, files, folders   entered
#   entries                     functions that a function of another folder calls: one for each folder is the least
#   FOLDER/                     functions entered below that folder
#   FUNCTION()                  how often a process calls that function: each level among hosts combines and spreads once
WALKS = {
    "a put of 64 bytes, two processes": (None, ["put"], {
        "functions": (300, 200), "files": (74, 56), "folders": (13, 11), "entries": (95, 63)}),
    "a send of 64 bytes, one host": (["-n", "2"], ["calls", "send", "64"], {
        "functions": (60, 60), "files": (19, 18), "folders": (8, 8), "entries": (24, 11)}),
    "a broadcast of 64 bytes by multicast, four hosts": (["-n", "4", "--emulate", "4,memif"], ["calls", "bcast", "64"], {
        "functions": (420, 200), "files": (110, 45), "folders": (28, 12), "control/": (0, 0)}),
    "an all-reduce of 64 bytes, one host": (["-n", "2"], ["calls", "allreduce", "64"], {
        "functions": (98, 86), "files": (27, 23), "folders": (13, 11)}),
    "an all-reduce of 64 bytes, two hosts of two ranks": (["-n", "4", "--emulate", "2,memif"], ["calls", "allreduce", "64"], {
        "functions": (570, 500), "files": (135, 120), "folders": (30, 28), "host_reduce()": (1, 1), "host_bcast()": (1, 1)}),
}


def compiler():
    return os.environ.get("CC") or ("ccache " if shutil.which("ccache") else "") + (shutil.which("clang") or "cc")


def build(folder, target):
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        subprocess.run(["meson", "setup", folder, "-Doptimization=0", "-Ddebug=false", "-Db_lundef=false", "-Dfortran=disabled",
                        "-Dwerror=false", "-Dtests=false", "-Dc_args=-finstrument-functions -g1"],
                       cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "CC": compiler()})
    subprocess.run(["ninja", "-C", folder, target], check=True, stdout=subprocess.DEVNULL)


def places(module, offsets):
    """Offset -> (function, file), of the project's own."""
    text = subprocess.run(["addr2line", "-f", "-e", module, *offsets], check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = text.splitlines()
    for offset, name, place in zip(offsets, lines[::2], lines[1::2]):
        path = os.path.relpath(os.path.realpath(place.rsplit(":", 1)[0]), ROOT)
        if not path.startswith(("..", "build", "tests/walks")) and os.path.exists(os.path.join(ROOT, path)):
            yield (module, offset), (name, path)


class Walk:
    """One run: functions in the order of their first entry, how often each process calls them, and who calls them."""

    def __init__(self, files):
        self.functions, self.entries, self.times = {}, set(), {}
        for name in files:
            with open(name, encoding="utf-8") as file:
                calls = [line.split() for line in file]
            offsets = {}
            for module, offset in [call[at:at + 2] for call in calls for at in (0, 2)]:
                offsets.setdefault(module, {})[offset] = True
            offsets.pop("-", None)
            known = dict(each for module in offsets for each in places(module, list(offsets[module])))
            times = {}
            for call in calls:
                function, caller = known.get(tuple(call[:2])), known.get(tuple(call[2:4]))
                if function is not None:
                    self.functions[function] = True
                    times[function] = times.get(function, 0) + int(call[4])
                    if caller is not None and os.path.dirname(caller[1]) != os.path.dirname(function[1]):
                        self.entries.add(function)
            for function, count in times.items():
                self.times[function[0]] = max(self.times.get(function[0], 0), count)


def walk(program, options, launcher, environment):
    with tempfile.TemporaryDirectory() as folder:
        command = program if options is None else [launcher, "run", *options, *program]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**environment, "WALK_FILE": os.path.join(folder, "walk")})
        return Walk(sorted(glob.glob(os.path.join(folder, "walk.*"))))


def number(name, runs, entered):
    """A number that has a budget: see WALKS."""
    files = {path for _, path in entered}
    if name.endswith("()"):
        return max(run.times.get(name[:-2], 0) for run in runs)
    if name.endswith("/"):
        return sum(path.startswith(name) for _, path in entered)
    return {
        "functions": len(entered),
        "files": len(files),
        "folders": len({os.path.dirname(path) for path in files}),
        "entries": sum(all(each in run.entries for run in runs) for each in entered),
    }[name]


def mark(function, runs):
    return function[0] + ("*" if all(function in run.entries for run in runs) else "")


def show(name, runs, entered, functions):
    files = list(dict.fromkeys(path for _, path in entered))
    folders = list(dict.fromkeys(os.path.dirname(path) for path in files))
    counts = [number(each, runs, entered) for each in ("functions", "files", "folders", "entries")]
    print("{:50} {:9} {:6} {:8} {:8}   {}".format(name, *counts, " ".join(folders)), flush=True)
    for each in files if functions else []:
        print(f"    {each}: {' '.join(mark(one, runs) for one in entered if one[1] == each)}")


def excess(name, budgets, runs, entered):
    """A line for each number that exceeds its budget."""
    for each, (budget, target) in budgets.items():
        value = number(each, runs, entered)
        if value > budget:
            yield f"walks: {name}: {each} {value}, budget {budget}, target {target}. Fix: shorten the walk (walks.py --functions)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--launcher")
    parser.add_argument("build", nargs="?", default=os.path.join(ROOT, "build-walks"))
    options = parser.parse_args()
    folder = os.path.abspath(options.build)
    build(folder, "libraries" if options.launcher else "programs")
    launcher = os.path.abspath(options.launcher or os.path.join(folder, "causeway"))
    failures = []
    with tempfile.TemporaryDirectory() as work:
        hook = os.path.join(work, "hook.so")
        subprocess.run([*compiler().split(), "-shared", "-fPIC", "-O1", "-o", hook, os.path.join(HERE, "hook.c")], check=True)
        subprocess.run([os.path.join(folder, "mpi/mpicc"), "-o", os.path.join(work, "calls"), os.path.join(HERE, "calls.c")], check=True)
        library = os.path.join(folder, "dataplane/install")
        subprocess.run([*compiler().split(), "-I", ROOT, "-o", os.path.join(work, "put"), os.path.join(HERE, "put.c"), "-L", library,
                        "-lcauseway", "-Wl,-rpath," + library], check=True)
        print("{:50} {:>9} {:>6} {:>8} {:>8}".format("walk", "functions", "files", "folders", "entries"))
        for name, (run_options, program, budgets) in WALKS.items():
            runs, exceeded = [], []
            while len(runs) < RUNS or (options.check and exceeded and len(runs) < RUNS_MAX):
                runs.append(walk([os.path.join(work, program[0]), *program[1:]], run_options, launcher, {**os.environ, "LD_PRELOAD": hook}))
                entered = [each for each in runs[0].functions if all(each in run.functions for run in runs)]
                exceeded = list(excess(name, budgets, runs, entered))
            show(name, runs, entered, options.functions)
            failures += exceeded if options.check else []
    sys.exit("\n".join(failures) if failures else 0)


main()
