"""What measurements beside others share: who takes part, rounds of all in turn, medians, one table.

A program prints a line a figure, "name bytes value": times, or rates and bandwidths, of which more is better.
"""
import os
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HIGHER_IS_BETTER = ("rate", "bandwidth", "stream", "overlap_ialltoall", "overlap_iallreduce")


def numbers(text):
    """{("latency", 8): 3.1, ...} of what a program prints."""
    lines = [line.split() for line in text.splitlines()]
    return {(line[0], int(line[1])): float(line[2]) for line in lines if len(line) == 3 and line[1].isdigit()}


def cpu_times():
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks) - ticks[3], ticks[3]


def wait_until_quiet(seconds):
    """Until others leave the cores alone for half a second, or so long at most."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = cpu_times()
        time.sleep(0.5)
        busy, idle = (after - then for after, then in zip(cpu_times(), before))
        if busy < 0.1 * (busy + idle):
            return


def compile_all(build, folder, source, against=None):
    """The source by each library's compiler that is there, in the folder: its names. `against`: another build, to compare with that alone."""
    made = []
    compilers = {"causeway": os.path.join(build, "mpi", "mpicc")}
    compilers |= {"against": os.path.join(against, "mpi", "mpicc")} if against else {"mpich": "mpicc.mpich", "openmpi": "mpicc.openmpi"}
    for name, compiler in compilers.items():
        if shutil.which(compiler) is None:
            print(f"without {name}: there is no {compiler}", file=sys.stderr)
            continue
        subprocess.run([compiler, "-O2", "-w", os.path.join(HERE, source), "-o", os.path.join(folder, name)], check=True)
        made.append(name)
    return made


class Done:
    """As subprocess.run returns it, of a command on the first host of a laboratory."""

    def __init__(self, lab, command, env=None, timeout=None, text=True, **files):
        environment = {name: value for name, value in env.items() if os.environ.get(name) != value}
        self.returncode, self.stdout, self.stderr = lab.run("h0", command, timeout=timeout, text=text, environment=environment, **files)


class Contender:
    """One who takes part, and its figures of all rounds."""

    def __init__(self, name, command, environment=None, parse=numbers, run=subprocess.run):
        self.name, self.command, self.parse, self.start = name, command, parse, run
        self.environment = dict(os.environ, **(environment or {}))
        self.results = {}
        self.failures = 0

    def run(self, timeout=120):
        try:
            done = self.start(self.command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=timeout)
            found = self.parse(done.stdout) if done.returncode == 0 else {}
        except subprocess.TimeoutExpired:
            done, found = None, {}
        if not found:
            self.failures += 1
            print(f"{self.name} failed: {done.stderr.strip()[-300:] if done else 'no end'}", file=sys.stderr)
        for key, value in found.items():
            self.results.setdefault(key, []).append(value)

    def median(self, key):
        return statistics.median(self.results[key]) if key in self.results else None

    def best(self, key):
        return (max if key[0] in HIGHER_IS_BETTER else min)(self.results[key]) if key in self.results else None


def rounds_run(made, rounds, wait_s=0, timeout_s=120):
    for number in range(rounds):
        for one in made if number % 2 == 0 else made[::-1]: # nobody is always first
            wait_until_quiet(wait_s)
            one.run(timeout_s)


def ratio(own, others, key, value_of=Contender.median):
    """Own time by the best of the others; of rates the best of the others by the own one. Below 1: own is ahead. None: one is missing."""
    mine, theirs = value_of(own, key), [value for value in (value_of(one, key) for one in others) if value]
    if not mine or not theirs:
        return None
    return max(theirs) / mine if key[0] in HIGHER_IS_BETTER else mine / min(theirs)


def table(made, keys, what, value_of=Contender.median):
    """A row each, a column for each figure."""
    print(f"\n{what}")
    print(f"{'':34}" + "".join(f"{key[0] + ' ' + str(key[1]):>18}" for key in keys) + f"{'rounds':>8}")
    for one in made:
        values = [value_of(one, key) for key in keys]
        count = max((len(values) for values in one.results.values()), default=0)
        print(f"{one.name:34}" + "".join(f"{value:18.2f}" if value is not None else f"{'-':>18}" for value in values) + f"{count:8}")


def ratio_row(own, others, keys, what, value_of=Contender.median):
    """Below a table."""
    values = [ratio(own, others, key, value_of) for key in keys]
    print(f"{what:34}" + "".join(f"{value:18.2f}" if value is not None else f"{'-':>18}" for value in values))
