#!/usr/bin/env python3
"""vlan.py BUILD PROGRAM...: the part `vlan` of tests/lab/node_usage.py, with these programs, on a kernel that has VLANs."""
import os
import sys

from guest import run, with_guests

tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build, programs = os.path.abspath(sys.argv[1]), [os.path.abspath(each) for each in sys.argv[2:]]
command = ["env", f"PYTHONPATH={tests}/mpi", "PYTHONDONTWRITEBYTECODE=1", "CW_CALLS=100",
           "python3", f"{tests}/lab/node_usage.py", build, "vlan", *programs]


def work():
    result = run(command, modules=["8021q"], cache=f"{build}/metal")
    print(result.out, result.err, f"exit code {result.code}", sep="\n")
    return result.code != 0  # a part that was skipped would be none


sys.exit(with_guests(work))
