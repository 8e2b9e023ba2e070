#!/usr/bin/env python3
"""namespace_usage.py CAUSEWAY ALLTOALLV IS [wire]: jobs in a namespace of process numbers of their own, with the /proc of another one: numbers there are others'."""
import os
import subprocess
import sys

from expectation import JOB_HANG, execute

causeway, alltoallv, program = sys.argv[1:4]
failures = 0
unshare = ["unshare", "--pid", "--fork"]
if os.geteuid() != 0 or subprocess.run(unshare + ["true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
    print("SKIPPED: machine: namespaces of process numbers need root")
    sys.exit(77)

rows = [["-n", "4", alltoallv], ["-n", "2", "--explain", program, "S"]]
if sys.argv[4:] == ["wire"]:
    rows += [["-n", "4", "--emulate", "2,memif", program, "S"]]
for row in rows:
    result = execute(unshare + [causeway, "run", "--timeout", JOB_HANG] + row)
    well = result.returncode == 0 and ("--explain" not in row or "in a single copy" in result.stderr)
    if not well:
        failures += 1
        print(row, result.returncode, result.stderr)

sys.exit(1 if failures else 0)
