#!/usr/bin/env python3
"""transports_usage.py BUILD PART PROGRAM... : MPI programs across hosts of a laboratory (hosts.py) by transports that need root.
PART: af_packet, vlan, macvlan. PROGRAM: programs of the conformance suite, and the kernel is."""
import os
import re
import subprocess
import sys

from expectation import JOB_HANG, exit_code, expect, wait_until
from hosts import Lab, skip_without_hosts


def skip(reason):
    print(f"SKIPPED: machine: {reason}")
    sys.exit(77)


skip_without_hosts()

build = os.path.abspath(sys.argv[1])
CAUSEWAY = "/tmp/build/causeway"
KEEP = [f"{build}:build", os.path.dirname(os.path.abspath(__file__))]  # what sanitizers need, too
MULTICAST = {"CAUSEWAY_ALGORITHM": "bcast=multicast,scatter=multicast,allgather=multicasts,barrier=tree-multicast"}
UDP, DEVICE = "UDP sockets at 10", "{} on eth0 at 10"

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


# ---- af_packet ----


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


def mixed(lab, transport):
    """Sockets on one side, frames on the other, in both roles; groups, too."""
    for first, second in ((transport, "udp"), ("udp", transport)):
        said = UDP if first == "udp" else DEVICE.format(first)
        for name in ("is", "mpi_point_blocking", "mpi_collective_random"):
            well(lab, "--explain --hosts h0,h1,h2", by_rank([first, second, "udp"], programs[name]),
                 MULTICAST if name == "mpi_collective_random" else None, said)
        well(lab, "--explain --hosts h0,h1,h2", by_rank([first, second, "udp"], programs["is"]), None,
             "group of MPI_COMM_WORLD: multicast")
        kernels = "UDP checksums, by the kernels" if first == "udp" else "CRC-32C, by the processes"
        well(lab, "--explain --hosts h0,h1,h2", by_rank([first, second, "udp"], programs["is"]), None,
             f"path to rank 1: .*checked by CRC-32C, by the processes\\n.*path to rank 2: .*checked by {kernels}\\n")


def over_ipv6(lab, transport, hosts):
    """The same packets, but for the IP header."""
    well(lab, f"--explain --transport {transport}:fd77::/16 --hosts {hosts}", programs["is"], None,
         rf"to other hosts by {transport} on eth0 at fd77::1, UDP port \d+, since --transport \(CAUSEWAY_TRANSPORT\) says so; sockets")
    well(lab, f"--explain --transport {transport}:fd77::/16 --hosts {hosts}", programs["mpi_collective_random"], MULTICAST,
         r"group of MPI_COMM_WORLD: multicast\n")


def mixed_over_ipv6(lab, transport):
    for first, second in ((transport, "udp"), ("udp", transport)):
        transports = [f"{each}:fd77::/16" for each in (first, second, "udp")]
        for name in ("is", "mpi_collective_random"):
            well(lab, "--explain --hosts h0,h1,h2", by_rank(transports, programs[name]), MULTICAST if name != "is" else None,
                 "UDP sockets at fd77::1" if first == "udp" else f"{transport} on eth0 at fd77::1")


def routed_over_ipv6(lab):
    """By a router with an address of the subnet, with one of the link; by one that is none."""
    for router in ("fd77::fe", "fe80::fe"):
        if router.startswith("fe80"):
            lab.root("net", "ip", "addr", "add", f"{router}/64", "dev", "br0", "nodad")
        lab.root("h0", "ip", "-6", "route", "replace", "default", "via", router, "dev", "eth0")
        well(lab, "--explain --transport af_packet:fd77::/16 --hosts h0,h1,h2", programs["is"], None, "af_packet on eth0 at fd77::1,")
    well(lab, "--hosts h0,h1,h2", by_rank([f"{transport}:fd77::/16" for transport in ("af_packet", "udp", "af_packet")], programs["mpi_point_blocking"]))
    lab.root("h0", "ip", "-6", "route", "replace", "default", "via", "fe80::dead:beef", "dev", "eth0")
    fails(lab, "--transport af_packet:fd77::/16 --hosts h0,h1", r"does not reach h1: fd77:0:0:1::1, by af_packet on eth0 from fd77::1, next hop "
          r"fe80::dead:beef: nobody answers for that address \(neighbour discovery\)")


def two_jobs(lab, net):
    jobs = [start(lab, f"--transport {net} --hosts {hosts}", programs["mpi_collective_move"]) for hosts in ("h0:2,h1:2", "h1:2,h0:2")]
    for job in jobs:
        out, err = job.communicate()
        expect(job.returncode == 0, f"two jobs: {job.returncode}: {out[-1500:]}{err[-1500:]}")


