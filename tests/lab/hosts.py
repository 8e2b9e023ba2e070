#!/usr/bin/env python3
"""Hosts of a laboratory: namespaces of this machine, each with its own network, processes, mounts, name and shared
memory, joined by bridges. Needs root; nothing of it is seen from outside, and nothing is left.

    hosts.py [--hosts N] [--subnets 1|2] [--user NAME] [--keep FOLDER[:NAME]]... COMMAND [ARGUMENT...]

runs COMMAND on the first host, as that user, and ends with its exit code. Hosts are called h0, h1, ...; `ssh HOST
COMMAND` in its PATH reaches the others without a key. With two subnets, hosts are in them in turn, and what joins
these forwards. /tmp and /dev/shm are a host's own, but for the folders to be kept, which all share, as /tmp/NAME if
it is given (whoever may not enter the folders above one finds it there).

Tests use the class: with Lab(3) as lab: lab.run("h1", ["uname", "-n"]).
"""
import argparse
import array
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

STANDARD_FILES = 3
NEIGHBOURS_MAX = 900  # that the kernel's table, one for all namespaces, takes by itself (gc_thresh3: 1,024)
SYSTEM_PYTHON = "/usr/bin/python3"  # which any user may start
SPACES = {"net": "net", "pid": "pid", "mnt": "mount", "uts": "uts", "ipc": "ipc"}  # file in /proc/PROCESS/ns -> option of nsenter
USERS_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


def has_hosts():
    """Whether this machine can have hosts."""
    probe = ["unshare", "--net", "true"]
    return os.geteuid() == 0 and subprocess.run(probe, stderr=subprocess.DEVNULL, check=False).returncode == 0


def skip_without_hosts():
    """Ends a test as skipped on a machine that can have no hosts."""
    if not has_hosts():
        print("SKIPPED: machine: hosts of a laboratory are namespaces, which need root")
        sys.exit(77)


