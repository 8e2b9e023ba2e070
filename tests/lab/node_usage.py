#!/usr/bin/env python3
"""node_usage.py BUILD PART PROGRAM... : jobs by the hosts' dataplanes (`causeway node`) across hosts of a laboratory. PART:
jobs, routes, vlan, macvlan, cores, device, users, hostile, shares, restart. PROGRAM: as jobs.py, and the kernel pairs. CW_TEST_NODE_KILLS: how
often `restart` kills them (6; 50). CW_TEST_SECONDS: how long the client of `hostile` goes on (10; 3600); CW_TEST_SEED: its first seed (1)."""
import concurrent.futures
import os
import pwd
import random
import resource
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile

from expectation import expect
from expectation import wait_until as soon
from hosts import Lab
from jobs import CAUSEWAY, KEEP, MULTICAST, by_rank, fails, programs, quiet, skip, start, suite, two_jobs, well
from nodes import NET, SOCKET, Node, nodes_end, nodes_start, without_nodes

ATTACKS, HOSTILE = (os.path.join(os.path.dirname(os.path.abspath(__file__)), name) for name in ("attacks.py", "hostile.py"))
PAIRS = [*programs.pop("pairs"), "--bytes", "65536", "--window", "8", "--messages", "1000000"]  # for ever
EXCHANGE = [*PAIRS[:-1], "2000"]
HOSTILE_S, HOSTILE_SEED = float(os.environ.get("CW_TEST_SECONDS", "10")), int(os.environ.get("CW_TEST_SEED", "1"))
HOSTILE_ROUND_S = 60  # of these, between those of an honest client
KILLS = int(os.environ.get("CW_TEST_NODE_KILLS", "6"))
SHARES_BYTES = 2 << 20
SHARES_OFF = 0.3  # of a share, at most: a job whose ranks get no turn leaves its part to the other (without weights it is 1)


def mixed(lab):
    """A node's rank on one side, sockets on the other, in both roles; groups, too."""
    for transports in ((f"node:{SOCKET}", "udp", "udp"), ("udp", f"node:{SOCKET}", f"node:{SOCKET}")):
        for name in ("is", "mpi_point_blocking", "mpi_collective_random"):
            well(lab, "--hosts h0,h1,h2", by_rank(transports, programs[name]), MULTICAST if name == "mpi_collective_random" else None)


def apart(lab):
    """Ranks of a host that do not see each other's memory: the node hands their frames over, and copies those to groups."""
    command = ["sh", "-c", 'CAUSEWAY_HOST=apart$PMI_RANK exec "$@"', "sh"]
    for hosts in ("h0:3", "h0:2,h1:2"):
        well(lab, f"{NET} --hosts {hosts}", command + programs["mpi_point_blocking"])
        well(lab, f"--explain {NET} --hosts {hosts}", command + programs["mpi_collective_random"], MULTICAST, r"group of MPI_COMM_WORLD: multicast\n")


