#!/usr/bin/env python3
"""faults_random.py BUILD NARROW [SEEDS] : random faults between the hosts of a laboratory (hosts.py) while random calls run: processes that
are killed or stopped, links that go down, addresses and MTUs that change; by UDP and the node; with errors that are
returned or end the job. A job ends with right results, or with a line that says why; nothing stays behind; none hangs.

CW_TEST_FAULTS: how many (300, which take half an hour). CW_TEST_SEED, SEEDS: only that one, or those (7,92). NARROW:
tests/mpi/errors/narrow.c."""
import os
import random
import signal
import subprocess
import sys
import threading
import time

from across import CAUSEWAY, KEEP, programs
from expectation import HANG_S, JOB_HANG, exit_code, expect
from hosts import Lab

NARROW = programs[0]
HOSTS, RANKS, TIMEOUT_S, SOCKET = 3, 4, 4, "/tmp/node.socket"
NETS = ("udp", "node")
ROLES = {"rank": NARROW, "agent": f"{CAUSEWAY} agent", "launcher": f"{CAUSEWAY} run", "node": f"{CAUSEWAY} node"}


class Fault:
    """What happens to a job, and what has to be set right afterwards."""

    def __init__(self, lab, net, chance):
        self.lab, self.later, self.repairs = lab, [], []
        self.host = chance.randrange(HOSTS)
        roles = [role for role in ROLES if role != "node" or net == "node"]
        self.name = chance.choice(["kill", "stop 5 s", "stop", "link down 3 s", "link down", "address", "mtu"])
        self.role = chance.choice(roles) if self.name[:4] in ("kill", "stop") else None
        if self.role == "launcher":
            self.host = 0
        elif self.role == "agent":
            self.host = 1 + chance.randrange(HOSTS - 1)
        self.all = chance.randrange(2) == 0  # processes of the role on that host, or one of them

    def __str__(self):
        return f"{self.name}{' ' + self.role if self.role else ''} on h{self.host}"

    def victims(self, chance):
        found = [number for number, command in self.lab.processes(f"h{self.host}").items() if command.startswith(ROLES[self.role])]
        return found if self.all or not found else [chance.choice(sorted(found))]

    def after(self, seconds, action):
        timer = threading.Timer(seconds, action)
        timer.start()
        self.later.append(timer)

    def ip(self, *words):
        self.lab.root(f"h{self.host}", "ip", *words)

    def go_on(self, victims, job):
        """nsenter, by which the job was started, stops with its child, and has to be continued, too."""
        signals([*victims, job.pid], signal.SIGCONT)

    def begin(self, chance, job):
        address = f"{self.lab.address(self.host)}/24"
        if self.role:
            victims = self.victims(chance)
            signals(victims, signal.SIGKILL if self.name == "kill" else signal.SIGSTOP)
            if self.name == "stop 5 s":
                self.after(5, lambda: self.go_on(victims, job))
            self.repairs.append(lambda: signals(victims, signal.SIGKILL))  # a process that is stopped for good cannot end
            self.repairs.append(lambda: self.go_on([], job))
        elif self.name.startswith("link"):
            self.lab.link(self.host, False)
            if self.name == "link down 3 s":
                self.after(3, lambda: self.lab.link(self.host, True))
            self.repairs.append(lambda: self.lab.link(self.host, True))
        elif self.name == "address":
            self.ip("addr", "del", address, "dev", "eth0")
            self.repairs.append(lambda: self.ip("addr", "add", address, "dev", "eth0"))
            self.repairs.append(lambda: self.ip("route", "replace", "default", "via", "10.77.0.254"))
        else:
            self.ip("link", "set", "eth0", "mtu", str(chance.choice([1280, 1000, 600])))
            self.repairs.append(lambda: self.ip("link", "set", "eth0", "mtu", "1500"))

    def end(self):
        for timer in self.later:
            timer.join()
        for repair in self.repairs:
            repair()


def signals(processes, number):
    for process in processes:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            pass


def nodes_start(lab):
    for name in lab.names:
        node = lab.start(name, [CAUSEWAY, "node", "--transport", "eth0", "--socket", SOCKET], stderr=subprocess.DEVNULL)
        expect(node.stdout.readline().startswith("ready: "), f"a node on {name}")


def ranks_left(lab):
    """Processes of the job that still run, but for nodes."""
    return {name: left for name in lab.names
            if (left := [command for command in lab.processes(name).values() if not command.startswith(ROLES["node"])])}


def one(lab, seed):
    chance = random.Random(seed)
    net, fatal = chance.choice(NETS), chance.randrange(2) == 0
    fault = Fault(lab, net, chance)
    if net == "node":
        nodes_start(lab)
    transport = f"node:{SOCKET}" if net == "node" else net
    words = [CAUSEWAY, "run", "--timeout", JOB_HANG, "--transport", transport, "--hosts", "h0:2,h1,h2", NARROW, "random", str(seed), *(["fatal"] if fatal else [])]
    job = lab.start("h0", words, stdin=subprocess.PIPE, environment={"CAUSEWAY_FAILURE_TIMEOUT": str(TIMEOUT_S)})
    first, begun = job.stdout.readline(), time.monotonic()
    what = f"seed {seed}: {net}, {'fatal' if fatal else 'returned'}, {fault}"
    expect(first == "ready\n", f"{what}: the job begins: {first}")
    fault.begin(chance, job)
    try:
        job.stdin.write("go on\n")
        job.stdin.flush()
    except BrokenPipeError:
        pass
    # ranks whose launcher is stopped for good end by themselves
    if fault.name == "stop" and fault.role == "launcher":
        end = time.monotonic() + HANG_S
        while time.monotonic() < end and any(lab.processes(name) and NARROW in " ".join(lab.processes(name).values()) for name in ("h1", "h2")):
            time.sleep(0.05)
        fault.end()
    out, err = job.communicate(timeout=HANG_S)
    took = time.monotonic() - begun
    deadline = time.monotonic() + HANG_S
    while ranks_left(lab) and time.monotonic() < deadline:
        if fault.name == "stop":
            fault.end()
        time.sleep(0.05)
    left = ranks_left(lab)
    fault.end()
    came, errors = out.count("all came"), out.count("MPI_ERR_")
    expect(not left, f"{what}: nothing is left: {left}: {err[-800:]}")
    expect(job.returncode != 124, f"{what}: no hang: {out[-600:]} {err[-1500:]}")
    is_told = "causeway" in err or fault.role == "launcher"
    expect(came == RANKS or is_told, f"{what}: a line says why: {job.returncode}: {out[-600:]} {err[-1500:]}")
    expect(job.returncode != 0 or came + errors >= RANKS, f"{what}: all ranks end: {out[-600:]} {err[-1500:]}")
    expect("MPI_ERR_INTERN" not in out + err, f"{what}: a lost rank is no internal error: {out[-600:]} {err[-1500:]}")
    print(f"{what}: code {job.returncode} after {took:.1f} s, {came} results, {errors} errors: {err.splitlines()[0][:150] if err else ''}", flush=True)


def main():
    chosen = os.environ.get("CW_TEST_SEED", "".join(sys.argv[3:]))
    count = int(os.environ.get("CW_TEST_FAULTS", "300"))
    for seed in map(int, chosen.split(",")) if chosen else range(1, count + 1):
        with Lab(HOSTS, keep=KEEP) as lab:
            one(lab, seed)
    return exit_code()


sys.exit(main())
