#!/usr/bin/env python3
"""rdma_usage.py BUILD PAIRS: an RDMA device without hardware (rdma_rxe, on an interface of the guest): PAIRS (rdma_pairs.c), which checks every byte;
then what puts measure by it (`causeway bench put --rdma`), and what a user is told where it cannot be had."""
import json
import os
import sys

from expectation import exit_code, expect
from guest import run, with_guests

BUILD, PAIRS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
CAUSEWAY = f"{BUILD}/causeway"
DEVICE = """
ulimit -l unlimited
ip link add cw0 type dummy && ip addr add 10.9.0.1/24 dev cw0 && ip link set cw0 up mtu 4200 && rdma link add rxe0 type rxe netdev cw0 || exit 99
"""


def guest(script):
    return run(["sh", "-c", DEVICE + script], modules=["crc32_generic", "rdma_rxe", "dummy"], cache=f"{BUILD}/metal")


def told(result):
    return f"{result.code}: {result.out[-1500:]} {result.err[-1500:]}"


def work():
    result = guest(f"exec {PAIRS} rxe0")
    print(result.out, result.err, sep="\n")
    expect(result.code == 0, f"puts, gets and messages by queue pairs: {told(result)}")
    result = guest(f"{CAUSEWAY} bench put --rdma rxe0 --rounds 1 --sizes 8,65536 --duration 500ms --json && ulimit -l 64 && "
                   f"exec setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock {CAUSEWAY} bench put --rdma rxe0 --rounds 1 --sizes 8 --duration 100ms")
    lines = [json.loads(line) for line in result.out.splitlines() if line.startswith("{")]
    expect([line["size_bytes"] for line in lines] == [8, 65536] and all(line["latency_p50_ns"] > 0 for line in lines), f"a bench: {told(result)}")
    expect(all(line["packets_per_put"] < 0.01 for line in lines), f"queue pairs carry the puts, and no packets: {lines}")
    expect(result.code != 0 and "ulimit -l" in result.err, f"too little memory may be locked, and the line says so: {told(result)}")
    return exit_code()


sys.exit(with_guests(work))
