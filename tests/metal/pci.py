#!/usr/bin/env python3
"""Guests with PCI NICs, an IOMMU and huge pages, joined by cables: what a process that owns a NIC meets.

    pci.py [--model e1000e] [--guests 1|2] [--kernel NAME]... [--time SECONDS] COMMAND [ARGUMENT...]

runs COMMAND as root of the first guest, `a`. With two guests (the default) each has a NIC, 0000:00:10.0, at the ends of one cable; with one
guest both NICs are its own, 0000:00:10.0 and 0000:00:11.0: what is timed there is steady, while two guests starve each other. NICs are bound to
vfio-pci, those of guests of --kernel to the kernel's driver, as nic0. `remote a|b COMMAND` in a guest's PATH is as ssh to the other, as in
`causeway run --launcher remote`. Guests see this machine's files, and write to none of them.

Tests use the class: with Machines(2, "e1000e") as machines: machines.run("b", ["ip", "link"]).out
"""
import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from door import Call
from guest import CACHE, HANG_S, PREFIX, Failed, Guest, Result, with_guests

MODELS = {"e1000e": "", "virtio-net-pci": ",disable-legacy=on,iommu_platform=on,ats=off", "vmxnet3": "", "igb": ""}
KERNEL_MODULES = {"virtio-net-pci": "virtio_net"}  # others: as the model
NICS = ("0000:00:10.0", "0000:00:11.0")
NAMES = ("a", "b", "c")
IOMMU = ["-device", "intel-iommu,caching-mode=on,aw-bits=48"]  # with the default, 39, no IOMMU address is one of a program
PARAMETERS = ["intel_iommu=on", "iommu=pt", "intremap=off", "no_timer_check", "vfio_iommu_type1.allow_unsafe_interrupts=1"]
WITHOUT = ["no_timer_check"]  # an IOMMU: devices read and write wherever they like. Debian's kernel has no vfio for that (CONFIG_VFIO_NOIOMMU), but uio
DOOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "door.py")
DOOR_PORT = 7


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Machines:
    """The guests, from creation until close."""

    def __init__(self, count, model, nics=None, kernel=(), keep=(), cache=CACHE, huge_pages=64, processors=2, memory_mib=1536, iommu=True):
        """nics: of each guest; count: guests; kernel: names of those whose kernel keeps its NICs; keep: files that no busy root may fail to read; iommu:
        without one NICs have no driver, and the caller binds them."""
        self.iommu = iommu
        self.names, self.model, self.kernel = NAMES[:count], model, set(kernel)
        self.nics = NICS[:nics or (2 if count == 1 else 1)]
        self.folder = tempfile.mkdtemp(prefix=PREFIX)
        self.guests, self.ports = {}, {name: free_port() for name in self.names}
        self.keep, self.like = keep, {"parameters": [*(PARAMETERS if iommu else WITHOUT), f"hugepages={huge_pages}"], "memory_mib": memory_mib,
                                      "processors": processors, "cache": cache}
        try:
            for name in self.names:
                self._power_on(name)
            for name in self.names:
                self._await(name)
                self._remote_make(name)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for guest in self.guests.values():
            guest.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _power_on(self, name):
        folder = f"{self.folder}/{name}"
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        words = ["python3", "-u", DOOR, "serve", *(f"--keep={path}" for path in self.keep),
                 *(f"--{'name' if name in self.kernel else 'bind'}={nic}" for nic in self.nics), str(DOOR_PORT)]
        modules = ["vfio_iommu_type1", "vfio-pci"] if name not in self.kernel else [KERNEL_MODULES.get(self.model, self.model)]
        self.guests[name] = Guest(folder, words, modules=modules, qemu=self._devices(name), machine="q35,kernel-irqchip=split", **self.like)

    def mac(self, name, index=0):
        return f"52:54:00:00:{index:02x}:{NAMES.index(name) + 1:02x}"

    def _cable(self, label, index, name, other):
        """One end of a cable, a pair of datagram sockets: the other may be missing, and comes again."""
        own, its = (f"{self.folder}/cable{index}{ends}" for ends in (name + other, other + name))
        return f"dgram,id={label},local.type=unix,local.path={own},remote.type=unix,remote.path={its}"

    def _devices(self, name):
        """What QEMU is to give a guest. Two are joined by a cable, one with itself or more than two by a hub, which the first has."""
        words = [*(IOMMU if self.iommu else []), "-netdev", f"user,id=door,hostfwd=tcp:127.0.0.1:{self.ports[name]}-:{DOOR_PORT}",
                 "-device", "virtio-net-pci,netdev=door,addr=0x8", "-monitor", f"unix:{self.folder}/{name}/monitor,server=on,wait=off"]
        for index, nic in enumerate(self.nics):
            others = [each for each in self.names if each != name]
            if len(others) == 1:
                words += ["-netdev", self._cable(f"nic{index}", index, name, others[0])]
            elif others and name != self.names[0]:
                words += ["-netdev", self._cable(f"nic{index}", index, name, self.names[0])]
            else:
                words += ["-netdev", f"hubport,id=nic{index},hubid={0 if not others else index}"]
                for each in others:
                    words += ["-netdev", self._cable(f"cable{index}{each}", index, name, each),
                              "-netdev", f"hubport,id=port{index}{each},hubid={index},netdev=cable{index}{each}"]
            words += ["-device", f"{self.model},id=card{index},netdev=nic{index},mac={self.mac(name, index)},addr=0x{nic[8:10]}{MODELS[self.model]}"]
        return words

    def _await(self, name):
        until = time.monotonic() + HANG_S
        while True:
            try:
                self.finish(Call(f"127.0.0.1:{self.ports[name]}", ["true"], has_input=False, patience_s=2), ["true"], time_s=20)  # whoever forwards may lose the first
                return
            except (OSError, Failed):
                pass
            try:
                said = self.guests[name].process.communicate(timeout=0.3)[0]
                raise self.guests[name].failure(f"guest {name} ended: {said}")
            except subprocess.TimeoutExpired:
                if time.monotonic() > until:
                    raise self.guests[name].failure(f"guest {name} does not open its door") from None

    def _remote_make(self, name):
        lines = ["#!/bin/sh", "to=$1; shift", "case $to in",
                 *(f"{each}) exec python3 {DOOR!r} call 10.0.2.2:{self.ports[each]} \"$*\" ;;" for each in self.names), "esac", "echo remote: no $to >&2", "exit 255"]
        self.run(name, ["sh", "-c", f'echo "$1" >/usr/local/bin/remote; chmod +x /usr/local/bin/remote; echo 127.0.0.1 {name} >>/etc/hosts; '
                        f"/run/guest/busybox hostname {name}", "sh", "\n".join(lines)])

    def start(self, name, command, environment=None):
        """The Call of a command that goes on."""
        return Call(f"127.0.0.1:{self.ports[name]}", command, environment, has_input=False)

    def run(self, name, command, environment=None, time_s=HANG_S):
        """The Result of a command in a guest. Raises Failed if it takes longer."""
        under_way = self.start(name, command, environment)
        return self.finish(under_way, command, time_s)

    @staticmethod
    def finish(under_way, command, time_s=HANG_S):
        out, err, code, is_late = [], [], None, threading.Event()

        def give_up():
            is_late.set()
            for line in (under_way.errors, under_way.files):
                try:
                    line.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it has ended itself

        def output():
            try:
                while chunk := under_way.files.recv(65536):
                    out.append(chunk)
            except OSError:
                pass

        timer, reader = threading.Timer(time_s, give_up), threading.Thread(target=output, daemon=True)
        timer.start()
        reader.start()
        while code is None:
            kind, value = under_way.record()
            if kind == "e":
                err.append(value)
            else:
                code = value
        reader.join()
        timer.cancel()
        under_way.close()
        said = [b"".join(each).decode(errors="replace") for each in (out, err)]
        if is_late.is_set():
            raise Failed("\n".join([f"{' '.join(command)[:300]}: not done in time", *said]))
        return Result(code, *said, "")

    def monitor(self, name, line):
        """A command of QEMU's monitor, such as set_link nic0 off. What it answers."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(HANG_S)
            monitor.connect(f"{self.folder}/{name}/monitor")
            text = ""
            for each in ("", line):
                if each:
                    monitor.sendall(each.encode() + b"\n")
                    text = ""
                while not text.rstrip().endswith("(qemu)"):
                    text += monitor.recv(65536).decode(errors="replace")
            return text

    def kill(self, name):
        self.guests[name].close()

    def renew(self, name):
        """Starts a guest that was killed."""
        self._power_on(name)
        self._await(name)
        self._remote_make(name)

    def console(self, name):
        with open(f"{self.folder}/{name}/console", encoding="utf-8", errors="replace") as file:
            return file.read()

    def faults(self):
        """Lines of the guests' kernels that tell of what an IOMMU has refused."""
        return [line for name in self.names for line in self.console(name).splitlines() if "DMAR" in line and "ault" in line]


def await_turns(under_way):
    """All ranks of mpi_busy are in the midst of it. False: they have ended before."""
    said = b""
    while b"turn" not in said and (more := under_way.files.recv(4096)):
        said += more
    return b"turn" in said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="e1000e")
    parser.add_argument("--guests", type=int, choices=(1, 2), default=2)
    parser.add_argument("--kernel", action="append", default=[], help="a guest whose kernel keeps its NIC; any number")
    parser.add_argument("--time", type=float, default=300, metavar="SECONDS", help="until the guests are ended (300)")
    parser.add_argument("--console", action="store_true", help="prints the consoles, too")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("a command is wanted")
    with Machines(options.guests, options.model, kernel=options.kernel) as machines:
        result = machines.run("a", options.command, time_s=options.time)
        faults = machines.faults()
        consoles = "".join(machines.console(name) for name in machines.names) if options.console else ""
    sys.stdout.write(result.out)
    sys.stderr.write(result.err + consoles + "".join(f"IOMMU: {line}\n" for line in faults))
    return result.code


if __name__ == "__main__":
    sys.exit(with_guests(main))
