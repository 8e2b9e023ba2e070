#!/usr/bin/env python3
"""Causeway by the queue pairs of an RDMA device, beside perftest, MPICH and Open MPI by the same one (apt-get install perftest libmpich-dev libopenmpi-dev libucx-dev).

usage: tests/peers/rdma.py [--build build] [--rounds 5] [--only puts|notified|mpi]

The device is rdma_rxe's, on an interface of one guest (tests/metal/guest.py), whose processors QEMU emulates: times are some twenty times those of
hardware, and as steady as is needed to compare them. All spin. A ratio below 1: Causeway is ahead of the better of the others.

    puts     8 bytes: half a round trip (us), beside ib_write_lat, which looks at memory and completes nothing at the receiver, and ib_send_lat, which does;
             1 MiB, 64 outstanding: MB/s, beside ib_write_bw; packets that the device sends for one of perftest's 8 bytes
    notified a put that its target learns of, half a round trip (us), and packets of the device for one: ours is one operation; UCX's is a put, a
             fence and a put of a flag; that of one-sided MPI is MPI_Put, MPI_Win_flush and MPI_Send
    mpi      two ranks that do not see each other's memory: 8 bytes half a round trip (us), windows of 64 KiB and 1 MiB (MiB/s); MPICH and Open MPI over UCX
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "metal")]

from contest import Contender, compile_all, ratio_row, rounds_run, table  # noqa: E402
from guest import run, with_guests  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
DEVICE, IP, PORT = "rxe0", "10.9.0.1", "18515"
SENT = f"/sys/class/infiniband/{DEVICE}/ports/1/hw_counters/sent_pkts"
TRIPS, BLOCKS = 3000, 300
UCX = {"UCX_TLS": "rc,ud,self", "UCX_NET_DEVICES": f"{DEVICE}:1", "UCX_IB_GID_INDEX": "0", "UCX_WARN_UNUSED_ENV_VARS": "n"}
NOTIFIED = [("latency", 8), ("latency", 65536), ("packets", 8), ("packets", 65536)]
MPI = [("latency", 8), ("stream", 65536), ("stream", 1 << 20)]
PUTS = [("latency", 8), ("bandwidth", 1 << 20), ("packets", 8)]
START = f"""
ulimit -l unlimited
ip link add cw0 type dummy && ip addr add {IP}/24 dev cw0 && ip link set cw0 up mtu 4200 && rdma link add {DEVICE} type rxe netdev cw0 || exit 99
exec "$@"
"""


def sent():
    with open(SENT, encoding="ascii") as file:
        return int(file.read())


def perftest(tool, arguments, key, column, trips=None):
    """A tool of perftest, by both of its ends: the column of its last row; packets for each of so many round trips."""
    words = [tool, "-d", DEVICE, "-F", "-p", PORT, *arguments]
    pair = f"{' '.join(words)} >/dev/null 2>&1 & sleep 1; exec {' '.join(words)} {IP}"

    def start(command, **options):
        before = sent()
        done = subprocess.run(command, check=False, **options)
        done.stdout += f"\npackets {sent() - before}"
        return done

    def parse(text):
        rows = [line.split() for line in text.splitlines()]
        values = [row for row in rows if len(row) > column and row[0].isdigit()]
        found = {key: float(values[-1][column])} if values else {}
        if trips and values:
            found[("packets", key[1])] = int(rows[-1][1]) / (2 * trips)
        return found

    return Contender(tool, ["sh", "-c", pair], parse=parse, run=start)


def bench(build):
    def parse(text):
        lines = {line["size_bytes"]: line for line in map(json.loads, text.splitlines())}
        return {("latency", 8): lines[8]["latency_p50_ns"] / 2000, ("bandwidth", 1 << 20): lines[1 << 20]["goodput_bps"] / 8e6}

    return Contender("Causeway", [f"{build}/causeway", "bench", "put", "--rdma", DEVICE, "--sizes", f"8,{1 << 20}", "--rounds", "1", "--duration", "3s", "--no-raw",
                                  "--json"], parse=parse)


def puts(build, rounds, _folder):
    own = bench(build)
    others = [perftest("ib_write_lat", ["-s", "8", "-n", str(TRIPS)], ("latency", 8), 4, TRIPS),
              perftest("ib_write_bw", ["-s", str(1 << 20), "-n", str(BLOCKS), "-t", "64"], ("bandwidth", 1 << 20), 3)]
    beside = [perftest("ib_send_lat", ["-s", "8", "-n", str(TRIPS)], ("latency", 8), 4, TRIPS)]
    rounds_run([own, *others, *beside], rounds)
    table([own, *others, *beside], PUTS, "puts: us, MB/s, packets a put; medians")
    ratio_row(own, others, PUTS[:2], "ratio to ib_write_*")
    ratio_row(own, beside, PUTS[:1], "ratio to ib_send_lat")


def launchers(build):
    """How two ranks of each library are started that go by the device."""
    apart = ["sh", "-c", 'CAUSEWAY_HOST=apart$PMI_RANK exec "$@"', "sh"]  # no memory in common
    return {
        "causeway": ("Causeway", [f"{build}/causeway", "run", "-n", "2", "--transport", f"udp:{IP}", "--rdma", DEVICE, *apart], {"LD_LIBRARY_PATH": f"{build}/mpi"}),
        "mpich": ("MPICH, UCX", ["mpiexec.hydra", "-n", "2"], {**UCX, "MPIR_CVAR_NO_LOCAL": "1", "MPIR_CVAR_NOLOCAL": "1"}),
        "openmpi": ("Open MPI, UCX", ["mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "--mca", "pml", "ucx", "--mca", "btl", "self",
                                      "--mca", "osc", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any", "-n", "2"], UCX),
    }


def notified(build, rounds, folder):
    def start(command, **options):
        """Runs it once for each size, since packets are told apart by nothing else."""
        text = ""
        for size in ("8", "65536"):
            before = sent()
            done = subprocess.run([*command, size], check=False, **options)
            text += f"{done.stdout}packets {size} {(sent() - before) / (2 * 1.1 * TRIPS)}\n"  # a tenth of the trips goes before
        done.stdout = text
        return done

    def other(name, program, before=(), environment=None):
        """Of those that could be compiled."""
        path = f"{folder}/{program}"
        return [Contender(name, [*before, path], {**(environment or UCX), "TRIPS": str(TRIPS)}, run=start)] if os.path.exists(path) else []

    def parse(text):
        lines = map(json.loads, text.splitlines())
        return {("latency", line["size_bytes"]): line["latency_p50_ns"] / 2000 for line in lines}

    own = Contender("Causeway", [f"{build}/causeway", "bench", "put", "--rdma", DEVICE, "--sizes", "8,65536", "--rounds", "1", "--duration", "1s", "--no-raw", "--json"],
                    parse=parse)
    others = other("UCX: put, fence, put", "notified_ucx")
    for name, (title, words, environment) in launchers(build).items():
        others += other(f"{title}: put, flush, send", f"notified-{name}", words, environment)
    rounds_run([own, *others], rounds)
    table([own, *others], NOTIFIED, "notified puts: us, packets; medians")
    ratio_row(own, others, NOTIFIED[:2], "ratio")


def mpi(build, rounds, folder):
    program = ["1", *(str(size) for name, size in MPI if name == "stream")]
    known = launchers(build)
    made = [Contender(known[name][0], [*known[name][1], f"{folder}/{name}", *program], known[name][2]) for name in known if os.path.exists(f"{folder}/{name}")]
    rounds_run(made, rounds)
    table(made, MPI, "two ranks apart: us, MiB/s; medians")
    ratio_row(made[0], made[1:], MPI, "ratio")


def notified_compile(folder):
    """Those that can be: Causeway has no one-sided MPI."""
    for name, words in {"notified_ucx": ["gcc", f"{HERE}/notified_ucx.c", "-lucp", "-lucs"], "notified-mpich": ["mpicc.mpich", f"{HERE}/notified_mpi.c"],
                        "notified-openmpi": ["mpicc.openmpi", f"{HERE}/notified_mpi.c"]}.items():
        if shutil.which(words[0]) is None or subprocess.run([*words[:1], "-O2", "-w", *words[1:], "-o", f"{folder}/{name}"], check=False, stderr=subprocess.DEVNULL).returncode:
            print(f"without {name}: it cannot be compiled here", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("puts", "notified", "mpi"))
    parser.add_argument("--inside", help=argparse.SUPPRESS)  # the guest; where the programs are
    options = parser.parse_args()
    if options.inside:
        for part in (puts, notified, mpi):
            if options.only in (None, part.__name__):
                part(options.build, options.rounds, options.inside)
        return 0
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        if options.only != "puts":
            compile_all(os.path.abspath(options.build), folder, "pingpong.c")
            notified_compile(folder)
        own = ["python3", "-B", os.path.abspath(__file__), "--inside", folder, "--build", os.path.abspath(options.build), "--rounds", str(options.rounds),
               *(["--only", options.only] if options.only else [])]
        result = run(["sh", "-c", START, "sh", *own], modules=["crc32_generic", "rdma_rxe", "dummy"], time_s=3000, cache=f"{os.path.abspath(options.build)}/metal")
    sys.stdout.write(result.out)
    sys.stderr.write(result.err)
    return result.code


if __name__ == "__main__":
    sys.exit(with_guests(main))
