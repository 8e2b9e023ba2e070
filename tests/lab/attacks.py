"""Attacks on a node, by a client that is a process of its host: attacks.py SOCKET OWN_MAC OTHER_IP USER WHAT... prints what was
expected and did not hold, and how long the node took to answer another user meanwhile. Its exit code is 1 then. WHAT: functions
below."""
import contextlib
import fcntl
import os
import re
import socket
import struct
import sys
import time

from tenant import (HANG_S, Client, Place, answered, ask, become, connected, exit_code, expect, group_mac, igmp_frame, memory_of,
                    own, place, probed, status, udp_frame, v6_frame)
from expectation import wait_until as soon  # found by tenant

# ---- attacks ----


def lines():
    """Lines that make no sense, and others' memory."""
    client = Client()
    expect(re.fullmatch(r"node ip=10\.77\.0\.1/120 mac=02:77:00:00:00:00 mtu=1500 rate=\d+ reports=1 medium=\d+", client.ask("hello 3")), "hello")
    for text, line in (("hello 2", "refused -7 .*use one version"), ("lease", "refused -1 "), ("lease ports=0 first=0 rank=0 memory=3 job=x", "refused -1 "),
                       ("lease ports=1 first=0 rank=0 memory=3 job=x\"y", "refused -1 "), ("hops 1.2.3", "refused -1 "), ("x" * 3000, "refused -1 "),
                       ("lease ports=1 first=0 rank=0 job=x", "refused -1 "), ("lease ports=1 first=0 rank=0 memory=999 job=x", "refused -1 ")):
        said = client.ask(text)
        expect(re.match(line, said), f"{text[:60]}: {line}: {said}")
    ends = os.pipe()
    listener = socket.socket()
    for what, memory in (("short", memory_of(4096)), ("may shrink", memory_of(client.bytes, fcntl.F_SEAL_GROW)), ("may grow", memory_of(client.bytes, fcntl.F_SEAL_SHRINK)),
                         ("terabytes", memory_of(1 << 42, populated=False)), ("long", memory_of(client.bytes + 4096)), ("a pipe", ends[0]), ("a socket", listener.fileno()),
                         ("a folder", os.open("/", os.O_RDONLY)), ("a file", os.open(__file__, os.O_RDONLY)), ("the line itself", client.line.fileno())):
        if os.fstat(memory).st_size >= 4096 and what in ("short", "may shrink", "may grow", "terabytes", "long"):
            os.pwrite(memory, client.map[:64], 0)
        said = client.lease(memory=memory)
        expect(said.startswith("refused -1 "), f"memory, {what}: {said}")
    with contextlib.suppress(OSError):  # where there are huge pages
        said = client.lease(memory=memory_of(2 << 20, populated=False, flags=os.MFD_HUGETLB))
        expect(said.startswith("refused -1 "), f"huge pages: {said}")
    expect(client.lease().startswith("leased"), "a sound one")
    expect(client.lease().startswith("refused"), "one lease a client")
    client.close()


