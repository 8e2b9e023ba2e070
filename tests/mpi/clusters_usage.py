"""clusters_usage.py CAUSEWAY PROGRAM TOPOLOGY: what is wrong with a topology file is said in one line; what ranks do with one, --explain says."""
import json
import os
import sys
import tempfile

from expectation import execute, expect, refused

causeway, program, two = map(os.path.abspath, sys.argv[1:])


def run(arguments, **environment):
    return execute([causeway, "run"] + arguments, **environment)


with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    broken = os.path.join(folder, "broken.json")
    with open(broken, "w") as file:
        file.write("{")
    host = os.uname().nodename.split(".")[0]
    refused(run(["-n", "2", program], CAUSEWAY_TOPOLOGY="/nowhere.json"), ["/nowhere.json"], "no file")
    refused(run(["-n", "2", program], CAUSEWAY_TOPOLOGY=broken), ["broken.json", "line"], "a broken file")
    refused(run(["-n", "2", program], CAUSEWAY_TOPOLOGY=two), [host, "delft0", "leiden1"], "a host that the file does not name")
    refused(run(["-n", "3", "--emulate", "3,memif", program], CAUSEWAY_TOPOLOGY=two), ["4 hosts", "3 are emulated"], "other hosts than the file's")
    refused(run(["-n", "2", program], CAUSEWAY_PACING="slow"), ["slow", "CAUSEWAY_PACING"], "a pacing that is none")
    refused(run(["-n", "2", program], CAUSEWAY_ENCRYPT="yes"), ["yes", "CAUSEWAY_ENCRYPT"], "an encryption that is none")
    # a link whose rate the file does not know: flows find the rate; it cannot be emulated
    found = os.path.join(folder, "found.json")
    sites = [{"name": name, "hosts": [f"host{2 * i}", f"host{2 * i + 1}"]} for i, name in enumerate(["delft", "leiden"])]
    with open(found, "w") as file:
        json.dump({"clusters": sites, "links": [{"name": "sea", "between": ["delft", "leiden"], "rate": "found", "delay": "1ms"}]}, file)
    result = run(["-n", "4", "--explain", "--emulate", "4,memif", program], CAUSEWAY_TOPOLOGY=found)
    expect(result.returncode == 0 and result.stderr.count("other cluster (leiden), at a rate that is found out") == 2, f"a rate that flows find: {result.stderr}")
    emulated = execute([causeway, "switch", "--memif", os.path.join(folder, "s"), "--topology", found])
    for result in [run(["-n", "4", "--emulate", f"topology={found},memif", program]), emulated]:
        refused(result, ["rate of the link 'sea'"], "a rate that cannot be emulated")
    for rank in [0, 1]:  # what the launcher cannot see rank 0 says; what others have does not count
        ranks = [["-n", "1", "--env", f"CAUSEWAY_TOPOLOGY={broken}", program], ["-n", "1", program]]
        result = run(ranks[rank] + [":"] + ranks[1 - rank])
        expect(result.returncode == (2 if rank == 0 else 0), f"rank {rank} has a broken file: {result.returncode} {result.stderr}")
        expect((result.stderr.count("broken.json") == 1) == (rank == 0), f"rank {rank}'s file: {result.stderr}")

result = run(["-n", "2", "--emulate", "2,memif", program], CAUSEWAY_INTEGRITY="maybe")
expect(result.returncode != 0 and "CAUSEWAY_INTEGRITY=maybe" in result.stderr and "end-to-end" in result.stderr, f"an integrity that is none: {result.stderr}")
for integrity, what in {"auto": "nothing, since they stay in memory", "end-to-end": "CRC-32C, by the processes"}.items():
    result = run(["-n", "2", "--explain", "--emulate", "2,memif", program], CAUSEWAY_INTEGRITY=integrity)
    expect(result.returncode == 0 and f"; payloads are checked by {what}\n" in result.stderr, f"{integrity}: {result.stderr}")

wide = ["-n", "4", "--explain", "--emulate", f"topology={two},memif", program]
for pacing, words in {"on": "paced at 200 Mb/s", "off": "not paced"}.items():
    result = run(wide, CAUSEWAY_PACING=pacing, CAUSEWAY_ALGORITHM="bcast=clusters-heads")
    expect(result.returncode == 0, f"pacing {pacing} works: {result.stderr}")
    expect(result.stderr.count(f"other cluster (leiden), {words}") == 2, f"paths say that they are {words}: {result.stderr}")
    expect("rank 1: packets, since it is on another host" in result.stderr, f"within the cluster nothing changes: {result.stderr}")
    expect("clusters-heads (override)" in result.stderr, f"the algorithm is taken: {result.stderr}")
    expect("MPI_COMM_WORLD: none, since its ranks are in several clusters" in result.stderr, f"no group spans clusters: {result.stderr}")

    expect(result.stderr.count(", sealed;") == 2, f"what crosses is sealed unless the file says otherwise: {result.stderr}")

result = run(wide, CAUSEWAY_ENCRYPT="off")
expect(result.returncode == 0 and ", sealed" not in result.stderr, f"not sealed when told so: {result.stderr}")
result = run(wide, CAUSEWAY_ENCRYPT="all")
expect(result.returncode == 0 and result.stderr.count(", sealed") == 3, f"everything sealed when told so: {result.stderr}")
# one rank that was not told: what rank 0 has counts, and all that is said is sealed
one_more = ["-n", "4", "--explain", "--emulate", f"topology={two},memif"]
result = run(one_more[2:] + ["-n", "3", program, ":", "-n", "1", "--env", "CAUSEWAY_TOPOLOGY=", program])
expect(result.returncode == 0 and result.stderr.count(", sealed") == 2, f"sealed, though one rank has no file: {result.stderr}")
