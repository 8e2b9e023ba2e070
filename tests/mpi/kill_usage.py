"""kill -9 of a random rank at a random moment: the job ends with an error, and nothing stays behind.

usage: kill_usage.py CAUSEWAY BUSY     BUSY: errors/busy.c

    CW_TEST_KILLS     how many, default 100
    CW_TEST_SEED      the first round's seed, default 1; if it is set, one round is the default. A round that fails prints its seed

The moment is a number of lines that the ranks have printed: before MPI_Init, in it, or in the midst of any call. Every third
round is simulated: the moment is a virtual time, at which all ranks of a host are killed, and the network has faults.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from ending import TOKEN, kill_all, processes_of
from expectation import HANG_S, JOB_HANG

EXIT_TIMEOUT = 124


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
    host = chance.randrange(2)
    network = f"hosts=2,cpu=0,loss=1%,reorder=1%,seed={seed},kill={host}@{chance.choice([0, 10, 500, 20000])}us" if seed % 3 == 0 else ""
    simulate = ["--simulate", network] if network else []
    token = f"{os.getpid()}-{seed}"
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        environment = dict(os.environ, TMPDIR=folder)
        environment[TOKEN] = token
        command = [causeway, "run", "-n", str(ranks), *simulate, "--timeout", JOB_HANG, busy, str(seed)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as job:
            victim = None if network else victim_find(job.stdout, chance, ranks)
            if victim is None and not network:
                return f"ended before the kill: {job.communicate()[1]}"
            try:
                if victim is not None:
                    os.kill(victim, signal.SIGKILL)
                errors = job.communicate(timeout=HANG_S)[1]
            except ProcessLookupError:
                return f"ended before the kill: {job.communicate()[1]}"
            except subprocess.TimeoutExpired:
                left = processes_of(token)
                kill_all(left)
                return f"still there after {HANG_S} s: {left}"
        left = processes_of(token)
        if left:
            return f"processes stay behind: {left}"
        if os.listdir(folder):
            return f"files stay behind: {os.listdir(folder)}"
        if network and "SIGKILL" not in errors:
            return f"{network}: no line says who was killed: {errors}"
        if "MPI_ERR_NOT_SAME" in errors:
            return f"the calls are the same: {errors}"
        if job.returncode in (0, EXIT_TIMEOUT):
            return f"exit code {job.returncode}: {errors}"
    return None


def main():
    first = int(os.environ.get("CW_TEST_SEED", "1"))
    seeds = range(first, first + int(os.environ.get("CW_TEST_KILLS", "1" if "CW_TEST_SEED" in os.environ else "100")))
    with ThreadPoolExecutor(2) as pool:
        faults = [(seed, fault) for seed, fault in zip(seeds, pool.map(round_run, seeds)) if fault]
    for seed, fault in faults:
        print(f"seed {seed}: {fault}", file=sys.stderr)
    return 1 if faults else 0


causeway, busy = sys.argv[1:3]
sys.exit(main())