def frames():
    """Frames of others' addresses and ports, and of every other form: refused and counted. One of its own leaves."""
    client = Client()
    client.leased()
    port = client.first
    hop = bytes([58, 0, 5, 2, 0, 0, 1, 0])  # a hop-by-hop header with the option of routers, ICMPv6 behind it
    wrong = [udp_frame(port, source_mac=bytes(6)), udp_frame(port, source="10.77.0.9"), udp_frame(port + 1), udp_frame(22), udp_frame(port, protocol=6),
             udp_frame(port, protocol=2), b"\xff" * 6 + Place.mac + b"\x08\x06" + bytes(28), bytes(1), bytes(13), udp_frame(port, first=0x46), udp_frame(port, flags=0x2000),
             udp_frame(port, flags=0x0001), udp_frame(port, flags=0x8000), udp_frame(port, to="224.0.0.1"), udp_frame(port, to_mac=bytes.fromhex("01005e000001")),
             udp_frame(port, to="255.255.255.255", to_mac=b"\xff" * 6), udp_frame(port, to="224.0.0.251", to_mac=bytes.fromhex("01005e0000fb"), to_port=5353),
             udp_frame(port, extra=bytes(100)), b"\x00" * 6 + Place.mac + b"\x81\x00\x00\x01" + udp_frame(port)[12:],
             v6_frame(0, hop + bytes([134]) + bytes(15)), v6_frame(0, hop + bytes([136]) + bytes(31)), v6_frame(0, hop + bytes([131]) + bytes(23)), v6_frame(58, bytes([134]) + bytes(15)),
             v6_frame(17, struct.pack(">HHHH", port, 29300, 8, 0)), igmp_frame(0x11, "224.0.0.1"), igmp_frame(0x16, "239.1.2.3"), igmp_frame(0x17, "239.1.2.3")]
    for at, frame in enumerate(wrong):
        client.send(frame, at=at)
        expect(soon(lambda: client.consumed() == at + 1), f"frame {at} is taken")
    mine = [(each["refused"], each["out_frames"]) for each in status() if each["port"] == port]
    expect(mine == [(len(wrong), 0)], f"all {len(wrong)} are refused: {mine}")
    client.send(udp_frame(port), at=len(wrong))
    expect(soon(lambda: [each["out_frames"] for each in status() if each["port"] == port] == [1]), "one from its own port goes out")
    client.close()


def rings():
    """Rings that make no sense end the lease."""
    for place, length, position in ((0x7fffffff, 60, 1), (0, 9999, 1), (0, 0, 1), (0, 60, 1000)):
        client = Client()
        client.leased()
        struct.pack_into("<II", client.map, client.PAGE, place, length)
        client.write(position)
        expect(client.line.recv(100) == b"", f"{place} {length} {position}: the lease is over")
        client.close()


def lines_said():
    """Twelve hundred such leases: the node writes a few lines about them. A line about each would fill the pipe, which nobody reads."""
    for _ in range(3):
        clients = [Client(1) for _ in range(400)]
        for client in clients:
            client.leased()
            client.write(1000)
        for client in clients:
            expect(client.line.recv(100) == b"", "the lease is over")
            client.close()
    answered()


def flood():
    """Eight leases whose rings are full of frames that are refused, or that are for nobody on this host. The node looks at a bounded number in a second."""
    clients = [Client(1024) for _ in range(8)]
    begin = time.monotonic()
    for index, client in enumerate(clients):
        client.leased()
        frame = udp_frame(client.first + 1) if index % 2 else udp_frame(client.first, to="10.77.0.1", to_port=1)
        for at in range(client.frames):
            client.send(frame, at=at)
    for _ in range(1000):
        for client in clients:
            client.write(client.consumed() + client.frames)
        time.sleep(0.0005)
    answered()
    refused, bound = own("refused"), 1100 * (time.monotonic() - begin) + 100
    expect(0 < refused < bound, f"as many frames were refused as may be: {refused}, at most {bound:.0f}")
    for client in clients:
        client.close()


