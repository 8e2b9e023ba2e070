#!/usr/bin/env python3
"""Random processes of jobs across hosts are killed or stopped at random moments, or a host's cable is pulled: every job
ends on all hosts, and nothing is left on any. How long each kind takes is printed.

usage: launch_random.py BUILD [PROGRAM [ARGUMENT...]]     PROGRAM: of MPI, which runs until it is ended

    CW_TEST_ENDINGS   how many, default 24; 200 take some fifteen minutes
    CW_TEST_SEED      the first round's seed, default 1; if it is set, one round is the default. A round that fails prints its seed

Victims: a rank, a process that a rank has started, an agent's supervisor or launcher, the launcher's supervisor or launcher, what
has started an agent, and with PROGRAM a cable. A stopped supervisor ends when it is continued.
"""
import os
import random
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpi"))
import hosts
from ending import children_of
from ending import command_of as words_of
from expectation import HANG_S, wait_until

os.environ["CAUSEWAY_FAILURE_TIMEOUT"] = "2"  # also of agents that have been told nothing yet
CAUSEWAY = "/tmp/build/causeway"
HOSTS = 3
SHELL = ["sh", "-c", "echo begins; sleep 1000 & trap 'exit 1' TERM; while :; do sleep 0.1; done"]
build = os.path.abspath(sys.argv[1])
program = [f"/tmp/build/{os.path.relpath(os.path.abspath(sys.argv[2]), build)}", *sys.argv[3:]] if sys.argv[2:] else None

hosts.skip_without_hosts()


def parts_of(lab):
    """What there is of the job, by kind."""
    parts = {}
    for name in lab.names:
        for process in lab.processes(name):
            words = words_of(process)
            if words[:2] in ([CAUSEWAY, "agent"], [CAUSEWAY, "run"]):
                kind = "agent" if words[1] == "agent" else "launcher"
                below = [child for child in children_of(process) if words_of(child)[:2] == words[:2]]
                parts.setdefault(f"{kind} supervisor" if below else f"{kind} launcher", []).append(process)
                if not below:
                    for child in children_of(process):
                        if "--ssh" in words_of(child):
                            parts.setdefault("ssh", []).append(child)
                        elif words_of(child) == (program or SHELL):  # others are still to become one of both
                            parts.setdefault("rank", []).append(child)
                            parts.setdefault("child of a rank", []).extend(children_of(child))
    return {kind: found for kind, found in parts.items() if found}


def tell(process, number):
    """A signal to a process that may just have ended."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def hit(lab, chance, used):
    """What became of whom, and whom to continue for the job's end. `used`: the job's hosts."""
    parts = parts_of(lab)
    kinds = list(parts) + (["cable"] if program else [])
    if not parts:
        return ("nobody", ""), None
    kind = chance.choice(kinds)
    if kind == "cable":
        lab.link(chance.choice(used), False)
        return (kind, "pulled"), None
    number = chance.choice([signal.SIGKILL, signal.SIGSTOP])
    if kind == "child of a rank":
        number = signal.SIGKILL  # a stopped one is its parent's business
    victim = chance.choice(parts[kind])
    try:
        os.kill(victim, number)
    except ProcessLookupError:
        return ("nobody", ""), None
    stopped = number == signal.SIGSTOP
    alone = kind.endswith("launcher") and words_of(victim)[1:2] == ["agent"] and kind.replace("launcher", "supervisor") not in parts
    return (kind, "stopped" if stopped else "killed"), victim if stopped and (kind.startswith("launcher") or alone) else None


def front_await(lab, job):
    """Until the launcher has a launcher: who was hit may have been on the way there. It may also have ended."""
    wait_until(lambda: job.poll() is not None or "launcher supervisor" in parts_of(lab))


def round_run(lab, seed):
    """(victim, how), seconds, what is wrong with it or None."""
    chance = random.Random(seed)
    used = chance.sample(range(HOSTS), chance.choice([2, 3]))
    where = ",".join(f"h{index}:2" for index in used)
    command = program or SHELL
    job = lab.start("h0", [CAUSEWAY, "run", "--hosts", where, *command])
    if chance.random() < 0.4:
        time.sleep(chance.random() * 0.25)  # while it starts
    else:
        job.stdout.readline()
        time.sleep(chance.random() * 0.3)
    # a launcher waits for who reads its output, until a second signal comes
    threading.Thread(target=job.stdout.read, daemon=True).start()
    kind, stopped = hit(lab, chance, used)
    begin = time.monotonic()
    # the laboratory's ssh has handed its files over once the job runs: nobody misses it then
    if kind[0] == "nobody":
        front_await(lab, job)
    if kind[0] in ("nobody", "child of a rank") or kind in (("agent supervisor", "stopped"), ("ssh", "stopped")) or (kind == ("rank", "stopped") and not program):
        for process in parts_of(lab).get("launcher supervisor", []):
            tell(process, signal.SIGTERM)
    if stopped is not None:
        # agents end by themselves meanwhile, but for those of a supervisor's launcher, which goes on
        if kind[0] != "launcher supervisor" and not wait_until(lambda: not any(map(lab.processes, lab.names[1:]))):
            return kind, 0, f"agents go on without a launcher that is stopped: {[lab.processes(name) for name in lab.names]}"
        tell(stopped, signal.SIGCONT)
        front_await(lab, job)
        for process in parts_of(lab).get("launcher supervisor", []):
            tell(process, signal.SIGTERM)
    left = lab.left(HANG_S)
    seconds = time.monotonic() - begin
    wrong = f"leaves {left}" if left else None
    if wrong is not None:
        for found in left.values():
            for process in found:
                tell(process, signal.SIGKILL)
    job.send_signal(signal.SIGCONT)  # nsenter stops with its child
    job.wait()
    said = job.stderr.read()
    if wrong is None and kind[0] not in ("nobody", "child of a rank") and job.returncode == 0:
        wrong = "ends with exit code 0"
    for index in range(HOSTS):
        lab.link(index, True)
    return kind, seconds, f"{wrong}\n{said}" if wrong else None


def main():
    first = int(os.environ.get("CW_TEST_SEED", "1"))
    count = int(os.environ.get("CW_TEST_ENDINGS", "1" if "CW_TEST_SEED" in os.environ else "24"))
    kinds, failures = {}, 0
    with hosts.Lab(HOSTS, user="nobody", keep=[f"{build}:build"]) as lab:
        for seed in range(first, first + count):
            kind, seconds, wrong = round_run(lab, seed)
            kinds.setdefault(" ".join(kind), []).append(seconds)
            if os.environ.get("CW_TEST_VERBOSE"):
                print(seed, *kind, f"{seconds:.2f} s", flush=True)
            if wrong:
                failures += 1
                print(f"seed {seed}: {kind[0]} {kind[1]}: {wrong}", flush=True)
    for kind, times in sorted(kinds.items()):
        print(f"{kind or 'nobody':28} {len(times):4} times, {min(times):6.2f} to {max(times):6.2f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
