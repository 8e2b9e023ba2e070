#!/usr/bin/env python3
"""bench_shape_usage.py CAUSEWAY: `causeway bench shape` measures each rate it is asked for, and refuses what makes no sense. No time is judged."""
import json
import subprocess
import sys

from expectation import HANG_S, exit_code, expect

causeway = sys.argv[1]


def run(*arguments):
    return subprocess.run([causeway, "bench", "shape", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)


for how in [[], ["--sleep", "--catch-up", "100us"]]:
    result = run("--rates", "20Mbps,300Mbps", "--duration", "300ms", "--json", *how)
    expect(result.returncode == 0, f"it ends well: {result.stderr}")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    expect([line["rate_bps"] for line in lines] == [20000000, 300000000], f"one line a rate: {result.stdout}")
    for line in lines:
        expect(line["frames"] > 1, f"frames left: {line}")
        expect(line["ratio_rate"] < 1.02, f"no more than the rate: {line}")
        expect(0 <= line["gap_deviation_p50_ns"] <= line["gap_deviation_p99_ns"] <= line["gap_deviation_max_ns"], f"in order: {line}")
for bad in ["", "fast", "0Mbps", ",".join(["1Mbps"] * 17)]:
    result = run("--rates", bad)
    expect(result.returncode == 2 and len(result.stderr.splitlines()) == 1 and "--rates" in result.stderr, f"{bad} is refused: {result.stderr}")

sys.exit(exit_code())
