#!/usr/bin/env python3
"""bench_put_usage.py CAUSEWAY: `causeway bench put` between two devices, and of processes that end together."""
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpi"))
from expectation import HANG_S, exit_code, expect, wait_until

causeway = os.path.abspath(sys.argv[1])
PR_SET_CHILD_SUBREAPER = 36
CHILDREN = 4  # the switch, two members, and the process that cleans up


def bench(*options):
    """Twice as long where nothing came through in so short a time, as the program says of a busy machine."""
    duration_ms, result = 20, None
    while result is None or ("are both cores busy" in result.stderr and duration_ms < 1000 * HANG_S):
        result = subprocess.run([causeway, "bench", "put", "--sizes", "8", "--rounds", "1", "--duration", f"{duration_ms}ms", "--json", *options],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        duration_ms *= 2
    return result


with tempfile.TemporaryDirectory() as folder:
    result = bench()
    figures = json.loads(result.stdout) if result.returncode == 0 else {}
    expect("raw_rate_pps" in figures, f"the raw limit is there: {result}")
    devices = [f"net_memif0,role={role},id=0,socket={folder}/memif,socket-abstract=no" for role in ("client", "server")]
    result = bench("--device", devices[0], "--peer-device", devices[1])
    figures = json.loads(result.stdout) if result.returncode == 0 else {}
    expect(figures.get("fabric") == "devices" and figures.get("driver") == "net_memif" and figures.get("ratio_latency", 0) > 0 and
           figures.get("latency_p50_ns", 0) > 0, f"two devices: {result}")
    for options, line in ((["--device", devices[0]], "one device is given"), (["--device", "0000:99:00.0", "--peer-device", devices[1]], "no such PCI device"),
                          (["--device", "eth", "--peer-device", devices[1]], "a PCI address")):
        result = bench(*options)
        expect(result.returncode in (2, 3) and line in result.stderr, f"{options}: says {line}: {result}")

    # Both on one core, for a time in which but one of them runs: they go on until something has been measured.
    result = bench("--sizes", "8,65536", "--duration", "1ms", "--core", "0", "--peer-core", "0", "--no-raw")
    figures = [json.loads(line) for line in result.stdout.splitlines()]
    expect(len(figures) == 2 and all(line[key] > 0 for line in figures for key in ("latency_p50_ns", "goodput_bps", "rate_alone_puts_per_s")),
           f"no figure is made of nothing: {result}")

    result = bench("--rdma", "nosuch")
    expect(result.returncode == 3 and "nosuch" in result.stderr and result.stderr.count("\n") == 1, f"an RDMA device that is not there, in one line: {result}")


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
        found = list(map(int, file.read().split()))
    return found if len(found) == CHILDREN else None


def long_run(folder):
    """A measurement that would go on for minutes, and its processes."""
    process = subprocess.Popen([causeway, "bench", "put", "--fabric", "switch", "--duration", "50s"], env=dict(os.environ, TMPDIR=folder),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = wait_until(lambda: children(process))
    expect(found, "members are started")
    return process, found


with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    # A member that is killed ends the run, which says so.
    process, found = long_run(folder)
    os.kill(found[-1], signal.SIGKILL)
    expect(process.wait(HANG_S) == 4, f"the death of a member is told: {process.returncode}")
    # All processes end with the first one, also when that is killed. They become children of this process, which sees them end.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    process, found = long_run(folder)
    process.kill()
    ended = []
    while len(ended) < 1 + CHILDREN:
        ended.append(os.wait()[0])
    expect(sorted(ended) == sorted([process.pid, *found]), f"nobody is left: {ended} {found}")
    expect(os.listdir(folder) == [], f"another process has removed the files: {os.listdir(folder)}")
sys.exit(exit_code())
