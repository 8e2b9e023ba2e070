"""The program that measures the levels of compiled communication: it says what it has measured, whatever that is, and refuses what it does not know.

usage: levels_usage.py CAUSEWAY LEVELS [wire]
"""

import json
import sys

from expectation import JOB_HANG, execute

CONTENDERS = {"pairs", "level 1", "level 2", "level 3"}


def run(arguments, ranks=4, emulated=False):
    hosts = ["--emulate", f"{ranks},memif"] if emulated else []
    command = [sys.argv[1], "run", "-n", str(ranks), *hosts, "--timeout", JOB_HANG, sys.argv[2], *arguments]
    return execute(command)


def expect_rows(arguments, sizes, **where):
    done = run(["--json", "--rounds", "3", *arguments], **where)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [row["bytes"] for row in told["rows"]] == sizes, told
    assert all(set(row) == CONTENDERS | {"bytes"} and min(row[c] for c in CONTENDERS) > 0 for row in told["rows"]), told


def main():
    sizes = [2048 << i for i in range(6)]
    expect_rows([], sizes)
    expect_rows(["--random", "--algorithm", "greedy:threshold=1024"], [0], ranks=3)
    expect_rows(["--size", "3000", "--calls", "1"], [3000], ranks=2)
    done = run(["--json", "--patterns", "3", "--algorithm", "rotated"])
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["patterns"] == 3 and 0 < told["median"] <= told["largest"] and 0 <= told["within"] <= 3, done
    if "wire" in sys.argv[3:]:
        expect_rows([], sizes, emulated=True)
    done = run(["--rounds", "1"], ranks=2)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 7, done
    for arguments in (["--rounds", "0"], ["--calls", "x"], ["--size", "0"], ["--size", "65537"], ["--patterns", "-1"], ["--sizes", "1"], ["--algorithm"]):
        done = run(arguments, ranks=1)
        assert done.returncode == 2 and "usage:" in done.stderr, done


main()