def errors(lab):
    fails(lab, "--transport node:/tmp/none --hosts h0,h1", r"no node runs at /tmp/none: start one as root \(causeway node --transport eth0\), or use --transport udp")
    fails(lab, "--hosts h0:2,h1", r"rank 0 is to use node and rank 1 udp, and they share their interfaces",
          by_rank([f"node:{SOCKET}", "udp", "udp"], programs["is"]))
    for options, line in (
            ("", r"which NIC\?"),
            ("--transport nosuch0", r"--transport \(CAUSEWAY_TRANSPORT\) is 'nosuch0', and this host has nothing like that; it has "),
            ("--transport udp", "the node wants a NIC"),
            ("--transport af_packet:nosuch0", r"--transport \(CAUSEWAY_TRANSPORT\) is 'nosuch0', and this host has nothing like that; it has "),
            ("--transport eth0", f"another node serves this socket: {SOCKET}"),
            ("--transport eth0 --ports 5-4", "FIRST-LAST is wanted"),
            ("--transport eth0 --share nobody:weight=0", "wanted is USER:weight=N,rate=RATE"),
            ("--transport eth0 --share nosuchuser:weight=1", "--share: this host has no such user: nosuchuser:weight=1"),
            ("--transport 0000:99:00.0", "0000:99:00.0"),
            ("state", "it knows `status`")):
        code, _, err = lab.run("h0", [CAUSEWAY, "node", *options.split(), "--socket", SOCKET], stdout=subprocess.DEVNULL)
        expect(code != 0 and re.search(line, err) and err.count("\n") == 1, f"node {options}: says {line}: {code}: {err}")


    fails(lab, "--transport af_packet --hosts h0,h1", "rank [01] is to use af_packet, which is a transport of the host's dataplane: start `causeway node "
          "--transport af_packet:NAME` there, and give --transport node")
    fails(lab, "--transport af_pakcet --hosts h0,h1", r"--transport \(CAUSEWAY_TRANSPORT\) is 'af_pakcet', and this host has nothing like that; it has .*eth0 10\.77.*; "
          "transports are udp, alone or as in udp:eth0")
    fails(lab, "--transport udp:10.0.0.0/99 --hosts h0,h1", "a subnet has 0 to 32 bits")
    fails(lab, "--transport udp --ports 40000-40000 --hosts h0:2,h1", "UDP ports 40000 to 40000 are taken.*: give --ports .CAUSEWAY_PORTS. more")


def part_jobs():
    with Lab(3, keep=KEEP) as lab:
        without_nodes(lab)
        nodes = nodes_start(lab)
        well(lab, f"--explain {NET} --hosts h0,h1", programs["is"], None, r"to other hosts by the host's node at 10\.77\.0\.1, UDP port \d+, since ")
        suite(lab, f"node:{SOCKET}", ["h0:2,h1:2", "h0:2,h1,h2:2", "h1:3,h2 --map-by node"])
        mixed(lab)
        quiet(lab, "two jobs", two_jobs, lab, f"node:{SOCKET}")
        apart(lab)
        errors(lab)
        nodes_end(nodes)
        nodes = nodes_start(lab, net="fd77::/16")
        well(lab, f"--explain {NET} --hosts h0:2,h1:2", programs["mpi_collective_random"], MULTICAST, r"the host's node at fd77::1(.|\n)*group of MPI_COMM_WORLD: multicast\n")
        nodes_end(nodes)


# ---- routes, and interfaces on top of others ----


def unreached(lab, hosts, others, address, own, who):
    """One line says who cannot be reached."""
    lines = fails(lab, f"{NET} --hosts {hosts}", rf"does not reach {others}: {address}, by node on its NIC from {own}, .*the node finds no host there \({who}\)")
    expect(len(lines) == 1, f"one line says so: {lines}")


def snooping(lab):
    """Switches that bring multicast only to who has asked for it: the kernel has, and answers their queries. The bridge asks every
    5 s under jobs that leave groups, and a group is forgotten after three questions; jobs begin when it knows who listens."""
    for name, value in (("mcast_query_interval", 100), ("mcast_query_response_interval", 50), ("mcast_startup_query_interval", 50),
                        ("mcast_membership_interval", 1500), ("mcast_snooping", 1), ("mcast_querier", 1)):
        lab.root("net", "ip", "link", "set", "br0", "type", "bridge", name, str(value))
    wanted = [f"port p{index} grp ff02::1:ff00:{index + 1} " for index in range(len(lab.names))]
    known = lambda: subprocess.run([*lab.inside("net"), "bridge", "mdb", "show"], check=True, capture_output=True, text=True).stdout  # noqa: E731
    expect(soon(lambda: all(each in known() for each in wanted)), f"the bridge knows {wanted}: {known()}")
    for net, hosts in (("eth0", "h0:2,h1:2"), ("fd77::/16", "h0,h1,h2")):
        nodes = nodes_start(lab, net=net)
        well(lab, f"--explain {NET} --hosts {hosts}", programs["mpi_collective_random"], MULTICAST, r"group of MPI_COMM_WORLD: multicast\n")
        nodes_end(nodes)
    lab.root("net", "ip", "link", "set", "br0", "type", "bridge", "mcast_snooping", "0", "mcast_querier", "0")


