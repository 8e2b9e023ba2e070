#!/usr/bin/env python3
"""Random processes of random jobs are killed or stopped at random moments: every job ends, and nothing stays behind.

usage: ending_random.py CAUSEWAY BUSY TOPOLOGY [NETWORK...]     BUSY: errors/busy.c; NETWORK: memif, beside shared memory

    CW_TEST_ENDINGS   how many, default 16; 300 take some ten minutes
    CW_TEST_SEED      the first round's seed, default 1; if it is set, one round is the default. A round that fails prints its seed

Networks: shared memory, memif, two clusters, two sites behind gateways, simulated hosts. Victims: a rank, the launcher's supervisor or launcher, the switch, a gateway. Moments: while the launcher,
the switch and the ranks start, in the midst of calls, around MPI_Finalize. Of a simulated job all ranks of a host are killed at a virtual time, and the network has
faults. A supervisor or launcher that is stopped holds up its job for as long as it is (control/README.md): it
gets SIGINT then, and a supervisor is continued. How long each kind took is printed, and not checked.
"""
import collections
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import ending
from expectation import HANG_S, JOB_HANG, wait_until

TIMEOUT_S = "3"  # CAUSEWAY_FAILURE_TIMEOUT
RANKS = 4
causeway, busy, topology = map(os.path.abspath, sys.argv[1:4])
networks = ["shared", "simulated"] + sys.argv[4:]
EMULATE = {"shared": [], "memif": ["--emulate", "2,memif"], "clusters": ["--emulate", f"topology={topology},memif"], "gateways": []}


