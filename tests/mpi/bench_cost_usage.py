#!/usr/bin/env python3
"""bench_cost_usage.py CAUSEWAY: the bench of what a core spends ends well for all sizes of packets, in lines and in tables. No time is judged."""
import json
import subprocess
import sys

from expectation import HANG_S, exit_code, expect

causeway = sys.argv[1]


def run(*arguments):
    return subprocess.run([causeway, "bench", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)


def rows(*arguments):
    result = run(*arguments, "--json")
    expect(result.returncode == 0 and result.stderr == "", f"{arguments}: {result.returncode} {result.stderr}")
    return [json.loads(line) for line in result.stdout.splitlines()]


SHORT = ["--duration", "10ms"]
for mtu in ["576", "1500", "64000"]:
    for cover in [[], ["--crc"], ["--encrypt"]]:
        lines = rows("cost", *SHORT, "--mtu", mtu, "--sizes", "0,8,100000", *cover)
        expect(len(lines) == 9, f"three sizes, three ways: {lines}")
        for line in lines:
            expect(line["sender_put_ns"] > 0 and line["receiver_put_ns"] > 0, f"each side takes time: {line}")
            expect((line["sender_copies"] > 0 and line["receiver_copies"] > 0) == (line["size_bytes"] > 0), f"... as copies do, if there is something: {line}")
        long = [line["packets_per_put"] for line in lines if line["size_bytes"] == 100000]
        expect(all(abs(puts - 100000 / (int(mtu) - 116)) < 0.2 * puts + 1 for puts in long), f"a put of 100,000 bytes, in packets of {mtu}: {long}")
expect("out, ratio" in run("cost", *SHORT, "--sizes", "8").stdout, "a table has heads")
result = run("cost", "--only", "twice")
expect(result.returncode == 2 and "twice" in result.stderr, f"a way that is none: {result.stderr}")
sys.exit(exit_code())