def snooping(lab):
    """Switches that bring multicast only to who has asked for it: the kernel has, and answers their queries. The bridge asks every
    5 s under jobs that leave groups, and a group is forgotten after three questions; jobs begin when it knows who listens."""
    for name, value in (("mcast_query_interval", 100), ("mcast_query_response_interval", 50), ("mcast_startup_query_interval", 50),
                        ("mcast_membership_interval", 1500), ("mcast_snooping", 1), ("mcast_querier", 1)):
        lab.root("net", "ip", "link", "set", "br0", "type", "bridge", name, str(value))
    wanted = [f"port p{index} grp ff02::1:ff00:{index + 1} " for index in range(len(lab.names))]
    known = lambda: subprocess.run([*lab.inside("net"), "bridge", "mdb", "show"], check=True, capture_output=True, text=True).stdout  # noqa: E731
    expect(wait_until(lambda: all(each in known() for each in wanted)), f"the bridge knows {wanted}: {known()}")
    for hosts in ("h0,h1,h2", "h0:2,h1:2"):
        well(lab, f"--explain --transport af_packet --hosts {hosts}", programs["mpi_collective_random"], MULTICAST,
             r"group of MPI_COMM_WORLD: multicast\n")
    well(lab, "--explain --transport af_packet:fd77::/16 --hosts h0,h1,h2", programs["mpi_collective_random"], MULTICAST,
         r"group of MPI_COMM_WORLD: multicast\n")
    lab.root("net", "ip", "link", "set", "br0", "type", "bridge", "mcast_snooping", "0", "mcast_querier", "0")


def stacked(lab, kind, name, *arguments):
    """An interface on top of another one: the same jobs, over both versions of IP, by sockets and by frames, and by both at once."""
    for index, host in enumerate(lab.names):
        lab.root(host, "sysctl", "-qw", "net.ipv4.conf.all.arp_ignore=1")  # else eth0 answers for it, too
        lab.root(host, "ip", "link", "add", "link", "eth0", "name", name, "type", kind, *arguments)
        lab.root(host, "ip", "addr", "add", f"10.88.0.{index + 1}/24", "dev", name)
        lab.root(host, "ip", "addr", "add", f"fd88::{index + 1}/64", "dev", name, "nodad")
        lab.root(host, "ip", "link", "set", name, "up")
    said = {"udp": rf"UDP sockets at {{}} \({name}\), since", "af_packet": rf"af_packet on {name} at {{}}, UDP port \d+, since"}
    subnets = (("10.88.0.0/24", r"10\.88\.0\.1", "h0:2,h1:2", "h0,h1,h2"), ("fd88::/64", "fd88::1", "h0,h1,h2", "h0:2,h1:2"))
    for subnet, address, hosts, other_hosts in subnets:
        for transport, line in said.items():
            line = f"{line.format(address)} --transport \(CAUSEWAY_TRANSPORT\) says so"
            well(lab, f"--explain --transport {transport}:{subnet} --hosts {hosts}", programs["mpi_collective_random"], MULTICAST, line)
            well(lab, f"--explain --transport {transport}:{subnet} --hosts {other_hosts}", programs["mpi_point_blocking"], None, line)
    for subnet, transports in (("10.88.0.0/24", ("af_packet", "udp", "udp")), ("fd88::/64", ("udp", "af_packet", "udp"))):
        well(lab, "--hosts h0,h1,h2", by_rank([f"{transport}:{subnet}" for transport in transports], programs["mpi_collective_random"]), MULTICAST)
    well(lab, f"--explain --transport af_packet:{name} --hosts h0,h1", programs["is"], None, f"af_packet on {name} at ")
    for host in lab.names:
        lab.root(host, "ip", "link", "del", name)


def tagged(lab):
    """A VLAN that leaves its tags in the frames: sockets do not mind."""
    for index, host in enumerate(lab.names):
        lab.root(host, "ip", "link", "add", "link", "eth0", "name", "tagged", "type", "vlan", "id", "6", "reorder_hdr", "off")
        lab.root(host, "ip", "addr", "add", f"10.89.0.{index + 1}/24", "dev", "tagged")
        lab.root(host, "ip", "link", "set", "tagged", "up")
    fails(lab, "--transport af_packet:tagged --hosts h0,h1", r"rank \d on h\d: --transport af_packet: tagged leaves VLAN tags in the frames that it receives: "
          "ip link set tagged type vlan reorder_hdr on, or use --transport udp:tagged")
    well(lab, "--transport udp:tagged --hosts h0,h1", programs["is"])


def hopless(lab):
    """A subnet that is not one; a router that is none; no route."""
    lab.lone_add()
    lines = fails(lab, "--transport af_packet:lone --hosts h0:2,h1,h2", r"host h0 \(rank 0\) does not reach h1, h2: 10\.99\.0\.2, by af_packet "
                  r"on lone from 10\.99\.0\.1, next hop 10\.99\.0\.2: nobody answers for that address \(ARP\)")
    expect(len(lines) == 1, f"one line says so: {lines}")
    for name in lab.names:
        lab.root(name, "ip", "link", "del", "lone")


