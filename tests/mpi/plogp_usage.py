#!/usr/bin/env python3
"""plogp_usage.py CAUSEWAY PROGRAM: what `causeway plogp` writes is what MPI chooses by, all ranks alike, whatever each of them has. Nothing is timed."""
import json
import os
import re
import subprocess
import sys
import tempfile

from expectation import HANG_S, exit_code, expect

causeway, program = sys.argv[1:]


def run(arguments, **variables):
    environment = dict(os.environ, **variables)
    for name in ("CAUSEWAY_PLOGP", "CAUSEWAY_ALGORITHM"):
        if name not in variables:
            environment.pop(name, None)
    return subprocess.run([causeway] + arguments, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False)


def explained(result, collective):
    """What each rank says of a collective: {rank: {"algorithm (origin)", ...}}"""
    found = {}
    for rank, what in re.findall(r"rank (\d+): %s of [^:]*: ([^,]*)," % collective, result.stderr):
        found.setdefault(int(rank), set()).add(what)
    return found


def tests_of(collective, algorithm):
    """A file in which an algorithm that no model would choose is the soonest."""
    rows = [{"path": path, "collective": collective, "ranks": 3, "bytes": size, "ns": {algorithm: 1}}
            for path in ("shared", "wire") for size in (8, 128, 2048, 32768)]
    return json.dumps({"causeway-plogp": 1, "networks": [], "tests": rows})


