"""A long link that goes down, at the start or while all use it: what is under way goes on when it returns in time; else errors name who cannot be reached, and each cluster by itself goes on.

usage: severed_usage.py CAUSEWAY SEVERED TOPOLOGY     SEVERED: errors/severed.c
"""

import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

from expectation import JOB_HANG, execute, expect

EXIT_TIMEOUT = 124
causeway, severed, topology = map(os.path.abspath, sys.argv[1:])
DOWN_S = 0.3


def run(kind, how, down, **environment):
    network = f"cpu=0,topology={topology},down=sea@{down}"
    return execute([causeway, "run", "-n", "4", "--timeout", JOB_HANG, "--simulate", network, severed, kind, how, str(DOWN_S)], **environment)


def returns():
    """It returns in time."""
    for kind in ["bcast", "allreduce", "point"]:
        done = run(kind, "returns", f"{DOWN_S}s+1s")
        expect(done.returncode == 0 and done.stdout.count("all came") == 4 and done.stderr.count("\n") == 1,
               f"{kind}: goes on when the link returns: {done.returncode}: {done.stdout[-500:]} {done.stderr[-2000:]}")
        end = re.search(r"simulated ([0-9.]+) s", done.stderr)
        expect(end and float(end.group(1)) > DOWN_S + 1, f"{kind}: the link went down before the end: {done.stderr[-2000:]}")


def gone():
    """It does not."""
    for kind in ["bcast", "allreduce", "point"]:
        done = run(kind, "gone", f"{DOWN_S}s", CAUSEWAY_FAILURE_TIMEOUT="2")
        expect(done.returncode not in (0, EXIT_TIMEOUT), f"{kind}: the job fails, not {done.returncode}: {done.stderr[-2000:]}")
        expect(re.search(r"no packet from rank \d for 2 s", done.stderr), f"{kind}: it is told who was silent: {done.stderr[-2000:]}")


def reported():
    """It does not, and no rank ends."""
    done = run("point", "reported", f"{DOWN_S}s", CAUSEWAY_FAILURE_TIMEOUT="10")
    for rank in range(4):
        other = (rank + 2) % 4
        expect(f"rank {rank}: class MPI_ERR_PROC_ABORTED" in done.stdout, f"rank {rank} gets an error: {done.stdout} {done.stderr[-2000:]}")
        expect(f"causeway: rank {rank}: no packet from rank {other} for 10 s" in done.stderr, f"rank {rank} is told that rank {other} cannot be reached: {done.stdout} {done.stderr[-2000:]}")
        expect(f"rank {rank}: 5 later calls failed" in done.stdout,
               f"rank {rank} is told again with each call: {done.stdout} {done.stderr[-2000:]}")
        expect(f"rank {rank}: its cluster still talks" in done.stdout, f"rank {rank} goes on within its cluster: {done.stdout} {done.stderr[-2000:]}")
    expect(done.returncode == 0, f"who takes errors can end in order: {done.returncode} {done.stderr[-2000:]}")
    took = re.search(r"rank 0: error ([0-9.]+) s after", done.stdout)
    expect(took and 10 <= float(took.group(1)) < 11, f"soon after the time-out: {done.stdout}")


def declared_failed():
    """It does not, and one rank of each cluster notices it and ends; the other waits for that rank only."""
    done = run("point", "declared_failed", f"{DOWN_S}s", CAUSEWAY_FAILURE_TIMEOUT="2")
    for rank in (0, 2):
        expect(f"rank {rank}: class MPI_ERR_PROC_ABORTED" in done.stdout, f"rank {rank} gets an error: {done.stdout} {done.stderr[-2000:]}")
    for rank in (1, 3):
        expect(f"rank {rank}: 15 of 15 waits ended" in done.stdout, f"rank {rank} waits for nobody: {done.returncode}: {done.stdout} {done.stderr[-2000:]}")
    expect(done.returncode == 0, f"all end in order: {done.returncode} {done.stderr[-2000:]}")


with ThreadPoolExecutor(os.cpu_count()) as pool:
    for each in [pool.submit(part) for part in (reported, declared_failed, gone, returns)]:
        each.result()

# It is down from the start.
done = run("point", "gone", "0s", CAUSEWAY_FAILURE_TIMEOUT="2")
expect(done.returncode not in (0, EXIT_TIMEOUT), f"down from the start: the job fails, not {done.returncode}: {done.stderr[-2000:]}")
expect(re.search(r"no packet from rank \d for 2 s", done.stderr), f"down from the start: a line names who is silent: {done.stderr[-2000:]}")
