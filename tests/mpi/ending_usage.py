#!/usr/bin/env python3
"""Each process of a job is stopped and killed while the others wait for it: everything ends, with the right line and exit code, and nothing stays behind.

usage: ending_usage.py CAUSEWAY BUSY LATE TOPOLOGY [NETWORK...]     BUSY: errors/busy.c; LATE: errors/late.c; NETWORK: memif, beside shared memory

The rows are those of the table in control/README.md. No time is checked.
"""
import ctypes
import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import ending
from expectation import HANG_S, PATIENT, wait_until

TIMEOUT_S = "3"  # CAUSEWAY_FAILURE_TIMEOUT where it is to end something
STOP, KILL, CONT, INT, TERM = signal.SIGSTOP, signal.SIGKILL, signal.SIGCONT, signal.SIGINT, signal.SIGTERM
HOLD, WAIT, LATER = "held as by a debugger", "waited for", "left alone for longer than a start may take"
START_S = 30  # RUN_SWITCH_READY_MS
PTRACE_SEIZE, PTRACE_INTERRUPT, WAIT_ALL = 0x4206, 0x4207, 0x40000000
causeway, busy, late, topology = map(os.path.abspath, sys.argv[1:5])
networks = sys.argv[5:]
EMULATE = {"shared": [], "memif": ["--emulate", "2,memif"], "clusters": ["--emulate", f"topology={topology},memif"]}
BUSY, INIT, FINALIZE, SLEEP = [busy, "1"], [late, "init", "1000"], [late, "finalize", "1000"], ["sh", "-c", "echo turn; exec sleep 1000"]
STOPPED, SILENT = "is stopped by a signal for longer than CAUSEWAY_FAILURE_TIMEOUT", "no packet from rank"
BARRIER = r"rank 3 \(process \d+\) is stopped by a signal \(state T\) for \d+ s, while others wait for it in MPI_Init or MPI_Finalize"
SWITCH = r"the switch between the emulated hosts \(process \d+\)"

