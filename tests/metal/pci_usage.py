#!/usr/bin/env python3
"""pci_usage.py BUILD PART NAME=PROGRAM...: jobs whose ranks own PCI NICs, in guests (pci.py). Parts are models of NICs; `e1000e` also has
what is no matter of the model: links that go down, clocks that jump, a guest that is killed; `kernel` has a host whose kernel keeps its NIC, and
`uio` has no IOMMU; `doctor` has one guest with two NICs, of which one is made unusable in one way after the other. Both e1000e and `doctor`
print what puts and the raw port measure, between two guests and within one.

CW_TEST_METAL=all runs all programs by each model. Guests starve each other: counts are compared, never times."""
import json
import os
import re
import sys

from expectation import JOB_HANG, PATIENT, exit_code, expect
from guest import with_guests
from pci import Machines, NICS, await_turns

BUILD, PART = os.path.abspath(sys.argv[1]), sys.argv[2]
PROGRAMS = dict(each.split("=", 1) for each in sys.argv[3:])
CAUSEWAY, CACHE = f"{BUILD}/causeway", f"{BUILD}/metal"
ENVIRONMENT = {"CAUSEWAY_FAILURE_TIMEOUT": PATIENT, "CW_CALLS": "20"}
NET = ["--transport", NICS[0]]
ALL = os.environ.get("CW_TEST_METAL") == "all"
# QEMU's vmxnet3 reads address 0 when it is activated, whatever its driver has told it.
QUIRKS = {"vmxnet3": r"DMA Read NO_PASID\] .* fault addr 0x0 |DRHD: handling fault status"}
KEEP = [CAUSEWAY, f"{BUILD}/dataplane/libcauseway_dpdk.so", *PROGRAMS.values()]


def job(*words):
    return [CAUSEWAY, "run", "--hosts", "a,b", "--launcher", "remote", *words]


def told(result):
    return f"{result.code}: {result.out[-600:]} {result.err[-900:]}"


def kernels_run(machines, names, net):
    for name in names:
        result = machines.run("a", job(*net, PROGRAMS[name], "S"), ENVIRONMENT)
        expect(result.code == 0 and "verified" in result.out, f"{machines.model}: {name} is verified: {told(result)}")


def programs_run(machines, names):
    for name in names:
        result = machines.run("a", job(*NET, PROGRAMS[name]), ENVIRONMENT)
        expect(result.code == 0, f"{machines.model}: {name} passes: {told(result)}")
    if "collective_random" in names:
        environment = {**ENVIRONMENT, "CAUSEWAY_ALGORITHM": "bcast=multicast,allgather=multicasts,barrier=tree-multicast"}
        result = machines.run("a", job(*NET, "--explain", PROGRAMS["collective_random"]), environment)
        expect(result.code == 0 and "group of MPI_COMM_WORLD: multicast" in result.err, f"{machines.model}: multicasts pass: {told(result)}")


def refusals(machines):
    """What a user is told, in one line. By `doctor`, before: obstacles."""
    machines.run("b", ["/run/guest/busybox", "true"])
    for net, words in {"0000:00:1e.0": ["no such PCI device"], "0000:00:08.0": ["bound to the kernel's driver virtio-pci", "dpdk-devbind.py --bind=vfio-pci"],
                       f"{NICS[0]},mtu=9500": ["MTU 9500", "use an MTU within that"]}.items():
        result = machines.run("a", job("--transport", net, PROGRAMS["is"], "S"), ENVIRONMENT)
        expect(result.code != 0 and all(word in result.err for word in words), f"--transport {net} is refused, by {words}: {told(result)}")
    result = machines.run("a", [CAUSEWAY, "run", "--hosts", "a:2,b", "--launcher", "remote", *NET, PROGRAMS["is"], "S"], ENVIRONMENT)
    expect(result.code != 0 and "ranks 0 and 1 on a name the same device" in result.err and "{local}" in result.err, f"two ranks, one device: {told(result)}")


