#!/usr/bin/env python3
"""dedicated_usage.py CAUSEWAY OVERLAP PROGRAM... [-- wire]: MPI by dataplane threads on cores of their own, and what is said where there are none."""
import os
import subprocess
import sys
import tempfile

from expectation import JOB_HANG, execute, expect, wait_until

words = sys.argv[1:]
has_wire = words[-2:] == ["--", "wire"]
causeway, overlap, *programs = map(os.path.abspath, words[:-2] if has_wire else words)
cores = sorted(os.sched_getaffinity(0))


def run(*arguments, **variables):
    return execute([causeway, "run", "--timeout", JOB_HANG, *arguments], **variables)


def passes(what, result):
    expect(result.returncode == 0, f"{what} ends with {result.returncode}: {result.stderr[-600:]}{result.stdout[-300:]}")
    return result.stderr


def named(count):
    """--dedicated for so many ranks of this machine, which mostly has not that many cores: any will do for what is right."""
    return "cores:" + ",".join(map(str, (cores * count)[:min(count, len(cores))]))


here = min(2, len(cores))
for program in programs:
    for where in [[]] + [["--emulate", f"{here},memif"]] * has_wire:
        passes(f"{program} {where}", run("-n", str(here), "--dedicated", named(here), *where, program))
if here == 2:
    for where in [[]] + [["--emulate", "2,memif"], ["--emulate", "2,memif,loss=1%"]] * has_wire:
        result = run("-n", "2", "--dedicated", named(2), "--explain", *where, overlap, "--bytes", "262144", "--rounds", "3", "--computes", "1")
        expect(f"rank 0: a dataplane thread on core {cores[0]}\n" in passes(f"overlap {where}", result), f"--explain names the core: {result.stderr}")
        expect("overlap: verified" in result.stdout and result.stdout.count("overlap ") >= 3, f"overlap {where}: {result.stdout}")

# too few: a line, once a machine, and the job goes on
many = 2 * len(cores)
result = run("-n", str(many), "--dedicated", "1", programs[0])
said = passes("more ranks than cores", result)
expect(said.count("no core for a dataplane thread") == 1 and f"{many} ranks with 1 dataplane thread each want {2 * many} cores" in said, f"too few cores: {said}")
result = run("-n", "2", "--dedicated", f"cores:{cores[0]}", programs[0])
expect("2 ranks of this host want 2 cores, and the list of --dedicated has 1" in passes("a list that is too short", result), result.stderr)
result = run("-n", "1", "--dedicated", "off", programs[0], CAUSEWAY_DEDICATED="1")
expect("dataplane thread" not in passes("off", result), result.stderr)

# several loops of a rank, which lanes and long messages are dealt among: between hosts, by sockets, and by the queue pairs of a device: a memif
# The program of rank 0 is asked while it runs, and ended when it has answered.
TELEMETRY = """import os, socket, subprocess, sys, time
if os.environ["PMI_RANK"] != "0":
    os.execv(sys.argv[1], sys.argv[1:])
rank = subprocess.Popen(sys.argv[1:], close_fds=False)
while rank.poll() is None:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if line.connect_ex(f"/var/run/dpdk/causeway-{rank.pid}/dpdk_telemetry.v2") == 0:
        line.recv(1024)
        line.send(b"/ethdev/stats,0")
        if b'"ipackets"' in line.recv(16384):
            print("telemetry answers", flush=True)
            rank.kill()
    time.sleep(0.01)"""
MEMIF = 'if [ "$PMI_RANK" = 0 ]; then role=server; else role=client; fi; export CAUSEWAY_TRANSPORT=net_memif0,role=$role,socket="$0",socket-abstract=no; exec "$@"'
can_have_hosts = os.geteuid() == 0 and subprocess.run(["unshare", "--net", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
if here == 2 and can_have_hosts:
    lab = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lab/hosts.py")
    folders = [f"--keep={os.path.dirname(path)}" for path in (causeway, lab)]

    def between_hosts(*arguments):
        """Again if the client of a memif comes before its server, for which it waits a second: both open their ends at once."""
        words = [sys.executable, lab, *folders, causeway, "run", "--hosts", "h0,h1", "--timeout", JOB_HANG, "--explain", *arguments]
        result = None

        def is_settled():
            nonlocal result
            result = execute(words)
            return "no memif server listens" not in result.stderr

        wait_until(is_settled)
        return result

    for program in programs[-2:]:
        result = between_hosts("--dedicated", "2,cores:0-1", program)
        said = passes(f"{program}: two loops", result)
        expect(said.count("rank 0: a dataplane thread on core ") == 2, f"both loops have a thread: {said}")
    if has_wire:
        with tempfile.TemporaryDirectory() as folder:
            folders.append(f"--keep={folder}")
            for program in programs[-2:]:
                said = passes(f"{program}: two queue pairs", between_hosts("--dedicated", "2,cores:0-1", "sh", "-c", MEMIF, f"{folder}/memif", program))
                expect(said.count("rank 0: a dataplane thread on core ") == 2 and "by net_memif" in said, f"a loop for each queue pair: {said}")
            endless = [overlap, "--rounds", "1000", "--bytes", "1048576"]
            result = between_hosts("--telemetry", "/bin/sh", "-c", MEMIF, f"{folder}/memif", sys.executable, "-c", TELEMETRY, *endless)
            expect(result.stdout.startswith("telemetry answers"), f"DPDK's telemetry: {result.stderr}{result.stdout}")

# nonsense
for text in ("9", "2,", "cores:", "cores:1,x", "2cores:1", "yes"):
    result = run("-n", "1", "--dedicated", text, programs[0])
    expect(result.returncode == 2 and f"--dedicated {text}" in result.stderr and "cores:2,4-7" in result.stderr, f"--dedicated {text}: {result.returncode}, {result.stderr}")
result = run("-n", "1", "--dedicated", "cores:1000", programs[0])
expect(result.returncode != 0 and "on core 1000" in result.stderr and "--dedicated off" in result.stderr, f"a core that is not there: {result.stderr}")
alone = execute([programs[0]], CAUSEWAY_DEDICATED="many")
expect(alone.returncode != 0 and "CAUSEWAY_DEDICATED: 'many'" in alone.stderr, f"without a launcher: {alone.stderr}")
