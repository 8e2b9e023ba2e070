#!/usr/bin/env python3
"""record_usage.py CAUSEWAY RECORDED IS FT DAMAGE [wire]: a program is recorded, what it has done compiled, and served by plans when it does so again; what it does otherwise goes on without. Nothing is timed."""
import json
import os
import re
import subprocess
import sys
import tempfile

from expectation import HANG_S, JOB_HANG, expect

causeway, recorded, integer_sort, other, damage = sys.argv[1:6]


def run(arguments, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CAUSEWAY_")}
    environment.update(variables)
    return subprocess.run([causeway] + arguments, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False)


def counted(result):
    """hits, misses by counts, by size, calls without a plan"""
    found = re.search(r"(\d+) hits, \d+ misses \((\d+) by counts, (\d+) by size or root\), (\d+) calls", result.stderr)
    return tuple(map(int, found.groups())) if found else None


def refused(arguments, words, **variables):
    result = run(arguments, **variables)
    lines = [line for line in result.stderr.splitlines() if not re.match(r"causeway run: rank \d+ \(process", line)]
    expect(result.returncode == 2 and len(lines) == 1 and words in lines[0], f"one line with '{words}': {result}")


def compiled(trace, plan, *options):
    result = run(["plan", "compile", trace, "-o", plan, "--json", *options])
    expect(result.returncode == 0, f"{trace} is compiled: {result}")
    return [json.loads(line) for line in result.stdout.splitlines()]


def whole_way(folder, hosts):
    """The program that checks each byte, with plans for all that it does."""
    trace, plan = os.path.join(folder, "a.trace"), os.path.join(folder, "a.plan")
    start = ["run", "--timeout", JOB_HANG, "-n", "4", *hosts]
    result = run(start + ["--record", trace, recorded, "persistent"])
    expect(result.returncode == 0 and "collective calls of 4 ranks recorded" in result.stderr, f"it is recorded: {result}")
    rows = compiled(trace, plan, "--all")
    expect(sum(row.get("planned", False) for row in rows) >= 8, f"all that recurs is planned for: {rows}")
    expect(any(row.get("call") == "gatherv" and not row["planned"] for row in rows), f"but for what cannot be: {rows}")
    for number in range(1, 9):
        result = run(["plan", "check", f"{plan}#{number}"])
        expect(result.returncode == 0 and "passed" in result.stdout, f"plans of a bundle are plans: {result}")
    for arguments, counts in (
        (["persistent"], (48, 0)),
        (["persistent", "nonblocking"], (48, 0)),
        (["persistent", "alter=2"], (37, 11)),  # five rounds of six, and the persistent one
        (["alter=3", "nonblocking"], (37, 5)),
        (["more"], (39, 3)),
        (["inplace"], (36, 6)),
    ):
        result = run(start + ["--plan", plan, recorded, *arguments])
        found = counted(result)
        expect(result.returncode == 0 and found is not None and found[:2] == counts, f"{arguments}: {counts} {result}")
    result = run(start + ["--plan", plan, recorded, "bytes=2999"])
    expect(result.returncode == 0 and counted(result)[2] >= 12, f"another size is another call: {result}")
    # without a plan counts would be exchanged: a miss does that
    result = run(start + ["--plan", plan, recorded, "alter=1"], CAUSEWAY_ALGORITHM="alltoallv=greedy", CAUSEWAY_EXPLAIN="1")
    expect(result.returncode == 0 and counted(result)[:2] == (37, 5), f"names serve what misses: {result}")
    expect("greedy (override), 5 calls" in result.stderr and "(plan), 6 calls" in result.stderr, f"and it is explained: {result.stderr}")
    # rank 0's plan counts, and rank 0's word on recording
    mixed = ["run", "--timeout", JOB_HANG, *hosts, "-n", "1", "--env", f"CAUSEWAY_PLAN={plan}", recorded, ":", "-n", "3"]
    for variable in ("CAUSEWAY_PLAN=/does/not/exist", f"CAUSEWAY_RECORD={folder}/b.trace"):
        result = run(mixed + ["--env", variable, recorded])
        expect(result.returncode == 0 and counted(result)[0] == 42, f"rank 0's plan counts: {result}")
        expect(not os.path.exists(f"{folder}/b.trace"), "rank 0 records nothing")
    result = run(["run", "--timeout", JOB_HANG, *hosts, "-n", "1", recorded, ":", "-n", "3", "--env", f"CAUSEWAY_PLAN={plan}", recorded])
    expect(result.returncode == 0 and counted(result) is None, f"no plan at rank 0 is none at all: {result}")
    # recorded again, with the plan
    result = run(start + ["--plan", plan, "--record", trace + "2", recorded, "persistent"])
    rows = compiled(trace + "2", plan + "2")
    planned = [row["planned"] for row in rows if "(plan)" in row.get("now", "")]
    expect(len(planned) >= 8 and all(planned), f"a plan's own calls are told, and keep it: {rows}")


def kernel(folder, hosts):
    """Integer sort: level 1 becomes level 3."""
    trace, plan = os.path.join(folder, "is.trace"), os.path.join(folder, "is.plan")
    start = ["run", "--timeout", JOB_HANG, "-n", "4", *hosts]
    result = run(start + ["--record", trace, integer_sort, "S"], CAUSEWAY_ALGORITHM="alltoallv=all-to-all-based")
    expect(result.returncode == 0 and "verified" in result.stdout, f"it is recorded: {result}")
    # --all: whether a plan would be sooner depends on the figures of the machine
    rows = [row for row in compiled(trace, plan, "--all") if row.get("call") == "alltoallv"]
    expect(rows and all(row["now"] == "counts + all-to-all-based" for row in rows), f"counts were exchanged: {rows}")
    expect(all(row["planned"] for row in rows) and sum(row["calls"] for row in rows) == 10, f"and need not be: {rows}")
    result = run(start + ["--plan", plan, integer_sort, "S"])
    expect(result.returncode == 0 and " verified" in result.stdout and counted(result)[0] >= 10 and counted(result)[1] == 0, f"ten hits: {result}")
    result = run(start + ["--plan", plan, integer_sort, "W"])
    expect(result.returncode == 0 and " verified" in result.stdout and counted(result)[1] == 10, f"another class misses: {result}")
    return plan


def wrong(folder, plan):
    """What is no plan, or not this program's, is said in one line."""
    trace = os.path.join(folder, "is.trace")
    for name in (trace, plan):
        with open(name, "rb") as file:
            content = bytearray(file.read())
        content[len(content) // 2] ^= 1
        with open(name + ".bad", "wb") as file:
            file.write(content)
    refused(["run", "-n", "4", "--plan", plan + ".bad", integer_sort, "S"], "altered")
    refused(["run", "-n", "4", "--env", f"CAUSEWAY_PLAN={plan}.bad", integer_sort, "S"], "altered")
    refused(["run", "-n", "3", "--plan", plan, integer_sort, "S"], "the plan is for 4 ranks, this job has 3")
    refused(["run", "-n", "3", "--env", f"CAUSEWAY_PLAN={plan}", integer_sort, "S"], "compiled for 4 ranks, this job has 3")
    refused(["run", "-n", "4", "--plan", plan, other, "S"], "compiled for the program is, this one is ft")
    refused(["run", "-n", "4", "--plan", trace, integer_sort, "S"], "this is no bundle of plans")
    refused(["run", "-n", "4", "--plan", "/does/not/exist", integer_sort, "S"], "cannot be read")
    refused(["run", "-n", "4", "--record", "/does/not/exist", integer_sort, "S"], "cannot be written")
    refused(["plan", "compile", trace + ".bad", "-o", plan], "altered")
    refused(["plan", "compile", plan, "-o", plan], "this is no trace")
    refused(["plan", "compile", trace], "-o FILE is missing")
    refused(["plan", "check", plan], "say which one")
    # whole to its checksum, and wrong: rank 0 or, of phases, each rank refuses it before anybody relies on it
    subprocess.run([damage, plan, plan + ".wrong"], check=True)
    result = run(["run", "-n", "4", "--plan", plan + ".wrong", integer_sort, "S"])
    expect(result.returncode != 0 and "number 1: the plan is wrong" in result.stderr, f"a wrong plan is refused: {result}")
    phases = os.path.join(folder, "phases.plan")
    run(["plan", "build", "--collective", "alltoall", "--algorithm", "all-to-all-based", "--ranks", "4", "--size", "100", "-o", phases])
    result = run(["run", "-n", "4", recorded, "rounds=1", "load=" + phases])
    expect(result.returncode == 0, f"phases are loaded: {result}")
    subprocess.run([damage, phases, phases], check=True)
    result = run(["run", "-n", "4", recorded, "rounds=1", "load=" + phases])
    expect(result.returncode != 0 and "the plan is wrong" in result.stderr, f"wrong phases are refused: {result}")
    three = os.path.join(folder, "three.trace")
    run(["run", "-n", "3", "--record", three, integer_sort, "S"])
    refused(["plan", "compile", trace, three, "-o", plan], "4 ranks, trace 2 has 3")


with tempfile.TemporaryDirectory() as temporary:
    for emulated in [[]] + ([["--emulate", "4,memif"], ["--emulate", "2,memif"]] if "wire" in sys.argv[6:] else []):
        whole_way(temporary, emulated)
        bundle = kernel(temporary, emulated)
    wrong(temporary, bundle)
