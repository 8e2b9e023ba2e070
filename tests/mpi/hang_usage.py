"""What is printed about programs that hang, and about collective calls that do not match.

usage: hang_usage.py CAUSEWAY HANG [WIRE]     HANG: errors/hang.c; WIRE: hangs also on emulated hosts

Mismatches between hosts are found on simulated ones, in virtual time.

Each case is run with --timeout, and some with CAUSEWAY_WATCHDOG. No time is checked, only the lines.
"""

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from expectation import HANG_S, JOB_HANG

TIMEOUT_S = 2  # of --timeout, at first
WATCHDOG = "1"  # seconds
EXIT_TIMEOUT = 124

WORLD = "on MPI_COMM_WORLD"
LAST = r"rank 2: [\d.]+ s in MPI_Finalize: call \d+ \(MPI_Barrier\) on MPI_COMM_WORLD"

# how, ranks, emulated hosts (0: none), lines that must be there (after "causeway run: ")
HANGS = [
    ("no_send", 3, 0, [r"rank 0: [\d.]+ s in MPI_Recv: a message from rank 1, tag 7, MPI_COMM_WORLD$", LAST,
                       rf"missing in call 1 \(MPI_Barrier\) {WORLD}: rank 0, in MPI_Recv, which waits for rank 1"]),
    ("circle", 3, 0, [r"rank 1: .* in MPI_Recv: a message from rank 2, tag 3",
                      r"they wait for each other in a circle: rank \d, in MPI_Recv; rank \d, in MPI_Recv; rank \d"]),
    ("wrong_tag", 3, 0, [r"rank 0: .* from rank 1, tag 7, MPI_COMM_WORLD; 2 messages from rank 1 have arrived .* with tags 5, 6$"]),
    ("wrong_tag_probed", 2, 0, [r"rank 0: .* in MPI_Probe: a message from rank 1, tag 7, .*; 1 message from rank 1 has arrived .* tag 5$"]),
    ("barrier_skipped", 4, 0, [rf"rank 0: .* in MPI_Barrier: call 6 \(MPI_Barrier\) {WORLD}, which rank 3 has not entered",
                               r"rank 3: .* in MPI_Recv: a message from rank 0, tag 7",
                               rf"missing in call 6 \(MPI_Barrier\) {WORLD}: rank 3, in MPI_Recv, which waits for rank 0"]),
    ("barrier_skipped_river", 3, 0, [r"missing in call 1 \(MPI_Barrier\) on river: rank 2, in MPI_Recv"]),
    ("computes", 3, 0, [r"rank 1: outside of MPI for [\d.]+ s; last call MPI_Barrier$",
                        rf"missing in call 6 \(MPI_Barrier\) {WORLD}: rank 1, outside of MPI"]),
    ("tests_for_ever", 3, 0, [r"rank 1: in no call that waits; .* the last one MPI_Test; receives that are posted: from rank 0, tag 9",
                              r"missing in call 6 .*: rank 1, which calls MPI_Test again and again"]),
    ("stopped", 3, 0, [r"rank 1: is stopped by a signal$", r"missing in call 6 .*: rank 1, which is stopped by a signal"]),
    ("one_of_all", 2, 0, [r"rank 0: .* in MPI_Waitall: 1 of 3 requests: a message from rank 1, tag 21, MPI_COMM_WORLD"]),
    ("synchronous", 2, 0, [r"rank 0: .* in MPI_Ssend: a message to rank 1, tag 11, .*, 4 bytes, offered, not matched by the receiver"]),
    ("long_send", 2, 0, [r"rank 0: .* in MPI_Send: a message to rank 1, tag 12, .*, 1048576 bytes, offered, not matched"]),
    ("never_init", 3, 0, [r"rank 1: has not called MPI_Init$", r"rank 0: waits in MPI_Init", r"missing: rank 1, which has not called MPI_Init"]),
    ("barrier_skipped", 3, 3, [rf"rank 0: .* in MPI_Barrier: call 6 \(MPI_Barrier\) {WORLD}, waits for rank",
                               rf"missing in call 6 \(MPI_Barrier\) {WORLD}: rank 2, in MPI_Recv, which waits for rank 0"]),
    # ranks 0 and 1 share a host: by way of the hosts' first ranks
    ("barrier_skipped", 3, 2, [rf"rank 0: .* in MPI_Barrier: call \d \(MPI_Barrier\) {WORLD}, waits for rank 2; hierarchical",
                               rf"rank 1: .* in MPI_Barrier: call \d \(MPI_Barrier\) {WORLD}, which rank 0 has not entered.*; hierarchical",
                               rf"missing in call \d \(MPI_Barrier\) {WORLD}: rank 2, in MPI_Recv, which waits for rank 0"]),
    ("slow", 2, "2,memif,rate=1Mbps", [r"rank 0: .* in MPI_Sendrecv", r"2 of 2 ranks have moved data between two looks: this is slow, and no hang"]),
    ("synchronous", 2, 2, [r"rank 0: .* in MPI_Ssend: a message to rank 1, tag 11"]),
]