def by_other_kind(lab):
    """Addresses of IPv4 whose next hop is one of IPv6; one that is none."""
    for index in 0, 1:
        own, other = f"10.88.{index}.1", f"10.88.{1 - index}.0/24"
        lab.root(f"h{index}", "ip", "addr", "add", f"{own}/32", "dev", "eth0")
        lab.root(f"h{index}", "ip", "route", "add", other, "via", "inet6", lab.address(1 - index, 6), "dev", "eth0", "src", own)
    nodes = [Node(lab, name, net="10.88.0.0/16") for name in lab.names[:2]]
    well(lab, f"{NET} --hosts h0:2,h1:2", programs["mpi_point_blocking"])
    lab.root("h0", "ip", "route", "replace", "10.88.1.0/24", "via", "inet6", "fd77::99", "dev", "eth0", "src", "10.88.0.1")
    unreached(lab, "h0,h1", "h1", r"10\.88\.1\.1", r"10\.88\.0\.1", "ARP")
    nodes_end(nodes)


def routed_over_ipv6(lab):
    """By a router with an address of the subnet, with one of the link; by one that is none."""
    nodes = nodes_start(lab, net="fd77::/16")
    for router in ("fd77::fe", "fe80::fe"):
        if router.startswith("fe80"):
            lab.root("net", "ip", "addr", "add", f"{router}/64", "dev", "br0", "nodad")
        lab.root("h0", "ip", "-6", "route", "replace", "default", "via", router, "dev", "eth0")
        well(lab, f"{NET} --hosts h0,h1,h2", programs["is"])
    lab.root("h0", "ip", "-6", "route", "replace", "default", "via", "fe80::dead:beef", "dev", "eth0")
    unreached(lab, "h0,h1", "h1", "fd77:0:0:1::1", "fd77::1", "neighbour discovery")
    nodes_end(nodes)


def part_routes():
    with Lab(3, keep=KEEP) as lab:
        without_nodes(lab)
        snooping(lab)
        by_other_kind(lab)
    with Lab(3, keep=KEEP) as lab:
        without_nodes(lab)
        lab.lone_add()  # a subnet that is not one
        nodes = nodes_start(lab, net="lone")
        unreached(lab, "h0:2,h1,h2", "h1, h2", r"10\.99\.0\.2", r"10\.99\.0\.1", "ARP")
        nodes_end(nodes)
    with Lab(3, subnets=2, keep=KEEP) as lab:
        without_nodes(lab)
        routed_over_ipv6(lab)
        nodes = nodes_start(lab)
        well(lab, f"{NET} --hosts h0:2,h1:2", programs["mpi_point_blocking"])
        lab.root("h0", "ip", "route", "replace", "default", "via", "10.77.0.200")
        unreached(lab, "h0,h1", "h1", r"10\.77\.1\.1", r"10\.77\.0\.1", "ARP")
        nodes_end(nodes)


def stacked(lab, name):
    """The same jobs over both versions of IP, by sockets, by nodes, and by both at once."""
    subnets = (("10.88.0.0/24", r"10\.88\.0\.1", "h0:2,h1:2", "h0,h1,h2"), ("fd88::/64", "fd88::1", "h0,h1,h2", "h0:2,h1:2"))
    for subnet, address, hosts, other_hosts in subnets:
        nodes = nodes_start(lab, net=subnet)
        for transport, said in ((f"udp:{subnet}", rf"UDP sockets at {address} \({name}\), since"), (f"node:{SOCKET}", f"the host's node at {address}, ")):
            well(lab, f"--explain --transport {transport} --hosts {hosts}", programs["mpi_collective_random"], MULTICAST, said)
            well(lab, f"--explain --transport {transport} --hosts {other_hosts}", programs["mpi_point_blocking"], None, said)
        well(lab, "--hosts h0,h1,h2", by_rank([f"node:{SOCKET}", f"udp:{subnet}", f"udp:{subnet}"], programs["mpi_collective_random"]), MULTICAST)
        nodes_end(nodes)


