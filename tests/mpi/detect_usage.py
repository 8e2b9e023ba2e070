"""detect_usage.py CAUSEWAY PROGRAM TWO THREE: clusters that are found by measuring are those of the topology by which the hosts are emulated; one network is one cluster; what is found can be kept as a file."""
import json
import os
import re
import subprocess
import sys
import tempfile

from expectation import HANG_S, exit_code, expect

causeway, program, two, three = map(os.path.abspath, sys.argv[1:])


def run(arguments, **environment):
    return subprocess.run([causeway, "run"] + arguments, env=dict(os.environ, **environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)


def hosts_of(topology, ranks):
    """The cluster of each host of the file by which they are emulated."""
    return [i for i, cluster in enumerate(topology["clusters"]) for _ in range(cluster["hosts"])]


def farther(path, folder):
    """The same with links long enough to be told from a LAN whose processes share cores with others: a test must not depend on these."""
    with open(path) as file:
        topology = json.load(file)
    for link, delay in zip(topology["links"], ["20ms", "35ms"]):
        link["delay"] = delay
    made = os.path.join(folder, os.path.basename(path))
    with open(made, "w") as file:
        json.dump(topology, file)
    return made, topology


def detected(ranks, path, topology, folder):
    file = os.path.join(folder, "found.json")
    result = run(["-n", str(ranks), "--env", "CAUSEWAY_EXPLAIN=all", "--emulate", f"topology={path},memif", program], CAUSEWAY_TOPOLOGY=f"detect:{file}")
    what = f"{ranks} ranks on {os.path.basename(path)}"
    expect(result.returncode == 0, f"{what}: {result.stderr[-2000:]}")
    count = len(topology["clusters"])
    expect(result.stderr.count(f": clusters detected: {count}: round trips within one are ") == ranks, f"{what}: all ranks say what was found: {result.stderr[-2000:]}")
    found = json.load(open(file))
    names = [sorted(cluster["hosts"]) for cluster in found["clusters"]]
    of = hosts_of(topology, ranks)
    expect(names == [[f"host{host}" for host in range(len(of)) if of[host] == cluster] for cluster in range(count)], f"{what}: the same clusters: {names}")
    expect([cluster["name"] for cluster in found["clusters"]] == [f"c{i}" for i in range(count)], f"{what}: their names: {found}")
    expect(len(found["links"]) == count * (count - 1) // 2 and all(link["rate"] == "found" for link in found["links"]), f"{what}: a link each pair: {found}")
    delays = sum(float(link["delay"][:-2]) for link in topology["links"])  # one, or a chain of two: its ends are both away
    far = max(int(link["delay"][:-2]) / 1e6 for link in found["links"])
    expect(far >= delays, f"{what}: {far} ms, the links have {delays} ms")
    size, own = len(of), of[0]
    across = [rank for rank in range(ranks) if of[rank * size // ranks] != own]
    line = re.findall(r"^causeway: rank 0: path to rank (\d+): packets, other cluster \(c\d\), at a rate that is found out, sealed;", result.stderr, re.M)
    expect([int(rank) for rank in line] == across, f"{what}: rank 0 sends to ranks {across} of other clusters, not {line}: {result.stderr[-2000:]}")
    return file


with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    path_two, two_clusters = farther(two, folder)
    path_three, three_clusters = farther(three, folder)
    detected(4, path_two, two_clusters, folder)
    detected(7, path_three, three_clusters, folder)
    kept = detected(6, path_two, two_clusters, folder)

    # what was found is a file like any other; with a rate, ranks keep to it
    result = run(["-n", "4", "--explain", "--emulate", "4,memif", program], CAUSEWAY_TOPOLOGY=kept)
    expect(result.returncode == 0 and result.stderr.count("other cluster (c1), at a rate that is found out") == 2, f"the file as it is: {result.stderr[-2000:]}")
    with open(kept) as file:
        text = file.read().replace('"found"', '"80Mbps"')
    with open(kept, "w") as file:
        file.write(text)
    result = run(["-n", "4", "--explain", "--emulate", "4,memif", program], CAUSEWAY_TOPOLOGY=kept)
    expect(result.returncode == 0 and result.stderr.count("other cluster (c1), paced at 40 Mb/s") == 2, f"the file with a rate: {result.stderr[-2000:]}")

    # rates that nobody knows cannot be emulated
    two_clusters["links"][0].update(rate="found", queue=None)
    del two_clusters["links"][0]["queue"]
    with open(path_two, "w") as file:
        json.dump(two_clusters, file)
    for command in [[causeway, "run", "-n", "4", "--emulate", f"topology={path_two},memif", program], [causeway, "switch", "--memif", folder + "/s", "--topology", path_two]]:
        result = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=HANG_S)
        expect(result.returncode == 2 and result.stderr.count("\n") == 1 and "rate of the link 'sea'" in result.stderr, f"no rate: {result.returncode} {result.stderr}")

    # it cannot be written there
    path_two, two_clusters = farther(two, folder)
    result = run(["-n", "4", "--emulate", f"topology={path_two},memif", program], CAUSEWAY_TOPOLOGY="detect:/nowhere/x.json")
    expect(result.returncode != 0 and result.stderr.count("/nowhere/x.json") == 1, f"a file that cannot be written: {result.returncode} {result.stderr}")

    # one rank that was not told: rank 0's word counts, whatever others have
    rest = ["-n", "3", program, ":", "-n", "1", "--env", "CAUSEWAY_TOPOLOGY=", program]
    result = run(["--explain", "--emulate", f"topology={path_two},memif"] + rest, CAUSEWAY_TOPOLOGY="detect")
    expect(result.returncode == 0 and "clusters detected: 2:" in result.stderr, f"one rank without the word: {result.stderr[-2000:]}")

for arguments in [["-n", "4", "--emulate", "4,memif"], ["-n", "8", "--emulate", "4,memif"], ["-n", "3"], ["-n", "1"]]:
    result = run(arguments + ["--explain", program], CAUSEWAY_TOPOLOGY="detect")
    expect(result.returncode == 0 and "clusters detected: 1: " in result.stderr and "other cluster" not in result.stderr, f"one cluster {arguments}: {result.stderr[-2000:]}")

sys.exit(exit_code())
