#!/usr/bin/env python3
"""top_usage.py CAUSEWAY PROGRAM [wire]: `causeway top` shows the jobs that run, each rank once, with figures that grow, and none afterwards."""
import json
import os
import re
import subprocess
import sys

from expectation import HANG_S, JOB_HANG, execute, expect, wait_until

causeway, program = map(os.path.abspath, sys.argv[1:3])
where = ["--emulate", "2,memif"] if sys.argv[3:] == ["wire"] else []


def top(*arguments):
    result = execute([causeway, "top", *arguments])
    expect(result.returncode == 0 and result.stderr == "", f"top {arguments}: {result.returncode}, {result.stderr}")
    return result.stdout


def launcher_of(number):
    """The oldest process above it that this one has started; None: there is none."""
    above = []
    while number > 1:
        above.append(number)
        try:
            with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as file:
                number = int(file.read().rsplit(")", 1)[1].split()[1])
        except FileNotFoundError:
            return None
        if number == os.getpid():
            return above[-1]
    return None


def rows_of(job, text):
    return [row for row in map(json.loads, text.splitlines()) if row["job"] == job]


# until it is ended: more rounds than there is time for
process = subprocess.Popen([causeway, "run", "-n", "2", "--timeout", JOB_HANG, *where, program, "--rounds", "1000", "--bytes", "1048576"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    rows = []

    def are_shown():
        seen = [json.loads(line) for line in top("--once", "--json", "--interval", "600ms").splitlines()]
        rows[:] = [row for row in seen if launcher_of(row["process"]) == process.pid]
        moving = ["messages_per_s", *(["send_bps", "receive_pps"] if where else [])]  # in this interval: a rank may have had no turn
        return len(rows) >= 2 and all(row[name] > 0 for row in rows for name in moving)

    wait_until(lambda: are_shown() or process.poll() is not None)
    expect(sorted(row["rank"] for row in rows)[:2] == [0, 1] and all(row["ranks"] == 2 and row["user"] == os.geteuid() for row in rows), f"ranks: {rows}")
    if where:
        expect(all(row["send_bps"] > 0 and row["receive_pps"] > 0 and row["peers"] == 1 for row in rows), f"rates: {rows}")
    job = rows[0]["job"]
    table = top("--once", "--interval", "600ms")
    expect(table.splitlines()[0].split()[:3] == ["job", "rank", "process"] and table.count(job) >= 2, f"a table: {table}")
    page = top("--prometheus")
    for line in page.splitlines():
        expect(re.fullmatch(r'# (HELP|TYPE) causeway_\w+ .+|causeway_\w+\{(\w+="[^"\\]*",?)+\} [0-9.]+', line), f"a metric: {line}")
    expect(page.count(f'causeway_sent_messages_total{{job="{job}"') == 2, f"Prometheus: {page}")
finally:
    process.terminate()
    process.wait()
expect(rows_of(job, top("--once", "--json", "--interval", "100ms")) == [], "nothing is left of a job that has ended")
expect(subprocess.run([causeway, "top", "--interval", "1"], capture_output=True, timeout=HANG_S).returncode == 2, "an interval without a unit")