# how, ranks, emulated hosts, what some line says: an error, not a hang
# Who hears of it before it finds it.
REFUSED = r"rank \d does not continue: it was notified of another call"
# Who is found in the call behind the one that differs: the first rank of a host has told the others how it went.
PASSED_BY = r"the calls did not match when rank \d was in bcast"
MISMATCHES = [
    ("different_calls", 3, 0, r"rank \d is in (bcast|allreduce) .*, rank \d in (bcast|allreduce) "),
    ("different_roots", 3, 0, r"rank \d (is|was) in bcast \(root \d, 16 bytes\)"),
    ("different_counts", 3, 0, r"rank \d is in allreduce \(root 0, (16|20) bytes\), rank \d in allreduce \(root 0, (16|20) bytes\)"),
    ("root_has_continued", 2, 0, r"rank 1 (is )?in bcast"),
    ("sender_has_continued", 3, 0, r"rank \d is in barrier .*, which rank 0 has not called|rank 0 is in bcast .*, rank \d in barrier"),
    ("long_gather", 3, 0, r"MPI_ERR_NOT_SAME|in gather"),
    ("different_calls", 3, 3, r"rank \d is in (bcast, root 0|allreduce), rank \d in (bcast, root 0|allreduce) |" + REFUSED),
    ("different_roots", 3, 3, r"rank \d (is|was) in bcast, root \d, (when )?rank \d (was )?in bcast, root \d |" + REFUSED),
    ("different_counts", 3, 3, r"rank \d is in allreduce with another count than rank \d|" + REFUSED),
    ("different_calls", 3, 2, r"on MPI_COMM_WORLD: rank \d is in (bcast|reduce|allreduce).*, rank \d in (bcast|reduce|allreduce)|" + PASSED_BY + "|" + REFUSED),
    ("different_roots", 3, 2, r"on MPI_COMM_WORLD: .*rank \d (is|was) in bcast|" + REFUSED),
    ("different_counts", 3, 2, r"on MPI_COMM_WORLD: rank \d is in allreduce \(root 0, (16|20) bytes\), rank \d in allreduce \(root 0, (16|20) bytes\)|" + PASSED_BY + "|" + REFUSED),
]

# how, lines of the watchdog (after "causeway: ")
WATCHED = [
    ("no_send", [r"rank 0: [\d.]+ s in MPI_Recv: a message from rank 1, tag 7", r"rank 1: .* in MPI_Finalize", r"rank 2: .* in MPI_Finalize"]),
    ("computes", [r"rank 0: .* in MPI_Barrier: call 6 .*, which rank 1 has not entered", r"rank 1: outside of MPI for .*; last call MPI_Barrier"]),
]


def job_start(how, ranks, hosts, timeout, environment=None):
    simulated = str(hosts).startswith("hosts=")
    emulate = ["--simulate" if simulated else "--emulate", hosts if "," in str(hosts) else f"{hosts},memif"] if hosts else []
    command = [causeway, "run", "-n", str(ranks), *emulate, "--timeout", str(timeout), hang, how]
    # who is stopped is to be there for as long as it takes
    patient = dict(os.environ, CAUSEWAY_FAILURE_TIMEOUT="0", **(environment or {}))
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=patient)