with tempfile.TemporaryDirectory() as folder:
    measured = os.path.join(folder, "new", "measured.json")
    # What fits into --time depends on the load of the machine: it is doubled until tests fit.
    for seconds in (2**power for power in range(10)):
        result = run(["plogp", "--ranks", "2", "--path", "shared", "--sizes", "8,64,4096", "--time", f"{seconds}s", "--noisy", "-o", measured])
        expect(result.returncode == 0 and "tests in " + measured in result.stdout, f"it measures: {result.stdout}{result.stderr}")
        with open(measured, encoding="utf-8") as file:
            written = json.load(file)
        if result.returncode != 0 or len(written["tests"]) > 5:
            break
    expect(len(written["networks"]) == 1 and len(written["tests"]) > 5, f"a table and tests are written, not {written}")
    result = run(["run", "-n", "2", "--explain", program, "S"], CAUSEWAY_PLOGP=measured)
    expect(f"algorithms chosen by {measured} (CAUSEWAY_PLOGP)" in result.stderr, f"MPI tells what it chooses by: {result.stderr}")
    expect("(tests)" in result.stderr, f"tests count: {result.stderr}")
    result = run(["doctor", "--json"], CAUSEWAY_PLOGP=measured)
    expect(any(line["what"] == "CAUSEWAY_PLOGP" and line["value"] == measured and line["origin"] == "CAUSEWAY_PLOGP"
               for line in map(json.loads, result.stdout.splitlines())), "the doctor tells value and origin")
    crafted = os.path.join(folder, "crafted.json")
    for times, chosen in (({"direct": 2, "host": 1}, "host"), ({"direct": 1, "host": 2}, "direct"), ({"direct": 1}, "host")):
        with open(crafted, "w", encoding="utf-8") as file:
            rows = [{"path": "shared", "collective": "allreduce", "ranks": 2, "bytes": size, "ns": times} for size in (8, 128, 2048, 32768)]
            json.dump({"causeway-plogp": 1, "networks": [], "tests": rows}, file)
        result = run(["run", "-n", "2", program, "S"], CAUSEWAY_PLOGP=crafted, CAUSEWAY_EXPLAIN="all")
        found = explained(result, "allreduce").get(0, set())
        expect(any(name.split()[0] == chosen for name in found), f"{times} chooses {chosen}: {found} {result.stderr}")

    # what busy processes make noise of is not written, but if that is asked for
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    noise = os.path.join(folder, "noise.json")
    short = ["plogp", "--ranks", "2", "--path", "shared", "--sizes", "8", "--time", "500ms", "-o", noise]
    result = run(short)
    expect(result.returncode == 1 and "noise" in result.stderr.splitlines()[-1] and not os.path.exists(noise),
           f"noise is refused: {result.returncode} {result.stderr}")
    result = run(short + ["--noisy"])
    expect(result.returncode == 0 and "noise" in result.stderr and os.path.exists(noise), f"--noisy: {result.returncode} {result.stderr}")
    for process in busy:
        process.kill()
        process.wait()

    # ranks with different files, and words: rank 0's count
    odd = os.path.join(folder, "odd.json")
    with open(odd, "w", encoding="utf-8") as file:
        file.write(tests_of("allreduce", "direct"))
    for first, second, others in ((odd, "none", True), ("none", odd, False), (odd, "/does/not/exist", True)):
        for more in ([], ["--emulate", "3,memif"]):
            result = run(["run"] + more + ["-n", "1", "--env", f"CAUSEWAY_PLOGP={first}", program, "S", ":",
                                           "-n", "2", "--env", f"CAUSEWAY_PLOGP={second}", program, "S"], CAUSEWAY_EXPLAIN="all")
            if more and result.returncode == 1 and "built without DPDK" in result.stderr:
                continue
            found = explained(result, "allreduce")
            expect(result.returncode == 0 and len(found) == 3, f"the job runs: {result.stderr}")
            expect(found.get(0) == found.get(1) == found.get(2), f"all ranks choose alike: {found}")
            expect(("direct (tests)" in found.get(0, ())) == others, f"rank 0's file counts: {first}, {second}: {found}")
    result = run(["run", "-n", "1", "--env", "CAUSEWAY_ALGORITHM=allreduce=bruck", program, "S", ":", "-n", "2", program, "S"],
                 CAUSEWAY_EXPLAIN="all")
    expect(explained(result, "allreduce") == {rank: {"bruck (override)"} for rank in range(3)}, f"rank 0's words count: {result.stderr}")

    # what is wrong is said once, and ends the job
    bad = os.path.join(folder, "bad.json")
    with open(bad, "w", encoding="utf-8") as file:
        file.write(tests_of("allreduce", "direct").replace('"ranks"', '"rank"'))
    for variables, says in (({"CAUSEWAY_PLOGP": bad}, 'tests, row 1: unknown key "rank"'),
                            ({"CAUSEWAY_PLOGP": "/does/not/exist"}, "/does/not/exist (CAUSEWAY_PLOGP): No such file"),
                            ({"CAUSEWAY_ALGORITHM": "bcast=what"}, "bcast has no algorithm 'what'; there are flat")):
        result = run(["run", "-n", "3", program, "S"], **variables)
        lines = [line for line in result.stderr.splitlines() if "MPI_Init" in line]
        expect(result.returncode != 0 and len(lines) == 1 and says in lines[0], f"{variables}: {result.stderr}")

    # a place that nobody has named
    place = os.path.join(folder, "causeway")
    os.mkdir(place)
    os.rename(odd, os.path.join(place, "plogp.json"))
    result = run(["run", "-n", "3", "--explain", program, "S"], XDG_CONFIG_HOME=folder)
    expect("direct (tests)" in explained(result, "allreduce").get(0, ()), f"the default place is looked at: {result.stderr}")

    # ... that cannot be read, or makes no sense, is said once, and ends no job
    for damage, says in (("{", "plogp.json"), (None, "Is a directory")):
        os.remove(os.path.join(place, "plogp.json"))
        if damage is None:
            os.mkdir(os.path.join(place, "plogp.json"))
        else:
            with open(os.path.join(place, "plogp.json"), "w", encoding="utf-8") as file:
                file.write(damage)
        result = run(["run", "-n", "3", program, "S"], XDG_CONFIG_HOME=folder)
        lines = [line for line in result.stderr.splitlines() if "MPI_Init" in line]
        expect(result.returncode == 0 and len(lines) == 1 and says in lines[0], f"{damage}: {result.returncode} {result.stderr}")
        result = run(["run", "-n", "3", program, "S"], XDG_CONFIG_HOME=folder, CAUSEWAY_PLOGP=os.path.join(place, "plogp.json"))
        expect(result.returncode != 0, f"named, it ends the job: {damage}")

    for arguments in (["--ranks", "1"], ["--ranks", "x"], ["--path", "carrier-pigeon"], ["--sizes", "64,8"], ["-n", "64"],
                      ["--hosts", "a"], ["--hosts", "a:2,b"], ["--hosts", "a,b,a"], ["--hosts", "a,"], ["--hosts", "a,b", "--path", "shared"], ["--hosts", "a,b", "-n", "3"],
                      ["--launcher", "ssh"]):
        result = run(["plogp", "-o", measured] + arguments)
        expect(result.returncode == 2 and result.stderr.count("\n") == 1, f"{arguments} is wrong usage: {result.stderr}")

sys.exit(exit_code())
