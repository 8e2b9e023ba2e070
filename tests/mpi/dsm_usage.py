"""The page exchange of a software DSM: what it says it has measured, in both forms; wrong usage; and that verification sees one altered byte.

usage: dsm_usage.py CAUSEWAY DSM
"""

import json
import sys

from expectation import JOB_HANG, execute

# arguments, what the line says
WRONG = [
    (["--pages"], "no value behind: --pages"),
    (["--pages", "0"], "--pages wants numbers from 1 to 16, such as 1,4,8: 0"),
    (["--pages", "17"], "--pages wants"),
    (["--pages", "1,"], "--pages wants"),
    (["--pages", "1,x"], "--pages wants"),
    (["--pages", ",".join("1" * 17)], "--pages wants"),
    (["--exchange", "level2"], "no such exchange: level2"),
    (["--iterations", "0"], "--iterations wants a number from 1 to 10000: 0"),
    (["--iterations", "1e3"], "--iterations wants"),
    (["--seed", "-1"], "--seed wants"),
    (["--alter", "0"], "--alter wants the number of an iteration: 0"),
    (["--iterations", "3", "--alter", "4"], "--alter: there is no iteration 4"),
    (["S"], "no such option: S"),
]


def run(arguments, ranks=3):
    command = [sys.argv[1], "run", "-n", str(ranks), "--timeout", JOB_HANG, sys.argv[2], *arguments]
    done = execute(command)
    return done, [line for line in done.stderr.splitlines() if not line.startswith("causeway run:")]


def expect_rejected(arguments, says, ranks=3):
    done, lines = run(arguments, ranks)
    assert done.returncode == 2 and len(lines) == 1 and says in lines[0], (arguments, done)


def expect_rows(arguments, pages, names):
    done, lines = run(["--json", "--iterations", "5", *arguments])
    assert done.returncode == 0 and not lines, done
    told = json.loads(done.stdout)
    assert told["verified"] and told["ranks"] == 3 and told["pages"] == 48, told
    assert [row["pages_per_rank"] for row in told["rows"]] == pages, told
    for row in told["rows"]:
        sides = [row[name] for name in names]
        assert ("ratio_dynamic_level1" in row) == (len(names) == 2), row
        assert set(row) - {"ratio_dynamic_level1"} == {"pages_per_rank", *names}, row
        assert all(0 < side["communication_seconds"] < side["seconds"] for side in sides), row
        assert all(side["page_bytes"] == sides[0]["page_bytes"] > side["diff_bytes"] > 0 for side in sides), row


def expect_unverified(arguments, ranks, who):
    """One byte of the last rank's copy is another after iteration 3: it alone says so, and the job fails."""
    done, lines = run(["--pages", "2", "--iterations", "5", "--alter", "3", *arguments], ranks)
    assert done.returncode == 1, done
    assert lines and all(f"dsm: rank {who}: " in line and "iteration 3: 1 words are wrong" in line for line in lines), done
    return done


def main():
    for arguments, says in WRONG:
        expect_rejected(arguments, says)
    expect_rejected([], "too many ranks: 65", ranks=65)
    done, lines = run(["--help"])
    assert done.returncode == 0 and not lines and "usage: dsm" in done.stdout, done

    expect_rows([], [1, 4, 8], ["dynamic", "level1"])
    expect_rows(["--pages", "16,1", "--exchange", "level1", "--seed", "7"], [16, 1], ["level1"])
    expect_rows(["--exchange", "dynamic"], [1, 4, 8], ["dynamic"])
    done, _ = run(["--iterations", "2"])
    assert done.returncode == 0 and "3 ranks, 2 iterations, 48 pages, verified" in done.stdout, done

    for exchange in ("dynamic", "level1", "both"):
        done = expect_unverified(["--exchange", exchange], 3, 2)
        assert "NOT VERIFIED" in done.stdout, done
    done = expect_unverified(["--json"], 1, 0)
    assert json.loads(done.stdout)["verified"] is False, done


main()
