#!/usr/bin/env python3
"""Every algorithm of every collective in MPI calls, over simulated networks that lose, alter, repeat and reorder packets.

usage: simulate_algorithms.py CAUSEWAY PROGRAM...    the programs compare each result with a serial reference

    CW_TEST_SEEDS   number of rounds, default: as many as it takes until each algorithm has run
    CW_TEST_SEED    first round, default 1

Each round asks for one algorithm of each collective, as `causeway plan list` prints them. Odd rounds have several clusters,
and thus the algorithms for clusters; even rounds have one switch, and thus the algorithms by multicast. The round also draws
the number of ranks and hosts, and the faults. A round that fails is printed with its commands.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from expectation import HANG_S, expect

causeway, *programs = map(os.path.abspath, sys.argv[1:])
environment = {name: value for name, value in os.environ.items() if not name.startswith("CAUSEWAY_")}


def algorithms_list():
    """{collective: [algorithm...]}"""
    algorithms = {}
    listed = subprocess.run([causeway, "plan", "list"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        if line.startswith("  "):
            algorithms[collective].append(line.split()[0])
        else:
            collective = line.split()[0]
            algorithms[collective] = []
    algorithms["alltoallv"] += [name for name in algorithms["alltoall"] if name.startswith(("greedy", "all-to-all-based"))]
    return algorithms


def divided(names):
    """The names for rounds with one switch, and for those with clusters. Either list has about half of them."""
    flat = [name for name in names if "multicast" in name]
    wide = [name for name in names if name.startswith("clusters")]
    for name in names:
        if name not in flat + wide:
            min(flat, wide, key=len).append(name)
    return flat, wide or flat


def topology_write(path, draw, clusters, hosts):
    """Clusters joined each with each. Cluster i has hosts[i] hosts."""
    names = [f"c{i}" for i in range(clusters)]
    topology = {
        "clusters": [{"name": name, "hosts": count, "rate": "1Gbps", "delay": "20us", "queue": "1MB"} for name, count in zip(names, hosts)],
        "links": [
            {"name": f"{a}-{b}", "between": [a, b], "rate": draw.choice(["500Mbps", "10Gbps"]), "delay": draw.choice(["100us", "2ms"]), "queue": "1MB"}
            for i, a in enumerate(names)
            for b in names[i + 1 :]
        ],
    }
    with open(path, "w") as file:
        json.dump(topology, file)


def round_make(folder, algorithms, number):
    """The commands of a round, their environment, and the topology."""
    draw = random.Random(number)
    is_wide, turn = number % 2, number // 2
    topology = ""
    if not is_wide:
        ranks = draw.randint(2, 9)
        network = f"hosts={draw.randint(2, ranks)},rate=1Gbps,delay=20us"
    else:
        clusters = draw.randint(2, 4)
        hosts = [draw.randint(1, 3) for _ in range(clusters)]
        ranks = sum(hosts) * (draw.randint(1, 2) if sum(hosts) <= 6 else 1)
        path = os.path.join(folder, f"{number}.json")
        topology_write(path, draw, clusters, hosts)
        network = f"topology={path}"
        with open(path) as file:
            topology = file.read()
    faults = f"loss={draw.choice([0, 1, 3])}%,corrupt=0.2%,duplicate=1%,reorder={draw.choice([0, 2])}%"
    lists = {collective: divided(names)[is_wide] for collective, names in algorithms.items()}
    words = ",".join(f"{collective}={names[turn % len(names)]}" for collective, names in lists.items())
    commands = [[causeway, "run", "-n", str(ranks), "--simulate", f"{network},{faults},cpu=0,seed={number}", program] for program in programs]
    return commands, words, topology


def run(task):
    command, words = task[:2]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env={**environment, "CAUSEWAY_ALGORITHM": words}, timeout=HANG_S)
        return task, done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return task, None, "it hangs"


def main():
    algorithms = algorithms_list()
    longest = max(len(names) for both in map(divided, algorithms.values()) for names in both)
    expect(len(algorithms) == 13 and longest > 5, f"collectives and algorithms are listed: {algorithms}")
    first, count = int(os.environ.get("CW_TEST_SEED", "1")), int(os.environ.get("CW_TEST_SEEDS", str(2 * longest)))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = []
        for number in range(first, first + count):
            commands, words, topology = round_make(folder, algorithms, number)
            tasks += [(command, words, topology, number) for command in commands]
        for (command, words, topology, number), code, output in pool.map(run, tasks):
            repeat = f"CW_TEST_SEED={number} CW_TEST_SEEDS=1 meson test -C build -v simulate_algorithms"
            expect(code == 0, f"right results, not exit code {code}:\nCAUSEWAY_ALGORITHM={words} {' '.join(command)}\n{topology}\n{output}\nrepeat: {repeat}")
    print(f"{count} rounds of {len(programs)} programs, {sum(map(len, algorithms.values()))} algorithms")


main()
