#!/usr/bin/env python3
"""hosts_usage.py BUILD PROGRAM... : MPI programs across hosts of a laboratory (hosts.py) by UDP sockets, as user nobody:
on two and three hosts, in one subnet and with a router between, started by `causeway run`; and what a user sees when the
network is not as it should be. PROGRAM: a program of the conformance suite, or a kernel.

    CW_TEST_LAB=all   every program in every layout; else each in one, in turn
"""
import json
import os
import re
import subprocess
import tempfile

import across
from across import CAUSEWAY, KEEP, run
from expectation import HANG_S, expect
from hosts import Lab

LAYOUTS = ["h0:2,h1:2", "h0:2,h1,h2:2", "h1:3,h2 --map-by node"]
# In all layouts: which ranks have the same part in a broadcast from another root, and so do not notice it, depends on the layout.
EVERYWHERE = "mpi_scatter_groups"


# most kernels of apps/kernels want their problem class
programs = [[each, *(["S"] if "kernels" in each and os.path.basename(each) != "dsm" else [])] for each in across.programs]
kernel = next(each for each in programs if os.path.basename(each[0]) == "is")


def well(lab, options, command, environment=None, err=""):
    code, out, said = run(lab, options, command, environment)
    expect(code == 0, f"{options} {' '.join(command)}: ends well, not {code}: {out[-2000:]}{said[-2000:]}")
    expect(re.search(err, said), f"{options} {' '.join(command)}: says {err}: {said[-2000:]}")


def suite_run(lab, layouts, net=""):
    every = os.environ.get("CW_TEST_LAB") == "all"
    for number, program in enumerate(programs):
        for layout in layouts if every or os.path.basename(program[0]) == EVERYWHERE else [layouts[number % len(layouts)]]:
            well(lab, f"--hosts {layout} {net} -x TMPDIR", program, {"TMPDIR": "/tmp/shared"})


def large_packets_run(lab):
    """Messages in packets of 9,000 bytes."""
    lab.mtu(9000)
    code, out, err = lab.run("h0", [CAUSEWAY, "doctor", "--transport", "h0", "h1"])
    expect(code == 0 and "packets up to 9000 bytes" in out, f"doctor --transport with an MTU of 9,000 bytes: {code}: {out} {err}")
    for program in programs:
        if os.path.basename(program[0]) in ("mpi_point_blocking", "mpi_datatype_messages", "mpi_collective_move"):
            well(lab, "--hosts h0:2,h1:2", program)
    lab.mtu(1500)


def transports_run(lab):
    """What --explain says, and what overrules the rule."""
    hosts = "--explain --hosts h0,h1 -n 2"
    well(lab, hosts, kernel, err=r"to other hosts by UDP sockets at 10\.77\.0\.1 \(eth0\), since all hosts are in 10\.77\.0\.0/24")
    well(lab, hosts, kernel, err=r"path to rank 1: .*; payloads are checked by UDP checksums, by the kernels")
    well(lab, f"{hosts} -x CAUSEWAY_INTEGRITY=end-to-end", kernel, err=r"path to rank 1: .*; payloads are checked by CRC-32C, by the processes")
    well(lab, f"{hosts} --transport eth0", kernel, err=r"since --transport \(CAUSEWAY_TRANSPORT\) says so")
    well(lab, f"{hosts} --transport 10.77.0.0/16 --ports 40000-40100", kernel, err=r"10\.77\.0\.2, UDP port 40[01]\d\d")
    well(lab, "--explain --hosts h0,h1,h2 -x CAUSEWAY_ENCRYPT=all", kernel, err=r"path to rank 1: .*sealed(.|\n)*path to rank 2: .*sealed")
    well(lab, "--explain --hosts h0,h1,h2 --transport fd77::/16", kernel,
         err=r"at fd77::1 \(eth0\)(.|\n)*fd77::2, UDP port \d+(.|\n)*group of MPI_COMM_WORLD.*: multicast")
    for options, words in (("--transport nosuch0", r"--transport \(CAUSEWAY_TRANSPORT\) is 'nosuch0', and this host has nothing like that; it has lo 127\.0\.0\.1, eth0 10\.77(.|\n)*fd77::1"),
                           ("--transport 10.0.0.0/99", r"a subnet has 0 to 32 bits"), ("--transport fd77::/129", r"a subnet has 0 to 128 bits"),
                           ("--transport lo", r"other hosts cannot reach this one: each of its addresses is one of theirs"),
                           ("-x CAUSEWAY_PORTS=5", r"CAUSEWAY_PORTS is '5': FIRST-LAST is wanted"),
                           ("--hosts h0:2,h1 --ports 40000-40000", r"UDP ports 40000 to 40000 are taken: each rank of a host needs 1: give --ports")):
        code, _, said = run(lab, f"--hosts h0,h1 {options}", kernel)
        expect(code != 0 and re.search(words, said), f"{options}: {code}: {said}")


