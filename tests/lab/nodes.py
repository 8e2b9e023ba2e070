"""The dataplanes of the hosts (`causeway node`) of a laboratory (hosts.py)."""
import json
import os
import signal
import time

from expectation import expect
from expectation import wait_until as soon
from jobs import CAUSEWAY

SOCKET = "/tmp/node"
NET = f"--transport node:{SOCKET}"


class Node:
    """The dataplane of a host, as root."""

    def __init__(self, lab, name, *options, net="eth0"):
        self.lab, self.name, self.options, self.net, self.is_lied_to = lab, name, options, net, False
        self.start()

    def start(self):
        user, self.lab.user, self.begun = self.lab.user, None, time.monotonic()
        self.process = self.lab.start(self.name, [CAUSEWAY, "node", "--transport", self.net, "--socket", SOCKET, *self.options])
        self.lab.user = user
        self.said = self.process.stdout.readline()
        if not self.said.startswith("ready: "):
            raise RuntimeError(f"no node: {self.said}{self.process.communicate()}")

    def kill(self):
        self.lab.kill(self.process)
        self.process.communicate()

    def status_text(self, form):
        user, self.lab.user = self.lab.user, None
        code, out, err = self.lab.run(self.name, [CAUSEWAY, "node", "status", form, "--socket", SOCKET])
        self.lab.user = user
        expect(code == 0, f"node status: {code}: {err}")
        return out

    def status(self):
        return [json.loads(line) for line in self.status_text("--json").splitlines()]

    def number(self):
        """Of its process: what nsenter has started."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
            return int(file.read().split()[0])

    def close(self):
        os.kill(self.number(), signal.SIGTERM)
        out, err = self.process.communicate()
        odd = [line for line in err.splitlines(True) if "lease closed: invalid ring positions" in line]
        expect(len(odd) <= 2 * (11 + (time.monotonic() - self.begun) / 6), f"{len(odd)} lines about clients of two users: {odd[-3:]}")
        err = "".join(line for line in err.splitlines(True) if not self.is_lied_to or line not in odd)
        expect(self.process.returncode == 0 and not err, f"the node of {self.name} ends well: {self.process.returncode}: {out}{err}")


def nodes_start(lab, *options, net="eth0"):
    return [Node(lab, name, *options, net=net) for name in lab.names]


def nodes_end(nodes):
    """Nothing is leased any more; none has seen a client that lies."""
    for node in nodes:
        expect(soon(lambda: not node.status()), f"all leases of {node.name} are over: {node.status()}")
        node.close()


def without_nodes(lab):
    """`well` counts what is left on the hosts: the nodes are to stay."""
    processes = lab.processes
    lab.processes = lambda name: {number: words for number, words in processes(name).items() if " node --transport " not in words}
