#!/usr/bin/env python3
"""many_groups.py CAUSEWAY PROGRAM: more communicators than groups: some get none, it is told why, and the program finds right results."""
import os
import subprocess
import sys

from expectation import HANG_S, JOB_HANG

causeway, program = sys.argv[1:]
environment = dict(os.environ, CAUSEWAY_ALGORITHM="bcast=multicast")
for network in ("3,memif", "3,memif,loss=0.2%"):
    command = [causeway, "run", "-n", "3", "--explain", "--timeout", JOB_HANG, "--emulate", network, program]
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)
    if result.returncode != 0:
        sys.exit(f"{network}: exit code {result.returncode}: {result.stderr}")
    multicast = [line for line in result.stderr.splitlines() if "bcast" in line and "multicast" in line]
    if not multicast or "group of MPI_COMM_WORLD: multicast" not in result.stderr:
        sys.exit(f"{network}: nothing was multicast: {result.stderr}")
    if "a communicator without a name: cannot be opened" not in result.stderr or "has no room for another group" not in result.stderr:
        sys.exit(f"{network}: all communicators got a group, or it was not told: {result.stderr}")