def lingering():
    """A socket whose close() waits for an hour."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made = socket.create_connection(listener.getsockname())
    made.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            made.send(bytes(65536))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    return listener, made


def descriptors():
    """Messages with descriptors: none gets into the node (node_usage.py counts them), and none keeps it, whether it reads them or not."""
    for count in (1, 2, 253):
        for _ in range(20):
            line = connected()
            with contextlib.suppress(OSError):
                socket.send_fds(line, [b"hello 3"], [line.fileno()] * count)
                line.recv(100)
            line.close()
    for is_read in (True, False):
        listener, made = lingering()
        line = connected()
        if not is_read:
            line.send(b"nonsense " * 400)  # is answered first
            line.send(b"nonsense " * 400)
        ready, go = os.pipe()
        sender = os.fork()
        if sender == 0:  # who ends does not linger: the last one that has the socket is the node
            os.read(ready, 1)
            socket.send_fds(line, [b"hello 3"], [made.fileno()])
            os._exit(0)
        made.close()
        os.write(go, b"!")
        os.waitpid(sender, 0)
        os.close(ready)
        os.close(go)
        line.close()
        answered()
        listener.close()


def addresses():
    """The next hops of hundreds of absent addresses: those who ask for one that is there get it all the same."""
    clients = [Client() for _ in range(60)]
    for client in clients:
        client.leased()
    for index, client in enumerate(clients):
        client.line.send(("hops " + ",".join(f"10.77.0.{100 + (index * 7 + k) % 150}" for k in range(64))).encode())
    answered()
    for client in clients:
        expect(client.line.recv(4096).startswith(b"hops "), "each is answered")
    expect(soon(lambda: re.fullmatch("hops ([0-9a-f]{2}:){5}[0-9a-f]{2}", clients[0].ask(f"hops {Place.other}"))), f"{Place.other} is found")
    for client in clients:
        client.close()


def ports():
    """All UDP ports for one user: a quarter stays."""
    clients, said = [], "leased"
    while said.startswith("leased"):
        clients.append(Client())
        said = clients[-1].lease(ports=64)
    expect(re.match("refused -\\d+ this user has three quarters of the UDP ports", said), f"the quota of ports: {said}")
    expect(sum(64 for client in clients if client.first) <= 768, "three quarters of 1,024")
    for client in clients:
        client.close()


def groups():
    """A list of groups that is another one each half millisecond; at the end it holds."""
    client = Client()
    client.leased()
    begin, version = time.monotonic(), 0
    while time.monotonic() < begin + 1:
        version += 1
        client.groups_set([f"239.{version % 256}.{k}.{k}" for k in range(64)] if version % 2 else [])
        time.sleep(0.0005)
    answered()
    client.close()


def crowded_groups():
    """More groups than a user may have, though the node's port has room. When some are left, others that wait get their place."""
    clients, wanted = [Client() for _ in range(2)], [[f"239.7.{client}.{k}" for k in range(64)] for client in range(2)]

    def joined(client):
        with open("/proc/net/dev_mcast", "rb") as file:  # without an encoding: its module is closed to this user
            there = set(re.findall(rb"01005e07[0-9a-f]{4}", file.read()))
        return sum(group_mac(group).hex().encode() in there for group in wanted[client])

    for client, groups in zip(clients, wanted):
        client.leased()
        client.groups_set(groups)
        answered()
    expect(soon(lambda: joined(0) + joined(1) == 96), f"a user is in 96 groups: {joined(0)}, {joined(1)}")
    full = 0 if joined(0) == 64 else 1
    clients[full].close()
    expect(soon(lambda: joined(1 - full) == 64 and joined(full) == 0), f"the other one is in all of its groups: {joined(0)}, {joined(1)}")
    clients[1 - full].close()


def readers():
    """Sixty connections that ask for the status of four hundred leases, and do not read it."""
    clients = [Client() for _ in range(400)]
    leased = sum(client.lease().startswith("leased") for client in clients)
    asking = []
    for _ in range(60):
        asking.append(connected())
        asking[-1].send(b"status")
    answered()
    expect(len(status()) == leased, "who reads it gets it")
    for line in asking:
        line.close()
    for client in clients:
        client.close()


def connections():
    """More connections than one user may have."""
    lines = []
    for _ in range(700):
        lines.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        lines[-1].connect(Place.socket)
    lines[-1].settimeout(HANG_S)
    try:
        expect(lines[-1].recv(1) == b"", "the last of 700 connections of a user is closed")
    except ConnectionResetError:
        pass
    for line in lines:
        line.close()


place(*sys.argv[1:4])
with probed(" ".join(sys.argv[5:])):
    tried = os.fork()
    if tried == 0:
        become(sys.argv[4])
        for name in sys.argv[5:]:
            globals()[name]()
        os._exit(exit_code())
    expect(os.waitpid(tried, 0)[1] == 0, "the attacks")
sys.exit(exit_code())
