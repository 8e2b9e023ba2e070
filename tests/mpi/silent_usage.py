"""A rank on another host that falls silent is taken for dead, whatever the others wait for: receives, collective calls, multicasts. One that computes is not.

usage: silent_usage.py CAUSEWAY SILENT     SILENT: errors/silent.c

No time is checked, only how it ends (simulate_silence has the bound, in virtual time).
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from expectation import HANG_S, JOB_HANG, exit_code, expect

TIMEOUT_S = 10
EXIT_TIMEOUT = 124
causeway, silent = sys.argv[1:]


def run(kind, timeout):
    environment = dict(os.environ, CAUSEWAY_FAILURE_TIMEOUT=timeout, CAUSEWAY_ALGORITHM="bcast=multicast")
    command = [causeway, "run", "-n", "4", "--emulate", "4,memif", "--timeout", JOB_HANG, silent, kind, str(TIMEOUT_S + 5)]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)


KINDS = ["recv", "any", "probe", "barrier", "bcast", "beside", "compute"]
with ThreadPoolExecutor(len(KINDS)) as pool:
    jobs = list(pool.map(run, KINDS, len(KINDS) * [str(TIMEOUT_S)]))
for kind, done in zip(KINDS[:-1], jobs):
    expect(done.returncode not in (0, EXIT_TIMEOUT), f"{kind}: the job fails, not {done.returncode}: {done.stderr}")
    expect(f"nothing was heard of rank 3 for {TIMEOUT_S} s" in done.stderr, f"{kind}: it is told who was silent: {done.stderr}")
    expect("rank -1" not in done.stderr, f"{kind}: no rank has a number below 0: {done.stderr}")
    expect("MPI_ERR_PROC_ABORTED" in done.stderr, f"{kind}: a call ends with an error: {done.stderr}")
done = jobs[-1]
expect(done.returncode == 0 and done.stderr == "", f"who computes for long stays: {done.returncode}: {done.stderr}")
for word in ["often", "0.5", "-1"]:
    done = run("compute", word)
    expect(done.returncode != 0 and f"CAUSEWAY_FAILURE_TIMEOUT is '{word}'" in done.stderr, f"{word} is refused: {done.stderr}")

sys.exit(exit_code())
