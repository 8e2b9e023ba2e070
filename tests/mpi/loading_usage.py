#!/usr/bin/env python3
"""loading_usage.py CAUSEWAY PROGRAM LIBRARY: nothing of DPDK is loaded before a port is wanted; without it one line says what is missing.

DPDK is hidden by an empty file in the place of its first library, which the loader finds before it and refuses.
"""
import os
import subprocess
import sys
import tempfile

from expectation import JOB_HANG, execute, expect

causeway, program, library = sys.argv[1:]


def needed(path):
    text = subprocess.run(["readelf", "--dynamic", "--wide", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line.split("[")[1].rstrip("]") for line in text.splitlines() if "(NEEDED)" in line]


def run(folder, *options):
    paths = [folder] + ([os.environ["LD_LIBRARY_PATH"]] if os.environ.get("LD_LIBRARY_PATH") else [])
    return execute([causeway, *options], LD_LIBRARY_PATH=":".join(paths))


for path in (causeway, library):
    expect([name for name in needed(path) if name.startswith("librte_")] == [], f"no library of DPDK in {path}")

with tempfile.TemporaryDirectory() as scratch:
    open(os.path.join(scratch, "librte_eal.so.23"), "w").close()
    done = run(scratch, "run", "-n", "2", "--timeout", JOB_HANG, program)
    expect(done.returncode == 0, f"a job on shared memory runs: {done.returncode} {done.stderr}")
    done = run(scratch, "run", "-n", "2", "--emulate", "2,memif", "--timeout", JOB_HANG, program)
    lines = done.stderr.splitlines()
    expect(done.returncode == 3 and len(lines) == 1 and "librte_eal.so.23" in lines[0] and "apt-get install" in lines[0],
           f"memif: exit code 3, not {done.returncode}, and one line that names library and package: {lines}")
    done = run(scratch, "doctor")
    expect("shared memory, UDP sockets and the simulator work; NICs and memif do not" in done.stdout, "the doctor says that there is no DPDK")
