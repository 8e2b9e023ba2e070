"""MPI programs across hosts of a laboratory (hosts.py), for tests with the arguments BUILD PART PROGRAM...: programs of the
conformance suite, and the kernel is."""
import os
import re
import subprocess
import sys

from expectation import JOB_HANG, expect, wait_until
from hosts import skip_without_hosts


def skip(reason):
    print(f"SKIPPED: machine: {reason}")
    sys.exit(77)


skip_without_hosts()

build = os.path.abspath(sys.argv[1])
CAUSEWAY = "/tmp/build/causeway"
KEEP = [f"{build}:build", os.path.dirname(os.path.abspath(__file__))]  # what sanitizers need, too
MULTICAST = {"CAUSEWAY_ALGORITHM": "bcast=multicast,scatter=multicast,allgather=multicasts,barrier=tree-multicast"}

programs = {os.path.basename(each): [f"/tmp/build/{os.path.relpath(os.path.abspath(each), build)}"] for each in sys.argv[3:]}
programs["is"].append("S")  # its problem class


def unreachables(lab):
    """How many times the hosts' kernels have answered that a port is closed, or the like; and how many packets have come."""
    told = packets = 0
    for name in lab.names:
        text = subprocess.run([*lab.inside(name), "cat", "/proc/self/net/snmp"], check=True, capture_output=True, text=True).stdout
        names, values = [line.split() for line in text.splitlines() if line.startswith("Icmp:")]
        text = subprocess.run([*lab.inside(name), "cat", "/proc/self/net/snmp6"], check=True, capture_output=True, text=True).stdout
        v6 = dict(line.split() for line in text.splitlines())["Icmp6OutDestUnreachs"]
        told += int(values[names.index("OutDestUnreachs")]) + int(v6)
        with open(f"/proc/{lab.pid(name)}/net/dev", encoding="ascii") as file:
            packets += next(int(line.split()[2]) for line in file if line.split()[0] == "eth0:")
    return told, packets


def start(lab, options, command, environment=None):
    words = [CAUSEWAY, "run", "--timeout", JOB_HANG, *options.split(), *command]
    return lab.start(lab.names[0], words, environment=environment)


def nothing_left(lab, what):
    """But the processes of a Session."""
    left = lambda: {name: each for name in lab.names for each in lab.processes(name).values() if "/usr/bin/python3 -c" not in each}  # noqa: E731
    expect(wait_until(lambda: not left()), f"{what}: nothing is left: {left()}")


def well(lab, options, command, environment=None, said=""):
    process = start(lab, options, command, environment)
    out, err = process.communicate()
    what = f"{options} {' '.join(command)}"
    expect(process.returncode == 0, f"{what}: ends well, not {process.returncode}: {out[-1500:]}{err[-1500:]}")
    expect(re.search(said, err), f"{what}: says {said}: {err[-3000:]}")
    nothing_left(lab, what)


def fails(lab, options, line, command=None, environment=None, alone=True):
    process = start(lab, options, command or programs["is"], environment)
    err = process.communicate()[1]
    lines = [each for each in err.splitlines() if re.search(line, each)]
    expect(process.returncode != 0 and lines, f"{options}: a line says {line}: exit code {process.returncode}: {err[-2000:]}")
    if alone:
        nothing_left(lab, options)
    return lines


def by_rank(transport_of_rank, command):
    """The command under a CAUSEWAY_TRANSPORT of each rank's own."""
    cases = " ".join(f"{rank}) export CAUSEWAY_TRANSPORT={transport};;" for rank, transport in enumerate(transport_of_rank))
    return ["sh", "-c", f'case $PMI_RANK in {cases} esac; exec "$@"', "sh", *command]


def quiet(lab, what, function, *arguments):
    """Kernels do not answer the packets of a job, for which they have no socket, that a port is closed. A last packet may come
    when its process has ended: one of a hundred is allowed."""
    for name in lab.names:
        lab.root(name, "sysctl", "-qw", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0")
    told, packets = unreachables(lab)
    function(*arguments)
    told, packets = (after - before for after, before in zip(unreachables(lab), (told, packets)))
    expect(100 * told <= packets, f"{what}: {told} times ICMP unreachable for {packets} packets")


def suite(lab, net, layouts):
    """Every program, and quietly."""
    for number, (name, command) in enumerate((name, each) for name, each in programs.items() if name != "mpi_busy"):
        groups = MULTICAST if name in ("mpi_collective_random", "mpi_scatter_groups") else None
        quiet(lab, f"{net}: {name}", well, lab, f"--transport {net} --hosts {layouts[number % len(layouts)]}", command, groups)


def two_jobs(lab, net):
    jobs = [start(lab, f"--transport {net} --hosts {hosts}", programs["mpi_collective_move"]) for hosts in ("h0:2,h1:2", "h1:2,h0:2")]
    for job in jobs:
        out, err = job.communicate()
        expect(job.returncode == 0, f"two jobs: {job.returncode}: {out[-1500:]}{err[-1500:]}")
