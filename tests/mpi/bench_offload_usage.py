#!/usr/bin/env python3
"""bench_offload_usage.py CAUSEWAY: `causeway offload` lists what a NIC takes over, `causeway bench offload` measures it, and both refuse what makes no sense. No time is judged."""
import json
import subprocess
import sys

from expectation import HANG_S, exit_code, expect

causeway = sys.argv[1]
ALL = ["udp-checksum-out", "udp-checksum-in", "steer", "rss", "arrival-time", "departure-time", "multicast", "header-split"]
SIMULATED = {"udp-checksum-out", "udp-checksum-in", "steer", "arrival-time", "departure-time", "multicast"}


def run(*arguments):
    return subprocess.run([causeway, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)


def lines(*arguments):
    result = run(*arguments, "--json")
    expect(result.returncode == 0, f"{arguments}: it ends well: {result.stderr}")
    return [json.loads(line) for line in result.stdout.splitlines()]


def lists(device, has):
    listed = lines("offload", device)
    expect([line["offload"] for line in listed] == ALL, f"{device}: each in its place: {listed}")
    expect({line["offload"] for line in listed if line["has"]} == has, f"{device}: what it has: {listed}")
    for line in listed:
        expect(line["used"] == line["has"] and line["why"] and line["software"], f"{device}: why, or how: {line}")


lists("sim", SIMULATED)
lists("udp:127.0.0.1", set())
lists("net_null0", set())
lists("net_ring0", set())
expect([line["used"] for line in lines("offload", "sim", "--offloads", "off")][:2] == [False, False], "nothing that is not asked for")
text = run("offload", "sim").stdout
expect("udp-checksum-in  yes yes" in text and "how, or why not" in text, f"a table for people: {text}")

quick = ["--rounds", "3", "--duration", "1ms"]
for line in lines("bench", "offload", "sim", *quick):
    measured = line["offload"] in SIMULATED - {"multicast"}
    expect(("on_ns" in line) == ("off_ns" in line) == measured, f"on and off: {line}")
    expect(not measured or (line["on_ns"] > 0 and line["off_ns"] > 0 and line["ratio"] > 0), f"figures: {line}")
for line in lines("bench", "offload", "net_ring0", *quick):
    expect("on_ns" not in line and line["note"], f"nothing to turn on: {line}")
    expect(("software_ns" in line) == (line["offload"] not in {"multicast", "header-split"}), f"what software takes: {line}")

for command in [["offload"], ["bench", "offload"]]:
    for arguments, code, word in [
        ([], 2, "no device"),
        (["nonsense"], 3, "no such device"),
        ([""], 2, "DEVICE"),
        (["udp:nowhere"], 2, "address of this host"),
        (["sim", "sim"], 2, "sim"),
    ]:
        result = run(*command, *arguments)
        expect(result.returncode == code and len(result.stderr.splitlines()) == 1 and word in result.stderr, f"{command} {arguments} is refused: {result.returncode} {result.stderr}")
result = run("offload", "sim", "--offloads", "steer,warp")
expect(result.returncode == 2 and "warp" in result.stderr and "departure-time" in result.stderr, f"no such offload: {result.stderr}")

sys.exit(exit_code())
