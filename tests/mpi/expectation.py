"""What tests of usage share: an expectation that is not met is told, and the test goes on and fails in the end, also where it forgets to."""
import atexit
import os
import sys

failures = 0


def expect(condition, what):
    global failures
    if not condition:
        failures += 1
        print("expected:", what, flush=True)


def exit_code():
    return 1 if failures else 0


def leave():
    sys.stdout.flush()
    sys.stderr.flush()
    if failures:
        os._exit(exit_code())


atexit.register(leave)  # the first one is the last to run: others tidy up before