def troubles(machines):
    """A cable that is pulled and put back, a clock that jumps, and a guest that is no more."""
    under_way = machines.start("a", job(*NET, "--timeout", JOB_HANG, PROGRAMS["is"], "W"), ENVIRONMENT)
    machines.monitor("b", "set_link nic0 off")
    machines.run("b", ["date", "-s", "2037-01-01"])
    machines.run("b", ["date", "-s", "2011-01-01"])
    machines.monitor("b", "set_link nic0 on")
    result = machines.finish(under_way, ["is"])
    expect(result.code == 0 and "verified" in result.out, f"a link goes down and up, and a clock jumps: {told(result)}")
    under_way = machines.start("a", job(*NET, "--timeout", JOB_HANG, PROGRAMS["mpi_busy"], "100"), {**ENVIRONMENT, "CAUSEWAY_FAILURE_TIMEOUT": "20"})
    is_busy = await_turns(under_way)
    machines.kill("b")
    result = machines.finish(under_way, ["mpi_busy"])
    expect(is_busy and result.code != 0 and re.search(r"host b\b", result.err), f"a guest is killed, which the other is told: {told(result)}")


def mixed(machines):
    """One host by its kernel's sockets, one by a device: whose address is asked for, and answers."""
    machines.run("a", ["sh", "-c", "ip addr add 10.9.0.1/24 dev nic0; /run/guest/busybox ping -c 1 -w 10 -W 10 10.9.0.9; true"])
    sides = [["-n", "1", "--env", f"CAUSEWAY_TRANSPORT={net}"] for net in ("udp:10.9.0.1", f"{NICS[0]},ip=10.9.0.2/24")]
    result = machines.run("a", job(*sides[0], PROGRAMS["is"], "S", ":", *sides[1], PROGRAMS["is"], "S"), ENVIRONMENT)
    expect(result.code == 0 and "verified" in result.out, f"sockets and a device: {told(result)}")
    under_way = machines.start("a", job("--timeout", JOB_HANG, *sides[0], PROGRAMS["mpi_busy"], "100", ":", *sides[1], PROGRAMS["mpi_busy"], "100"), ENVIRONMENT)
    await_turns(under_way)
    result = machines.run("a", ["/run/guest/busybox", "ping", "-c", "3", "-W", "20", "10.9.0.2"])
    expect(result.code == 0 and " 0% packet loss" in result.out, f"the device's address answers a ping: {told(result)}")
    result = machines.run("a", ["ip", "neigh", "show", "dev", "nic0"])
    expect(f"10.9.0.2 lladdr {machines.mac('b')}" in result.out, f"... and ARP: {told(result)}")
    under_way.close()


def bench(machines, *ends):
    """Puts beside the raw port, as far as this machine lets guests run: figures are printed. Again where a guest did not get to a core for seconds."""
    for _ in range(3):
        result = machines.run("a", [CAUSEWAY, "bench", "put", *ends, "--sizes", "8,65536", "--duration", "200ms", "--rounds", "1", "--json"])
        if not re.search("are both cores busy|the time is over", result.err):
            break
    lines = [json.loads(line) for line in result.out.splitlines()] if result.code == 0 else []
    expect([line["size_bytes"] for line in lines] == [8, 65536] and all(line["driver"] == "net_e1000_em" and line["goodput_bps"] > 0 and
           line["raw_goodput_bps"] > 0 and line["ratio_latency"] > 0 for line in lines), f"bench put {ends}: {told(result)}")
    for line in lines:
        print(f"{' '.join(ends)}: {line['size_bytes']} bytes: there and back {line['latency_p50_ns'] / 1000:.0f} us, {line['ratio_latency']:.2f} of raw; goodput "
              f"{line['goodput_bps'] / 1e6:.0f} Mb/s, {line['ratio_goodput']:.2f} of raw; {line['retransmits']:.0f} retransmits")


USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def obstacles(machines):
    """What `causeway doctor --transport DEVICE` says of a device before a job has it, in every state that takes it away; and when it is mended again."""
    def doctor(net, good, words, prefix=()):
        result = machines.run("a", [*prefix, CAUSEWAY, "doctor", "--transport", *net])
        expect((result.code == 0) == good and all(word in result.out for word in words), f"doctor --transport {net} says {words}: {told(result)}")

    def shell(line):
        result = machines.run("a", ["sh", "-c", line])
        expect(result.code == 0, f"{line}: {told(result)}")
        return result.out.strip()

    device = NICS[0]
    group = "/dev/vfio/" + shell(f"basename $(readlink /sys/bus/pci/devices/{device}/iommu_group)")
    bench(machines, "--device", NICS[0], "--peer-device", NICS[1])
    good = [f"{device}: driver vfio-pci, behind an IOMMU", "192 MiB of huge pages", "driver net_e1000_em, link up", machines.mac("a"), "looks for packets every"]
    doctor([device], True, good)
    doctor([device, f"{NICS[1]},mtu=9500", "0000:00:08.0", "0000:00:1e.0"], False,
           [*good, "MTU 9500", "use an MTU within that", "bound to the kernel's driver virtio-pci", "--bind=vfio-pci 0000:00:08.0", "no such PCI device; `dpdk-devbind.py"])
    shell("/run/guest/busybox rmmod vfio_iommu_type1")
    doctor([device], False, ["as root: modprobe vfio_iommu_type1"])
    shell("/run/guest/modprobe vfio_iommu_type1")
    doctor([device], False, [f"no permission for {group}; as root: chown 65534 {group}"], USER)
    shell(f"chown 65534 {group}")
    doctor([device], True, good, USER)
    holder = machines.start("a", ["sh", "-c", f"exec 9<>{group} && echo $$ && exec sleep 1000"])
    number = holder.files.recv(20).decode().strip()
    doctor([device], False, [f"another process has the device (process {number}): end it"])
    shell(f"kill {number}")
    holder.close()
    machines.monitor("a", "set_link nic0 off")
    doctor([device], False, [f"the link of {device} does not come up: is its cable plugged in"])
    machines.monitor("a", "set_link nic0 on")
    shell("echo 0 >/proc/sys/vm/nr_hugepages")
    doctor([device], True, ["0 MiB of huge pages", "sysctl vm.nr_hugepages=64", "link up"])


def physical(machines):
    """No IOMMU: the devices read physical addresses, by uio, which only root may."""
    for name in machines.names:
        bound = machines.run(name, ["sh", "-c", f"/run/guest/modprobe uio_pci_generic && echo uio_pci_generic >/sys/bus/pci/devices/{NICS[0]}/driver_override && "
                                    f"echo {NICS[0]} >/sys/bus/pci/drivers_probe && ls /dev/uio0"])
        expect(bound.code == 0, f"the NIC of {name} is bound: {told(bound)}")
    for user, code, words in (([], 0, ["driver uio_pci_generic, without an IOMMU", "driver net_e1000_em, link up"]), (["setpriv", "--reuid=65534"], 3, ["root"])):
        said = machines.run("a", [*user, CAUSEWAY, "doctor", "--transport", NICS[0]])
        expect(said.code == code and all(word in said.out for word in words), f"doctor by {user} says {words}: {told(said)}")
    kernels_run(machines, ["is"], NET)
    programs_run(machines, ["point_blocking", "point_memory", "collective_random"])


def main():
    kernel = ["a"] if PART == "kernel" else []
    model = "e1000e" if PART in ("kernel", "doctor", "uio") else PART
    ends = {"count": 1, "huge_pages": 96} if PART == "doctor" else {"count": 2, "iommu": PART != "uio"}
    with Machines(**ends, model=model, kernel=kernel, keep=KEEP, cache=CACHE) as machines:
        if kernel:
            mixed(machines)
        elif PART == "uio":
            physical(machines)
        elif PART == "doctor":
            obstacles(machines)
        else:
            is_first = PART == "e1000e" or ALL
            kernels_run(machines, [name for name in ("is", "ft") if name in PROGRAMS and (is_first or name == "is")], NET)
            programs_run(machines, [name for name in PROGRAMS if name not in ("is", "ft", "mpi_busy") and is_first])
            if PART == "e1000e":
                refusals(machines)
                troubles(machines)
        faults = [each for each in machines.faults() if model not in QUIRKS or not re.search(QUIRKS[model], each)]
        expect(not faults, f"the IOMMU has refused nothing: {faults}")


def work():
    main()
    return exit_code()


sys.exit(with_guests(work))
