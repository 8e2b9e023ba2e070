#!/usr/bin/env python3
"""Collectives by multicast between emulated hosts, beside our best unicast algorithms, and MPICH and Open MPI over TCP between the same hosts.

    apt-get install mpich libmpich-dev openmpi-bin libopenmpi-dev
    sudo tests/peers/multicast.py [--build build] [--hosts 8] [--collective bcast] [--sizes 1,1024,10240,1048576] [--rounds 5] [--runs 50] [--network veth]

One source for all (apps/measure/collective_measure.c, which says what its figures mean), in turn: medians of the rounds. A ratio above 1: multicast is ahead.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MULTICAST = {"bcast": "multicast", "scatter": "multicast", "allgather": "multicasts"}
UNICAST = {
    "bcast": ["flat", "binomial", "segmented-binomial", "segmented-chain", "van-de-geijn"],
    "scatter": ["flat", "binomial", "pipelined-chain"],
    "allgather": ["concurrent", "ring", "bruck", "gather-bcast"],
}
FIGURES = ("median", "p99.9", "each", "processor", "at root")


def measured(text, name):
    """{(name, bytes): [median, p99.9, each, processor, frames]}"""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 8 and words[1].isdigit():
            way = f"{name} {words[0]}" if words[0] != "-" else name
            found[way, int(words[1])] = [float(word) for word in words[2:7]]
    return found


def commands(options, folder):
    """Name -> command, of the libraries that are here."""
    causeway = os.path.join(options.build, "causeway")
    network = f"{options.hosts},{options.network}"
    asked = [options.collective, options.sizes, str(options.runs)]
    ours = [MULTICAST[options.collective]] + UNICAST[options.collective]
    made = {"causeway": [causeway, "run", "-n", str(options.hosts), "--emulate", network, os.path.join(options.build, "apps", "collective_measure"), *asked, *ours]}
    for library in ("mpich", "openmpi"):
        compiler = shutil.which(f"mpicc.{library}")
        if compiler is None:
            print(f"without {library}: there is no mpicc.{library}", file=sys.stderr)
            continue
        program = os.path.join(folder, library)
        subprocess.run([compiler, "-O2", "-w", "-I", ROOT, os.path.join(ROOT, "apps", "measure", "collective_measure.c"), "-o", program], check=True)
        made[library] = [causeway, "run", "-n", "1", "--emulate", network, os.path.join(HERE, "veth_tcp.sh"), library, program, *asked, "-",
                         ":", "-n", str(options.hosts - 1), "true"]
    return made


def rounds_run(options, made):
    """{(way, bytes): [[figures of a round], ...]}"""
    results = {}
    for _ in range(options.rounds):
        for name, command in made.items():
            try:
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=options.timeout, check=False)
                found, why = measured(done.stdout, name), done.stderr.strip()[-300:]
            except subprocess.TimeoutExpired:
                found, why = {}, f"no end after {options.timeout} s"
            if not found:
                print(f"{name} failed: {why}", file=sys.stderr)
            for key, figures in found.items():
                results.setdefault(key, []).append(figures)
    return results


def report(options, results):
    ways = list(dict.fromkeys(way for way, _ in results))
    ours = f"causeway {MULTICAST[options.collective]}"
    for size in map(int, options.sizes.split(",")):
        medians = {way: [statistics.median(column) for column in zip(*results[way, size])] for way in ways if (way, size) in results}
        print(f"\n{options.collective}, {options.hosts} hosts, {options.network}, {size} bytes, us" + "".join(f"{figure:>12}" for figure in FIGURES))
        for way, figures in medians.items():
            ratio = f"  ratio {figures[0] / medians[ours][0]:.2f}, processors {figures[3] / medians[ours][3]:.2f}" if way != ours else ""
            print(f"{way:45}" + "".join(f"{figure:12.1f}" for figure in figures) + ratio)
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--collective", choices=MULTICAST, default="bcast")
    parser.add_argument("--sizes", default="1,1024,10240,1048576")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--network", default="veth", help="veth[,mtu=N]")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one library's round")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    with tempfile.TemporaryDirectory() as folder:
        results = rounds_run(options, commands(options, folder))
    if any(way.startswith("causeway ") for way, _ in results):
        report(options, results)


if __name__ == "__main__":
    main()