def by_other_kind(lab):
    """Addresses of IPv4 whose next hop is one of IPv6; one that is none."""
    for index in 0, 1:
        own, other = f"10.88.{index}.1", f"10.88.{1 - index}.0/24"
        lab.root(f"h{index}", "ip", "addr", "add", f"{own}/32", "dev", "eth0")
        lab.root(f"h{index}", "ip", "route", "add", other, "via", "inet6", lab.address(1 - index, 6), "dev", "eth0", "src", own)
    well(lab, "--transport af_packet:10.88.0.0/16 --hosts h0:2,h1:2", programs["mpi_point_blocking"])
    lab.root("h0", "ip", "route", "replace", "10.88.1.0/24", "via", "inet6", "fd77::99", "dev", "eth0", "src", "10.88.0.1")
    fails(lab, "--transport af_packet:10.88.0.0/16 --hosts h0,h1", r"does not reach h1: 10\.88\.1\.1, by af_packet on eth0 from 10\.88\.0\.1, next hop "
          r"fd77::99: nobody answers for that address \(neighbour discovery\)")
    for index in 0, 1:
        lab.root(f"h{index}", "ip", "route", "del", f"10.88.{1 - index}.0/24")
        lab.root(f"h{index}", "ip", "addr", "del", f"10.88.{index}.1/32", "dev", "eth0")


def errors(lab):
    fails(lab, "--transport af_pakcet --hosts h0,h1", r"--transport \(CAUSEWAY_TRANSPORT\) is 'af_pakcet', and this host has nothing like that; it has .*eth0 10\.77.*; "
          "transports are udp and af_packet, alone or as in af_packet:eth0")
    fails(lab, "--transport af_xdp --hosts h0,h1", "is 'af_xdp', and this host has nothing like that; .*; transports are udp and af_packet")
    fails(lab, "--transport af_packet:nosuch0 --hosts h0,h1", r"--transport \(CAUSEWAY_TRANSPORT\) is 'nosuch0', and this host has nothing like that; it has ")
    fails(lab, "--transport udp:10.0.0.0/99 --hosts h0,h1", "a subnet has 0 to 32 bits")
    fails(lab, "--hosts h0:2,h1", r"rank 0 is to use af_packet and rank 1 udp, and they share their interfaces",
          by_rank(["af_packet", "udp", "udp"], programs["is"]))
    fails(lab, "--transport af_packet --ports 40000-40000 --hosts h0:2,h1", "UDP ports 40000 to 40000 are taken.*: give --ports .CAUSEWAY_PORTS. more")


def part_af_packet():
    with Lab(3, keep=KEEP) as lab:
        suite(lab, "af_packet", ["h0:2,h1:2", "h0:2,h1,h2:2", "h1:3,h2 --map-by node"])
        well(lab, "--explain --transport af_packet:eth0 --ports 40000-40003 --hosts h0:2,h1:2", programs["is"], None,
             r"to other hosts by af_packet on eth0 at 10\.77\.0\.1, UDP port 4000[0-3], since .*; sockets")
        well(lab, "--explain --hosts h0,h1", programs["is"], None, UDP)  # the default
        mixed(lab, "af_packet")
        quiet(lab, "over IPv6", over_ipv6, lab, "af_packet", "h0:2,h1:2")
        mixed_over_ipv6(lab, "af_packet")
        quiet(lab, "two jobs", two_jobs, lab, "af_packet")
        snooping(lab)
        hopless(lab)
        by_other_kind(lab)
        errors(lab)
    with Lab(3, subnets=2, keep=KEEP) as lab:
        for hosts in ("h0:2,h1:2", "h0,h1,h2"):
            well(lab, f"--explain --transport af_packet --hosts {hosts}", programs["is"], None, "since the hosts share no subnet: the address of the default route; sockets")
        well(lab, "--hosts h0,h1,h2", by_rank(["af_packet", "udp", "af_packet"], programs["mpi_point_blocking"]))
        routed_over_ipv6(lab)
        lab.root("h0", "ip", "route", "replace", "default", "via", "10.77.0.200")
        fails(lab, "--transport af_packet --hosts h0,h1", r"does not reach h1: 10\.77\.1\.1, by af_packet on eth0 from 10\.77\.0\.1, next hop "
              r"10\.77\.0\.200: nobody answers for that address \(ARP\)")
    with Lab(2, user="nobody", keep=KEEP) as lab:
        fails(lab, "--transport af_packet --hosts h0,h1", r"rank \d on h\d: --transport af_packet needs root \(or CAP_NET_RAW\): --transport udp, which is the "
              "default, needs no privilege")


def part_stacked(kind, name, *arguments, then=None):
    with Lab(3, keep=KEEP) as lab:
        probe = ["ip", "link", "add", "link", "eth0", "name", "probe", "type", kind, *arguments]
        if subprocess.run([*lab.inside("h0"), *probe], capture_output=True, check=False).returncode != 0:
            skip(f"this kernel has no interfaces of the kind {kind}")
        lab.root("h0", "ip", "link", "del", "probe")
        stacked(lab, kind, name, *arguments)
        if then is not None:
            then(lab)


PARTS = {
    "af_packet": part_af_packet,
    "vlan": lambda: part_stacked("vlan", "eth0.5", "id", "5", then=tagged),
    "macvlan": lambda: part_stacked("macvlan", "above", "mode", "bridge"),
}

if __name__ == "__main__":
    PARTS[sys.argv[2]]()
    sys.exit(exit_code())
