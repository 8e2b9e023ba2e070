#!/usr/bin/env python3
"""narrow_usage.py BUILD NARROW : paths between the hosts of a laboratory (hosts.py) that take shorter packets than the
interfaces at their ends, from the start or from some time on. Results are right, or all ranks get an error that says why; no job
hangs. NARROW: tests/mpi/errors/narrow.c."""
import re
import subprocess

from across import KEEP, nothing_left, programs, start
from expectation import HANG_S, expect
from hosts import Lab

RANKS = 3
RULE = "add table inet t; add chain inet t c { type filter hook input priority 0; }; add rule inet t c meta length > 1300 drop"


def rule_add(lab):
    """The last host gets nothing longer, also no batch of packets that is longer as a whole: as behind a switch of a VM."""
    lab.root("h2", "nft", RULE)


def rule_delete(lab):
    lab.root("h2", "nft", "delete table inet t")


def mtu_set(lab, mtu):
    for name in ("h1", "h2"):
        lab.root(name, "ip", "link", "set", "eth0", "mtu", str(mtu))


def run(lab, mode, seed, change):
    process = start(lab, ["--hosts", ",".join(lab.names)], [*programs, mode, str(seed)], stdin=subprocess.PIPE)
    first = process.stdout.readline()
    if change is not None and first == "ready\n":
        change(lab)
    out, err = process.communicate("go on\n", timeout=HANG_S)
    nothing_left(lab, f"{mode} {seed}")
    return process.returncode, first + out, err


def works(lab, what, mode, change=None):
    code, out, err = run(lab, mode, 1, change)
    expect(code == 0 and out.count("all came") == RANKS, f"{what}: {mode}: {code}: {out[-500:]} {err[-1500:]}")


def told(lab, what, seed, change):
    """All ranks end in order: with results, or with an error, of which some says what has happened to the path."""
    code, out, err = run(lab, "random", seed, change)
    errors = re.findall(r"^rank \d: .*MPI_ERR_.*$", out, re.M)
    expect(code == 0 and len(errors) + out.count("all came") == RANKS, f"{what}: {seed}: {code}: {out[-900:]} {err[-1500:]}")
    expect(not any("MPI_ERR_INTERN" in each for each in errors), f"{what}: {seed}: a lost rank is no internal error: {errors}")
    expect(not errors or "passes small packets" in err, f"{what}: {seed}: a line says why: {out[-900:]} {err[-1500:]}")


with Lab(RANKS, keep=KEEP) as lab:
    rule_add(lab)
    works(lab, "narrow from the start", "random")
    rule_delete(lab)
    works(lab, "narrow for broadcasts", "bcast", rule_add)
    rule_delete(lab)
    for seed in range(1, 4):
        told(lab, "narrow in the middle", seed, rule_add)
        rule_delete(lab)
        told(lab, "MTU of both ends", seed, lambda each: mtu_set(each, 1280))
        mtu_set(lab, 1500)
