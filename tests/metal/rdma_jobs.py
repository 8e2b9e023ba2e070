#!/usr/bin/env python3
"""rdma_jobs.py BUILD NAME=PROGRAM...: jobs between two guests (pci.py), each with an RDMA device on its kernel's NIC (rdma_rxe): who takes it, who does
without, and what a job does where packets get lost, MTUs differ, a cable is pulled, a device goes or a guest dies. The programs verify what they move.

    CW_KILLS=20   so many guests are killed, one after the other"""
import os
import re
import sys
import time

from expectation import JOB_HANG, exit_code, expect, wait_until
from guest import with_guests
from pci import await_turns
from rdma_guests import CAUSEWAY, ENVIRONMENT, NONE, PROGRAMS, Devices, carried, pairs, told

LOSS = "1%"
TURNS = "4000"
KILLS = int(os.environ.get("CW_KILLS", "1"))


def taken(machines):
    """Every rank takes its host's device, and what is long goes by it."""
    for name, words in {"is": ["S"], "point_blocking": [], "point_memory": [], "collective_random": []}.items():
        result = machines.job_run(PROGRAMS[name], *words)
        expect(result.code == 0 and carried(result) and "beside them queue pairs of RDMA device rxe0 port 1: RoCE v2, GID ::ffff:10.9.0.1"
               in result.err, f"{name} by queue pairs: {told(result)}")
    result = machines.job_run(PROGRAMS["is"], "S", hosts="a:2,b:2")
    expect(result.code == 0 and "verified" in result.out and (pairs(result) or NONE)[0] >= 2, f"two ranks a host: pairs with those of the other only: {told(result)}")


def chosen(machines):
    """Who is told to do without, or has none, and what is asked for and is not there."""
    result = machines.job_run("--rdma", "off", PROGRAMS["is"], "S")
    expect(result.code == 0 and "verified" in result.out and "queue pair" not in result.err, f"--rdma off: {told(result)}")
    for without in (("CAUSEWAY_RDMA=off", "CAUSEWAY_RDMA=auto"), ("CAUSEWAY_RDMA=rxe0", "CAUSEWAY_RDMA=off")):
        words = [word for each in without for word in (":", "-n", "1", "--env", each, PROGRAMS["point_memory"])][1:]
        result = machines.job_run(*words)
        expect(result.code == 0 and pairs(result) == (None if without[0].endswith("off") else NONE), f"one side without, {without}: packets carry all: {told(result)}")
    for name, words in {"mlx5_0": "RDMA device mlx5_0: there is none of this name, of 1; `causeway doctor` lists them", "a b": "'a b' is no RDMA device"}.items():
        result = machines.job_run("--rdma", name, PROGRAMS["is"], "S")
        expect(result.code != 0 and words in result.err, f"--rdma {name}: {told(result)}")
    result = machines.run("a", [CAUSEWAY, "doctor"])
    expect("rxe0 port 1: RoCE v2, GID ::ffff:10.9.0.1, MTU 4096" in result.out, f"doctor lists the device: {told(result)}")


def rough(machines):
    """Packets of the devices get lost; then one side takes shorter ones than the other."""
    machines.everywhere(f"/run/guest/modprobe sch_netem && tc qdisc add dev nic0 root netem loss {LOSS}")
    for name, words in {"is": ["S"], "point_memory": [], "collective_random": []}.items():
        result = machines.job_run(PROGRAMS[name], *words)
        expect(result.code == 0 and (pairs(result) or NONE)[0] >= 1, f"{name} where {LOSS} of the packets get lost: {told(result)}")
    machines.everywhere("tc qdisc del dev nic0 root")
    machines.run("b", ["ip", "link", "set", "nic0", "mtu", "1500"])
    machines.device_await("b")
    for name in machines.names:
        result = machines.run(name, [CAUSEWAY, "doctor"])
        expect(f"MTU {4096 if name == 'a' else 1024}" in result.out, f"doctor tells the MTU of {name}: {told(result)}")
    for name in ("point_blocking", "point_memory"):
        result = machines.job_run(PROGRAMS[name])
        expect(result.code == 0 and carried(result), f"{name} between MTUs: {told(result)}")
    machines.run("b", ["ip", "link", "set", "nic0", "mtu", "4200"])
    machines.device_await("b")


def retries_exceeded(machines):
    """The requests that the devices have given up."""
    return sum(int(machines.run(name, ["cat", "/sys/class/infiniband/rxe0/ports/1/hw_counters/retry_exceeded_err"]).out) for name in machines.names)


def troubles(machines):
    """A cable that is pulled until pairs break, a device that is taken away between jobs (rdma_rxe's waits for a job to end), and a guest that is no more."""
    command = machines.job("--timeout", JOB_HANG, PROGRAMS["mpi_busy"], "1", TURNS)
    under_way = machines.start("a", command, ENVIRONMENT)
    is_busy = await_turns(under_way)
    before = retries_exceeded(machines)
    machines.monitor("b", "set_link nic0 off")
    expect(wait_until(lambda: retries_exceeded(machines) > before), "a cable is pulled, and a device has sent its last retry")
    machines.monitor("b", "set_link nic0 on")
    result = machines.finish(under_way, command)
    up, broken, _ = pairs(result) or NONE
    expect(is_busy and result.code == 0 and up >= 2 and broken >= 1, f"a cable is pulled, pairs break and come up again: {told(result)}")
    machines.run("b", ["rdma", "link", "del", "rxe0"])
    result = machines.job_run("--rdma", "auto", PROGRAMS["is"], "S")
    expect(result.code == 0 and pairs(result) == NONE, f"one host has none: {told(result)}")
    machines.run("b", ["rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "nic0"])
    result = machines.job_run(PROGRAMS["is"], "S")
    expect(result.code == 0 and (pairs(result) or NONE)[0] >= 1, f"it is there again: {told(result)}")


def deaths(machines):
    for death in range(KILLS):
        under_way = machines.start("a", machines.job("--timeout", JOB_HANG, PROGRAMS["mpi_busy"], str(100 + death)), {**ENVIRONMENT, "CAUSEWAY_FAILURE_TIMEOUT": "20"})
        is_busy = await_turns(under_way)
        time.sleep(death * 0.1)
        machines.kill("b")
        killed_s = time.monotonic()
        result = machines.finish(under_way, ["mpi_busy"])
        print(f"guest {death + 1} killed: the job ended {time.monotonic() - killed_s:.1f} s later, {(pairs(result) or NONE)[0]} queue pairs had come up", flush=True)
        expect(is_busy and result.code != 0 and re.search(r"host b\b", result.err), f"a guest is killed, which the other is told: {told(result)}")
        left = machines.run("a", ["pgrep", "-l", "mpi_busy"])
        expect(left.code == 1, f"nothing is left of the job: {told(left)}")
        if death + 1 < KILLS:
            machines.renew("b")
            machines.device_make("b")


def work():
    with Devices(2) as machines:
        taken(machines)
        chosen(machines)
        rough(machines)
        troubles(machines)
        deaths(machines)
    return exit_code()


sys.exit(with_guests(work))
