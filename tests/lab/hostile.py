"""A hostile client of a node, with a seed: hostile.py SOCKET OWN_MAC OTHER_IP USER SEED SECONDS [honest]. Some processes of the user, each
with a seed of its own, do whatever comes, in no order: requests and lines of every length, descriptors of every kind, memory of all
sizes and seals, files that shrink, ring positions, frames of every form; they stop, and they are killed. Another user asks meanwhile
(tenant.py). Prints what was expected and did not hold; its exit code is 1 then. `honest`: the processes do only what they may, to
compare with."""
import contextlib
import errno
import fcntl
import mmap
import os
import random
import re
import resource
import signal
import socket
import struct
import sys
import time
import traceback

from tenant import FIXED, GROUPS, Client, Place, become, exit_code, expect, igmp_frame, place, probed, udp_frame, v6_frame

PROCESSES, LINES, BURST, FILES = 4, 40, 100, 2048
SEALS = (fcntl.F_SEAL_SHRINK, fcntl.F_SEAL_GROW, fcntl.F_SEAL_WRITE, fcntl.F_SEAL_SEAL, 0x10)
SIZES = (0, 1, 4096, 1 << 20, 1 << 42)
HUGE = 2 << 20
F_SETLEASE = 1024
ENDED = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.EBADF, errno.ECONNREFUSED, errno.EAGAIN, errno.EMSGSIZE, errno.ETOOMANYREFS,
         errno.EMFILE, errno.ENOSPC, errno.ENOMEM, errno.EPERM, errno.EACCES, errno.EBUSY, errno.EINVAL, errno.EFBIG, errno.ETXTBSY, errno.EOPNOTSUPP)


class Line:
    """A connection, with or without a lease."""

    def __init__(self, client=None):
        self.client = client
        self.socket = client.line if client else socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setblocking(False)
        if client is None:
            self.socket.connect(Place.socket)
        self.at, self.port = 0, None

    def close(self):
        if self.client:
            self.client.close()
        else:
            self.socket.close()