def tagged(lab):
    """A VLAN that leaves its tags in the frames: sockets do not mind."""
    for index, host in enumerate(lab.names):
        lab.root(host, "ip", "link", "add", "link", "eth0", "name", "tagged", "type", "vlan", "id", "6", "reorder_hdr", "off")
        lab.root(host, "ip", "addr", "add", f"10.89.0.{index + 1}/24", "dev", "tagged")
        lab.root(host, "ip", "link", "set", "tagged", "up")
    code, _, err = lab.run("h0", [CAUSEWAY, "node", "--transport", "tagged", "--socket", SOCKET])
    expect(code != 0 and "tagged leaves VLAN tags in the frames that it receives: ip link set tagged type vlan reorder_hdr on" in err, f"tags: {code}: {err}")
    well(lab, "--transport udp:tagged --hosts h0,h1", programs["is"])


def part_stacked(kind, name, *arguments):
    """An interface on top of another one."""
    with Lab(3, keep=KEEP) as lab:
        without_nodes(lab)
        probe = ["ip", "link", "add", "link", "eth0", "name", "probe", "type", kind, *arguments]
        if subprocess.run([*lab.inside("h0"), *probe], capture_output=True, check=False).returncode != 0:
            skip(f"this kernel has no interfaces of the kind {kind}")
        lab.root("h0", "ip", "link", "del", "probe")
        for index, host in enumerate(lab.names):
            lab.root(host, "sysctl", "-qw", "net.ipv4.conf.all.arp_ignore=1")  # else eth0 answers for it, too
            lab.root(host, "ip", "link", "add", "link", "eth0", "name", name, "type", kind, *arguments)
            lab.root(host, "ip", "addr", "add", f"10.88.0.{index + 1}/24", "dev", name)
            lab.root(host, "ip", "addr", "add", f"fd88::{index + 1}/64", "dev", name, "nodad")
            lab.root(host, "ip", "link", "set", name, "up")
        stacked(lab, name)
        if kind == "vlan":
            tagged(lab)


# ---- several cores ----


def part_cores():
    """Nodes with two threads each, by the queue pairs of a memif between them: ranks of one host are served by both."""
    with tempfile.TemporaryDirectory() as folder, Lab(2, keep=[*KEEP, folder]) as lab:
        without_nodes(lab)

        def node_start(index):
            if index == 1:  # the server waits for its client, who comes when it is there
                soon(lambda: os.path.exists(f"{folder}/memif"))
            return Node(lab, lab.names[index], "--core", "0,1", net=f"net_memif0,role={('server', 'client')[index]},socket={folder}/memif,socket-abstract=no,ip=10.88.0.{1 + index}/24")

        with concurrent.futures.ThreadPoolExecutor() as both:
            nodes = list(both.map(node_start, range(2)))
        expect(all(" on 2 cores, " in node.said for node in nodes), f"both have two: {[node.said for node in nodes]}")
        well(lab, f"--explain {NET} --hosts h0:2,h1:2", programs["mpi_collective_random"], MULTICAST, r"the host's node at 10\.88\.0\.1(.|\n)*group of MPI_COMM_WORLD: multicast\n")
        suite(lab, f"node:{SOCKET}", ["h0:2,h1:2", "h0:2,h1 --map-by node"])
        apart(lab)
        job = start(lab, f"{NET} --hosts h0:2,h1:2", PAIRS)
        expect(soon(lambda: all({each["thread"] for each in node.status() if "thread" in each} == {0, 1} for node in nodes)), f"a rank on each core: {nodes[0].status()}")
        os.killpg(job.pid, signal.SIGTERM)  # the launcher is a child
        job.communicate()
        nodes_end(nodes)
        node = Node(lab, "h0", "--core", "0,1")
        said = node.process.stderr.readline()
        expect("eth0 has 1 queue pair: as many cores are used, and not 2" in said, f"an interface has one: {said}")
        node.close()


