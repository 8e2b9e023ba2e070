"""One job of `causeway run` across hosts of a laboratory (hosts.py), for tests with the arguments BUILD PROGRAM..."""
import os
import sys

from expectation import HANG_S, JOB_HANG, expect
from hosts import skip_without_hosts

skip_without_hosts()

build = os.path.abspath(sys.argv[1])
CAUSEWAY = "/tmp/build/causeway"
KEEP = [f"{build}:build"]
programs = [f"/tmp/build/{os.path.relpath(os.path.abspath(each), build)}" for each in sys.argv[2:]]


def start(lab, options, command, **files):
    return lab.start("h0", [CAUSEWAY, "run", "--timeout", JOB_HANG, *options, *command], **files)


def nothing_left(lab, what):
    left = lab.left(HANG_S)
    expect(not left, f"{what}: nothing is left: {left}")


def run(lab, options, command, environment=None):
    """To its end; `options` is one text."""
    process = start(lab, options.split(), command, environment=environment)
    out, err = process.communicate()
    nothing_left(lab, f"{options} {command[0]}")
    return process.returncode, out, err
