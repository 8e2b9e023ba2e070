#!/usr/bin/env python3
"""Causeway between two emulated hosts, beside MPICH and Open MPI over TCP between the same two (apt-get install mpich libmpich-dev openmpi-bin libopenmpi-dev).

usage: sudo tests/peers/veth.py [--build build] [--rounds 11] [--seconds 0.3] [--mtu 1500,9000] [--sizes 65536,262144,1048576] [--wait 5]

8-byte latency (half a round trip) and bandwidth of a stream of messages: medians of interleaved rounds, over the kernel's veth interfaces and bridge
(causeway run --emulate 2,veth). The port's raw rate is that of bare bursts of full frames between two such hosts (causeway bench put).
TCP with and without segmentation offload: with it, packets of up to 64 KiB pass the bridge whole, whatever the MTU, as no real wire would carry them.
"""
import argparse
import fcntl
import json
import os
import socket
import struct
import sys
import tempfile

from contest import HERE, Contender, compile_all, ratio, rounds_run, table

XDP_MTU_MAX = 3434
SIOCETHTOOL, ETHTOOL_STSO, ETHTOOL_SGSO = 0x8946, 0x1F, 0x24


def offload_off():
    """No segmentation offload on the interfaces of this network namespace (ethtool -K NAME tso off gso off)."""
    import ctypes
    query = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _, name in socket.if_nameindex():
        for command in (ETHTOOL_STSO, ETHTOOL_SGSO):
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            fcntl.ioctl(query, SIOCETHTOOL, struct.pack("16sQ16x", name.encode(), ctypes.addressof(value)))


def raw_parse(text):
    raw = json.loads(text.splitlines()[0])
    return {("latency", 8): raw["raw_latency_p50_ns"] / 2000, ("stream", 0): raw["raw_goodput_bps"] / 8 / (1 << 20)}


def contenders(options, folder, mtu):
    causeway = os.path.join(options.build, "causeway")
    program = [str(options.seconds)] + options.sizes.split(",")
    made = []
    for driver in ("af_packet", "af_xdp"):
        carried = mtu if driver == "af_packet" else min(mtu, XDP_MTU_MAX)
        note = "" if carried == mtu else f", MTU {carried}"
        network = f"2,veth,{driver},mtu={carried}"
        made.append(Contender(f"Causeway {driver}{note}", [causeway, "run", "-n", "2", "--emulate", network, "--timeout", "60", os.path.join(folder, "causeway")] + program))
        made.append(Contender(f"raw {driver}{note}", [causeway, "bench", "put", "--fabric", f"veth-{driver}", "--mtu", str(carried), "--sizes", "8", "--rounds", "1",
                                                      "--duration", f"{int(options.seconds * 1000)}ms", "--no-testpmd", "--json"], parse=raw_parse))
    for library, name in (("mpich", "MPICH"), ("openmpi", "Open MPI")):
        path = os.path.join(folder, library)
        if os.path.exists(path):
            command = [causeway, "run", "-n", "1", "--emulate", f"2,veth,mtu={mtu}", "--timeout", "60", os.path.join(HERE, "veth_tcp.sh"), library, path]
            for offload in ("on", "off"):
                made.append(Contender(f"{name} TCP, offload {offload}", command + program + [":", "-n", "1", "true"], {"VETH_OFFLOAD": offload}))
    return made


def key_of(one, key):
    """The raw rate is one for all sizes."""
    return ("stream", 0) if key[0] == "stream" and ("stream", 0) in one.results else key


def report(made, mtu, sizes):
    keys = [("latency", 8)] + [("stream", size) for size in sizes]
    for value_of, what in ((Contender.median, "latency in us, bandwidth in MiB/s, medians"), (Contender.best, "the best of the rounds, which others on the machine disturb least")):
        table(made, keys, f"MTU {mtu}: {what}", lambda one, key, value_of=value_of: value_of(one, key_of(one, key)))
    peers = [one for one in made if "TCP" in one.name and one.results]
    for what, value_of in (("medians", Contender.median), ("best", Contender.best)):
        for one, raw in zip(made[0:4:2], made[1:4:2]):
            if not one.results:
                continue
            if peers:
                print(f"{what}: {one.name}: latency {ratio(one, peers, ('latency', 8), value_of):.2f} x the best of the others")
            for size in sizes if value_of(raw, ("stream", 0)) else []:
                share = 100 * value_of(one, ("stream", size)) / value_of(raw, ("stream", 0))
                print(f"{what}: {one.name}: {size} bytes at {share:.0f} % of the raw rate")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(os.path.dirname(os.path.dirname(HERE)), "build"))
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--mtu", default="1500,9000")
    parser.add_argument("--sizes", default="65536,262144,1048576")
    parser.add_argument("--wait", type=float, default=5, help="seconds at most until others leave the machine alone, before each measurement")
    parser.add_argument("--only", default="", help="contenders whose name contains this")
    parser.add_argument("--offload-off", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("veth.py: interfaces and namespaces are root's: sudo tests/peers/veth.py")
    if options.offload_off:
        offload_off()
        return
    options.build = os.path.abspath(options.build)
    with tempfile.TemporaryDirectory() as folder:
        compile_all(options.build, folder, "veth_pingpong.c")
        for mtu in map(int, options.mtu.split(",")):
            made = contenders(options, folder, mtu)
            rounds_run([one for one in made if options.only in one.name], options.rounds, options.wait)
            report(made, mtu, [int(size) for size in options.sizes.split(",")])


if __name__ == "__main__":
    main()