# network, program, when, what is done to whom, exit code (None: any but 0 and that of --timeout), what a line says
ROWS = [
    ("shared", INIT, "turn", [("rank 3", STOP)], 1, BARRIER),
    ("shared", INIT, "turn", [("rank 0", STOP), ("rank 3", STOP)], 1, r"rank 3 .*state T"),
    ("shared", [*INIT, "2"], "turn", [("rank 2", STOP), ("rank 3", STOP)], 1, r"rank 2 .*state T[^\n]*\n.*rank 3 .*state T"),
    ("shared", INIT, "turn", [("rank 3", KILL)], 137, r"rank 3 .* was ended by signal 9"),
    ("shared", FINALIZE, "turn", [("rank 3", STOP)], None, STOPPED),
    ("shared", FINALIZE, "turn", [("rank 3", KILL)], 137, r"rank 3 .* was ended by signal 9"),
    ("shared", [late, "init", "8"], "turn", [], 0, "^$"),
    ("shared", [late, "finalize", "8"], "turn", [], 0, "^$"),
    ("shared", BUSY, "turn", [("rank 1", STOP)], None, STOPPED),
    ("shared", BUSY, "turn", [("rank 1", KILL)], 137, r"rank 1 .* was ended by signal 9"),
    ("shared", BUSY, "turn", [("launcher", KILL)], 137, "its main process was ended by signal 9"),
    ("shared", BUSY, "turn", [("supervisor", KILL)], -9, ""),
    ("shared", BUSY, "turn", [("supervisor", KILL), ("launcher", KILL)], -9, ""),
    ("shared", ["sh", "-c", f"{busy} 1; true"], "turn", [("supervisor", KILL), ("launcher", KILL)], -9, ""),
    ("shared", BUSY, "turn", [("launcher", STOP), ("supervisor", KILL)], -9, ""),
    ("shared", BUSY, "turn", [("launcher", STOP), ("supervisor", INT)], 130, "SIGINT: ending all ranks"),
    ("shared", ["--timeout", *BUSY], "turn", [("launcher", STOP)], 124, "--timeout has expired"),
    ("shared", BUSY, "turn", [("launcher", HOLD), ("supervisor", INT), ("supervisor", TERM)], 137, r"its main process \(process \d+, state t\) did not end within 5 s: killed"),
    ("shared", BUSY, "turn", [("supervisor", STOP), ("rank 2", KILL), ("launcher", WAIT), ("supervisor", CONT)], 137, r"rank 2 .* was ended by signal 9"),
    ("shared", BUSY, "start", [("supervisor", INT)], 130, "SIGINT: ending all ranks"),
    ("memif", INIT, "turn", [("rank 3", STOP)], 1, BARRIER),
    ("memif", FINALIZE, "turn", [("rank 3", STOP)], None, f"{STOPPED}|{SILENT}"),
    ("memif", [late, "init", "8"], "turn", [], 0, "^$"),
    ("memif", BUSY, "turn", [("rank 1", STOP)], None, f"{STOPPED}|{SILENT}"),
    ("memif", BUSY, "turn", [("switch", STOP)], None, f"{SILENT}|{SWITCH} is stopped"),
    ("memif", SLEEP, "turn", [("switch", STOP)], 1, rf"{SWITCH} is stopped by a signal \(state T\) for 3 s: ending all ranks"),
    ("memif", BUSY, "turn", [("switch", KILL)], 1, rf"{SWITCH} has ended by SIGKILL: ending all ranks"),
    ("memif", ["--timeout", *BUSY], "turn", [("switch", STOP)], 124, "--timeout has expired"),
    ("memif", SLEEP, "turn", [("switch", HOLD), ("rank 0", KILL)], 137, "did not end within 10 s: killed"),
    ("memif", SLEEP, "turn", [("supervisor", KILL)], -9, ""),
    ("memif", SLEEP, "turn", [("switch", STOP), ("supervisor", KILL)], -9, ""),
    ("memif", SLEEP, "turn", [("switch", STOP), ("supervisor", KILL), ("launcher", KILL)], -9, ""),
    ("memif", SLEEP, "turn", [("switch", KILL), ("supervisor", KILL)], -9, ""),
    ("memif", SLEEP, "turn", [("launcher", STOP), ("switch", KILL), ("supervisor", INT)], 130, "SIGINT"),
    ("memif", BUSY, "switch", [("switch", STOP)], 3, r"does not start within 30 s \(process \d+, state T, \d+\.\d s of computing\)"),
    ("memif", ["true"], "switch", [("supervisor", STOP), ("switch", STOP), ("switch", LATER), ("switch", CONT), ("supervisor", CONT)], 0, "^$"),
    ("memif", BUSY, "switch", [("switch", KILL)], 3, "the switch between the emulated hosts does not start:"),
    ("memif", BUSY, "switch", [("supervisor", INT)], 130, "SIGINT: ended before a rank was started"),
    ("memif", BUSY, "switch", [("supervisor", KILL)], -9, ""),
    ("memif", BUSY, "switch", [("switch", STOP), ("supervisor", KILL)], -9, ""),
    ("clusters", BUSY, "turn", [("rank 3", STOP)], None, f"{STOPPED}|{SILENT}"),
    ("clusters", BUSY, "turn", [("switch", KILL)], 1, SWITCH),
]


