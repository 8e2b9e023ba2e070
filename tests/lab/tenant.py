"""Clients of a node that do what they like, by control/lease/lease_text.h and dataplane/port/shm_port_private.h: leases, their memory,
lines, frames; and another user meanwhile, who notes how long the node takes to answer. attacks.py and hostile.py use it."""
import contextlib
import encodings.idna  # noqa: F401  before the user changes: the folder of Python may be closed to others
import fcntl
import json
import mmap
import os
import pwd
import re
import select
import socket
import statistics
import struct
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpi")]
from expectation import HANG_S, exit_code, expect


class Place:
    """Where the node is: its socket, its host's MAC, the address of another host."""
    socket = mac = other = None


def place(path, mac, other):
    Place.socket, Place.mac, Place.other = path, bytes.fromhex(mac.replace(":", "")), other


FIXED = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
OUT_WRITTEN, OUT_CONSUMED, GROUPS = 64, 128, 256  # where the memory has these positions


def memory_of(count, seals=FIXED, populated=True, flags=0):
    memory = os.memfd_create("tenant", os.MFD_ALLOW_SEALING | flags)
    (os.posix_fallocate(memory, 0, count) if populated else os.ftruncate(memory, count))
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
    return memory


class Client:
    FRAMES, MTU, BUFFER, PAGE = 16, 1500, 1536, 4096

    def __init__(self, frames=FRAMES):
        self.frames = frames
        rings = (self.PAGE + 44 * frames + self.PAGE - 1) // self.PAGE * self.PAGE
        self.buffers = rings
        self.bytes = rings + 2 * frames * self.BUFFER
        self.memory = memory_of(self.bytes)
        self.map = mmap.mmap(self.memory, self.bytes)
        # Each word is read or written at once. struct.pack_into writes zeros first, and then byte by byte.
        self.words = memoryview(self.map)[:self.PAGE].cast("I")
        struct.pack_into("<QIIII", self.map, 0, 0x31524941505743, 2, frames, self.BUFFER, self.MTU)
        self.line = connected()
        self.first = None

    def ask(self, text):
        return ask(self.line, text)

    def leased(self):
        """A lease, which it must get."""
        said = self.lease()
        if self.first is None:
            sys.exit(f"expected: a lease, not: {said}")

    def lease(self, ports=1, memory=None):
        said = self.ask(f"lease ports={ports} first=0 rank=0 memory={self.memory if memory is None else memory} job=tenant")
        found = re.fullmatch(r"leased first=(\d+)", said)
        self.first = int(found[1]) if found else None
        return said

    def send(self, frame, place=0, length=None, at=0):
        """The frame at the place, its slot, and the position behind it."""
        self.map[self.buffers + place * self.BUFFER:self.buffers + place * self.BUFFER + len(frame)] = frame
        struct.pack_into("<II", self.map, self.PAGE + (at % self.frames) * 24, place, len(frame) if length is None else length)
        self.write(at + 1)

    def groups_set(self, groups):
        """The groups that it is in."""
        rows = b"".join(group_mac(group) for group in groups)
        self.words[GROUPS // 4] += 1  # odd: they change
        self.map[GROUPS + 8:GROUPS + 8 + len(rows)] = rows
        self.words[GROUPS // 4 + 1] = len(groups)
        self.words[GROUPS // 4] += 1

    def write(self, position):
        self.words[OUT_WRITTEN // 4] = position

    def consumed(self):
        return self.words[OUT_CONSUMED // 4]

    def close(self):
        self.words.release()
        self.map.close()
        os.close(self.memory)
        self.line.close()


def connected():
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.settimeout(HANG_S)
    line.connect(Place.socket)
    return line


def ask(line, text):
    line.send(text.encode())
    said, descriptors, _, _ = socket.recv_fds(line, 4096, 1)
    for each in descriptors:
        os.close(each)
    return said.decode()


def status():
    """This user's leases."""
    line, found = connected(), []
    line.send(b"status")
    while (said := line.recv(4096)).startswith(b"{"):
        found.append(json.loads(said))
    line.close()
    return found[1:]


def own(name):
    return sum(each[name] for each in status() if each["job"] == "tenant")


def answered():
    """A client that says hello is."""
    line = connected()
    expect(ask(line, "hello 3").startswith("node "), "a client that says hello is answered")
    line.close()


def udp_frame(source_port, source_mac=None, source="10.77.0.1", to="10.77.0.2", to_mac=bytes(6), protocol=17, to_port=29300, first=0x45, flags=0, extra=b"", payload=b"stolen"):
    ip = struct.pack(">BBHHHBBH4s4s", first, 0, 28 + len(payload), 0, flags, 64, protocol, 0, socket.inet_aton(source), socket.inet_aton(to))
    return to_mac + (source_mac or Place.mac) + b"\x08\x00" + ip + struct.pack(">HHHH", source_port, to_port, 8 + len(payload), 0) + payload + extra


def v6_frame(next_header, payload, to_mac=bytes.fromhex("333300000001")):
    ip = struct.pack(">IHBB", 6 << 28, len(payload), next_header, 255) + bytes.fromhex("fe80" + 13 * "00" + "01") + bytes.fromhex("ff02" + 13 * "00" + "01")
    return to_mac + Place.mac + b"\x86\xdd" + ip + payload


def igmp_frame(kind, group):
    ip = struct.pack(">BBHHHBBH4s4s", 0x46, 0xC0, 32, 0, 0x4000, 1, 2, 0, socket.inet_aton("10.77.0.1"), socket.inet_aton(group)) + bytes([0x94, 4, 0, 0])
    return bytes.fromhex("01005e") + socket.inet_aton(group)[1:] + Place.mac + b"\x08\x00" + ip + bytes([kind, 0, 0, 0]) + socket.inet_aton(group) + bytes(14)


def group_mac(group):
    return bytes.fromhex("01005e") + bytes([socket.inet_aton(group)[1] & 0x7f]) + socket.inet_aton(group)[2:]


def become(name):
    """This process is that user's from now on."""
    user = pwd.getpwnam(name)
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)


OTHER_USER = 65533
BOUND_MS = 200  # docs/cluster.md promises it


def ask_lease():
    client = Client()
    client.leased()
    client.close()


def probe(what, ended):
    """Another user, who asks again and again until the pipe is closed."""
    os.setresgid(OTHER_USER, OTHER_USER, OTHER_USER)
    os.setresuid(OTHER_USER, OTHER_USER, OTHER_USER)
    requests = {"hello": answered, "lease": ask_lease, "status": status}
    times, is_last = {name: [] for name in requests}, False
    while not is_last:
        is_last = bool(select.select([ended], [], [], 0.01)[0])
        for name, request in requests.items():
            begin = time.monotonic()
            request()
            times[name].append(1000 * (time.monotonic() - begin))
    figures = ", ".join(f"{name} {statistics.median(each):.1f} ms (median), {max(each):.1f} ms (longest)" for name, each in times.items())
    late = sum(took > BOUND_MS for each in times.values() for took in each)
    print(f"{what}: another user was answered {len(times['hello'])} times: {figures}; {late} above {BOUND_MS} ms", flush=True)


@contextlib.contextmanager
def probed(what):
    """While this is on, another user asks (as root only)."""
    ended, end = os.pipe()
    prober = os.fork()
    if prober == 0:
        os.close(end)
        probe(what, ended)
        os._exit(exit_code())
    os.close(ended)
    yield
    os.close(end)
    expect(os.waitpid(prober, 0)[1] == 0, "another user was answered")
