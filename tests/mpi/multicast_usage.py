#!/usr/bin/env python3
"""multicast_usage.py CAUSEWAY PROGRAM...: networks that snoop, flood and drop: the same results, and a line that says what they do. PROGRAMs are of the conformance suite.

Simulated networks lose packets, in virtual time.
"""
import os
import sys

from expectation import JOB_HANG, execute, expect

causeway, *programs = sys.argv[1:]
ALGORITHMS = "bcast=multicast,scatter=multicast,allgather=multicasts,barrier=tree-multicast,scatterv=static"


def run(network, program, ranks=4, **more):
    return execute([causeway, "run", "-n", str(ranks), "--explain", "--timeout", JOB_HANG, *network, program], **{"CAUSEWAY_ALGORITHM": ALGORITHMS, **more})


LOSSY = "cpu=0,loss=0.5%,reorder=0.5%,seed=1"
for does in ["snoop", "flood", "drop"]:
    for program in programs:
        result = run(["--simulate", f"multicast={does},{LOSSY}"], program)
        where = f"{os.path.basename(program)}, multicast={does}"
        expect(result.returncode == 0, f"{where} ends well, not {result.returncode}: {result.stderr}")
        said = [line for line in result.stderr.splitlines() if ": group of MPI_COMM_WORLD: " in line]
        expect(len(said) == 1, f"{where}: the group is told of once: {result.stderr}")
        expect(("do not reach rank" in result.stderr) == (does == "drop"), f"{where}: who is not reached: {said}")
        expect(("reach ports that have not joined" in result.stderr) == (does == "flood"), f"{where}: flooding is told: {result.stderr}")

# scatter-v by name: which way it went, and why not as asked for
def ways(network, algorithm, **more):
    result = run(network, scatterv, CAUSEWAY_ALGORITHM=f"scatterv={algorithm}", **more)
    return result, " ".join(line for line in result.stderr.splitlines() if ": scatterv of " in line)


scatterv = next(program for program in programs if program.endswith("scatterv"))
wire = ["--simulate", LOSSY]
for network, algorithm, more, says in [
    (wire, "static", {}, "static (by name)"),
    (wire, "dynamic", {}, "dynamic (by name)"),
    (wire, "dynamic", {}, "static (the override is dynamic, but all get something)"),
    (wire, "dynamic", {}, "flat (the override is dynamic, but one rank or host gets all)"),
    (wire, "static", {"CAUSEWAY_MULTICAST": "off"}, "pairs (no multicast here)"),
    ([], "dynamic", {}, "pairs (no multicast here)"),
]:
    result, said = ways(network, algorithm, **more)
    expect(result.returncode == 0 and says in said, f"{algorithm} with {network} {more} says {says}: {result.stderr}")
result, _ = ways(wire, "sometimes")
expect(result.returncode != 0 and "scatterv has no algorithm 'sometimes'; there are pairs static dynamic" in result.stderr, f"an unknown way: {result.stderr}")
result = execute([causeway, "run", "-n", "4", "--timeout", JOB_HANG, *wire, scatterv, "roots"])
expect(result.returncode == 0, f"roots that differ are told: {result.stderr}")

# more groups than addresses; none at all; what makes no sense
for more in [{"CAUSEWAY_MULTICAST_FILTERS": "2"}, {"CAUSEWAY_MULTICAST_FILTERS": "3"}, {"CAUSEWAY_MULTICAST": "off"}]:
    for program in programs:
        result = run(wire, program, **more)
        expect(result.returncode == 0, f"{os.path.basename(program)} with {more} ends well: {result.stderr}")
        expect(("group of MPI_COMM_WORLD" in result.stderr) == ("CAUSEWAY_MULTICAST" not in more), f"groups with {more}: {result.stderr}")
for more in [{"CAUSEWAY_MULTICAST_FILTERS": "1"}, {"CAUSEWAY_MULTICAST_FILTERS": "x"}, {"CAUSEWAY_MULTICAST": "maybe"}]:
    result = run(wire, programs[0], ranks=2, **more)
    name = next(iter(more))
    expect(result.returncode != 0 and name in result.stderr, f"{more} is refused by name: {result.stderr}")
