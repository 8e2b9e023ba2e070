"""demo_usage.py CAUSEWAY MPI_SCRIPT: what ./demo shows after the build is one screen of facts, the same as in its verbose form. Bad input is refused."""
import json
import os
import re
import subprocess
import sys
import tempfile

from expectation import HANG_S, execute, expect

causeway, mpi = map(os.path.abspath, sys.argv[1:3])
build = os.path.dirname(causeway)
LINES, COLUMNS, AROUND = 24, 100, 7  # AROUND: lines of ./demo itself
own = os.environ.copy()


def lines_of(command):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        result = subprocess.run(command, env=dict(own, TMPDIR=folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)
        expect(result.returncode == 0 and result.stderr == "", f"{command} works: {result.stderr}")
        expect(os.listdir(folder) == [], "nothing is left")
    return result.stdout.splitlines()


moved = lines_of([causeway, "demo", "--size", "3M"])
sorts = lines_of([mpi, build])
expect(len(moved) + len(sorts) + AROUND <= LINES, f"one screen: {moved} {sorts}")
expect(all(len(line) <= COLUMNS for line in moved + sorts), f"as wide as a terminal: {moved} {sorts}")
facts = {line.split()[0]: line for line in moved[1:]}
expect(list(facts) == ["sent", "over", "speed", "lost", "repaired", "arrived"], f"a fact a line: {moved}")
expect(all(re.search(r"\d", line) for line in list(facts.values()) + sorts), f"... with its number: {moved} {sorts}")
lost, all_packets = map(int, re.findall(r"\d+", facts["lost"])[:2])
expect(0 < lost < all_packets and "identical" in facts["arrived"], f"{facts}")
verified = [line for line in sorts if "verified" in line]
expect(len(verified) == 2 and "4 hosts" in verified[0] and "1 host " in verified[1], f"sorted on four hosts, and on one: {sorts}")
expect([re.findall(r"\d+", line)[1:] for line in sorts if "paths" in line] == [["1", "6"], ["7", "0"]], f"by the paths that there are: {sorts}")

expect(any("acknowledgements" in line for line in lines_of([causeway, "demo", "--size", "3M", "--verbose"])), "every number is there on demand")
told = lines_of([mpi, build, "--verbose"])
with open(os.path.join(build, "demo-mpi.log")) as log:
    expect(log.read().splitlines() == [line for line in told[1:] if line != ""], "what is told on demand is in the log, too")
expect(sum("path to rank" in line for line in told) == 14, f"all of --explain: {told}")

moved = json.loads(lines_of([causeway, "demo", "--size", "4100000", "--json"])[0])
# some 2,900 packets: the chance that none is lost is below 1e-12
expect(moved["identical"] and moved["file_bytes"] == 4100000 and moved["notifications"] == 4 and moved["lost_frames"] > 0 and
       moved["retransmitted_packets"] >= moved["lost_data_frames"] - moved["probes"], f"a file arrives intact, and what is lost is sent again: {moved}")
for bad in (["--size", "none"], ["--file", "/no/such/file"]):
    result = execute([causeway, "demo", *bad])
    expect(result.returncode == 2 and bad[1] in result.stderr, f"{bad} is refused: {result.returncode} {result.stderr}")
