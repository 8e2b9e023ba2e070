#!/usr/bin/env python3
"""Causeway, MPICH and Open MPI side by side: one benchmark source, run in turn, medians and ratios.

    apt-get install libmpich-dev libopenmpi-dev openmpi-bin
    tests/peers/peers.py BUILD [--ranks 2] [--rounds 11] [--only barrier,bcast] [--emulate 2,memif] [--json FILE]
    tests/peers/peers.py BUILD --against OTHER_BUILD     two versions of Causeway, and nobody else

A ratio below 1 means that Causeway is ahead of the better of its peers, for times and for rates alike.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

from contest import HERE, Contender, ratio, rounds_run


def libraries(build, against, ranks, emulate):
    """Name -> (compiler, command that starts `ranks` ranks), of those that are installed."""
    emulated = ["--emulate", emulate] if emulate else []

    def ours(folder):
        return os.path.join(folder, "mpi", "mpicc"), [os.path.join(folder, "causeway"), "run", "-n", str(ranks), *emulated]

    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    found = {
        "causeway": ours(build),
        "against": ours(against),
    } if against else {
        "causeway": ours(build),
        "mpich": ("mpicc.mpich", ["mpiexec.mpich", "-n", str(ranks)]),
        "openmpi": ("mpicc.openmpi", ["mpirun.openmpi", *root, "--oversubscribe", "-n", str(ranks)]),
    }
    return {name: (compiler, run) for name, (compiler, run) in found.items() if shutil.which(compiler)}


def rows(made):
    """One row per measurement: medians by library, and ours against the best of the others."""
    keys = dict.fromkeys(key for one in made for key in one.results)
    for key in (key for key in keys if key in made[0].results):
        medians = {one.name: one.median(key) for one in made if key in one.results}
        values = {one.name: one.results[key] for one in made if key in one.results}
        yield {"name": key[0], "bytes": key[1], "values": values, "medians": medians, "ratio": ratio(made[0], made[1:], key)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="Causeway's build folder")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--emulate", default="", help="for Causeway only: see causeway run --help")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one run")
    parser.add_argument("--against", help="another build folder of Causeway, to compare with that alone")
    parser.add_argument("--json", help="writes all values there")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    known = libraries(os.path.abspath(options.build), options.against and os.path.abspath(options.against), options.ranks, options.emulate)
    if "causeway" not in known:
        sys.exit(f"{options.build}: no mpi/mpicc there; build Causeway first: ninja -C {options.build}")
    with tempfile.TemporaryDirectory() as folder:
        programs = {}
        for name, (compiler, _) in known.items():
            programs[name] = os.path.join(folder, name)
            subprocess.run([compiler, "-O2", "-o", programs[name], os.path.join(HERE, "bench.c")], check=True)
        made = [Contender(name, [*command, programs[name], *only]) for name, (_, command) in known.items()]
        rounds_run(made, options.rounds, timeout_s=options.timeout)
    table = list(rows(made))
    print(f"{options.ranks} ranks, medians of {options.rounds} rounds; us, M/s, MB/s, ms, share; ratio below 1: Causeway is ahead")
    print(f"{'':20}{'bytes':>9}" + "".join(f"{name:>12}" for name in known) + f"{'ratio':>8}")
    for row in table:
        cells = "".join(f"{row['medians'].get(name, float('nan')):12.2f}" for name in known)
        print(f"{row['name']:20}{row['bytes']:>9}{cells}" + (f"{row['ratio']:8.2f}" if row["ratio"] is not None else ""))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"ranks": options.ranks, "rounds": options.rounds, "rows": table}, file, indent=1)


if __name__ == "__main__":
    main()
