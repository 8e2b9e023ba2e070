#!/usr/bin/env python3
"""rdma_jobs.py BUILD NAME=PROGRAM...: jobs between two guests (pci.py), each with an RDMA device on its kernel's NIC (rdma_rxe): who takes it, who does
without, and what a job does where packets get lost, MTUs differ, a cable is pulled, a device goes or a guest dies. The programs verify what they move."""
import os
import re
import sys
import time

from expectation import exit_code, expect
from guest import with_guests
from pci import Machines, await_turns

BUILD = os.path.abspath(sys.argv[1])
PROGRAMS = dict(each.split("=", 1) for each in sys.argv[2:])
CAUSEWAY = f"{BUILD}/causeway"
KEEP = [CAUSEWAY, f"{BUILD}/dataplane/libcauseway_verbs.so", *PROGRAMS.values()]
ENVIRONMENT = {"CAUSEWAY_FAILURE_TIMEOUT": "60", "CW_CALLS": "20"}
PAIRS = re.compile(r"(\d+) queue pairs came up, (\d+) broke; (\d+) work requests")
LINK_S = 60
LOSS = "1%"
PULL_S = 3  # until all retries are in vain
TURNS = "4000"
NONE = (0, 0, 0)


def job(*words, hosts="a,b"):
    return [CAUSEWAY, "run", "--hosts", hosts, "--launcher", "remote", "--net", "udp:10.9.0.0/24", "--explain", *words]


def told(result):
    return f"{result.code}: {result.out[-600:]} {result.err[-1500:]}"


def pairs(result):
    """Queue pairs that came up at rank 0, that broke, and its work requests."""
    found = PAIRS.search(result.err)
    return tuple(int(each) for each in found.groups()) if found else None  # it has no device


def device_make(machines, index, name):
    """10.9.0.x, a packet of 4096 bytes, and an RDMA device by that address, up."""
    machines.run(name, ["sh", "-c", f"/run/guest/modprobe crc32_generic && /run/guest/modprobe rdma_rxe && ip addr add 10.9.0.{index + 1}/24 dev nic0 && "
                        "ip link set nic0 mtu 4200 up && rdma link add rxe0 type rxe netdev nic0"])
    device_await(machines, name)


def device_await(machines, name):
    until = time.monotonic() + LINK_S
    while "state ACTIVE" not in (result := machines.run(name, ["rdma", "link"])).out and time.monotonic() < until:
        time.sleep(0.5)
    expect("state ACTIVE" in result.out, f"the RDMA device of {name} is up: {told(result)}")


def taken(machines):
    """Every rank takes its host's device, and what is long goes by it."""
    for name, words in {"is": ["S"], "point_blocking": [], "point_memory": [], "collective_random": []}.items():
        result = machines.run("a", job(PROGRAMS[name], *words), ENVIRONMENT, time_s=200)
        up, broken, requests = pairs(result) or NONE
        expect(result.code == 0 and up == 1 and broken == 0 and requests > 20 and "beside them queue pairs of RDMA device rxe0 port 1: RoCE v2, GID ::ffff:10.9.0.1"
               in result.err, f"{name} by queue pairs: {told(result)}")
    result = machines.run("a", job(PROGRAMS["is"], "S", hosts="a:2,b:2"), ENVIRONMENT, time_s=200)
    expect(result.code == 0 and "verified" in result.out and (pairs(result) or NONE)[0] == 2, f"two ranks a host: pairs with those of the other only: {told(result)}")


def chosen(machines):
    """Who is told to do without, or has none, and what is asked for and is not there."""
    result = machines.run("a", job("--rdma", "off", PROGRAMS["is"], "S"), ENVIRONMENT, time_s=200)
    expect(result.code == 0 and "verified" in result.out and "queue pair" not in result.err, f"--rdma off: {told(result)}")
    for without in (("CAUSEWAY_RDMA=off", "CAUSEWAY_RDMA=auto"), ("CAUSEWAY_RDMA=rxe0", "CAUSEWAY_RDMA=off")):
        words = [word for each in without for word in (":", "-n", "1", "--env", each, PROGRAMS["point_memory"])][1:]
        result = machines.run("a", job(*words), ENVIRONMENT, time_s=200)
        expect(result.code == 0 and pairs(result) == (None if without[0].endswith("off") else NONE), f"one side without, {without}: packets carry all: {told(result)}")
    for name, words in {"mlx5_0": "RDMA device mlx5_0: there is none of this name, of 1; `causeway doctor` lists them", "a b": "'a b' is no RDMA device"}.items():
        result = machines.run("a", job("--rdma", name, PROGRAMS["is"], "S"), ENVIRONMENT, time_s=200)
        expect(result.code != 0 and words in result.err, f"--rdma {name}: {told(result)}")
    result = machines.run("a", [CAUSEWAY, "doctor"])
    expect("rxe0 port 1: RoCE v2, GID ::ffff:10.9.0.1, MTU 4096" in result.out, f"doctor lists the device: {told(result)}")