class Hostile:
    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.lines, self.kept = [], []

    def any_line(self):
        if not self.lines:
            self.connect()
        return self.chance.choice(self.lines)

    def any_leased(self):
        leased = [line for line in self.lines if line.client]
        return self.chance.choice(leased) if leased else self.lease()

    def random_bytes(self, most):
        return self.chance.randbytes(self.chance.randrange(most))

    # ---- connections and what they say ----

    def connect(self):
        line = Line()
        self.lines.append(line)
        return line

    def burst(self):
        """Many connections at once, of which some ask, and all go."""
        many = []
        with contextlib.suppress(OSError):
            for _ in range(self.chance.randrange(BURST)):
                many.append(Line())
                if self.chance.randrange(2):
                    many[-1].socket.send(self.request())
        for line in many:
            line.close()

    def close(self):
        line = self.any_line()
        self.lines.remove(line)
        with contextlib.suppress(OSError):
            if self.chance.randrange(4) == 0:
                line.socket.shutdown(self.chance.choice([socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR]))
                self.kept.append(line)
                return
        line.close()

    def read(self):
        line = self.any_line().socket
        for _ in range(self.chance.randrange(1, 200)):
            data, descriptors, _, _ = socket.recv_fds(line, 1 + self.chance.randrange(4096), 4)
            for each in descriptors:
                os.close(each)
            if not data:
                return

    def request(self):
        """A line that the node knows, with numbers of every size; or nearly that."""
        number = lambda: self.chance.choice([0, 1, 2, 3, 7, 64, 65, 65535, 1 << 31, (1 << 32) - 1, 1 << 63, -1])  # noqa: E731
        address = lambda: self.chance.choice([f"10.77.0.{self.chance.randrange(256)}", "127.0.0.1", "224.0.0.1", "0.0.0.0", "fe80::1", "::", "1.2.3", Place.other])  # noqa: E731
        text = self.chance.choice([
            lambda: f"hello {number()}",
            lambda: "status",
            lambda: "hops " + ",".join(address() for _ in range(self.chance.randrange(70))),
            lambda: f"lease ports={number()} first={number()} rank={number()} memory={self.chance.randrange(40)} job=hostile",
        ])().encode()
        if self.chance.randrange(3) == 0:  # one byte becomes another one, or is missing, or the end is
            at = self.chance.randrange(len(text))
            text = self.chance.choice([text[:at] + self.random_bytes(3) + text[at + 1:], text[:at], text * self.chance.randrange(1, 60)])
        return text

    def ask(self):
        self.any_line().socket.send(self.request())

    def nonsense(self):
        self.any_line().socket.send(self.random_bytes(self.chance.choice([8, 100, 4096, 6000])))

    def descriptor(self):
        """One of any kind."""
        kind = self.chance.randrange(9)
        if kind == 0:
            ends = os.pipe()
            os.close(ends[0])
            return ends[1]
        if kind == 1:
            pair = socket.socketpair()
            pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
            pair[1].close()
            return pair[0].detach()
        if kind == 2:
            return os.open(self.chance.choice(["/", "/proc", "/tmp"]), os.O_RDONLY)
        if kind == 3:
            return os.open(self.chance.choice(["/dev/zero", "/dev/null", "/proc/self/stat"]), os.O_RDONLY)
        if kind == 4:
            return os.eventfd(0)
        if kind == 5:
            return os.dup(self.any_line().socket.fileno())
        if kind == 6:
            return os.pidfd_open(os.getpid())
        if kind == 7:
            return os.open("/tmp", os.O_TMPFILE | os.O_RDWR)
        return self.memory()

    def memory(self):
        """Memory of any size, with any seals."""
        size = self.chance.choice([*SIZES, *(self.chance.choice([-4096, -1, 0, 0, 0, 1, 4096]) + Client.PAGE * 15 for _ in range(5))])
        flags = os.MFD_ALLOW_SEALING | (os.MFD_HUGETLB if self.chance.randrange(8) == 0 else 0)
        memory = os.memfd_create("hostile", flags)
        with contextlib.suppress(OSError):
            os.ftruncate(memory, HUGE if flags & os.MFD_HUGETLB else size)
            os.pwrite(memory, struct.pack("<QIIII", 0x31524941505743, 2, self.chance.choice([1, 2, 16, 4096, 8192, 1 << 31]), 1536, 1500), 0)
            fcntl.fcntl(memory, fcntl.F_ADD_SEALS, self.chance.choice([FIXED, sum(seal for seal in SEALS if self.chance.randrange(2))]))
        return memory

    def send_descriptors(self):
        line, found = self.any_line().socket, []
        try:
            for _ in range(self.chance.choice([1, 1, 2, 3, 253])):
                found.append(self.descriptor() if len(found) < 8 else os.dup(found[0]))
            socket.send_fds(line, [self.request()], found)
        finally:
            for each in found:
                os.close(each)

    # ---- leases ----

    def lease(self):
        """One that the node gives, unless this user has all that one may have."""
        client = Client(self.chance.choice([1, 2, 16, 64, 1024]))
        line = Line(client)
        self.lines.append(line)
        line.socket.send(f"lease ports={self.chance.choice([1, 1, 2, 64])} first={self.chance.choice([0, 0, 29300, 29301])} rank=0 memory={client.memory} job=hostile".encode())
        return line

    def lease_odd(self):
        """Of memory that is none, or that changes as the node looks at it."""
        line, memory = self.any_line().socket, self.descriptor()
        try:
            line.send(f"lease ports=1 first=0 rank=0 memory={memory} job=hostile".encode())
            if self.chance.randrange(2):
                os.ftruncate(memory, self.chance.choice([0, 1, 4096]))
        finally:
            os.close(memory)

    def hole(self):
        """The pages of a lease's memory go, or get a lease of the kernel, or shrink if they may."""
        client = self.any_leased().client
        what = self.chance.randrange(3)
        if what == 0:
            at = self.chance.randrange(0, client.bytes, 4096)
            client.map.madvise(mmap.MADV_REMOVE, at, min(4096, client.bytes - at) // 4096 * 4096 or 4096)
        elif what == 1:
            fcntl.fcntl(client.memory, F_SETLEASE, fcntl.F_WRLCK)
        else:
            os.ftruncate(client.memory, self.chance.choice([0, 4096, client.bytes * 2]))

    def scribble(self):
        """Words of the memory become others: positions, slots, the head, groups."""
        client = self.any_leased().client
        for _ in range(self.chance.randrange(1, 50)):
            word = self.chance.choice([self.chance.randrange(len(client.words)), *range(14, 18), *range(30, 34), *range(46, 52), *range(GROUPS // 4, GROUPS // 4 + 4)])
            old = client.words[word]
            client.words[word] = self.chance.choice([0, 1, old + 1, old - 1, old + client.frames, old + client.frames + 1, 1 << 31, (1 << 32) - 1, self.chance.getrandbits(32)]) & 0xffffffff
        at = self.chance.randrange(client.PAGE, client.bytes - 64)
        client.map[at:at + 64] = self.chance.randbytes(64)

    def frame(self, port):
        """A frame that may leave, or one of another form."""
        made = self.chance.choice([
            lambda: udp_frame(port, to=self.chance.choice([Place.other, "10.77.0.1", "10.77.0.99"]), to_port=self.chance.randrange(29290, 29500), payload=self.random_bytes(1400)),
            lambda: udp_frame(self.chance.randrange(65536), source=self.chance.choice(["10.77.0.1", "10.77.0.9"]), first=self.chance.choice([0x45, 0x46]), flags=self.chance.choice([0, 1, 0x2000, 0x4000])),
            lambda: udp_frame(port, to="239.1.2.3", to_mac=bytes.fromhex("01005e010203"), to_port=self.chance.choice([29300, 53])),
            lambda: igmp_frame(self.chance.choice([0x11, 0x16, 0x17]), f"239.1.{self.chance.randrange(256)}.3"),
            lambda: v6_frame(self.chance.choice([0, 17, 58]), self.random_bytes(200)),
            lambda: self.random_bytes(1514),
        ])()
        if made and self.chance.randrange(4) == 0:
            at = self.chance.randrange(len(made))
            made = made[:at] + self.chance.randbytes(1) + made[at + 1:]
        return made[:Client.BUFFER]

    def frames(self):
        """A ring full of them."""
        line = self.any_leased()
        client = line.client
        for _ in range(self.chance.randrange(1, 2 * client.frames + 2)):
            frame = self.frame(self.chance.choice([29300, 29301, 29364, self.chance.randrange(29300, 30324)]))
            client.send(frame, place=self.chance.randrange(client.frames), at=line.at, length=self.chance.choice([None, None, None, self.chance.randrange(2000)]))
            line.at = (line.at + 1) & 0xffffffff

    def receive(self):
        """Buffers to receive into, of which some are none."""
        client = self.any_leased().client
        empty = client.PAGE + 40 * client.frames
        for index in range(client.frames):
            struct.pack_into("<I", client.map, empty + 4 * index, self.chance.choice([index, index, index, self.chance.getrandbits(32)]))
        client.words[OUT_EMPTY // 4] = (client.words[OUT_EMPTY // 4] + self.chance.choice([1, client.frames, client.frames + 1])) & 0xffffffff

    def groups(self):
        client = self.any_leased().client
        for version in range(2, 2 * self.chance.randrange(1, 20), 2):
            rows = b"".join(bytes.fromhex("01005e") + self.chance.randbytes(3) for _ in range(self.chance.randrange(65)))
            client.words[GROUPS // 4] = version - 1
            client.map[GROUPS + 8:GROUPS + 8 + len(rows)] = rows
            client.words[GROUPS // 4 + 1] = self.chance.choice([len(rows) // 6, 65, 1 << 31])
            client.words[GROUPS // 4] = version

    def rest(self):
        time.sleep(self.chance.random() * 0.02)

    def send_hello(self):
        self.any_line().socket.send(b"hello 3")

    def frames_right(self):
        """A ring full of frames that may leave."""
        line = self.any_leased()
        if line.port is None:
            found = re.fullmatch(rb"leased first=(\d+)", line.socket.recv(100))
            line.port = int(found[1]) if found else None
        for _ in range(line.client.frames if line.port else 0):
            if line.at - line.client.consumed() & 0xffffffff < line.client.frames:
                line.client.send(udp_frame(line.port, to=Place.other, to_port=29299, payload=bytes(1400)), place=line.at % line.client.frames, at=line.at)
                line.at = (line.at + 1) & 0xffffffff

    def go_on(self, is_honest):
        actions = [self.connect, self.close, self.send_hello, self.send_hello, self.read, self.lease, *[self.frames_right] * 6, self.rest] if is_honest else [self.connect, self.burst, self.close, self.close, self.read, self.read, self.ask, self.ask, self.nonsense, self.send_descriptors, self.lease, self.lease,
                   self.lease_odd, self.hole, self.scribble, self.frames, self.frames, self.receive, self.groups, self.rest]
        while True:
            try:
                self.chance.choice(actions)()
            except OSError as error:
                if error.errno not in ENDED:
                    raise
            while len(self.lines) > LINES:
                self.close()
            while len(self.kept) > LINES:
                self.kept.pop(0).close()


OUT_EMPTY = 68  # where the memory has the position up to which there are empty buffers


def begin(seed, user, is_honest):
    """A process of its own, which goes on until it is killed."""
    number = os.fork()
    if number != 0:
        return number
    try:
        signal.signal(signal.SIGIO, signal.SIG_IGN)  # of a lease of the kernel that somebody breaks
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
        become(user)
        Hostile(seed).go_on(is_honest)
    except BaseException:  # pylint: disable=broad-exception-caught
        traceback.print_exc()
    os._exit(1)


def lives(user, chance, seconds, is_honest):
    """Processes that begin, stop, go on and are killed, until the time is over."""
    running, seed, end = {}, 0, time.monotonic() + seconds
    begun = 0
    while time.monotonic() < end:
        while len(running) < PROCESSES:
            seed = chance.getrandbits(32)
            running[begin(seed, user, is_honest)] = seed
            begun += 1
        time.sleep(chance.choice([0.01, 0.1, 0.5, 1]))
        number = chance.choice(list(running))
        found, status = os.waitpid(number, os.WNOHANG)
        if found:
            expect(False, f"the hostile client of seed {running.pop(found)} goes on, and does not end with {status}")
        elif chance.randrange(3) == 0:
            os.kill(number, signal.SIGSTOP)
            time.sleep(chance.choice([0.01, 0.3, 1.5]))
            os.kill(number, signal.SIGCONT)
        elif chance.randrange(2) == 0:
            os.kill(number, signal.SIGKILL)
            os.waitpid(number, 0)
            del running[number]
    for number in running:
        os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)
    return begun


def main():
    place(*sys.argv[1:4])
    user, seed, seconds, is_honest = sys.argv[4], int(sys.argv[5]), float(sys.argv[6]), sys.argv[7:] == ["honest"]
    what = f"{'honest' if is_honest else 'hostile'}, seed {seed}"
    with probed(what):
        begun = lives(user, random.Random(seed), seconds, is_honest)
    print(f"{what}: {begun} processes in {seconds:.0f} s", flush=True)
    return exit_code()


sys.exit(main())
