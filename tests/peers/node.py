#!/usr/bin/env python3
"""The host's dataplane (`causeway node`) beside sockets, between two hosts.

usage: sudo tests/peers/node.py [--build build] [--rounds 7]

Hosts are namespaces of this machine (tests/lab/hosts.py), joined by a bridge; both nodes by af_packet on the same interfaces. A rank on
each host: 8 bytes half a round trip (us), streams of messages (MiB/s). Two ranks on each: all pairs at a time (Mb/s).
Medians of interleaved rounds; a ratio below 1: the node is ahead of sockets. On a machine with fewer cores than ranks and nodes these
share them, which is most of what is seen.
"""
import argparse
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lab")]

from contest import Contender, Done, compile_all, numbers, ratio_row, rounds_run, table  # noqa: E402
from hosts import Lab  # noqa: E402

KEYS = [("latency", 8), ("stream", 65536), ("stream", 1 << 20)]
PAIRS_KEYS = [("bandwidth", 1 << 20)]
SOCKET = "/tmp/node"
WAYS = {"the node": f"node:{SOCKET}", "sockets": "udp"}


def pairs(text):
    return {("bandwidth", 1 << 20): float(each) for each in re.findall(r" s, ([\d.]+) Mb/s, verified", text)}


def contenders(lab, program, ranks_of, parse):
    return [Contender(f"{name}, {ranks_of(name)} a host",
                      ["/tmp/build/causeway", "run", "--timeout", "100", "--transport", net, "--hosts", f"h0:{ranks_of(name)},h1:{ranks_of(name)}", *program],
                      parse=parse, run=lambda command, **options: Done(lab, command, **options)) for name, net in WAYS.items()]


def contest(options, what, lab, made, keys):
    rounds_run(made, options.rounds)
    table(made, keys, f"{what}: medians")
    for other in made[1:]:
        ratio_row(made[0], [other], keys, f"the node by {other.name}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(os.path.dirname(os.path.dirname(HERE)), "build"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each figure of a pair")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("node.py: hosts are namespaces, which are root's: sudo tests/peers/node.py")
    options.build = os.path.abspath(options.build)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        compile_all(options.build, folder, "pingpong.c")
        with Lab(2, keep=[f"{options.build}:build", folder]) as lab:
            lab.has_sessions = False
            for name in lab.names:
                node = lab.start(name, ["/tmp/build/causeway", "node", "--transport", "eth0", "--socket", SOCKET], stderr=None)
                if not node.stdout.readline().startswith("ready"):
                    sys.exit("node.py: no node")
            made = contenders(lab, [f"{folder}/causeway", str(options.seconds), *(str(size) for name, size in KEYS if name == "stream")], lambda name: 1, numbers)
            contest(options, "a rank on each of 2 hosts: us, MiB/s", lab, made, KEYS)
            made = contenders(lab, ["/tmp/build/apps/kernels/pairs", "--messages", "128"], lambda name: 2 if name == "the node" else 1, pairs)
            contest(options, "all pairs at a time, messages of 1 MiB: Mb/s", lab, made, PAIRS_KEYS)


if __name__ == "__main__":
    main()
