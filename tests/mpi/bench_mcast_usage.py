#!/usr/bin/env python3
"""bench_mcast_usage.py CAUSEWAY: `causeway bench mcast` on simulated and emulated hosts measures what it says, and refuses what makes no sense. No figure is judged."""
import json
import subprocess
import sys

from expectation import HANG_S, exit_code, expect

causeway = sys.argv[1]


def run(*arguments):
    return subprocess.run([causeway, "bench", "mcast", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)


ways = {
    "bcast": ["multicast", "flat", "binomial", "segmented-binomial", "segmented-chain", "van-de-geijn", "chosen"],
    "scatter": ["multicast", "flat", "binomial", "pipelined-chain", "chosen"],
    "allgather": ["multicasts", "concurrent", "ring", "bruck", "gather-bcast", "phased-barriers", "phased", "chosen"],
}
for collective, names in ways.items():
    fabric = "memif,loss=0.5%,delay=20us" if collective == "bcast" else "memif"
    result = run("--fabric", fabric, "--members", "3", "--collective", collective, "--sizes", "1,20K", "--runs", "5", "--json")
    expect(result.returncode == 0, f"{collective} ends well: {result.stderr}")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    expect([line["bytes"] for line in lines] == [1, 20480], f"{collective}: a line a size: {result.stdout}")
    for line in lines:
        for name in names:
            expect(name in line and 0 < line[name]["median_ns"] <= line[name]["p999_ns"] and line[name]["each_ns"] > 0 and line[name]["processor_ns"] > 0,
                   f"{collective}: figures of {name}: {line}")
        unicasts = [line[name]["median_ns"] for name in names[1:-1] if name in line]
        ratio = min(unicasts) / line[names[0]]["median_ns"]
        expect(abs(line["ratio_latency_unicast"] - ratio) < 1e-3 * ratio, f"{collective}: the ratio is to the best unicast: {line}")
        expect(line["fabric"] == fabric and line["members"] == 3 and line["collective"] == collective, f"{collective}: what was measured: {line}")
result = run("--fabric", "memif", "--members", "3", "--sizes", "100", "--runs", "5")
expect(result.returncode == 0 and "ratio" in result.stdout and "(chosen)" in result.stdout, f"a table: {result.stdout} {result.stderr}")

# simulated hosts: the same command twice gives the same times
ways["scatterv"] = ["explicit", "static", "dynamic", "pairs"]
for collective, names in ways.items():
    first, again = (run("--members", "6", "--to", "3", "--collective", collective, "--sizes", "1,20K", "--runs", "2", "--fabric", "sim,rate=1Gbps,loss=0.5%", "--json") for _ in range(2))
    expect(first.returncode == 0 and first.stdout == again.stdout, f"{collective}: the same twice: {first.stdout} {again.stdout} {first.stderr}")
    for line in [json.loads(line) for line in first.stdout.splitlines()]:
        expect(all(0 < line[name]["median_ns"] <= line[name]["p999_ns"] and "each_ns" not in line[name] for name in names), f"{collective}: {line}")
        best = min(line[name]["median_ns"] for name in names[1:] if name not in ("static", "dynamic", "chosen"))
        ratio = best / line[names[0]]["median_ns"]
        expect(abs(line["ratio_latency_unicast"] - ratio) < 1e-3 * ratio, f"{collective}: the ratio is to the best unicast: {line}")

for wrong, says in [(["--fabric", "token-ring"], "memif"), (["--fabric", "memifs"], "memif"), (["--fabric", "memif", "--members", "64"], "63"),
                    (["--fabric", "sim,loss=200%"], "loss"), (["--collective", "gather"], "gather"), (["--collective", "scatterv", "--to", "9"], "--to"),
                    (["--fabric", "memif,speed=1"], "--emulate"), (["--fabric", "memif", "--runs", "0"], "--runs")]:
    result = run(*wrong)
    expect(result.returncode == 2 and says in result.stderr, f"{wrong} is refused, with '{says}': {result.returncode} {result.stderr}")

sys.exit(exit_code())