def both(machines, line):
    for name in machines.names:
        result = machines.run(name, ["sh", "-c", line])
        expect(result.code == 0, f"{line}: {told(result)}")


def rough(machines):
    """Packets of the devices get lost; then one side takes shorter ones than the other."""
    both(machines, f"/run/guest/modprobe sch_netem && tc qdisc add dev nic0 root netem loss {LOSS}")
    for name, words in {"is": ["S"], "point_memory": [], "collective_random": []}.items():
        result = machines.run("a", job(PROGRAMS[name], *words), ENVIRONMENT, time_s=200)
        expect(result.code == 0 and (pairs(result) or NONE)[0] >= 1, f"{name} where {LOSS} of the packets get lost: {told(result)}")
    both(machines, "tc qdisc del dev nic0 root")
    machines.run("b", ["ip", "link", "set", "nic0", "mtu", "1500"])
    device_await(machines, "b")
    for name in machines.names:
        result = machines.run(name, [CAUSEWAY, "doctor"])
        expect(f"MTU {4096 if name == 'a' else 1024}" in result.out, f"doctor tells the MTU of {name}: {told(result)}")
    for name in ("point_blocking", "point_memory"):
        result = machines.run("a", job(PROGRAMS[name]), ENVIRONMENT, time_s=200)
        expect(result.code == 0 and (pairs(result) or NONE)[:2] == (1, 0), f"{name} between MTUs: {told(result)}")
    machines.run("b", ["ip", "link", "set", "nic0", "mtu", "4200"])
    device_await(machines, "b")


def troubles(machines):
    """A cable that is pulled until pairs break, a device that is taken away between jobs (rdma_rxe's waits for a job to end), and a guest that is no more."""
    command = job("--timeout", "190", PROGRAMS["mpi_busy"], "1", TURNS)
    under_way = machines.start("a", command, ENVIRONMENT)
    is_busy = await_turns(under_way)
    for is_up in ("off", "on"):
        machines.monitor("b", f"set_link nic0 {is_up}")
        time.sleep(PULL_S)
    result = machines.finish(under_way, command, time_s=200)
    up, broken, _ = pairs(result) or NONE
    expect(is_busy and result.code == 0 and up >= 2 and broken >= 1, f"a cable is pulled, pairs break and come up again: {told(result)}")
    machines.run("b", ["rdma", "link", "del", "rxe0"])
    result = machines.run("a", job("--rdma", "auto", PROGRAMS["is"], "S"), ENVIRONMENT, time_s=200)
    expect(result.code == 0 and pairs(result) == NONE, f"one host has none: {told(result)}")
    machines.run("b", ["rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "nic0"])
    result = machines.run("a", job(PROGRAMS["is"], "S"), ENVIRONMENT, time_s=200)
    expect(result.code == 0 and (pairs(result) or NONE)[0] == 1, f"it is there again: {told(result)}")
    under_way = machines.start("a", job("--timeout", "180", PROGRAMS["mpi_busy"], "100"), {**ENVIRONMENT, "CAUSEWAY_FAILURE_TIMEOUT": "10"})
    is_busy = await_turns(under_way)
    machines.kill("b")
    result = machines.finish(under_way, ["mpi_busy"], time_s=120)
    expect(is_busy and result.code != 0 and re.search(r"host b\b", result.err), f"a guest is killed, which the other is told: {told(result)}")


def work():
    with Machines(2, "e1000e", kernel=("a", "b"), keep=KEEP, cache=f"{BUILD}/metal") as machines:
        for index, name in enumerate(machines.names):
            device_make(machines, index, name)
        taken(machines)
        chosen(machines)
        rough(machines)
        troubles(machines)
    return exit_code()


sys.exit(with_guests(work))
