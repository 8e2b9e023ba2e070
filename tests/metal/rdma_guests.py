"""Guests with an RDMA device each (rdma_rxe) on their kernels' NICs, in one subnet, and jobs on all of them: what the tests of jobs by RDMA share."""
import os
import re
import sys

from expectation import PATIENT, expect, wait_until
from pci import Machines

BUILD = os.path.abspath(sys.argv[1])
PROGRAMS = dict(each.split("=", 1) for each in sys.argv[2:])
CAUSEWAY = f"{BUILD}/causeway"
KEEP = [CAUSEWAY, f"{BUILD}/dataplane/libcauseway_verbs.so", *PROGRAMS.values()]
ENVIRONMENT = {"CAUSEWAY_FAILURE_TIMEOUT": PATIENT, "CW_CALLS": "20"}
PAIRS = re.compile(r"(\d+) queue pairs came up, (\d+) broke; (\d+) work requests")
NONE = (0, 0, 0)
CLASSES = {"is", "ft"}  # kernels, which want a problem class


def arguments(name):
    return ["S"] if name in CLASSES else []


def told(result):
    return f"{result.code}: {result.out[-600:]} {result.err[-1500:]}"


def pairs(result):
    """Queue pairs that came up at rank 0, that broke, and its work requests."""
    found = PAIRS.search(result.err)
    return tuple(int(each) for each in found.groups()) if found else None  # it has no device


def carried(result, count=1):
    """Whether queue pairs with `count` peers carried data at rank 0. A guest that gets no core for seconds loses a pair and makes another,
    and a pair that breaks each time, as one of the wrong MTU does, carries next to nothing."""
    up, _, requests = pairs(result) or NONE
    return up >= count and requests > 20 * up


class Devices(Machines):
    """Guests whose kernels have 10.9.0.x, packets of 4200 bytes, and an RDMA device by that address."""

    def __init__(self, count, modules=()):
        super().__init__(count, "e1000e", kernel=("a", "b", "c")[:count], keep=KEEP, cache=f"{BUILD}/metal")
        self.modules = ["crc32_generic", "rdma_rxe", *modules]
        for name in self.names:
            self.device_make(name)

    def device_make(self, name):
        self.run(name, ["sh", "-c", f"for each in {' '.join(self.modules)}; do /run/guest/modprobe $each || exit 1; done; "
                        f"ip addr add 10.9.0.{self.names.index(name) + 1}/24 dev nic0 && ip link set nic0 mtu 4200 up && rdma link add rxe0 type rxe netdev nic0"])
        self.device_await(name)

    def device_await(self, name):
        expect(wait_until(lambda: "state ACTIVE" in self.run(name, ["rdma", "link"]).out), f"the RDMA device of {name} is up")

    def everywhere(self, line):
        for name in self.names:
            result = self.run(name, ["sh", "-c", line])
            expect(result.code == 0, f"{line}: {told(result)}")

    def job(self, *words, hosts=None):
        """The words of a job that starts at `a`."""
        return [CAUSEWAY, "run", "--hosts", hosts or ",".join(self.names), "--launcher", "remote", "--transport", "udp:10.9.0.0/24", "--explain", *words]

    def job_run(self, *words, hosts=None, environment=None):
        return self.run("a", self.job(*words, hosts=hosts), {**ENVIRONMENT, **(environment or {})})
