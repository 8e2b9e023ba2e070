#!/usr/bin/env python3
"""offload_usage.py CAUSEWAY: `causeway offload` lists what a NIC takes over, and refuses what makes no sense."""
import json
import subprocess
import sys

from expectation import HANG_S, exit_code, expect

causeway = sys.argv[1]
ALL = ["udp-checksum-out", "udp-checksum-in", "steer", "rss", "arrival-time", "departure-time", "multicast", "header-split"]


def run(*arguments):
    return subprocess.run([causeway, "offload", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)


for device in ("net_null0", "net_ring0"):
    result = run(device, "--json")
    expect(result.returncode == 0, f"{device}: it ends well: {result.stderr}")
    listed = [json.loads(line) for line in result.stdout.splitlines()]
    expect([line["offload"] for line in listed] == ALL, f"{device}: each in its place: {listed}")
    for line in listed:
        expect(not line["has"] and not line["used"] and line["why"] and line["software"], f"{device}: why not: {line}")
text = run("net_null0").stdout
expect("udp-checksum-in  no  no" in text and "how, or why not" in text, f"a table for people: {text}")

for arguments, code, word in [
    ([], 2, "no device"),
    (["nonsense"], 3, "no such device"),
    ([""], 2, "DEVICE"),
    (["net_null0", "net_null0"], 2, "net_null0"),
    (["net_null0", "--offloads", "steer,warp"], 2, "departure-time"),
]:
    result = run(*arguments)
    expect(result.returncode == code and len(result.stderr.splitlines()) == 1 and word in result.stderr, f"{arguments} is refused: {result.returncode} {result.stderr}")

sys.exit(exit_code())