def plogp_run(lab):
    """Parameters of the network between hosts, of which each has one rank."""
    command = [CAUSEWAY, "plogp", "--ranks", "3", "--hosts", "h0,h1,h2", "--sizes", "8,65536", "--time", "5s", "--noisy", "--json", "-o", "/tmp/hosts_usage.plogp.json"]
    code, out, err = lab.run("h0", command, timeout=HANG_S)
    rows = [json.loads(line) for line in out.splitlines()]
    # --noisy: the numbers themselves depend on the load of the machine; next to other programs a latency of 0 was seen
    expect(code == 0 and rows[0]["path"] == "wire" and rows[0]["ranks"] == 3 and rows[0]["latency_ns"] >= 0 and rows[0]["gap_1m_ns"] > 0, f"plogp --hosts: {code} {out} {err}")
    code, out, err = lab.run("h0", [*command, "--path", "rdma"], timeout=HANG_S)
    expect(code != 0 and "not every host has an RDMA device" in err, f"plogp --path rdma without devices: {code} {out} {err}")


def doctor_run(lab):
    """What `causeway doctor --transport` finds out of each transport, as an ordinary user."""
    process = lab.start("h0", [CAUSEWAY, "doctor", "--transport", "h0", "h1", "h2"], stderr=subprocess.STDOUT)
    out = process.communicate()[0]
    for words in (r"^  transport +UDP sockets +UDP sockets at 10\.77\.0\.1 \(eth0\), since all hosts are in 10\.77\.0\.0/24$",
                  r"^  host +h0 +this machine: shared memory, no network$", r"^  host +h2 +UDP sockets at 10\.77\.0\.3: round trip \d+ us, packets up to 1500 bytes, checked by UDP checksums, by the kernels$"):
        expect(re.search(words, out, re.M), f"doctor --transport says {words}: {out}")
    expect(process.returncode == 0, f"doctor --transport: {process.returncode}: {out}")
    code, out, _ = lab.run("h0", [CAUSEWAY, "doctor", "--transport", "h0", "h1", "nosuch"], stderr=subprocess.STDOUT)
    expect(code == 3 and "nosuch" in out, f"doctor --transport with a host that cannot be reached: {code}: {out}")


def main():
    with tempfile.TemporaryDirectory() as shared:
        os.chmod(shared, 0o777)
        keep = [*KEEP, f"{shared}:shared"]
        with Lab(3, user="nobody", keep=keep) as lab:
            suite_run(lab, LAYOUTS)
            if os.environ.get("CW_TEST_LAB") == "all":
                suite_run(lab, LAYOUTS[:1], "--transport fd77::/16")
            transports_run(lab)
            large_packets_run(lab)
            doctor_run(lab)
            plogp_run(lab)
        with Lab(3, subnets=2, user="nobody", keep=keep) as lab:
            well(lab, "--explain --hosts h0:2,h1:2", kernel, err=r"the hosts share no subnet: the address of the default route")
            well(lab, "--explain --hosts h0:2,h1:2 --transport fd77::/16", kernel, err=r"at fd77::1 \(eth0\)(.|\n)*fd77:0:0:1::1, UDP port")
            if os.environ.get("CW_TEST_LAB") == "all":
                suite_run(lab, LAYOUTS[:1])


if __name__ == "__main__":
    main()
