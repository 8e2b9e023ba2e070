"""A rank on another host that falls silent is declared failed, whatever the others wait for: receives, collective calls, multicasts. One that computes is not.

usage: silent_usage.py CAUSEWAY SILENT [WIRE]     SILENT: errors/silent.c; WIRE: this build has emulated hosts
"""

import ctypes
import os
import re
import subprocess
import sys

from expectation import HANG_S, JOB_HANG, execute, expect

TIMEOUT_S = 10
EXIT_TIMEOUT = 124
causeway, silent = map(os.path.abspath, sys.argv[1:3])


def run(kind, timeout, network="stop=3@500ms"):
    return execute([causeway, "run", "-n", "4", "--simulate", f"cpu=0,{network}", "--timeout", JOB_HANG, silent, kind], CAUSEWAY_FAILURE_TIMEOUT=timeout,
                   CAUSEWAY_ALGORITHM="bcast=multicast")


def silence(kind):
    """When a job has ended in virtual time, after it has said why."""
    done = run(kind, str(TIMEOUT_S))
    end = re.search(r"simulated ([0-9.]+) s", done.stderr)
    expect(done.returncode not in (0, EXIT_TIMEOUT), f"{kind}: the job fails, not {done.returncode}: {done.stderr}")
    expect(f"no packet from rank 3 for {TIMEOUT_S} s" in done.stderr, f"{kind}: a line names who was silent: {done.stderr}")
    expect("rank -1" not in done.stderr, f"{kind}: no rank has a number below 0: {done.stderr}")
    expect("MPI_ERR_PROC_ABORTED" in done.stderr, f"{kind}: a call ends with an error: {done.stderr}")
    expect(end, f"{kind}: a line tells the time: {done.stderr}")
    return float(end.group(1)) if end else 0


for kind in ["recv", "any", "probe", "barrier", "bcast", "beside"]:
    # The ranks do the same in each run, but the launcher ends the last of them in real time, while virtual time may go on: the
    # earliest end of five runs counts.
    ends = []
    while len(ends) < 5 and not (ends and min(ends) < TIMEOUT_S + 3):
        ends.append(silence(kind))
    expect(TIMEOUT_S < min(ends) < TIMEOUT_S + 3, f"{kind}: soon after the time-out: {ends}")
done = run("compute", str(TIMEOUT_S), "loss=1%")
expect(done.returncode == 0 and "declared failed" not in done.stderr, f"who computes for long stays: {done.returncode}: {done.stderr}")
for word in ["often", "0.5", "-1"]:
    done = run("compute", word, "loss=1%")
    expect(done.returncode != 0 and f"CAUSEWAY_FAILURE_TIMEOUT is '{word}'" in done.stderr, f"{word} is refused: {done.stderr}")


PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


def ranks_of(number):
    """The processes of a job by rank."""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if f"CW_TEST_JOB={number}".encode() in words:
            found.update({word.partition(b"=")[2].decode(): int(entry) for word in words if word.startswith(b"PMI_RANK=")})
    return found


def traced():
    """A rank that a debugger holds, with all its threads, is waited for, and a line says so after half the time-out. On a busy
    machine the ranks may be silent for a while before and after: the time-out is long."""
    number = os.getpid()
    environment = dict(os.environ, CAUSEWAY_FAILURE_TIMEOUT=str(2 * TIMEOUT_S), CW_TEST_JOB=str(number))
    command = [causeway, "run", "-n", "4", "--emulate", "4,memif", "--timeout", JOB_HANG, silent, "held"]
    job = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(job.stdout.readline() == "ready\n", "the ranks are there")
    held = [int(task) for task in os.listdir(f"/proc/{ranks_of(number)['3']}/task")]
    for task in held:
        expect(libc.ptrace(PTRACE_SEIZE, task, None, None) == 0 and libc.ptrace(PTRACE_INTERRUPT, task, None, None) == 0,
               f"ptrace: {os.strerror(ctypes.get_errno())}")
        os.waitpid(task, WALL)
    line = job.stderr.readline()
    for task in held:
        libc.ptrace(PTRACE_DETACH, task, None, None)
    err = line + job.communicate(timeout=HANG_S)[1]
    expect("a debugger holds rank 3" in line and job.returncode == 0, f"a rank that a debugger holds: {job.returncode}: {err}")


if sys.argv[3:]:
    traced()
