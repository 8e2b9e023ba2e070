#!/usr/bin/env python3
"""bench_put_usage.py CAUSEWAY: `causeway bench put` on a machine without dpdk-testpmd, and beside one that fails."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpi"))
from expectation import exit_code, expect

causeway = os.path.abspath(sys.argv[1])


def bench(path):
    """Again where nothing came through in so short a time, as the program says of a busy machine."""
    for _ in range(50):
        result = subprocess.run([causeway, "bench", "put", "--sizes", "8", "--rounds", "1", "--duration", "20ms", "--json"],
                                env=dict(os.environ, PATH=path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if "are both cores busy" not in result.stderr:
            break
    return result


with tempfile.TemporaryDirectory() as folder:
    result = bench(folder)
    lines = result.stderr.splitlines()
    expect(result.returncode == 0, f"it goes on: {result}")
    expect(len(lines) == 1 and "dpdk-testpmd is not installed" in lines[0] and "dpdk-dev" in lines[0], f"and says so: {lines}")
    figures = json.loads(result.stdout)
    expect(not any("testpmd" in key for key in figures) and "raw_rate_pps" in figures, f"the rest is there: {figures}")

    program = os.path.join(folder, "dpdk-testpmd")
    with open(program, "w") as file:
        file.write("#!/bin/sh\necho EAL: Error: no cards here\nexit 1\n")
    os.chmod(program, 0o755)
    result = bench(folder + ":/bin")
    expect(result.returncode == 3 and "no cards here" in result.stderr and "--no-testpmd" in result.stderr, f"its error is told: {result}")
sys.exit(exit_code())
