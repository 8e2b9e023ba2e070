#!/usr/bin/env python3
"""compress.py BUILD [--only kernels,wide,never] [--rounds N] [--class W]: what compression by itself (auto) does beside none (off), in turn, medians and ratios, between emulated hosts.

kernels  run times at 100 Mb/s and 1 Gb/s (the paper's Tables 3 and 5), the rate of all chunks, and of the whole job, verification included, the time that inequality (3) says is saved beside what was
wide     broadcasts and all-reduces of 32 MB of doubles across a wide area: how much sooner they are, beside the rate
never    what cannot be won: random bytes, a fast LAN, shared memory, more ranks than cores; each size. A ratio above 1 is what compression costs
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = ["adi", "ssor", "sweep", "ppm", "krylov"]
CHUNKS = re.compile(r"rank (\d+): compression of .*? to (?:rank \d+|the group of .*?): .*?codecs ([\d.]+) ns a byte, link (?:not measured|([\d.]+) ns a byte); (\d+) bytes became (\d+)")
NEVER = [("2 ranks, memif", ["-n", "2", "--emulate", "2,memif"]), ("2 ranks, 10 Gb/s", ["-n", "2", "--emulate", "2,memif,rate=10Gbps"]),
         ("8 ranks, 2 hosts", ["-n", "8", "--emulate", "2,memif"]), ("2 ranks, shared", ["-n", "2"])]


def run(build, compression, options, program):
    environment = dict(os.environ, CAUSEWAY_COMPRESSION=compression, CAUSEWAY_EXPLAIN="all")
    result = subprocess.run([os.path.join(build, "causeway"), "run", *options, *program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=900)
    if result.returncode != 0:
        sys.exit(f"{program} ends with {result.returncode}: {result.stderr[-600:]}")
    return result


def chunks(stderr):
    """Rate of all that went in chunks, and the most seconds that a rank should have saved by inequality (3), with the numbers that it tells."""
    raw = packed = 0
    saved = {}
    for rank, codec, link, before, after in CHUNKS.findall(stderr):
        before, after = int(before), int(after)
        raw, packed = raw + before, packed + after
        saved[rank] = saved.get(rank, 0) + float(link or 0) * (before - after) / 1e9 - float(codec or 0) * before / 1e9
    return raw / packed if packed else 1, max(saved.values(), default=0)


def kernels(options, rounds):
    print(f"{'kernel':8} {'rate':8} {'off s':>8} {'auto s':>8} {'speed-up':>8} {'rate':>6} {'saved s':>8} {'by (3) s':>8}")
    for link in ["100Mbps", "1Gbps"]:
        for kernel in KERNELS:
            times, whole, told = {"off": [], "auto": []}, {"off": [], "auto": []}, []
            for _ in range(rounds):
                for compression, list_ in times.items():
                    begin = time.monotonic()
                    result = run(options.build, compression, ["-n", "4", "--emulate", f"4,memif,rate={link}"], [f"{options.build}/apps/kernels/{kernel}", options.problem])
                    list_.append(float(re.search(r"ranks, ([\d.]+) s", result.stdout).group(1)))
                    whole[compression].append(time.monotonic() - begin)
                    if compression == "auto":
                        told.append(chunks(result.stderr))
            off, auto = (statistics.median(times[key]) for key in ["off", "auto"])
            saved = statistics.median(whole["off"]) - statistics.median(whole["auto"])
            rate, predicted = (statistics.median(column) for column in zip(*told))
            print(f"{kernel:8} {link:8} {off:8.2f} {auto:8.2f} {off / auto:8.2f} {rate:6.2f} {saved:8.2f} {predicted:8.2f}", flush=True)


def seconds(result):
    """Of each round, without and with compression."""
    return list(zip(*(map(float, line.split()) for line in result.stdout.splitlines())))


def wide(options, rounds, program):
    print(f"{'call':10} {'link':8} {'delay':6} {'off s':>8} {'auto s':>8} {'speed-up':>8} {'rate':>6} {'of it':>6}")
    for link, delay in [("100Mbps", "10ms"), ("100Mbps", "50ms"), ("250Mbps", "10ms"), ("250Mbps", "50ms")]:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            site = '{"name": "%s", "hosts": 2, "rate": "1Gbps", "delay": "20us"}'
            file.write('{"clusters": [%s, %s], "links": [{"between": ["a", "b"], "rate": "%s", "delay": "%s", "queue": "4MB"}]}' % (site % "a", site % "b", link, delay))
            file.flush()
            for call in ["bcast", "allreduce"]:
                result = run(options.build, "auto", ["-n", "4", "--emulate", f"topology={file.name},memif"], [program, call, str(32 << 20), str(2 * rounds), "smooth"])
                off, auto = map(statistics.median, seconds(result))
                rate, _ = chunks(result.stderr)
                print(f"{call:10} {link:8} {delay:6} {off:8.2f} {auto:8.2f} {off / auto:8.2f} {rate:6.2f} {off / auto / rate:6.2f}", flush=True)


def never(options, rounds, program):
    sizes = [1, 64, 1000, 8000, 65536, 1 << 20, 16 << 20, 64 << 20]
    print("auto beside off: all rounds together, samples and trials included; then the median round. control: off beside off, which is what the machine does by itself")
    print(f"{'where':18} {'field':7} " + " ".join(f"{size:>11}" for size in sizes))
    for where, how in NEVER:
        for field in ["random", "smooth", "control"]:
            row = []
            for size in sizes:
                count = str(rounds * max(4, min(400, (64 << 20) // size)))
                compression, data = ("off", "random") if field == "control" else ("auto", field)
                off, auto = seconds(run(options.build, compression, how, [program, "send", str(size), count, data]))
                row.append((sum(auto) / sum(off), statistics.median(auto) / statistics.median(off)))
            print(f"{where:18} {field:7} " + " ".join(f"{total:5.3f} {median:5.3f}" for total, median in row), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=os.path.abspath, help="the build folder")
    parser.add_argument("--only", default="kernels,wide,never", help="separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--class", dest="problem", default="S", help="of the kernels")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "compress")
        subprocess.run([os.path.join(options.build, "mpi/mpicc"), "-O2", os.path.join(HERE, "compress.c"), "-o", program, "-lm"], check=True)
        for part in options.only.split(","):
            if part == "kernels":
                kernels(options, options.rounds)
            elif part == "wide":
                wide(options, options.rounds, program)
            elif part == "never":
                never(options, options.rounds, program)
            else:
                sys.exit(f"no such part: {part}; there are kernels, wide, never")


main()
