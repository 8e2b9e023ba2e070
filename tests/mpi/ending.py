"""What tests of endings share: who belongs to a job, and what it has left behind."""
import os
import shutil
import signal
import socket
import tempfile

from expectation import HANG_S, wait_until

TOKEN = "CW_TEST_KILL_TOKEN"


def environ_of(process):
    with open(f"/proc/{process}/environ", "rb") as file:
        return file.read().split(b"\0")


def processes_of(token):
    """Processes that have the token in their environment, and have not ended: all of the job, whatever they are."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(entry) != os.getpid() and f"{TOKEN}={token}".encode() in environ_of(entry) and state_of(entry) != "Z":
                found.append(int(entry))
        except OSError:
            pass  # it has ended, or is somebody else's
    return found


def state_of(process):
    with open(f"/proc/{process}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def state_of_quietly(process):
    """The same; "Z" if it is gone."""
    try:
        return state_of(process)
    except OSError:
        return "Z"


def command_of(process):
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return file.read().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def children_of(process):
    try:
        with open(f"/proc/{process}/task/{process}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def parts_of(supervisor):
    """The processes of a job by what they are: supervisor, launcher, switch, ranks; what is not there yet is left out."""
    parts = {"supervisor": supervisor, "ranks": []}
    for child in children_of(supervisor):
        words = command_of(child)
        if words[1:2] == ["switch"]:
            parts["switch"] = child
        elif words[1:2] == ["run"]:
            parts["launcher"] = child
            parts["ranks"] = children_of(child)
    return parts


def namespaces_of(processes):
    """The network namespaces that processes are in, or hold."""
    found = set()
    for process in processes:
        try:
            links = [os.readlink(f"/proc/{process}/ns/net")]
            links += [os.readlink(f"/proc/{process}/fd/{number}") for number in os.listdir(f"/proc/{process}/fd")]
        except OSError:
            continue  # it has ended
        found.update(link for link in links if link.startswith("net:"))
    return found


def continue_all(processes):
    for process in processes:
        try:
            os.kill(process, signal.SIGCONT)
        except ProcessLookupError:
            pass


def kill_all(processes):
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Place:
    """A TMPDIR of its own, and a token for the processes; left_behind says what has stayed, in words. None: nothing."""

    def __init__(self, token):
        self.token = token
        self.folder = tempfile.mkdtemp(dir="/tmp")
        self.interfaces = socket.if_nameindex()
        self.environment = dict(os.environ, TMPDIR=self.folder)
        self.environment[TOKEN] = token

    def left_behind(self):
        left = []
        processes = processes_of(self.token)
        if processes:
            left.append(f"processes {[(process, state_of(process), command_of(process)[:3]) for process in processes]}")
        files = os.listdir(self.folder)
        if files:
            left.append(f"files {files}")
        with open("/proc/net/unix") as file:
            sockets = [line.split()[-1] for line in file if self.folder in line]
        if sockets:
            left.append(f"sockets {sockets}")
        new = [name for name in socket.if_nameindex() if name not in self.interfaces and name[1].startswith(("cw", "port", "bridge"))]
        if new:
            left.append(f"interfaces {new}")
        return "; ".join(left) or None

    def left_await(self):
        """The same when those that end by themselves have ended."""
        return None if wait_until(lambda: self.left_behind() is None) else self.left_behind()

    def close(self):
        kill_all(processes_of(self.token))
        shutil.rmtree(self.folder, ignore_errors=True)
