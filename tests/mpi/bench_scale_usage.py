#!/usr/bin/env python3
"""bench_scale_usage.py CAUSEWAY: `causeway bench scale` says the same in its lines, its table and its picture, and refuses what makes no sense. No time is judged."""
import csv
import json
import os
import subprocess
import sys
import tempfile

from expectation import HANG_S, exit_code, expect

causeway = sys.argv[1]


def run(*arguments):
    return subprocess.run([causeway, "bench", "scale", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)


def refused(arguments, named):
    result = run(*arguments)
    expect(result.returncode == 2 and len(result.stderr.splitlines()) == 1 and named in result.stderr, f"{arguments} are refused: {result.returncode} {result.stderr}")


with tempfile.TemporaryDirectory() as folder:
    table, picture = os.path.join(folder, "t.csv"), os.path.join(folder, "t.svg")
    result = run("--ranks", "8,16,32", "--size", "64K", "--json", "--csv", table, "--plot", picture)
    expect(result.returncode == 0, f"it ends well: {result.stderr}")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    rows = list(csv.DictReader(open(table)))
    expect(len(lines) == 18 and len(rows) == 18, f"three collectives, two ways to choose, three numbers of ranks: {result.stdout}")
    for line, row in zip(lines, rows):
        expect((line["collective"], line["choice"], str(line["ranks"])) == (row["collective"], row["choice"], row["ranks"]), f"the same in both: {line} {row}")
        expect(line["clusters"] == line["ranks"] // 4, f"clusters of four: {line}")
        expect(line["time_p50_ns"] > 0 and line["packets_per_rank"] > 0 and line["wan_frames"] > 0, f"something was sent: {line}")
        expect(line["rank_bytes"] >= line["schedule_bytes"] + line["transport_bytes"] and 0 < line["sessions"] < line["ranks"], f"memory: {line}")
        expect(line["choice"] == "chosen" or not line["algorithm"].startswith("clusters-"), f"flat knows nothing of clusters: {line}")
    drawn = open(picture).read()
    expect("P^" in drawn and "allreduce" in drawn, "exponents and names are in the picture")

    result = run("--ranks", "16,64", "--collective", "alltoall", "--algorithm", "clusters-heads")
    expect(result.returncode == 0 and "from 16 to 64 ranks: time ~ P^" in result.stdout, f"exponents are told: {result.stdout} {result.stderr}")

    for bad in ["", "1", "64,16", "16,16", "5000", "many"]:
        refused(["--ranks", bad], "--ranks")
    refused(["--collective", "gather"], "gather")
    refused(["--algorithm", "bubble"], "bubble")
    refused(["--algorithm", "bruck"], "bruck")  # bcast has none
    refused(["--collective", "alltoall", "--algorithm", "bruck", "--only", "flat"], "--only")
    refused(["--only", "best"], "best")
    refused(["--wan", "fast"], "fast")
    refused(["--pair", "0"], "--pair")
    refused(["--plot", os.path.join(folder, "x.gif")], "x.gif")
    refused(["--csv", os.path.join(folder, "no", "x.csv")], "x.csv")
    refused(["--ranks", "64", "--sessions", "1"], "--sessions")

sys.exit(exit_code())
