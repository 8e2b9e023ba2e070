#!/usr/bin/env python3
"""reach_usage.py BUILD PROGRAM BROADCASTS : what a user is told when hosts of a laboratory (hosts.py) do not reach
each other as they should: firewalls, wrong subnets, narrow paths, other keys. PROGRAM: an MPI program that ends well;
BROADCASTS: one that broadcasts."""
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import across
from across import KEEP, programs
from expectation import expect
from hosts import Lab

PROGRAM = programs[0]
FILTER = "add table inet t; add chain inet t c {{ type filter hook {hook} priority 0; }}; add rule inet t c {rule}"


def run(lab, options="", command=(PROGRAM, "S"), environment=None):
    code, _, said = across.run(lab, f"--hosts {','.join(lab.names)} {options}", command, environment)
    return code, said


def fails(lab, what, line, options="", environment=None):
    """One line of a host says so; where `line` lets others speak, too, one of each."""
    code, said = run(lab, options, environment=environment)
    hosts = [re.search(r"host (\S+)|$", each).group(1) for each in said.splitlines() if re.search(line, each)]
    expect(code != 0 and 1 <= len(hosts) == len(set(hosts)), f"{what}: one line says {line}: exit code {code}: {said[-1500:]}")


def works(lab, what, said_line="", options=""):
    code, said = run(lab, options)
    expect(code == 0 and re.search(said_line, said), f"{what}: {said_line}: exit code {code}: {said[-1500:]}")


OURS = r"host h0 \(rank 0\) does not reach "
THEIRS = r"host h\d \(rank \d\) does not reach h2: .*"  # two hosts see the same
# what is wrong, the host with the firewall, its hook and rule, what a line says
FIREWALLS = [
    ("drops UDP", "h1", "input", "meta l4proto udp drop", OURS + r"h1:.*10\.77\.0\.2, UDP port \d+, has not answered for 7 s; sent by eth0 from "
     r"10\.77\.0\.1, MTU 1500; the network reports no error.* drops UDP; --ports"),
    ("drops UDP", "h0", "input", "meta l4proto udp drop", OURS + r"h1, h2.*10\.77\.0\.2, UDP port \d+, has not answered for 7 s; sent by eth0 from "
     r"10\.77\.0\.1, MTU 1500; the network reports no error.* drops UDP; --ports"),
    ("rejects UDP", "h2", "input", "meta l4proto udp reject with icmp type admin-prohibited", THEIRS + "(no host answers|firewall)"),
    ("rejects UDP as a closed port", "h2", "input", "meta l4proto udp reject", THEIRS + "no process has that port: does a firewall there reject UDP"),
    ("sends no UDP", "h0", "output", "meta l4proto udp drop", OURS + r"h1, h2: .*a firewall on this host forbids it"),
]


def firewall(lab, name, hook, rule):
    for each in FILTER.format(hook=hook, rule=rule).split("; add "):
        each = each if each.startswith("add ") else f"add {each}"
        lab.root(name, "nft", each)


def firewall_off(lab, name):
    lab.root(name, "nft", "flush ruleset")


def firewall_case(what, name, hook, rule, line):
    """In a laboratory of its own: these jobs wait for an answer for seconds."""
    with Lab(3, user="nobody", keep=KEEP) as lab:
        firewall(lab, name, hook, rule)
        fails(lab, f"{name} {what}", line)


def let_in(lab):
    firewall(lab, "h1", "input", "udp dport != 40000-40031 meta l4proto udp drop")
    works(lab, "the ports that a firewall lets in", options="--ports 40000-40031")
    firewall_off(lab, "h1")
    firewall(lab, "h1", "input", "meta pkttype multicast drop")
    works(lab, "no multicast there", "multicast", "--explain")
    firewall_off(lab, "h1")
    works(lab, "no firewall", r"group of MPI_COMM_WORLD.*: multicast", "--explain")


def subnets(lab):
    """An interface each that nobody else is behind, and to which the same subnet belongs."""
    lab.lone_add()
    fails(lab, "a subnet that is not one", r"h1, h2: .*sent by lone from 10\.99\.0\.1.*no host answers for that address",
          "--transport lone")
    for name in lab.names:
        lab.root(name, "ip", "link", "del", "lone")


def narrow(lab):
    """A link between that takes smaller packets than the hosts' interfaces, and says nothing."""
    narrowed = [*lab.inside("net"), "ip", "link", "set", "p1", "mtu"]
    subprocess.run([*narrowed, "1400"], check=True)
    said = r"causeway: rank 0: packets to h1 arrive up to 1396 bytes, and not up to 1500 as the interfaces take them"
    works(lab, "a path that is narrower", said)
    code, err = run(lab, "-x CAUSEWAY_ALGORITHM=bcast=multicast", [programs[1]])  # as large as all paths take them
    expect(code == 0, f"multicast over a path that is narrower: exit code {code}: {err[-1500:]}")
    subprocess.run([*narrowed, "1500"], check=True)


def keys(lab):
    program = ["sh", "-c", f"[ $PMI_RANK != 1 ] || export CAUSEWAY_JOB_KEY=00112233445566778899aabbccddeeff; exec {PROGRAM} S"]
    code, said = run(lab, command=program)
    expect(code != 0 and re.search(r"rank \d has another key of the job than rank \d: is CAUSEWAY_JOB_KEY set", said),
           f"another key: {said[-1500:]}")


def full(lab):
    """Hosts whose disks and shared memory have no room: a job needs none of it."""
    fill = "mount -t tmpfs -o size=16k,mode=1777 tmpfs {0} && ! cat /dev/zero >{0}/x 2>/dev/null"
    for name in lab.names:
        mount = ["nsenter", "-t", str(lab.pid(name)), "--mount", "--pid", "sh", "-c"]
        subprocess.run([*mount, f"mkdir -p /tmp/full && {fill.format('/tmp/full')} && {fill.format('/dev/shm')}"], check=True)
    code, said = run(lab, "-x TMPDIR -x CAUSEWAY_ENCRYPT=all", environment={"TMPDIR": "/tmp/full"})
    expect(code == 0, f"full disks there: exit code {code}: {said[-1500:]}")
    code, said = run(lab, "--wdir /tmp/full", ["sh", "-c", "echo here > out || exit 4"])
    expect(code == 4 and "I/O error" in said, f"a program that finds no room there: exit code {code}: {said[-1500:]}")


def flat():
    with Lab(3, user="nobody", keep=KEEP) as lab:
        works(lab, "nothing is wrong")
        let_in(lab)
        subnets(lab)
        narrow(lab)
        keys(lab)
        full(lab)


def routed():
    with Lab(2, subnets=2, user="nobody", keep=KEEP) as lab:
        firewall(lab, "h1", "input", "meta l4proto udp drop")
        fails(lab, "a firewall behind a router", r"does not reach h1: .*sent by eth0 from 10\.77\.0\.1 through 10\.77\.0\.254")
        firewall_off(lab, "h1")
        lab.root("h0", "ip", "route", "del", "default")
        fails(lab, "no route", r"does not reach h1: .*this host has no route there")


def main():
    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(flat), pool.submit(routed), *(pool.submit(firewall_case, *row) for row in FIREWALLS)]:
            each.result()


if __name__ == "__main__":
    main()
