"""Runs MPI programs on simulated networks and collects what they print.

A Job is one command. A Cell is one number of a table: the paper's value, and one Job or several with a function that reads
ours from their outputs. Where the paper gives an equation, its value is a Model: the function that computes it from the
outputs of other Jobs, such as measured parameters. Jobs that several cells name run once. All jobs run with cpu=0 and a seed,
so that results can be repeated.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Callable, Optional, Union

LINKS_INTERVAL = "10ms"  # of the statistics of links: short against a call over a long link
HANG_S = 1800  # ends a job that hangs; no job takes a tenth of it


@dataclass(frozen=True)
class Job:
    ranks: int
    network: str  # behind --simulate, without cpu=0
    program: str  # its file name
    arguments: tuple
    environment: tuple = ()  # (name, value)...
    has_links: bool = False  # its output ends with the statistics of all links (stats=, docs/simulation.md)
    preload: str = ""  # the file name of a library in front of the MPI library
    explains: bool = False  # the output has what the ranks explain about their choices, too (CAUSEWAY_EXPLAIN=all)


@dataclass(frozen=True)
class Model:
    """The paper's value by an equation."""

    jobs: tuple
    read: Callable[..., float]  # from the standard output of each job


@dataclass(frozen=True)
class Cell:
    row: str
    column: str
    paper: Union[None, float, Model]  # None: the paper has no number, or only a picture
    job: Union[Job, tuple]
    read: Callable[..., float]  # from the standard output of the job, or of each job

    def jobs(self):
        return self.job if isinstance(self.job, tuple) else (self.job,)

    def jobs_all(self):
        """With those of the model."""
        return self.jobs() + (self.paper.jobs if isinstance(self.paper, Model) else ())


@dataclass(frozen=True)
class Claim:
    """That one cell is smaller than another one, or greater where cells are throughputs."""

    text: str
    faster: tuple  # (row, column)
    slower: tuple
    ratio: Optional[float] = None  # how many times the paper has, where it cannot be taken from the cells
    is_throughput: bool = False

    def is_measured(self, values):
        return self.faster in values and self.slower in values

    def factor(self, values):
        small, great = (self.slower, self.faster) if self.is_throughput else (self.faster, self.slower)
        return values[great] / values[small] if values[great] and values[small] else None

    def check(self, papers, ours, source):
        """Whether it holds, and the factors in words. `source` names the first column of numbers."""
        paper, source = (self.factor(papers), source) if self.ratio is None else (self.ratio, "paper")
        says = "" if paper is None else f"{source} {paper:.2f} times, "
        return self.factor(ours) > 1, f"{says}ours {self.factor(ours):.2f} times"


@dataclass(frozen=True)
class Alike:
    """That two cells differ by a factor of at most `most`."""

    text: str
    first: tuple  # (row, column)
    second: tuple
    most: float

    def is_measured(self, values):
        return self.first in values and self.second in values

    def check(self, papers, ours, source):
        factor = ours[self.first] / ours[self.second]
        return 1 / self.most <= factor <= self.most, f"ours {factor:.2f} times"


@dataclass(frozen=True)
class Within:
    """That ours is between two multiples of the paper's value, in each of some cells, of which a quick run has some."""

    text: str
    places: tuple  # (row, column)...
    lowest: float
    highest: float

    def is_measured(self, values):
        return any(place in values for place in self.places)

    def check(self, papers, ours, source):
        factors = [ours[place] / papers[place] for place in self.places if place in ours]
        return self.lowest <= min(factors) and max(factors) <= self.highest, f"{min(factors):.2f} to {max(factors):.2f} times"


@dataclass(frozen=True)
class AtMost:
    """That ours is at most a number in each of some cells."""

    text: str
    places: tuple  # (row, column)...
    most: float

    def is_measured(self, values):
        return any(place in values for place in self.places)

    def check(self, papers, ours, source):
        values = [ours[place] for place in self.places if place in ours]
        return max(values) <= self.most, f"{min(values):.3g} to {max(values):.3g}"


class Failed(Exception):
    pass


