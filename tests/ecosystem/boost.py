"""Boost.MPI: the programs of libs/mpi/test, with the numbers of ranks that its Jamfile names and those asked for."""
import os
import re

PACKAGES = {
    "g++": "compiles Boost.MPI",
    "dpkg-dev": "unpacks Debian's sources",
    "libboost1.74-dev": "Boost's headers, which are those of the source",
    "libboost-serialization1.74-dev": "what Boost.MPI sends objects by",
}
RANKS_MOST = 24  # the Jamfile's 48 are too many for two cores
FLAGS = ["-O1", "-w", "-std=c++14"]


def compile_all(workshop, sources, folder, *flags):
    """Objects of sources, where they are not there yet; two at a time."""
    objects = [os.path.join(folder, os.path.basename(source) + ".o") for source in sources]
    pairs = [f"{source} {target}" for source, target in zip(sources, objects) if not os.path.exists(target)]
    if pairs:
        command = " ".join([workshop.wrapper("mpicxx"), *FLAGS, *flags])
        workshop.call("sh", "-c", f"printf '%s\\n' \"$@\" | xargs -P2 -L1 sh -c '{command} -c $0 -o $1'", "compile", *pairs)
    return objects


def build(workshop):
    source = os.path.join(workshop.source("boost1.74", "*/libs/mpi"), "libs", "mpi")
    folder = os.path.join(workshop.folder, "boost-build")
    os.makedirs(folder, exist_ok=True)
    library = [os.path.join(source, "src", name) for name in sorted(os.listdir(os.path.join(source, "src"))) if name.endswith(".cpp")]
    return source, folder, compile_all(workshop, library, folder)


def plan(source):
    """(name, program, ranks) of each row of the Jamfile; no ranks: any number."""
    for line in open(os.path.join(source, "test", "Jamfile.v2"), encoding="utf-8"):
        row = re.match(r"\s*\[ mpi-test ([\w-]+)\s*(.*)\]", line)
        if row:
            name, rest = row.group(1), [part.strip() for part in row.group(2).split(":")]
            program = os.path.join(source, "test", rest[1] if len(rest) > 1 and rest[1] else name + ".cpp")
            yield name, program, [int(ranks) for ranks in rest[3].split()] if len(rest) > 3 else []


def link(workshop, name, program, folder, objects):
    target = os.path.join(folder, name)
    if not os.path.exists(target):
        workshop.call(workshop.wrapper("mpicxx"), *FLAGS, program, *objects, "-lboost_serialization", "-lpthread", "-o", target)
    return target


def run(workshop):
    workshop.packages(PACKAGES)
    source, folder, objects = build(workshop)
    for name, program, declared in plan(source):
        if workshop.options.only not in name:
            continue
        target = link(workshop, name, program, folder, objects)
        for ranks in sorted({ranks for ranks in declared or workshop.ranks if ranks <= RANKS_MOST}):
            for network, emulate in workshop.places(ranks, most=8):
                workshop.test("boost", name, network, ranks, workshop.launcher(ranks, emulate) + [target], cwd=folder)