# ---- a NIC whose address no kernel has ----


# An echo request (RFC 792), and its answer.
ECHO = """import socket, sys
line = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
line.sendto(bytes([8, 0, 0xf7, 0xfd, 0, 1, 0, 1]), (sys.argv[1], 0))
while line.recv(100)[20:28] != bytes([0, 0, 0xff, 0xfd, 0, 1, 0, 1]): pass"""


def part_device():
    """A raw socket on a second interface, which has no address, stands for the NIC: the node answers for its address."""
    with Lab(2, keep=KEEP) as lab:
        without_nodes(lab)
        for index, name in enumerate(lab.names):
            lab.root("net", "ip", "link", "add", f"q{index}", "type", "veth", "peer", "name", "nic", "netns", str(lab.pid(name)))
            lab.root("net", "ip", "link", "set", f"q{index}", "master", "br0", "up")
            lab.root(name, "sysctl", "-qw", "net.ipv6.conf.nic.disable_ipv6=1")
            lab.root(name, "ip", "link", "set", "nic", "up")
        nodes = [Node(lab, name, net=f"net_af_packet0,iface=nic,ip=10.77.0.{101 + index}/24") for index, name in enumerate(lab.names)]
        for command in (programs["is"], programs["mpi_point_blocking"]):
            well(lab, f"--explain {NET} --hosts h0:2,h1:2", command, None, r"the host's node at 10\.77\.0\.101, UDP port \d+, since ")
        well(lab, f"--explain {NET} --hosts h0:2,h1:2", programs["mpi_collective_random"], MULTICAST, r"group of MPI_COMM_WORLD: multicast\n")
        code, _, err = lab.run("h1", ["/usr/bin/python3", "-c", ECHO, "10.77.0.101"])
        expect(code == 0, f"the node answers echo requests: {code}: {err}")
        nodes_end(nodes)


# ---- who may do what ----


def descriptors_of(node):
    """How many the node has."""
    return len(os.listdir(f"/proc/{node.number()}/fd"))


def memories_of(node):
    """Mappings of clients' memory that the node has, and its resident memory in KiB."""
    with open(f"/proc/{node.number()}/maps", encoding="ascii") as maps, open(f"/proc/{node.number()}/status", encoding="ascii") as status:
        return sum("/memfd:" in line for line in maps), int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])


def as_root(lab, node, program, *words):
    """A program of the node's host, next to the node: the start of it."""
    former, lab.user = lab.user, None
    process = lab.start(node.name, [sys.executable, program, SOCKET, lab.mac(0), lab.address(1), *words], stderr=None)
    lab.user, node.is_lied_to = former, True
    return process


def attack(lab, node, user, *names):
    """What attacks.py does as a user of the node's host; afterwards the node has as many descriptors as before, and those of groups that the job has joined
    meanwhile."""
    before = descriptors_of(node) + 4
    process = as_root(lab, node, ATTACKS, user, *names)
    out, code = process.communicate()[0], process.returncode
    print(out, end="", flush=True)
    expect(code == 0, f"{names} of {user}: {code}")
    expect(soon(lambda: descriptors_of(node) <= before), f"{names}: the node may have {before} descriptors, and has {descriptors_of(node)}")


