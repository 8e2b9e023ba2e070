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


def relay(folder, host, command):
    """An ssh that counts what goes by its standard input and output, as long as it is left alive: a file of bytes."""
    process = subprocess.Popen(["ssh", host, command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    file = os.open(f"{folder}/{os.uname().nodename}-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)

    def pass_on(source, target, place):
        count = 0
        while data := os.read(source, 1 << 16):
            count += len(data)
            os.pwrite(file, b"%-19d\n" % count, place)
            while data:
                data = data[os.write(target, data):]
        os.close(target)

    threading.Thread(target=pass_on, args=(0, process.stdin.fileno(), 0), daemon=True).start()
    pass_on(process.stdout.fileno(), 1, 20)
    return process.wait()


def job_run(lab, hosts, ranks, program, options=()):
    """Figures of one run."""
    command = ["/tmp/build/causeway", "run", "--timeout", "300", "--explain", "--hosts", ",".join(f"{name}:{ranks}" for name in lab.names[:hosts]), *options, program]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin_ns = time.monotonic_ns()
    code, out, err = lab.run("h0", command, timeout=400)
    end_ns = time.monotonic_ns()
    returned = [int(each) for each in re.findall(r"^init (\d+)$", out, re.M)]
    if code != 0 or len(returned) != hosts * ranks:
        print(f"{hosts} x {ranks}: exit code {code}, {len(returned)} ranks: {err[-1500:]}", file=sys.stderr)
        return None
    asked = re.search(r"(\d+) requests to the launcher, (\d+) bytes in both directions", err)
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
    counts = tempfile.mkdtemp(dir=shared)
    os.chmod(counts, 0o777)
    launcher = f"{SYSTEM_PYTHON} {lab.folder}/bin/startup.py --relay /tmp/shared/{os.path.basename(counts)}"
    if job_run(lab, hosts, ranks, program, ["--launcher", launcher]) is None:
        return None
    total = 0
    for name in os.listdir(counts):
        with open(f"{counts}/{name}", encoding="ascii") as file:
            total += sum(int(word) for word in file.read().replace("\0", " ").split())
    return total / 1024


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