def path_shown(word):
    """A path from here, so that it can be typed again."""
    if not word.startswith("/"):
        return word
    path = os.path.relpath(word)
    return path if "/" in path else f"./{path}"


def network_shown(word):
    """The same for the topology file of a network."""
    return re.sub(r"(?<=topology=)/[^,]+", lambda found: path_shown(found.group()), word)


class Runner:
    def __init__(self, causeway, quick):
        self.causeway = causeway
        self.quick = quick
        self.outputs = {}
        self.seconds = {}
        self.lock = threading.Lock()
        self.running = set()
        self.has_failed = False
        self.dropped = sorted(name for name in os.environ if name.startswith("CAUSEWAY_"))
        self.environment = {name: value for name, value in os.environ.items() if name not in self.dropped}

    def program(self, name):
        """Programs stand beside the command, in the build tree or as installed."""
        folder = os.path.dirname(self.causeway)
        for place in ("apps", "apps/kernels", "../libexec/causeway"):
            path = os.path.normpath(os.path.join(folder, place, name))
            if os.access(path, os.X_OK):
                return path
        raise Failed(f"the program {name} is missing: build it with ninja")

    def command(self, job, links="links.csv"):
        network = f"cpu=0,{job.network}" if job.network else "cpu=0"
        network += f",stats={links},stats-interval={LINKS_INTERVAL}" if job.has_links else ""
        return [self.causeway, "run", "-n", str(job.ranks), "--simulate", network, self.program(job.program), *map(str, job.arguments)]

    def settings(self, job):
        """The environment variables of a job."""
        preload = (("LD_PRELOAD", os.path.abspath(self.program(job.preload))),) if job.preload else ()
        return job.environment + preload + ((("CAUSEWAY_EXPLAIN", "all"),) if job.explains else ())

    def command_text(self, job):
        settings = "".join(f"{name}={shlex.quote(path_shown(value))} " for name, value in self.settings(job))
        unset = "env " + "".join(f"-u {name} " for name in self.dropped) if self.dropped else ""
        return unset + settings + shlex.join(path_shown(network_shown(word)) for word in self.command(job))

    def run(self, job):
        """The standard output of a job, which runs once."""
        with self.lock:
            if job in self.outputs:
                return self.outputs[job]
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            links = os.path.join(folder, "links.csv")
            out, code, errors = self.finish(job, self.command(job, links))
            if job.has_links and code == 0:
                with open(links) as file:
                    out += file.read()
        if code != 0:
            raise Failed(f"{self.command_text(job)}: {'does not end' if code is None else f'exit code {code}'}: {errors.strip()[-500:]}")
        with self.lock:
            self.outputs[job] = out + errors if job.explains else out
            self.seconds[job] = time.monotonic() - start
        return out

    def finish(self, job, command):
        """Output, exit code (None: it hangs), and errors. A job that has not begun when another one has failed does not begin."""
        with self.lock:
            if self.has_failed:
                raise Failed("another job has failed")
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment | dict(self.settings(job)))
            self.running.add(process)
        try:
            out, errors = process.communicate(timeout=HANG_S)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.terminate()
            out, errors = process.communicate()
            code = None
        with self.lock:
            self.running.discard(process)
        return out, code, errors

    def end(self):
        """Ends all jobs that run."""
        with self.lock:
            self.has_failed = True
            for process in self.running:
                process.terminate()

    def measure(self, cells, tell):
        """{(row, column): (the paper's value, ours)}. `tell` is called with the share that is done."""
        jobs = list(dict.fromkeys(job for cell in cells for job in cell.jobs_all()))
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            try:
                for number, _ in enumerate(pool.map(self.run, jobs), 1):
                    tell(number / len(jobs))
            except BaseException:
                self.end()
                raise
        return {(cell.row, cell.column): (self.paper_value(cell), self.read(cell, cell.jobs())) for cell in cells}

    def read(self, what, jobs):
        return what.read(*(self.outputs[job] for job in jobs))

    def paper_value(self, cell):
        return self.read(cell.paper, cell.paper.jobs) if isinstance(cell.paper, Model) else cell.paper


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
