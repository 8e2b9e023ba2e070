#!/usr/bin/env python3
"""Jobs under a flood of set-up packets: replayed ones of earlier jobs with the same key, altered ones, forged ones.

usage: flood_usage.py CAUSEWAY INJECTOR PROGRAM...     PROGRAM: verifies itself (kernels/is, ring.c)

    CW_TEST_RUNS      jobs of each program under each kind of flood, signed and sealed in turn, default 1
    CW_TEST_RATE      packets a second, default 5000

A hand-started switch has one port more than there are ranks, at which the injector is. Nothing is asserted of times."""
import os
import subprocess
import sys
import tempfile
import time

from expectation import HANG_S, JOB_HANG

causeway, injector, *programs = map(os.path.abspath, sys.argv[1:])
RUNS = int(os.environ.get("CW_TEST_RUNS", "1"))
RATE = os.environ.get("CW_TEST_RATE", "5000")
RANKS = 3
KINDS = ("replayed", "altered", "forged")


class Switch:
    """Between the ranks and the injector; captures what passes at one of its ports."""

    def __init__(self, folder, *more):
        self.socket = f"{folder}/switch"
        self.process = subprocess.Popen([causeway, "switch", "--memif", self.socket, "--ports", str(RANKS + 1), *more], stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith("ready"):
                break

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.stdout.read()
        self.process.wait()


def job(folder, sealed, program):
    """What the program prints, and how long it takes."""
    environment = dict(os.environ, CAUSEWAY_EMULATE=f"{RANKS},memif,{folder}/switch", CAUSEWAY_JOB_KEY="5a" * 16, CAUSEWAY_ENCRYPT="all" if sealed else "off")
    start = time.monotonic()
    result = subprocess.run([causeway, "run", "-n", str(RANKS), "--timeout", JOB_HANG, program, "S"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=environment, timeout=HANG_S)
    if result.returncode != 0 or "verified" not in result.stdout or "not verified" in result.stdout:
        sys.exit(f"exit code {result.returncode}: {result.stdout}")
    return time.monotonic() - start


def captures_make(folder, sealed, program):
    """Set-up packets of earlier jobs: at each rank's port of one."""
    made, quiet = [], []
    for port in range(RANKS):
        made.append(f"{folder}/{'sealed' if sealed else 'signed'}{port}.pcap")
        with Switch(folder, "--pcap", made[-1], "--pcap-at", f"port{port}"):
            quiet.append(job(folder, sealed, program))
    return made, quiet


def flooded(folder, kind, captures, sealed, program):
    with Switch(folder):
        flood = subprocess.Popen([injector, f"{folder}/switch", str(RANKS), RATE, kind, *captures], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        first = flood.stdout.readline()
        if not first.startswith("flooding"):
            sys.exit(f"the injector does not flood: {first}")
        took = job(folder, sealed, program)
        told = flood.communicate()[0].strip()
        if flood.returncode != 0:
            sys.exit(f"the injector ends with {flood.returncode}")
        print(f"{os.path.basename(program)}, {kind}, {'sealed' if sealed else 'signed'}: verified in {took:.1f} s; {told}", flush=True)


for program in programs:
    with tempfile.TemporaryDirectory() as folder:
        captures = {}
        for sealed in (False, True):
            captures[sealed], quiet = captures_make(folder, sealed, program)
            print(f"{os.path.basename(program)}, without, {'sealed' if sealed else 'signed'}: verified in", ", ".join(f"{took:.1f}" for took in quiet), "s", flush=True)
        for run in range(RUNS):
            for i, kind in enumerate(KINDS):
                sealed = (run + i) % 2 == 1
                flooded(folder, kind, captures[sealed], sealed, program)
