#!/usr/bin/env python3
"""full_disk_usage.py CAUSEWAY IS TOPOLOGY [wire]: whatever cannot be written is an error: one line names the file, and the exit code says so. Nothing is timed."""
import os
import subprocess
import sys
import tempfile

from expectation import HANG_S, JOB_HANG, expect

causeway, program, topology = sys.argv[1:4]
has_wire = sys.argv[4:] == ["wire"]


def run(arguments, output=subprocess.PIPE, prefix=()):
    return subprocess.run([*prefix, causeway, *arguments], stdout=output, stderr=subprocess.PIPE, text=True, timeout=HANG_S, check=False)


def fails(arguments, code, says):
    result = run(arguments)
    expect(result.returncode == code and says in result.stderr, f"{arguments} cannot write: {result.returncode} {result.stderr}")


with tempfile.TemporaryDirectory() as folder:
    plan, trace, stats = (os.path.join(folder, name) for name in ("x.plan", "x.trace", "x.csv"))
    build = ["plan", "build", "--collective", "bcast", "--algorithm", "binomial", "--ranks", "4", "--size", "64", "-o"]
    record = ["run", "--timeout", JOB_HANG, "-n", "2", "--record"]
    expect(run(build + [plan]).returncode == 0, "a plan is written")
    expect(run(record + [trace, program, "S"]).returncode == 0, "a trace is written")
    fails(build + ["/dev/full"], 3, "/dev/full")
    os.symlink("/dev/full", os.path.join(folder, "full.svg"))
    fails(["plan", "draw", plan, "-o", os.path.join(folder, "full.svg")], 3, "full.svg")
    fails(["plan", "compile", trace, "--all", "-o", "/dev/full"], 3, "/dev/full")
    fails(["plogp", "--ranks", "2", "--path", "shared", "--sizes", "8,64", "--time", "200ms", "--noisy", "-o", "/dev/full"], 3, "/dev/full")
    # a trace takes the place of a file: a device must not become one
    fails(record + ["/dev/full", program, "S"], 2, "/dev/full")
    if has_wire:
        emulate = ["run", "--timeout", JOB_HANG, "-n", "2", "--emulate"]
        fails(emulate + ["2,memif,stats=/dev/full", program, "S"], 3, "/dev/full")
        socket = os.path.join(folder, "s")
        fails(["switch", "--memif", socket, "--ports", "2", "--seconds", "1", "--stats", "/dev/full", "--stats-interval", "1ms"], 3, "/dev/full")
        fails(["switch", "--memif", socket, "--topology", topology, "--seconds", "1", "--pcap", "/dev/full", "--pcap-at", "sea"], 3, "/dev/full")
        clusters = ["run", "--timeout", JOB_HANG, "-n", "6", "--emulate", f"topology={topology},memif,stats={stats}"]
        expect(run(clusters + [program, "S"]).returncode == 0, "statistics are written")
        fails(["draw", stats, "--data", "/dev/full", "-o", os.path.join(folder, "x.svg")], 3, "/dev/full")
        fails(["draw", stats, "-o", os.path.join(folder, "full.svg")], 3, "full.svg")

    with open("/dev/full", "w", encoding="utf-8") as full:
        for arguments in (["plan", "list"], ["doctor", "--json"], ["plan", "dump", plan]):
            result = run(arguments, output=full)
            expect(result.returncode == 3 and "stdout" in result.stderr and "memory" not in result.stderr,
                   f"{arguments} cannot print: {result.returncode} {result.stderr}")

    # a disk without room: what was there stays
    mount = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=16k none "$0" && echo old > "$0/t" && cat /dev/zero > "$0/fill" 2> /dev/null; '
             '"$@"; code=$?; [ "$(cat "$0/t")" = old ] || exit 99; exit $code', folder]
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("not run as root: no disk without room")
    else:
        result = run(record + [os.path.join(folder, "t"), program, "S"], prefix=mount)
        expect(result.returncode == 1 and "No space left" in result.stderr and "nothing was recorded" in result.stderr,
               f"the trace does not fit: {result.returncode} {result.stderr}")
        if has_wire:  # what is mapped has its room when it is made: a bus error names nobody
            result = run(["switch", "--memif", os.path.join(folder, "s"), "--seconds", "1"], prefix=mount)
            expect(result.returncode == 3 and "s.bell: fallocate: No space left" in result.stderr,
                   f"the doorbell does not fit: {result.returncode} {result.stderr}")