def stopped(lab, node):
    """A node that is stopped and whose backlog is full: who comes then is told so, and does not wait for ever."""
    number = node.number()
    lines, path = [], f"/proc/{lab.pid(node.name)}/root{SOCKET}"
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)  # the backlog has thousands
    os.kill(number, signal.SIGSTOP)
    try:
        while True:
            lines.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            lines[-1].setblocking(False)
            try:
                lines[-1].connect(path)
            except BlockingIOError:
                break
        code, _, err = lab.run(node.name, [CAUSEWAY, "node", "status", "--socket", SOCKET])
        expect(code != 0 and "does not answer: is it stopped?" in err, f"a stopped node with a full backlog: {code}: {err}")
    finally:
        for line in lines:
            line.close()
        os.kill(number, signal.SIGCONT)
        os.kill(node.process.pid, signal.SIGCONT)  # nsenter stops with what it has started


def planted(lab):
    """What others have put where the node keeps its list of leases: a pipe is not waited for, and no link is followed."""
    root, victim = f"/proc/{lab.pid('h0')}/root", "/tmp/victim"
    with open(root + victim, "w", encoding="ascii") as file:
        file.write("as before")
    for plant in (lambda path: os.mkfifo(path), lambda path: os.symlink(victim, path)):
        if os.path.lexists(f"{root}{SOCKET}.leases"):
            os.remove(f"{root}{SOCKET}.leases")
        plant(f"{root}{SOCKET}.leases")
        node = Node(lab, "h0")
        for number in range(1, 1000):  # names that one who guesses would try
            beside = f"{root}{SOCKET}.leases.{number}"
            os.symlink(victim, beside)
        well(lab, f"{NET} --hosts h0", programs["is"])
        for number in range(1, 1000):
            os.remove(f"{root}{SOCKET}.leases.{number}")
        node.close()
        with open(root + victim, encoding="ascii") as file:
            expect(file.read() == "as before", "a file of others' is not written to")


def part_users():
    """Ranks of a user without privileges; who may not is told so; who lies is found out, while a job runs on."""
    with Lab(2, user="nobody", keep=KEEP) as lab:
        without_nodes(lab)
        nodes = nodes_start(lab)
        well(lab, f"--explain {NET} --hosts h0:2,h1:2", programs["mpi_point_blocking"], None, r"the host's node at 10\.77\.0\.1")
        job = start(lab, f"{NET} --hosts h0:2,h1:2", programs["mpi_busy"])
        soon(lambda: len(nodes[0].status()) == 2)
        leases = nodes[0].status()
        page = nodes[0].status_text("--prometheus")
        expect(page.count("causeway_node_send_bytes_total{job=") == 2 and "causeway_node_leases{nic=\"eth0\"} 2\n" in page, f"a page for Prometheus: {page}")
        expect(len(leases) == 2 and {each["rank"] for each in leases} == {0, 1}, f"two leases: {leases}")
        expect(len({each["port"] for each in leases}) == 2 and {each["user"] for each in leases} != {0}, f"ports of their own, of that user: {leases}")
        for name in ("lines", "frames", "rings", "lines_said", "flood", "descriptors", "addresses", "ports", "groups", "crowded_groups", "readers", "connections"):
            attack(lab, nodes[0], "daemon", name)
            expect(job.poll() is None, f"{name}: the job of another user runs on")
        os.killpg(job.pid, signal.SIGTERM)
        job.communicate()
        stopped(lab, nodes[0])
        for node in nodes:
            node.close()
        planted(lab)
        nodes = nodes_start(lab, "--only-named", "--share", "daemon:weight=2")
        fails(lab, f"{NET} --hosts h0,h1", r"the node refuses: this user may not use it \(--only-named\)")
        nodes_end(nodes)
        nodes = nodes_start(lab, "--user-leases", "1", "--share", "nobody:weight=3,rate=1Gbps")
        well(lab, f"{NET} --hosts h0,h1", programs["is"])
        fails(lab, f"{NET} --hosts h0:2,h1", "this user has as many leases as one may")
        nodes_end(nodes)


def seconds_of(lab, job):
    """How long the exchange of a job took, whose bytes it has verified."""
    out, err = job.communicate()
    found = re.search(r"([0-9.]+) s, .* verified", out)
    expect(job.returncode == 0 and found, f"the job's results are right: {job.returncode}: {out}{err}")
    return float(found[1]) if found else 0


