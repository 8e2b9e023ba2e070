#!/usr/bin/env python3
"""veth.py CAUSEWAY RANKS NETWORK PROGRAM...: runs a program on emulated hosts that are network namespaces; skipped where there can be none."""
import os
import shutil
import subprocess
import sys

from expectation import JOB_HANG


def succeeds(*command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def reason_against():
    """Why the machine has no network namespaces, bridges or veth for us; None: it has."""
    reason = None
    if shutil.which("ip") is None:
        reason = "there is no program ip (iproute2)"
    elif os.geteuid() != 0:
        reason = "machine: network namespaces need root"
    elif not succeeds("unshare", "--net", "true"):
        reason = "machine: no network namespace can be made here"
    elif not succeeds("unshare", "--net", "ip", "link", "add", "type", "veth"):
        reason = "machine: the kernel has no veth interfaces"
    elif not succeeds("unshare", "--net", "ip", "link", "add", "type", "bridge"):
        reason = "machine: the kernel has no bridges"
    return reason


def is_possible():
    return reason_against() is None


def skip_unless_possible():
    """Ends the process as skipped where that is so."""
    reason = reason_against()
    if reason is not None:
        print("SKIPPED:", reason)
        sys.exit(77)


if __name__ == "__main__":
    causeway, ranks, network = sys.argv[1:4]
    skip_unless_possible()
    os.execv(causeway, [causeway, "run", "-n", ranks, "--emulate", network, "--timeout", JOB_HANG] + sys.argv[4:])
