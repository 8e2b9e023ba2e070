"""kill -9 of a random rank at a random moment: the job ends within a stated bound, with an error, and nothing stays behind.

usage: kill_usage.py CAUSEWAY BUSY [WIRE]     BUSY: errors/busy.c; WIRE: also on emulated hosts

    CW_TEST_KILLS     how many, default 100
    CW_TEST_SEED      the first round's seed, default 1; each round prints its own if it fails

The bound: the launcher ends the others at once and kills who is left after 2 s; so all have ended within BOUND_S, most of which is for busy machines. The moment
is a number of lines that the ranks have printed: before MPI_Init, in it, or in the midst of any call.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from expectation import JOB_HANG

BOUND_S = 20
EXIT_TIMEOUT = 124
TOKEN = "CW_TEST_KILL_TOKEN"


def processes_of(token):
    """Processes that have the token in their environment: all of the job, whatever they are."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if f"{TOKEN}={token}".encode() in file.read().split(b"\0"):
                    found.append(int(entry))
        except OSError:
            pass  # it has ended, or is somebody else's
    return found


def victim_find(output, chance, ranks):
    """Reads on to the random moment; the process to be killed."""
    victim_rank = chance.randrange(ranks)
    # some at once: they hit MPI_Init
    lines_left = 0 if chance.random() < 0.2 else chance.randrange(1, 40)
    processes = {}
    for line in output:
        words = line.split()
        if words[0] == "process":
            processes[int(words[1])] = int(words[2])
        else:
            lines_left -= 1
        if victim_rank in processes and (lines_left <= 0):
            break
    return processes.get(victim_rank)


def round_run(seed):
    """What is wrong with one kill, or None."""
    chance = random.Random(seed)
    ranks = chance.randrange(2, 6)
    emulate = ["--emulate", "2,memif"] if wire and seed % 5 == 0 else []
    token = f"{os.getpid()}-{seed}"
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        environment = dict(os.environ, TMPDIR=folder)
        environment[TOKEN] = token
        command = [causeway, "run", "-n", str(ranks), *emulate, "--timeout", JOB_HANG, busy, str(seed)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as job:
            victim = victim_find(job.stdout, chance, ranks)
            if victim is None:
                return f"ended before the kill: {job.communicate()[1]}"
            try:
                os.kill(victim, signal.SIGKILL)
                errors = job.communicate(timeout=BOUND_S)[1]
            except ProcessLookupError:
                return f"ended before the kill: {job.communicate()[1]}"
            except subprocess.TimeoutExpired:
                left = processes_of(token)
                for process in left:
                    os.kill(process, signal.SIGKILL)
                return f"still there after {BOUND_S} s: {left}"
        left = processes_of(token)
        if left:
            return f"processes stay behind: {left}"
        if os.listdir(folder):
            return f"files stay behind: {os.listdir(folder)}"
        if job.returncode in (0, EXIT_TIMEOUT):
            return f"exit code {job.returncode}: {errors}"
    return None


def main():
    first = int(os.environ.get("CW_TEST_SEED", "1"))
    seeds = range(first, first + int(os.environ.get("CW_TEST_KILLS", "100")))
    with ThreadPoolExecutor(2) as pool:
        faults = [(seed, fault) for seed, fault in zip(seeds, pool.map(round_run, seeds)) if fault]
    for seed, fault in faults:
        print(f"seed {seed}: {fault}", file=sys.stderr)
    return 1 if faults else 0


causeway, busy = sys.argv[1:3]
wire = len(sys.argv) > 3
sys.exit(main())