def next_to(lab, node, *words):
    """Jobs next to hostile.py, until that ends: how long the exchange of each took."""
    client, times = as_root(lab, node, HOSTILE, "daemon", *map(str, words)), []
    while client.poll() is None:
        times.append(seconds_of(lab, start(lab, f"{NET} --hosts h0,h1", EXCHANGE)))
        if len(times) % 4 == 1:
            job = start(lab, f"{NET} --hosts h0:2,h1:2", programs["mpi_collective_random"], {**MULTICAST, "CW_CALLS": "50"})
            err = job.communicate()[1]
            expect(job.returncode == 0, f"collective calls are right: {job.returncode}: {err}")
    out = client.communicate()[0]
    print(out, end="", flush=True)
    expect(client.returncode == 0, f"hostile.py {words}: {client.returncode}")
    return times


def part_hostile():
    """hostile.py next to jobs, of which each is right; in turn with an honest client, to compare the jobs' times with."""
    with Lab(2, user="nobody", keep=KEEP) as lab:
        without_nodes(lab)
        nodes = nodes_start(lab)
        well(lab, f"{NET} --hosts h0,h1", programs["mpi_collective_random"], MULTICAST)
        expect(soon(lambda: not nodes[0].status()), "no lease is left")
        descriptors, (mappings, resident) = descriptors_of(nodes[0]), memories_of(nodes[0])
        honest, hostile, left, seed = [], [], HOSTILE_S, HOSTILE_SEED
        while left > 0:
            seconds = min(left, HOSTILE_ROUND_S)
            honest += next_to(lab, nodes[0], seed, seconds / 10, "honest")
            hostile += next_to(lab, nodes[0], seed, seconds)
            left, seed = left - seconds, seed + 1
        expect(soon(lambda: not nodes[0].status()), f"no lease is left: {nodes[0].status()}")
        expect(soon(lambda: descriptors_of(nodes[0]) <= descriptors), f"the node had {descriptors} descriptors, and has {descriptors_of(nodes[0])}")
        expect(soon(lambda: memories_of(nodes[0])[0] <= mappings), f"the node had {mappings} mappings of clients' memory, and has {memories_of(nodes[0])[0]}")
        print(f"{HOSTILE_S:.0f} s with a hostile client: {len(hostile)} exchanges next to it took {statistics.median(hostile):.3f} s, {len(honest)} next to an honest "
              f"one {statistics.median(honest):.3f} s (medians): {statistics.median(hostile) / max(statistics.median(honest), 1e-9):.2f} times; resident memory of the node "
              f"{resident} KiB before, {memories_of(nodes[0])[1]} KiB after", flush=True)
        nodes_end(nodes)


# ---- shares ----


def bytes_of(node):
    """What each user's leases have sent: user -> bytes."""
    found = {}
    for each in node.status():
        found[each["user"]] = found.get(each["user"], 0) + each["out_bytes"]
    return found


