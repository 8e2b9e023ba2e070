"""Runs MPI programs on simulated networks and collects what they print.

A Job is one command. A Cell is one number of a table: the paper's value, and a Job with a function that reads ours from its
output. Jobs that several cells name run once. All jobs run with cpu=0 and a seed, so that results can be repeated.
"""
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Callable, Optional

HANG_S = 1800  # ends a job that hangs; no job takes a tenth of it


@dataclass(frozen=True)
class Job:
    ranks: int
    network: str  # behind --simulate, without cpu=0
    program: str  # its file name
    arguments: tuple
    environment: tuple = ()  # (name, value)...


@dataclass(frozen=True)
class Cell:
    row: str
    column: str
    paper: Optional[float]  # None: the paper has no number, or only a picture
    job: Job
    read: Callable[[str], float]  # from the job's standard output


@dataclass(frozen=True)
class Claim:
    """That one cell is smaller than another one."""

    text: str
    faster: tuple  # (row, column)
    slower: tuple
    ratio: Optional[float] = None  # the paper's slower / faster, where it cannot be taken from the cells


class Failed(Exception):
    pass


class Runner:
    def __init__(self, causeway, quick):
        self.causeway = causeway
        self.quick = quick
        self.outputs = {}
        self.seconds = {}
        self.lock = threading.Lock()
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("CAUSEWAY_")}

    def program(self, name):
        """Programs stand beside the command, in the build tree or as installed."""
        folder = os.path.dirname(self.causeway)
        for place in ("apps", "apps/kernels", "../libexec/causeway"):
            path = os.path.normpath(os.path.join(folder, place, name))
            if os.access(path, os.X_OK):
                return path
        raise Failed(f"the program {name} is missing: build it with ninja")

    def command(self, job):
        network = f"cpu=0,{job.network}" if job.network else "cpu=0"
        return [self.causeway, "run", "-n", str(job.ranks), "--simulate", network, self.program(job.program), *map(str, job.arguments)]

    def command_text(self, job):
        settings = "".join(f"{name}={shlex.quote(value)} " for name, value in job.environment)
        return settings + shlex.join(os.path.relpath(word) if word.startswith("/") else word for word in self.command(job))

    def run(self, job):
        """The standard output of a job, which runs once."""
        with self.lock:
            if job in self.outputs:
                return self.outputs[job]
        start = time.monotonic()
        try:
            done = subprocess.run(self.command(job), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment | dict(job.environment), timeout=HANG_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.command_text(job)}: does not end") from None
        if done.returncode != 0:
            raise Failed(f"{self.command_text(job)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
        with self.lock:
            self.outputs[job] = done.stdout
            self.seconds[job] = time.monotonic() - start
        return done.stdout

    def measure(self, cells, tell):
        """{(row, column): ours}. `tell` is called with the share that is done."""
        jobs = list(dict.fromkeys(cell.job for cell in cells))
        with ThreadPoolExecutor(max(1, (os.cpu_count() or 1))) as pool:
            for number, _ in enumerate(pool.map(self.run, jobs), 1):
                tell(number / len(jobs))
        return {(cell.row, cell.column): cell.read(self.outputs[cell.job]) for cell in cells}


def progress(text):
    """One line at a terminal, which the next one replaces."""
    if sys.stderr.isatty():
        print(f"\r{text:<78}"[:79], end="" if text else "\r", file=sys.stderr, flush=True)


# ---- readers of outputs ----


def collective(algorithm, size):
    """Milliseconds of a call, from collective_measure: the median."""

    def read(output):
        for line in output.splitlines():
            words = line.split()
            if len(words) == 8 and words[0] == algorithm and words[1] == str(size):
                return float(words[2]) / 1000
        raise Failed(f"collective_measure prints no line for {algorithm} and {size} bytes")

    return read


def number_after(pattern, scale=1.0):
    """The first number that a regular expression finds, times `scale`."""

    def read(output):
        found = re.search(pattern, output)
        if found is None:
            raise Failed(f"'{pattern}' is not in the output: {output[-300:]}")
        return float(found.group(1)) * scale

    return read
