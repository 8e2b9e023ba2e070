#!/usr/bin/env python3
"""How long jobs across hosts take to start, and what their ranks tell each other for it. Needs root.

usage: sudo tests/lab/startup.py [--build build] [--sizes 2x2,4x2,8x4,16x8,32x8,64x8] [--rounds 3] [--user nobody] [--bytes]

Hosts are namespaces (hosts.py) of this machine: their ranks share its cores, so that what a rank takes of a core adds up over all ranks, which it
does not on hosts of their own. Medians of

    start s      from the start of `causeway run` until the last MPI_Init has returned
    end s        ... until the launcher has ended
    cpu s        processor time of all of it
    MiB          the most memory that a rank has had until MPI_Init returned
    requests     puts, gets and fences of rank 0 at its launcher, until the end, and
    KiB          their bytes, both ways
    link KiB     with --bytes: what has passed between the launcher and all agents, both ways; a run of its own
"""
import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
from hosts import SYSTEM_PYTHON, Lab  # noqa: E402


def relay(count_file, host, command):
    """An ssh that counts what goes by its standard input and output."""
    process = subprocess.Popen(["ssh", host, command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    counts = [0, 0]

    def pass_on(source, target, index):
        while data := os.read(source, 1 << 16):
            counts[index] += len(data)
            while data:
                data = data[os.write(target, data):]
        os.close(target)

    down = threading.Thread(target=pass_on, args=(0, process.stdin.fileno(), 0), daemon=True)
    down.start()
    pass_on(process.stdout.fileno(), 1, 1)
    code = process.wait()
    with open(count_file, "a", encoding="ascii") as file:
        file.write(f"{counts[0]} {counts[1]}\n")
    return code


def job_run(lab, hosts, ranks, program, options=()):
    """Figures of one run."""
    command = ["/tmp/build/causeway", "run", "--timeout", "300", "--explain", "--hosts", ",".join(f"{name}:{ranks}" for name in lab.names[:hosts]), *options, program]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin_ns = time.monotonic_ns()
    code, out, err = lab.run("h0", command, timeout=400, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end_ns = time.monotonic_ns()
    returned = [int(each) for each in re.findall(r"^init (\d+)$", out, re.M)]
    if code != 0 or len(returned) != hosts * ranks:
        print(f"{hosts} x {ranks}: exit code {code}, {len(returned)} ranks: {err[-1500:]}", file=sys.stderr)
        return None
    asked = re.search(r"(\d+) requests to the launcher, (\d+) bytes both ways", err)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "start s": (max(returned) - begin_ns) / 1e9,
        "end s": (end_ns - begin_ns) / 1e9,
        "cpu s": now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime,
        "MiB": max(int(each) for each in re.findall(r"^memory (\d+)$", out, re.M)) / 1024,
        **({"requests": int(asked[1]), "KiB": int(asked[2]) / 1024} if asked else {}),
    }


def link_bytes(lab, hosts, ranks, program, shared):
    """Between the launcher and all agents, KiB."""
    counts = f"{shared}/counts"
    with open(counts, "w", encoding="ascii"):
        os.chmod(counts, 0o666)
    launcher = f"{SYSTEM_PYTHON} {lab.folder}/bin/startup.py --relay /tmp/shared/counts"
    if job_run(lab, hosts, ranks, program, ["--launcher", launcher]) is None:
        return None
    with open(counts, encoding="ascii") as file:
        return sum(int(word) for line in file for word in line.split()) / 1024


def main():
    if sys.argv[1:2] == ["--relay"]:
        return relay(*sys.argv[2:5])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--sizes", default="2x2,4x2,8x4,16x8,32x8,64x8", help="hosts x ranks a host")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--user", default="nobody", help="'': root")
    parser.add_argument("--bytes", action="store_true")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("startup.py: hosts are namespaces, which are root's: sudo tests/lab/startup.py")
    build = os.path.abspath(options.build)
    sizes = [tuple(map(int, size.split("x"))) for size in options.sizes.split(",")]
    with tempfile.TemporaryDirectory(dir="/tmp") as shared:
        os.chmod(shared, 0o777)
        subprocess.run([os.path.join(build, "mpi", "mpicc"), "-O2", os.path.join(HERE, "startup.c"), "-o", f"{shared}/startup"], check=True)
        with Lab(max(hosts for hosts, _ in sizes), user=options.user or None, keep=[f"{build}:build", f"{shared}:shared"]) as lab:
            for name in ("startup.py", "hosts.py"):
                subprocess.run(["cp", os.path.join(HERE, name), f"{lab.folder}/bin/"], check=True)
            print(f"{'hosts x ranks':>14}" + "".join(f"{name:>10}" for name in ("start s", "end s", "cpu s", "MiB", "requests", "KiB", "link KiB")), flush=True)
            for hosts, ranks in sizes:
                rounds = [found for _ in range(options.rounds) if (found := job_run(lab, hosts, ranks, "/tmp/shared/startup")) is not None]
                figures = {key: statistics.median(each[key] for each in rounds) for key in (rounds[0] if rounds else {})}
                if options.bytes:
                    figures["link KiB"] = link_bytes(lab, hosts, ranks, "/tmp/shared/startup", shared)
                print(f"{f'{hosts} x {ranks}':>14}" + "".join(
                    f"{figures[name]:10.2f}" if figures.get(name) is not None else f"{'-':>10}" for name in ("start s", "end s", "cpu s", "MiB", "requests", "KiB", "link KiB")),
                    flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
