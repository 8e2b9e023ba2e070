#!/usr/bin/env python3
"""Random MPI calls under random faults, in virtual time: the result is right, or the failure is named. Never a hang.

usage: simulate_random.py CAUSEWAY MIX          MIX: mix.c

    CW_TEST_SEEDS   number of seeds, default 24
    CW_TEST_SEED    first seed, default 1

Each seed draws the number of ranks (2 to 16) and of hosts, the calls (mix.c), whether the hosts have RDMA devices, and the
faults (`faults=random` of `causeway run --simulate`): loss, corruption, duplication and reordering of packets, small switch
buffers, links that go down, hosts that stop for a while or for ever, NICs that lie, RDMA devices that fail. A failing seed is printed with the command that repeats it.
"""
import collections
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from expectation import HANG_S, expect

# Seeds that failed once, which run always. 9550: two inverted bits canceled out in a UDP checksum, which an honest NIC
# verified, and the simulated NIC did not verify Ethernet's check sequence.
FAILED_ONCE = (9550,)
causeway, mix = map(os.path.abspath, sys.argv[1:3])
first, count = int(os.environ.get("CW_TEST_SEED", "1")), int(os.environ.get("CW_TEST_SEEDS", "24"))
environment = {name: value for name, value in os.environ.items() if not name.startswith("CAUSEWAY_")}
outcomes = collections.Counter()


def run(seed):
    draw = random.Random(seed)
    ranks = draw.randint(2, 16)
    hosts = draw.randint(1, ranks)
    rdma = ",rdma=on" if draw.random() < 0.5 else ""
    network = f"hosts={hosts},cpu=0,faults=random,seed={seed}{rdma}"
    command = [causeway, "run", "-n", str(ranks), "--simulate", network, mix]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=HANG_S)
        return seed, command, done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return seed, command, None, "", "it hangs"


def judge(result):
    seed, command, code, out, errors = result
    is_right = code == 0 and "all data right" in out
    names = "declared failed" in errors or "is stopped, and does not continue" in errors
    is_named = code not in (0, None) and names and "is wrong" not in errors
    outcomes["right" if is_right else "a named failure" if is_named else "wrong"] += 1
    expect(is_right or is_named, f"seed {seed}: a right result or a named failure, not {code}:\n{' '.join(command)}\n{out}{errors}")


with ThreadPoolExecutor(os.cpu_count()) as pool:
    for result in pool.map(run, (*FAILED_ONCE, *range(first, first + count))):
        judge(result)
print(", ".join(f"{number} seeds: {what}" for what, number in sorted(outcomes.items())))