def lines_lack(lines, prefix, patterns):
    """Those patterns that no line of the prefix has."""
    own = [line[len(prefix):] for line in lines if line.startswith(prefix)]
    return [pattern for pattern in patterns if not any(re.match(pattern, line) for line in own)]


def hung_run(how, ranks, hosts, environment=None):
    """The exit code and the errors of a job that has hung: its time-out is twice as long as the ranks need to get where they hang."""
    timeout_s = TIMEOUT_S
    while True:
        start = time.monotonic()
        with job_start(how, ranks, hosts, timeout_s, environment) as job:
            arrived = [line for _, line in zip(range(ranks), job.stdout)]
            took_s = time.monotonic() - start
            errors = job.communicate()[1]
        if len(arrived) == ranks and took_s < timeout_s / 2 or 2 * timeout_s >= HANG_S:
            return job.returncode, f"there after {took_s:.1f} of {timeout_s} s:\n{errors}"
        timeout_s *= 2


def hang_fault(case):
    how, ranks, hosts, patterns = case
    # who asks in a loop beside others that compute is asleep within the call nearly always
    others = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count() if how == "tests_for_ever" else 0)]
    code, errors = hung_run(how, ranks, hosts)
    for other in others:
        other.kill()
        other.wait()
    lack = lines_lack(errors.splitlines(), "causeway run: ", patterns)
    return None if code == EXIT_TIMEOUT and not lack else f"exit code {code}, lacks {lack}, {errors}"


def mismatch_fault(case):
    how, ranks, hosts, pattern = case
    with job_start(how, ranks, f"hosts={hosts},cpu=0,loss=1%" if hosts else 0, JOB_HANG) as job:
        errors = job.communicate()[1]
    said = any(re.search(pattern, line) for line in errors.splitlines() if line.startswith("causeway: rank "))
    return None if said and job.returncode not in (0, EXIT_TIMEOUT) else f"exit code {job.returncode}:\n{errors}"


def watched_fault(case):
    """Each rank speaks once."""
    how, patterns = case
    with job_start(how, 3, 0, JOB_HANG, {"CAUSEWAY_WATCHDOG": WATCHDOG}) as job:
        errors = [line for _, line in zip(range(3), (line for line in job.stderr if line.startswith("causeway: rank ")))]
        time.sleep(2 * int(WATCHDOG))  # a rank that speaks too often does so in this time
        job.terminate()
        errors += job.communicate()[1].splitlines()
    lack = lines_lack(errors, "causeway: ", patterns)
    often = sum(line.startswith("causeway: rank ") for line in errors) > 3
    return f"lacks {lack}: {errors}" if lack or often else None


def settings_fault(case):
    """What CAUSEWAY_WATCHDOG is, which pattern must (True) or must not be printed."""
    value, pattern, wanted = case
    errors = hung_run("no_send", 2, 0, {"CAUSEWAY_WATCHDOG": value})[1]
    return None if any(re.search(pattern, line) for line in errors.splitlines()) == wanted else errors


SETTINGS = [
    ("often", r"MPI_Init: CAUSEWAY_WATCHDOG is 'often'", True),
    ("0", r"^causeway: rank", False),
]


def main():
    wire = len(sys.argv) > 3
    jobs = [(hang_fault, case) for case in HANGS if wire or case[2] == 0]
    jobs += [(mismatch_fault, case) for case in MISMATCHES if wire or case[2] == 0]
    jobs += [(watched_fault, case) for case in WATCHED] + [(settings_fault, case) for case in SETTINGS]
    with ThreadPoolExecutor(8) as pool:
        faults = list(pool.map(lambda job: job[0](job[1]), jobs))
    for (function, case), fault in zip(jobs, faults):
        if fault:
            print(f"{function.__name__} {case[0]}, {case[1:3]}: {fault}", file=sys.stderr)
    return 1 if any(faults) else 0


causeway, hang = sys.argv[1:3]
sys.exit(main())
