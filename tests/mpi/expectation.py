"""Shared by tests of usage. An expectation that is not met is printed. The test continues, and fails at its end even if it forgets to."""
import atexit
import os
import subprocess
import sys
import time

# Bounds that only a hang exceeds, on a machine as busy as it may be. A job that hangs prints the calls that its ranks wait in
# before the test ends it.
JOB_HANG = "600"  # of `causeway run --timeout`, in seconds
HANG_S = 900
# The jobs of a test wait for slow ranks. A test about this time-out sets its own. It is larger than HANG_S: a
# process that only this time-out ends fails its test.
PATIENT = "3600"
os.environ["CAUSEWAY_FAILURE_TIMEOUT"] = PATIENT

failures = 0


def expect(condition, what):
    global failures
    if not condition:
        failures += 1
        print("expected:", what, flush=True)


def execute(command, cwd=None, **variables):
    """Runs a program to its end: its exit code, and both its outputs as text. `variables`: of its environment, in addition."""
    return subprocess.run(command, cwd=cwd, env=os.environ | variables, capture_output=True, text=True, timeout=HANG_S, check=False)


def refused(result, words, what, code=2):
    """A program has ended with this code and one line, which has all the words."""
    expect(result.returncode == code and result.stderr.count("\n") == 1 and all(word in result.stderr for word in words),
           f"{what}: exit code {code} and one line with {words}: {result.returncode}: {result.stderr}")


def wait_until(holds):
    """Waits until `holds()` is true, and returns that. A hang ends the wait: the result is false then."""
    end = time.monotonic() + HANG_S
    while not (found := holds()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def exit_code():
    return 1 if failures else 0


def leave():
    sys.stdout.flush()
    sys.stderr.flush()
    if failures:
        os._exit(exit_code())


atexit.register(leave)  # the first one is the last to run: others tidy up before
