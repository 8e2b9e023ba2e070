#!/usr/bin/env python3
"""compress_usage.py CAUSEWAY PROGRAM: messages that travel compressed between simulated hosts: what --explain tells of them, and settings that make no sense.

Computation takes its CPU time: codecs are chosen by measured times.
"""
import os
import re
import sys

from expectation import execute, expect

causeway, program = map(os.path.abspath, sys.argv[1:])


def run(compression, hint="", rate="100Mbps"):
    result = execute([causeway, "run", "-n", "3", "--simulate", f"rate={rate},delay=20us,loss=0.1%", program, hint], CAUSEWAY_EXPLAIN="all",
                     CAUSEWAY_ALGORITHM="bcast=multicast", CAUSEWAY_COMPRESSION=compression)
    lines = re.findall(r"rank (\d): compression of (.*?) to (rank \d|the group of MPI_COMM_WORLD): (.*)", result.stderr)
    return result, {(int(rank), kind if to.startswith("rank") else f"{kind} to all"): text for rank, kind, to, text in lines}


def became(text):
    raw, packed = map(int, re.search(r"(\d+) bytes became (\d+)", text).groups())
    return raw, packed


def main():
    # doubles, floats and integers of ranks 0 and 1 go to the other one, and to all, which verify them
    result, told = run("on")
    expect(result.returncode == 0, f"on: {result.stderr}")
    for rank in range(2):
        for kind in ["doubles", "floats", "32-bit integers", "bytes"]:
            raw, packed = became(told[rank, kind])
            expect(raw > 1 << 20 and packed < 0.8 * raw, f"rank {rank}, {kind}: {told[rank, kind]}")
            raw, packed = became(told[rank, f"{kind} to all"])
            expect(raw > 1 << 19 and packed < 0.8 * raw, f"rank {rank}, {kind}, broadcast: {told[rank, f'{kind} to all']}")
        expect("by lorenzo" in told[rank, "doubles"], told[rank, "doubles"])

    result, told = run("shuffle")
    expect(result.returncode == 0 and "by shuffle" in told[0, "doubles"], f"shuffle: {result.stderr}")

    # by itself: after some that shows what the link can do
    result, told = run("")
    expect(result.returncode == 0 and became(told[0, "doubles"])[0] > 0, f"auto: {result.stderr}")

    result, told = run("off")
    expect(result.returncode == 0 and not told and "compression: off, by CAUSEWAY_COMPRESSION" in result.stderr, f"off: {told}")
    result, told = run("on", "off")
    expect(result.returncode == 0 and all(became(text)[0] == 0 for text in told.values()), f"the hint: {told}")

    result, _ = run("gzip")
    expect(result.returncode != 0 and "CAUSEWAY_COMPRESSION=gzip" in result.stderr and "lorenzo" in result.stderr, f"gzip: {result.stderr}")


main()
