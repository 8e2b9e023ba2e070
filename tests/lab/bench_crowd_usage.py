#!/usr/bin/env python3
"""bench_crowd_usage.py CAUSEWAY: `causeway bench crowd` and `causeway bench idle` verify every put, print all figures, refuse wrong usage, and
leave no process behind. The figures are not judged: they depend on the load of the machine."""
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
CHILDREN = 6  # of a crowd of four: the switch, its members, and the process that cleans up


def bench(words):
    return subprocess.run([causeway, "bench", *words.split()], capture_output=True, text=True, timeout=HANG_S, check=False)


def figures(words, keys):
    """The lines of a run, each with these keys as numbers."""
    result = bench(words + " --json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    expect(result.returncode == 0 and lines, f"{words} passes: {result.returncode} {result.stderr}")
    expect(all(isinstance(line.get(key), (int, float)) for line in lines for key in keys.split()), f"{words} prints {keys}: {result.stdout}")
    return lines


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
        found = list(map(int, file.read().split()))
    return found if len(found) == CHILDREN else None


def long_crowd(folder):
    """A crowd that would go on for minutes, and its processes."""
    crowd = subprocess.Popen([causeway, "bench", "crowd", "--processes", "4", "--duration", "5min", "--no-raw"], env=dict(os.environ, TMPDIR=folder),
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = wait_until(lambda: children(crowd))
    expect(found, "members are started")
    return crowd, found


line, = figures("crowd --processes 4 --duration 300ms", "latency_p50_ns latency_p90_ns latency_p99_ns latency_max_ns rate_puts_per_s data_packets "
                "spurious_packets ratio_spurious ratio_retransmitted retransmitted_packets probes raw_latency_p50_ns ratio_cores ratio_cores_switch")
expect((line["processes"], line["size_bytes"], line["duration_ns"]) == (4, 8, 300000000) and line["puts_verified"] > 0 and line["data_packets"] > 0,
       f"a crowd is verified: {line}")
# Puts of several packets, whose sources must stay until they are complete.
line, = figures("crowd --processes 3 --size 20000 --duration 100ms --rounds 2 --gap 50us --no-raw", "")
expect(line["rounds"] == 2 and 0 < line["puts_verified"] < line["data_packets"] and "raw_latency_p50_ns" not in line, f"large puts are verified: {line}")
networks = [line["network"] for line in figures("idle --duration 50ms", "processes duration_ns cpu_ns ratio_core")]
expect(networks == ["memif-nap"] * 2 + ["memif-doorbell"] * 2 + ["switch"] * 3, f"idle has all networks: {networks}")

for words, named in (("crowd --processes 1", ""), ("crowd --processes 33", ""), ("crowd --processes many", ""), ("crowd --size 7", ""), ("crowd --size 1M", ""),
                     ("crowd --gap 5", ""), ("crowd --duration 0", ""), ("crowd --people 8", "--people"), ("crowd 8", "8"), ("idle --duration 5", ""),
                     ("idle --processes 8", "--processes")):
    result = bench(words)
    expect(result.returncode == 2 and (named or words.partition(" ")[2]) in result.stderr, f"{words} is refused: {result.returncode} {result.stderr}")

with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    # A member that is killed ends the run, which says so.
    crowd, found = long_crowd(folder)
    os.kill(found[-1], signal.SIGKILL)  # the first one is the switch
    expect(crowd.wait(HANG_S) == 4, f"the death of a member is told: {crowd.returncode}")
    # All processes end with the first one, also when that is killed. They become children of this process, which sees them end.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    crowd, found = long_crowd(folder)
    crowd.kill()
    ended = []
    while len(ended) < 1 + CHILDREN:
        ended.append(os.wait()[0])
    expect(sorted(ended) == sorted([crowd.pid, *found]), f"nobody is left: {ended} {found}")
    expect(os.listdir(folder) == [], f"another process has removed the files: {os.listdir(folder)}")

sys.exit(exit_code())