def become_init():
    """The first process of a host: it reaps those that lose their parents."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})
    print("ready", flush=True)
    while signal.sigwait({signal.SIGCHLD, signal.SIGTERM}) == signal.SIGCHLD:
        try:
            while os.waitpid(-1, os.WNOHANG)[0] > 0:
                pass
        except ChildProcessError:
            pass


def become_ssh(door, arguments):
    """Hands the own standard files to the laboratory, outside of all hosts, which starts the command there."""
    options = {"-o", "-p", "-l", "-i", "-F"}
    while arguments and arguments[0].startswith("-"):
        arguments = arguments[2 if arguments[0] in options else 1:]
    if not arguments:
        sys.exit("ssh: no host")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.connect(door)
        words = "\0".join([arguments[0], " ".join(arguments[1:])]).encode()
        files = array.array("i", range(STANDARD_FILES))
        line.sendmsg([words], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
        for file in range(STANDARD_FILES):  # the other end is to see when somebody closes them
            os.close(file)
        code = line.recv(16)
    os._exit(int(code) if code else 255)


class Closed:
    """Is closed behind `with`."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Lab(Closed):
    """The hosts, from creation until close."""

    def __init__(self, count, subnets=1, user=None, keep=(), directory="/tmp"):
        self.user, self.subnets, self.count, self.directory = user, subnets, count, directory
        self.has_sessions = True  # of their own, as sshd gives them
        self.keep = []  # (folder, where it is inside, below /tmp)
        for each in keep:
            folder, _, name = each.partition(":")
            folder = os.path.abspath(folder)
            if name:
                self.keep.append((folder, name))
            if folder.startswith("/tmp/"):  # programs find libraries where they were built
                self.keep.append((folder, folder[len("/tmp/"):]))
        self.folder = tempfile.mkdtemp(prefix="causeway-lab-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.names = [f"h{index}" for index in range(count)]
        self.inits, self.spaces, self.started, self.lock = {}, {}, set(), threading.Lock()
        try:
            self._files_write()
            self._network_make()
            for index in range(count):
                self._host_make(index)
            if count * count > NEIGHBOURS_MAX:
                self._neighbours_announce()
            self._door_open()
        except BaseException:
            self.close()
            raise

    def _spaces_hold(self, name, spaces):
        """Opens the namespaces of a first process. A descriptor keeps a namespace whatever becomes of its processes, and nobody
        looks for it below /proc/PROCESS/ns again: Linux 6.18 fails to find it there once in some thousand times."""
        self.spaces[name] = {space: os.open(f"/proc/{self.inits[name]}/ns/{space}", os.O_RDONLY) for space in spaces}

    def _space_options(self, name, spaces):
        return [f"--{SPACES[space]}=/proc/{os.getpid()}/fd/{self.spaces[name][space]}" for space in spaces]

    def inside(self, name):
        """The start of a command that root runs in the network of a host, or in that of the switch ("net")."""
        return ["nsenter", *self._space_options(name, ["net"])]

    def root(self, name, *command):
        subprocess.run([*self.inside(name), *command], check=True)

    def ip_batch(self, name, lines):
        """Commands of `ip` in a network, a line each. One process runs them all."""
        subprocess.run([*self.inside(name), "ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)

    def lone_add(self):
        """An interface each, `lone`, that nobody else is behind, and to which the same subnet 10.99.0.0/24 belongs."""
        for index, name in enumerate(self.names):
            self.root(name, "ip", "link", "add", "lone", "type", "veth", "peer", "name", "end")
            self.root(name, "ip", "addr", "add", f"10.99.0.{index + 1}/24", "dev", "lone")
            self.root(name, "ip", "link", "set", "lone", "up")
            self.root(name, "ip", "link", "set", "end", "up")

    def address(self, index, family=4):
        """The address of a host; index 253: of the router in the first subnet, and so on."""
        subnet, number = index % self.subnets, index // self.subnets + 1
        return f"10.77.{subnet}.{number}" if family == 4 else f"fd77:0:0:{subnet}::{number:x}"

    @staticmethod
    def mac(index):
        return f"02:77:00:00:{index >> 8:02x}:{index & 255:02x}"

    def pid(self, name):
        """Of the first process of a host, as this machine numbers it."""
        return self.inits[name]

    def _files_write(self):
        with open(f"{self.folder}/hosts", "w", encoding="ascii") as file:
            file.write("127.0.0.1 localhost\n::1 localhost\n")
            for index, name in enumerate(self.names):
                file.write(f"{self.address(index)} {name}\n{self.address(index, 6)} {name}\n")
        os.mkdir(f"{self.folder}/bin")
        with open(f"{self.folder}/bin/ssh", "w", encoding="ascii") as file:
            file.write(f'#!/bin/sh\nexec {SYSTEM_PYTHON} {self.folder}/bin/hosts.py --ssh {self.folder}/door "$@"\n')
        shutil.copy(os.path.abspath(__file__), f"{self.folder}/bin/hosts.py")
        os.chmod(f"{self.folder}/bin/ssh", 0o755)

    def _network_make(self):
        """Bridges in a namespace of their own, whose kernel forwards between them."""
        self._init_start("net", ["unshare", "--net", "--fork", "--kill-child"], ["net"])
        lines = ["link set lo up"]
        for subnet in range(self.subnets):
            bridge = f"br{subnet}"
            lines += [f"link add {bridge} type bridge mcast_snooping 0", f"link set {bridge} up",
                      f"addr add 10.77.{subnet}.254/24 dev {bridge}", f"addr add fd77:0:0:{subnet}::fe/64 dev {bridge} nodad"]
        self.ip_batch("net", lines)
        self.root("net", "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")

    def _init_start(self, name, enter, spaces):
        """Starts the first process of a host, and holds its namespaces."""
        process = subprocess.Popen([*enter, sys.executable, f"{self.folder}/bin/hosts.py", "--init"], text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.started.add(process)
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{name} does not start")
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            self.inits[name] = int(file.read().split()[0])
        self._spaces_hold(name, spaces)

    def _host_make(self, index):
        name, subnet = self.names[index], index % self.subnets
        flags = ["--net", "--pid", "--mount", "--uts", "--ipc", "--fork", "--mount-proc", "--kill-child"]
        script = ["set -e", f"hostname {name}", f"mount --bind {self.folder}/hosts /etc/hosts",
                  "mount -t tmpfs tmpfs /dev/shm", "fresh=$(mktemp -d)", "mount -t tmpfs -o mode=1777 tmpfs $fresh"]
        for folder, inside in [(self.folder, self.folder[len("/tmp/"):]), *self.keep]:
            script += [f"mkdir -p $fresh/{inside}", f"mount --bind {folder} $fresh/{inside}"]
        script += ["mount --move $fresh /tmp", 'exec "$@"']
        self._init_start(name, ["unshare", *flags, "sh", "-c", "\n".join(script), "sh"], SPACES)
        end = f"p{index}"
        self.ip_batch("net", [f"link add {end} type veth peer name eth0 address {self.mac(index)} netns {self.pid(name)}",
                              f"link set {end} master br{subnet} up"])
        self.ip_batch(name, ["link set lo up", f"addr add {self.address(index)}/24 dev eth0", f"addr add {self.address(index, 6)}/64 dev eth0 nodad",
                             "link set eth0 up", f"route add default via 10.77.{subnet}.254", f"route add default via fd77:0:0:{subnet}::fe"])

    def _neighbours_announce(self):
        """Entries that are made by hand do not count for the table's limit."""
        for one in range(self.count):
            lines = [f"neigh add {self.address(other, family)} lladdr {self.mac(other)} dev eth0 nud permanent"
                     for other in range(self.count) if other != one and other % self.subnets == one % self.subnets for family in (4, 6)]
            self.ip_batch(self.names[one], lines)

    def _door_open(self):
        self.door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.door.bind(f"{self.folder}/door")
        os.chmod(f"{self.folder}/door", 0o777)
        self.door.listen(128)
        threading.Thread(target=self._door_serve, daemon=True).start()

    def _door_serve(self):
        while True:
            try:
                line, _ = self.door.accept()
            except OSError:
                return
            threading.Thread(target=self._call_serve, args=(line,), daemon=True).start()

    def _call_serve(self, line):
        """One `ssh`: its command, until it ends, or until whoever asked is gone: then it loses its files only."""
        with line:
            words, files, _, _ = socket.recv_fds(line, 1 << 16, STANDARD_FILES)
            if len(files) != STANDARD_FILES:
                return
            host, command = words.decode().split("\0", 1)
            if host not in self.inits:
                os.write(files[2], f"ssh: Could not resolve hostname {host}: Name or service not known\n".encode())
                code = 255
            else:
                process = self.start(host, ["sh", "-c", command], stdin=files[0], stdout=files[1], stderr=files[2])
                code = None
            for file in files:
                os.close(file)
            if code is None:
                code = process.wait()
                with self.lock:
                    self.started.discard(process)
            try:
                line.send(str(code if code >= 0 else 128 - code).encode())
            except OSError:
                pass

    def enter(self, name):
        """What stands in front of a command that is to run on a host."""
        user = [] if self.user is None else ["setpriv", f"--reuid={self.user}", f"--regid={self._gid()}",
                                             "--clear-groups"]
        return ["nsenter", *self._space_options(name, SPACES), f"--wd={self.directory}", *user]

    def _gid(self):
        import pwd
        return pwd.getpwnam(self.user).pw_gid

    def start(self, name, command, environment=None, **files):
        """Starts a command on a host, without input, and with both its outputs in pipes, as text, unless `files` says otherwise."""
        own = environment or {}
        environment = dict(os.environ, PATH=f"{self.folder}/bin:{os.environ['PATH']}")
        if self.user is not None:
            environment |= {"HOME": "/tmp", "PATH": f"{self.folder}/bin:{USERS_PATH}"}
        files = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | files
        process = subprocess.Popen([*self.enter(name), *command], env=environment | own, start_new_session=self.has_sessions,
                                   process_group=None if self.has_sessions else 0, **files)
        with self.lock:
            self.started.add(process)
        return process

    def run(self, name, command, timeout=None, **files):
        """The exit code, and both outputs."""
        process = self.start(name, command, **files)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill(process)
            process.communicate()
            raise
        return process.returncode, out, err

    @staticmethod
    def kill(process):
        """What was started, with all of its process group."""
        os.killpg(process.pid, signal.SIGKILL)

    def processes(self, name):
        """What runs on a host beside its first process: number there -> command line."""
        found, own = {}, os.readlink(f"/proc/self/fd/{self.spaces[name]['pid']}")
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                if int(entry) != self.pid(name) and os.readlink(f"/proc/{entry}/ns/pid") == own:
                    with open(f"/proc/{entry}/cmdline", "rb") as file:
                        words = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
                    if words:  # else it has ended, and only its parent has not noticed
                        found[int(entry)] = words
            except OSError:
                pass  # it has ended, or is none of ours
        return found

    def left(self, within_s):
        """What still runs on the hosts after that time, or nothing before: host -> as `processes`."""
        end = time.monotonic() + within_s
        while True:
            found = {name: each for name in self.names if (each := self.processes(name))}
            if not found or time.monotonic() > end:
                return found
            time.sleep(0.02)

    def link(self, index, up):
        """Plugs a host's cable in, or out."""
        self.root("net", "ip", "link", "set", f"p{index}", "up" if up else "down")

    def mtu(self, bytes_max):
        """Of all cables."""
        for index, name in enumerate(self.names):
            self.root("net", "ip", "link", "set", f"p{index}", "mtu", str(bytes_max))
            self.root(name, "ip", "link", "set", "eth0", "mtu", str(bytes_max))

    def close(self):
        if hasattr(self, "door"):
            self.door.close()
        for process in list(self.started):  # with the first process of a host all others end
            process.kill()
            process.wait()
        for spaces in self.spaces.values():
            for descriptor in spaces.values():
                os.close(descriptor)
        self.spaces.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    if sys.argv[1:2] == ["--init"]:
        return become_init()
    if sys.argv[1:2] == ["--ssh"]:
        return become_ssh(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--subnets", type=int, default=1, choices=(1, 2))
    parser.add_argument("--user")
    parser.add_argument("--keep", action="append", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("a command is wanted")
    with Lab(options.hosts, options.subnets, options.user, [os.getcwd(), *options.keep], os.getcwd()) as lab:
        code, _, _ = lab.run("h0", options.command, stdin=None, stdout=None, stderr=None)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
