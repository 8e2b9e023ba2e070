#!/usr/bin/env python3
"""wan_tcp.py [--topology FILE] [--congestion cubic,bbr] [--flows 1] [--seconds 10] [--causeway PATH]

The kernel's TCP across an emulated wide area: `causeway switch --topology FILE` whose hosts are network namespaces, each behind a tap device. Each host of the first cluster sends to its
partner in the second. Prints, for each congestion control, what arrived in the second half of the time, as a share of what the link's rate leaves after headers, and what its queue saw. To be
compared with `causeway run --emulate topology=FILE,memif,stats=x.csv build/apps/kernels/pairs`. Needs root."""
import argparse
import csv
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

SEGMENT_SHARE = 1448 / 1538  # of a full frame on the line: IPv4, TCP with timestamps; preamble, check sequence, gap
PORT = 5000
RATES = {"Gbps": 1e9, "Mbps": 1e6, "Kbps": 1e3, "bps": 1}


def serve(seconds):
    """Takes one connection and says how much came in the second half of the time, counted from its first byte."""
    listener = socket.create_server(("0.0.0.0", PORT + int(sys.argv[3])))
    print("listening", flush=True)
    connection, _ = listener.accept()
    begin, count, middle = time.monotonic(), 0, None
    while True:
        data = connection.recv(1 << 20)
        now = time.monotonic() - begin
        if middle is None and now >= seconds / 2:
            middle = (now, count)
        if not data or now >= seconds:
            break
        count += len(data)
    print((count - middle[1]) * 8 / (now - middle[0]) if middle else 0, flush=True)


def send(address, port, congestion, seconds):
    with socket.socket() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        connection.connect((address, port))
        data, end = bytes(1 << 20), time.monotonic() + seconds + 1
        try:
            while time.monotonic() < end:
                connection.sendall(data)
        except OSError:
            pass  # whoever receives has seen enough


def rate_of(text):
    for unit, factor in RATES.items():
        if text.endswith(unit):
            return float(text[:-len(unit)]) * factor
    sys.exit(f"wan_tcp.py: {text}: a rate like 250Mbps is wanted")


class Hosts:
    """Network namespaces, one for each host of the topology, on the taps of a switch."""

    def __init__(self, causeway, topology, count, folder):
        self.names = [f"cw{os.getpid()}-{i}" for i in range(count)]
        self.made = []
        self.stats = os.path.join(folder, "stats.csv")
        ports = [f"net_tap{i},iface=cwt{i}" for i in range(count)]
        command = [causeway, "switch", "--topology", topology, "--stats", self.stats, "--stats-interval", "10ms"]
        self.switch = subprocess.Popen(command + [word for port in ports for word in ("--ethdev", port)],
                                       stdout=subprocess.PIPE, text=True)
        if "ready" not in self.switch.stdout.readline():
            sys.exit("wan_tcp.py: the switch does not start")
        for i, name in enumerate(self.names):
            ip("netns", "add", name)
            self.made.append(name)
            ip("link", "set", f"cwt{i}", "netns", name)
            ip("-n", name, "addr", "add", f"10.1.0.{i + 1}/24", "dev", f"cwt{i}")
            ip("-n", name, "link", "set", f"cwt{i}", "mtu", "1500", "up")

    def run(self, host, *words):
        return subprocess.Popen(["ip", "netns", "exec", self.names[host], sys.executable, os.path.abspath(__file__), *words],
                                stdout=subprocess.PIPE, text=True)

    def close(self):
        self.switch.send_signal(signal.SIGINT)
        self.switch.communicate(timeout=20)
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], check=False)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def measure(hosts, side, options, congestion):
    """Bits per second that arrived at all receivers together."""
    receivers, senders = [], []
    try:
        for flow in range(side * options.flows):
            receivers.append(hosts.run(side + flow % side, "--serve", str(options.seconds), str(flow)))
            receivers[-1].stdout.readline()
        for flow in range(side * options.flows):
            senders.append(hosts.run(flow % side, "--send", f"10.1.0.{side + flow % side + 1}", str(PORT + flow), congestion,
                                     str(options.seconds)))
        return sum(float(receiver.communicate(timeout=options.seconds + 60)[0]) for receiver in receivers)
    finally:
        for process in receivers + senders:
            process.kill()
            process.wait()


def queue_of(stats, link):
    """The longest queue and the frames that found it full, in the direction that carried most."""
    seen = {}
    with open(stats) as file:
        for row in csv.DictReader(file):
            if row["name"] == link["name"] and "/" not in row["direction"]:
                total = seen.setdefault(row["direction"], [0, 0, 0])
                total[0] += int(row["delivered_bytes"])
                total[1] = max(total[1], int(row["queue_max_bytes"]))
                total[2] += int(row["queue_frames"])
    return max(seen.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    parser.add_argument("--topology", default=os.path.join(root, "apps", "examples", "two_clusters.json"))
    parser.add_argument("--causeway", default=os.path.join(root, "build", "causeway"))
    parser.add_argument("--congestion", default="cubic,bbr")
    parser.add_argument("--flows", type=int, default=1, help="of each pair of hosts")
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    with open(options.topology) as file:
        topology = json.load(file)
    sides, link = [cluster["hosts"] for cluster in topology["clusters"]], topology["links"][0]
    if len(sides) != 2 or sides[0] != sides[1] or not isinstance(sides[0], int):
        sys.exit("wan_tcp.py: a topology of two clusters with as many hosts each is wanted")
    left = rate_of(link["rate"]) * SEGMENT_SHARE
    for congestion in options.congestion.split(","):
        with tempfile.TemporaryDirectory() as folder:
            hosts = Hosts(options.causeway, options.topology, 2 * sides[0], folder)
            try:
                rate = measure(hosts, sides[0], options, congestion)
            finally:
                hosts.close()
            _, queue, dropped = queue_of(hosts.stats, link)
            print(f"TCP {congestion}, {sides[0] * options.flows} flows: {rate / 1e6:.1f} Mb/s, {rate / left:.3f} of what the rate leaves; "
                  f"queue up to {queue} bytes, {dropped} frames dropped", flush=True)


if sys.argv[1:2] == ["--serve"]:
    serve(float(sys.argv[2]))
elif sys.argv[1:2] == ["--send"]:
    send(sys.argv[2], int(sys.argv[3]), sys.argv[4], float(sys.argv[5]))
else:
    main()