def part_shares():
    """Two users' jobs fill a NIC that is so slow that their rings are full, however seldom their ranks get a turn. Three parts of
    four go to one of them, however many ranks each has; then to each as much as its rate allows."""
    with Lab(2, keep=KEEP) as lab:
        without_nodes(lab)
        users = {name: pwd.getpwnam(name).pw_uid for name in ("nobody", "daemon")}
        for options, hosts, wanted in (
                (["--share", "daemon:weight=3"], {"nobody": "h0:2,h1:2", "daemon": "h0,h1"}, {"nobody": 0.25, "daemon": 0.75}),
                (["--share", "daemon:weight=3,rate=800Kbps"], {"nobody": "h0,h1", "daemon": "h0:2,h1:2"}, {"nobody": 0.8, "daemon": 0.2})):
            nodes = [Node(lab, "h0", "--rate", "4Mbps", *options), Node(lab, "h1")]
            jobs = []
            for name in users:
                lab.user = name
                jobs.append(start(lab, f"{NET} --hosts {hosts[name]}", PAIRS))
            lab.user = None

            def moved_since(before):
                now = bytes_of(nodes[0])
                return {name: now.get(user, 0) - before.get(user, 0) for name, user in users.items()}

            soon(lambda: min(moved_since({}).values()) > 1 << 19)
            before = bytes_of(nodes[0])
            moved = {}
            soon(lambda: moved.update(moved_since(before)) or sum(moved.values()) > SHARES_BYTES)
            expect(all(job.poll() is None for job in jobs), "both jobs run")
            for job in jobs:
                lab.kill(job)
                job.communicate()
            shares = {name: each / max(1, sum(moved.values())) for name, each in moved.items()}
            print(f"{' '.join(options)}: {', '.join(f'{name} {share:.3f} of {wanted[name]}' for name, share in shares.items())}")
            expect(all(abs(shares[name] / wanted[name] - 1) < SHARES_OFF for name in users), f"shares: {shares}, wanted {wanted}")
            nodes_end(nodes)


# ---- nodes that are killed ----


def ports_of(node):
    return {each["rank"]: each["port"] for each in node.status()}


def part_restart():
    """They come back, and jobs go on: their ports, what lay in the rings, their groups. In between, nobody else gets the ports."""
    chance = random.Random(21)
    with Lab(2, keep=KEEP) as lab:
        without_nodes(lab)
        nodes = nodes_start(lab)
        commands = [(programs["mpi_collective_random"], MULTICAST), (programs["mpi_point_blocking"], None), (programs["is"][:1] + ["W"], None)]
        kills = jobs = 0
        while kills < KILLS:
            command, environment = commands[jobs % len(commands)]
            job = start(lab, f"{NET} --hosts h0:2,h1:2", command, environment)
            soon(lambda: all(len(ports_of(node)) == 2 for node in nodes) or job.poll() is not None)  # who finds no node at the start says so, and ends
            while job.poll() is None and kills < KILLS:
                node = chance.choice(nodes)
                for _ in range(chance.randrange(1, 20)):  # some milliseconds each
                    before = ports_of(node)
                node.kill()
                for _ in range(chance.choice([0, 0, 2, 15])):
                    ports_of(nodes[1 - nodes.index(node)])
                node.start()
                kills += 1
                seen = []  # until all are back
                soon(lambda: seen.append(ports_of(node)) or seen[-1].keys() == before.keys() or job.poll() is not None)
                after = seen[-1]
                if job.poll() is None:
                    expect(all(after.get(rank) == port for rank, port in before.items()), f"the same ports: {before}, {after}")
            out, err = job.communicate()
            expect(job.returncode == 0, f"{command} after {kills} kills: {job.returncode}: {out[-1500:]}{err[-1500:]}")
            jobs += 1
        print(f"{kills} kills during {jobs} jobs")
        job = start(lab, f"{NET} --hosts h0,h1", PAIRS, {"CAUSEWAY_FAILURE_TIMEOUT": "2"})
        soon(lambda: all(any(each["out_frames"] > 100 for each in node.status()) for node in nodes) or job.poll() is not None)
        nodes[0].kill()  # for good: what the ranks say
        out, err = job.communicate()
        expect(job.returncode != 0 and "the node of this host, h0, is away" in err, f"a node that is gone: {job.returncode}: {out[-1500:]}{err[-1500:]}")
        fails(lab, f"{NET} --hosts h0,h1", f"no node runs at {SOCKET}")
        nodes[0].start()
        nodes_end(nodes)


PARTS = dict(jobs=part_jobs, routes=part_routes, vlan=lambda: part_stacked("vlan", "eth0.5", "id", "5"),
             macvlan=lambda: part_stacked("macvlan", "above", "mode", "bridge"), cores=part_cores, device=part_device, users=part_users, hostile=part_hostile, shares=part_shares, restart=part_restart)

if __name__ == "__main__":
    PARTS[sys.argv[2]]()