class Hold(threading.Thread):
    """Holds a process as a debugger does: SIGCONT does not continue it, and nothing but SIGKILL ends it."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process = process
        self.held = threading.Event()

    def run(self):
        ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        ptrace(PTRACE_SEIZE, self.process, None, None)
        ptrace(PTRACE_INTERRUPT, self.process, None, None)
        os.waitpid(self.process, WAIT_ALL)
        self.held.set()
        os.waitpid(self.process, WAIT_ALL)  # its end


def part_find(parts, ranks, who):
    words = who.split()
    return ranks[int(words[1])] if words[0] == "rank" else parts[words[0]]


def moment_await(job, when):
    """The job's parts at the moment, and its ranks' processes. None: it has ended before."""
    ranks = {}
    if when == "turn":
        for line in job.stdout:
            words = line.split()
            if words[0] == "turn":
                break
            ranks[int(words[1])] = int(words[2])
        else:
            return None, None
    parts = ending.parts_of(job.pid)
    while when in ("switch", "start") and (when == "switch" and "switch" not in parts or "launcher" not in parts and when == "start"):
        parts = ending.parts_of(job.pid)
    for rank, process in enumerate(parts["ranks"]):
        ranks.setdefault(rank, process)
    return parts, ranks


def steps_do(steps, parts, ranks):
    for who, what in steps:
        process = part_find(parts, ranks, who)
        if what == WAIT:
            wait_until(lambda: ending.state_of_quietly(process) == "Z")  # noqa: B023
        elif what == LATER:
            time.sleep(START_S + 1)
        elif what == HOLD:
            hold = Hold(process)
            hold.start()
            hold.held.wait()
        else:
            os.kill(process, what)


def row_run(number, time_s=6):
    """What is wrong with a row; None: nothing. `time_s`: of --timeout."""
    network, program, when, steps, code, pattern = ROWS[number]
    place = ending.Place(f"row-{os.getpid()}-{number}")
    is_timed = program[0] == "--timeout"
    place.environment["CAUSEWAY_FAILURE_TIMEOUT"] = "0" if is_timed else TIMEOUT_S if any(what == STOP for _, what in steps) or program[0] == late else PATIENT
    command = [causeway, "run", "-n", "4", *EMULATE[network], *(["--timeout", str(time_s), *program[1:]] if is_timed else program)]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=place.environment) as job:
            parts, ranks = moment_await(job, when)
            if parts is None and is_timed:  # it was over before
                job.communicate()
                return row_run(number, 2 * time_s)
            steps_do(steps, parts, ranks)
            try:
                errors = job.communicate(timeout=HANG_S)[1]
            except subprocess.TimeoutExpired:
                left = place.left_behind()
                ending.kill_all(ending.processes_of(place.token))
                return f"still there after {HANG_S} s: {left}"
        left = place.left_await()
        if left:
            return f"stays behind: {left}"
        if job.returncode != code and (code is not None or job.returncode in (0, 124)):
            return f"exit code {job.returncode}, not {code}: {errors}"
        lines = "\n".join(line for line in errors.splitlines() if line.startswith("causeway"))
        return None if re.search(pattern, lines) else f"no line has `{pattern}`: {errors}"
    finally:
        place.close()


def is_unlocked(folder):
    """Whether no process has the lock of a job's folder: one that was killed keeps it until its descriptors are closed."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def folder_of_all_killed():
    """Where supervisor, launcher and switch are all killed at once nobody is left to remove the folder: the next start does."""
    place = ending.Place(f"all-{os.getpid()}")
    command = [causeway, "run", "-n", "2", *EMULATE["memif"]]
    try:
        with subprocess.Popen([*command, *SLEEP], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=place.environment) as job:
            parts, _ = moment_await(job, "turn")
            os.kill(parts["switch"], STOP)  # or it would see that its owner is gone
            ending.kill_all([parts["supervisor"], parts["launcher"], parts["switch"]])
            job.communicate(timeout=HANG_S)
        wait_until(lambda: not ending.processes_of(place.token))
        left = os.listdir(place.folder)
        if len(left) != 1:
            return f"one folder is left: {left}"
        folder = os.path.join(place.folder, left[0])
        wait_until(lambda: is_unlocked(folder))
        os.utime(folder, (0, 0))
        result = subprocess.run([*command, "true"], capture_output=True, text=True, env=place.environment, timeout=HANG_S)
        return None if result.returncode == 0 and not place.left_await() else f"{result.stderr} {place.left_behind()}"
    finally:
        place.close()


def main():
    numbers = [number for number, row in enumerate(ROWS) if row[0] == "shared" or {"clusters": "memif"}.get(row[0], row[0]) in networks]
    failures = 0
    numbers.sort(key=lambda number: "does not start within" not in ROWS[number][5] and all(what != LATER for _, what in ROWS[number][3]))  # those that take longest
    with ThreadPoolExecutor(6) as pool:
        for number, wrong in zip(numbers, pool.map(row_run, numbers)):
            if wrong:
                failures += 1
                network, program, when, steps = ROWS[number][:4]
                print(f"{network}, {os.path.basename(program[0])} {' '.join(program[1:])}, {when}, {steps}: {wrong}")
    wrong = folder_of_all_killed() if "memif" in networks else None
    if wrong:
        failures += 1
        print(f"all killed: {wrong}")
    return 1 if failures else 0


sys.exit(main())