class Sites:
    """Two switches, a third one between them, and a gateway at each site."""

    def __init__(self, place):
        self.place, self.processes = place, []
        folder = place.folder
        key = f"{folder}/key"
        subprocess.run([causeway, "gateway", "--make-key", key], check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for name, ports in ("a", "5"), ("b", "5"), ("w", "2"):
            self.start("switch", "--memif", f"{folder}/{name}", "--ports", ports)
        for site, own, other in ("a", "1", "2"), ("b", "2", "1"):
            self.start("gateway", "--inner", f"memif:{folder}/{site},port=4", "--outer", f"memif:{folder}/w,port={int(own) - 1}", "--address", f"10.9.0.{own}",
                       "--peer", f"10.9.0.{other}", "--key", key, "--rate", "190Mbps")
        self.script = f"{folder}/rank"
        with open(self.script, "w") as file:
            file.write(f'#!/bin/sh\nsite=a\n[ "$PMI_RANK" -ge 2 ] && site=b\nexport CAUSEWAY_EMULATE=4,memif,{folder}/$site CAUSEWAY_JOB_KEY={"5a" * 16}\nexec "$@"\n')
        os.chmod(self.script, 0o700)

    def start(self, *arguments):
        self.processes.append(subprocess.Popen([causeway, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.place.environment))
        line = self.processes[-1].stdout.readline()
        if not line.startswith("ready:"):
            raise RuntimeError(f"{arguments[:3]} does not start: {line}")

    def end(self):
        """What does not end when it is told to, in words."""
        wrong = ""
        for process in reversed(self.processes):
            ending.continue_all([process.pid])  # before it ends: a leak check stops its threads then, and would wait for one that is continued
            process.terminate()
            try:
                process.communicate(timeout=HANG_S)
            except subprocess.TimeoutExpired:
                wrong += f" {process.args[1]} does not end;"
                process.kill()
                process.communicate()
        for name in "key", "rank", "a", "a.bell", "b", "b.bell", "w", "w.bell":  # a killed one, started by hand, leaves its own
            if os.path.exists(f"{self.place.folder}/{name}"):
                os.unlink(f"{self.place.folder}/{name}")
        return wrong


def moment_await(job, chance, moment):
    """Until the moment; the job's parts, as far as they are there. None: it has ended before."""
    if moment == "start":
        wanted = chance.choice(["supervisor", "switch", "launcher", "ranks"])
        parts = ending.parts_of(job.pid)
        while job.poll() is None and not parts.get(wanted) and not parts.get("ranks"):
            parts = ending.parts_of(job.pid)
        return parts if job.poll() is None else None
    lines = chance.randrange(1, RANKS + 1) if moment == "init" else chance.randrange(RANKS + 1, 60)
    for line in job.stdout:
        lines -= 1
        if lines <= 0 and moment != "end" or line.startswith("end"):
            return ending.parts_of(job.pid)
    return None


def front_stopped(job, chance, parts):
    """What ends the job of a stopped supervisor: its rank's end, which the launcher takes care of, or a signal; then it is continued."""
    if parts.get("ranks") and chance.random() < 0.5:
        ending.kill_all(parts["ranks"][:1])
        wait_until(lambda: all(ending.state_of_quietly(process) == "Z" for process in parts["ranks"]))
    else:
        os.kill(job.pid, signal.SIGINT)
    ending.continue_all([job.pid])


def victims_hit(job, chance, parts, sites):
    """Kills or stops one; what it was, or None."""
    candidates = ["rank"] * len(parts["ranks"][:1]) + [name for name in ("supervisor", "launcher", "switch") if name in parts] + ["gateway"] * (2 if sites else 0)
    victim = chance.choice(candidates)
    number = chance.choice([signal.SIGKILL, signal.SIGSTOP])
    process = chance.choice(parts["ranks"]) if victim == "rank" else chance.choice(sites.processes[3:]).pid if victim == "gateway" else parts[victim]
    try:
        os.kill(process, number)
        if number == signal.SIGSTOP and victim == "launcher":
            os.kill(job.pid, signal.SIGINT)
        elif number == signal.SIGSTOP and victim == "supervisor":
            front_stopped(job, chance, parts)
    except ProcessLookupError:
        return None
    return victim, "killed" if number == signal.SIGKILL else "stopped"


def simulated_run(seed, chance):
    """The same of a round with simulated hosts."""
    place = ending.Place(f"random-{os.getpid()}-{seed}")
    faults = f"hosts=2,cpu=0,loss=1%,reorder=1%,seed={seed},kill={chance.randrange(2)}@{chance.choice([0, 10, 500, 20000])}us"
    before = time.monotonic()
    job = subprocess.run([causeway, "run", "-n", str(chance.randrange(2, 6)), "--timeout", JOB_HANG, "--simulate", faults, busy, str(seed)], capture_output=True, text=True,
                         env=place.environment, timeout=HANG_S)
    wrong = place.left_await()
    if job.returncode in (0, 124) or "SIGKILL" not in job.stderr or "MPI_ERR_NOT_SAME" in job.stderr:
        wrong = f"{faults}: exit code {job.returncode}: {job.stderr}"
    place.close()
    return ("simulated", "midst", "host", "killed"), time.monotonic() - before, wrong


def round_run(seed):
    """(network, moment, victim, how), seconds, what is wrong with it or None."""
    chance = random.Random(seed)
    network = networks[seed % len(networks)]
    if network == "simulated":
        return simulated_run(seed, chance)
    moment = chance.choice(["start", "init", "midst", "midst", "end"])
    place = ending.Place(f"random-{os.getpid()}-{seed}")
    place.environment["CAUSEWAY_FAILURE_TIMEOUT"] = TIMEOUT_S
    sites, kind, seconds, wrong = None, (network, moment, "nobody", ""), 0, None
    try:
        sites = Sites(place) if network == "gateways" else None
        turns = ["100"] if moment == "end" else []
        program = ([sites.script] if sites else []) + [busy, str(seed), *turns]
        with subprocess.Popen([causeway, "run", "-n", str(RANKS), *EMULATE[network], *program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=place.environment) as job:
            parts = moment_await(job, chance, moment)
            hit = parts and victims_hit(job, chance, parts, sites)
            before = time.monotonic()
            kind = (network, moment, *(hit or ("nobody", "")))
            try:
                errors = job.communicate(timeout=HANG_S)[1]
                wrong = place_check(place, job, sites, moment, hit, errors)
            except subprocess.TimeoutExpired:
                wrong = f"still there after {HANG_S} s: {place.left_behind()}"
                ending.kill_all(ending.processes_of(place.token))
            seconds = time.monotonic() - before
    except RuntimeError as error:
        wrong = str(error)
    finally:
        wrong = (wrong or "") + (sites.end() if sites else "")
        wrong = wrong or place.left_await()
        place.close()
    return kind, seconds, wrong or None


def place_check(place, job, sites, moment, hit, errors):
    """What is wrong with the end of the job itself."""
    if hit is None or moment == "end":
        return None if hit is None or job.returncode != 124 else "--timeout has expired"
    if job.returncode == 0 or "MPI_ERR_NOT_SAME" in errors:
        return f"exit code {job.returncode}: {errors}"
    if sites is None:
        left = place.left_await()
        return left and f"stays behind: {left}"
    return None


def main():
    first = int(os.environ.get("CW_TEST_SEED", "1"))
    seeds = range(first, first + int(os.environ.get("CW_TEST_ENDINGS", "1" if "CW_TEST_SEED" in os.environ else "16")))
    counts, longest, failures = collections.Counter(), collections.defaultdict(float), 0
    with ThreadPoolExecutor(3) as pool:
        for seed, (kind, seconds, wrong) in zip(seeds, pool.map(round_run, seeds)):
            network, moment, victim, how = kind
            for key in (f"{victim} {how}".strip(), network, f"at {moment}"):
                counts[key] += 1
                longest[key] = max(longest[key], seconds)
            if wrong:
                failures += 1
                print(f"seed {seed}, {' '.join(kind)}: {wrong}", flush=True)
    for key in sorted(counts):
        print(f"{key}: {counts[key]}, the longest {longest[key]:.1f} s")
    print(f"seeds {seeds[0]} to {seeds[-1]}: {failures} failed")
    return 1 if failures else 0


if "memif" in networks:
    networks += ["clusters", "gateways"]
sys.exit(main())
