#!/usr/bin/env python3
"""gateway_usage.py CAUSEWAY PROGRAM: two sites joined by `causeway gateway`, with ranks of one job in both; a gateway that is killed, wrong keys, bad input.

Two switches are the sites, a third one the wide area between the gateways. Nothing is timed: lines that must come are waited for."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

from expectation import HANG_S, JOB_HANG, execute, expect, refused, wait_until

causeway, program = map(os.path.abspath, sys.argv[1:])
WAN = """{"clusters": [{"name": "a", "hosts": 1, "rate": "1Gbps", "delay": "10us"}, {"name": "b", "hosts": 1, "rate": "1Gbps", "delay": "10us"}],
"links": [{"name": "sea", "between": ["a", "b"], "rate": "200Mbps", "delay": "2ms", "queue": "1MB", "loss": "0.5%"}]}"""


class Process:
    """A program whose lines are kept, from both its outputs."""

    def __init__(self, arguments):
        self.lines = []
        self.changed = threading.Condition()
        self.process = subprocess.Popen([causeway] + arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip())
                self.changed.notify_all()

    def count(self, beginning):
        return sum(line.startswith(beginning) for line in self.lines)

    def wait(self, beginning, count=1):
        """True once so many lines begin like this."""
        with self.changed:
            found = self.changed.wait_for(lambda: self.count(beginning) >= count, HANG_S)
        expect(found, f"{count} lines `{beginning}` of {self.process.args}: {self.lines}")
        return found

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(HANG_S)
        self.reader.join()
        return code


def gateway(folder, site, key, *more):
    own, other = ("1", "2") if site == "a" else ("2", "1")
    return Process(["gateway", "--inner", f"memif:{folder}/{site},port=4", "--outer", f"memif:{folder}/w,port={int(own) - 1}", "--address", f"10.9.0.{own}",
                    "--peer", f"10.9.0.{other}", "--key", key, "--rate", "190Mbps"] + list(more))


def job(folder):
    """Ranks 0 and 1 at one site, 2 and 3 at the other: every pair of them over its switches, and the gateways in between."""
    script = os.path.join(folder, "rank")
    with open(script, "w") as file:
        file.write(f'#!/bin/sh\nsite=a\n[ "$PMI_RANK" -ge 2 ] && site=b\nexport CAUSEWAY_EMULATE=4,memif,{folder}/$site\n'
                   f"export CAUSEWAY_JOB_KEY={'5a' * 16}\nexec {program} S\n")
    os.chmod(script, 0o700)
    result = subprocess.run([causeway, "run", "-n", "4", "--timeout", JOB_HANG, script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANG_S)
    expect(result.returncode == 0 and "verified" in result.stdout, f"ranks of both sites work together: {result.stdout}")


def key_make(path):
    result = execute([causeway, "gateway", "--make-key", path])
    expect(result.returncode == 0 and os.stat(path).st_mode & 0o777 == 0o600, f"a key is made: {result.stderr}")
    return path


def counters(process):
    """What it says of itself when asked, by a signal: the line of the gateway, and the sums over its streams."""
    before = process.count("{")
    process.process.send_signal(signal.SIGUSR1)
    process.wait("{", before + 5)
    told = [json.loads(line) for line in process.lines if line.startswith("{")][-5:]
    sums = {key: sum(line[key] for line in told[1:]) for key in told[1] if isinstance(told[1][key], int)}
    return told[0], sums


def under_way(ours, theirs):
    return ours["taken"] - ours["dropped_standing"] - ours["dropped_late"] - theirs["delivered"]


def carried(a, b):
    """The counters of both once nothing is under way from a to b: the last frames of a job may still be repaired."""
    def is_over():
        nonlocal whole, ours, theirs
        (whole, ours), (_, theirs) = counters(a), counters(b)
        return under_way(ours, theirs) == 0

    whole = ours = theirs = None
    wait_until(is_over)
    return whole, ours, theirs


def sites(folder):
    with open(os.path.join(folder, "wan.json"), "w") as file:
        file.write(WAN)
    key = key_make(os.path.join(folder, "key"))
    switches = [Process(["switch", "--memif", f"{folder}/{site}", "--ports", "5"]) for site in "ab"]
    switches.append(Process(["switch", "--memif", f"{folder}/w", "--topology", f"{folder}/wan.json"]))
    for switch in switches:
        switch.wait("ready")
    a = gateway(folder, "a", key, "--json", "--stats", f"{folder}/a.csv", "--compress", "on")
    b = gateway(folder, "b", key, "--json")
    try:
        a.wait("up: 10.9.0.2")
        b.wait("up: 10.9.0.1")
        expect("sealed" in a.lines[-1] and "not sealed" not in a.lines[-1], f"it is sealed: {a.lines}")
        job(folder)
        whole, ours, theirs = carried(a, b)
        expect(ours["taken"] > 100 and under_way(ours, theirs) == 0, f"what one takes the other delivers: {ours} {theirs}")
        expect(whole["endpoint"]["CHUNKS_OUT"] > 0 and whole["endpoint"]["CHUNKS_IN"] == 0, f"one of the two compresses: {whole['endpoint']}")
        expect(ours["broken"] == theirs["broken"] == whole["dropped_port_frames"] == 0, f"nothing is broken: {ours} {theirs} {whole}")

        b.end(signal.SIGKILL)
        a.wait("down: 10.9.0.2")
        other = gateway(folder, "b", key_make(os.path.join(folder, "other")))
        other.wait("causeway gateway: packets come that do not fit the key: 10.9.0.1 (")
        expect(other.end() == 0 and other.count("causeway gateway:") == 1, f"one line about the key: {other.lines}")
        other = gateway(folder, "b", key, "--encrypt", "no")
        other.wait("down: 10.9.0.1: one of the two gateways encrypts and the other does not")
        other.end()
        other = gateway(folder, "b", key, "--streams", "2")
        other.wait("down: 10.9.0.1: it has another number of --streams")
        other.end()
        ups = a.count("up:")
        b = gateway(folder, "b", key, "--json")
        a.wait("up:", ups + 1)
        b.wait("up:")
        job(folder)
        expect(switches[1].end() == 0, "the switch ends")
        b.wait("causeway gateway: the other side of the port is gone")
        expect(b.process.wait(HANG_S) == 3, "a gateway without its port ends with 3")
    finally:
        for process in [a, b] + switches:
            if process.process.poll() is None:
                code = process.end()
                expect(code == 0, f"ends well when told to: {process.process.args} {code}")
            process.reader.join()
    with open(f"{folder}/a.csv") as file:
        names, *rows = [line.rstrip().split(",") for line in file]
    expect(len(rows) >= 4 and all(len(row) == len(names) for row in rows), "statistics are whole")
    last = [json.loads(line) for line in a.lines if line.startswith("{")][-4:]
    for name in ["taken", "delivered", "in_doubt", "sessions"]:
        expect(sum(int(row[names.index(name)]) for row in rows) == sum(line[name] for line in last), f"sums over time are the counters: {name}")


def refusals(folder):
    key = key_make(os.path.join(folder, "key"))
    loose = key_make(os.path.join(folder, "loose"))
    os.chmod(loose, 0o640)
    short = os.path.join(folder, "short")
    with open(short, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write("5a5a")
    good = {"--inner": f"memif:{folder}/none,port=1", "--outer": f"memif:{folder}/none,port=0", "--address": "10.0.0.1", "--peer": "10.0.0.2", "--key": key, "--rate": "1Gbps"}
    for option, value, code, words in [
            ("--inner", None, 2, ["--inner"]), ("--inner", "memif:/tmp/x", 2, ["memif:/tmp/x"]), ("--inner", "memif:/tmp/x:4", 2, ["memif:PATH,port=N"]), ("--inner", "memif:/tmp/x,port=99", 2, ["memif:PATH,port=N"]),
            ("--outer", "af_packet:", 2, ["interface"]), ("--address", "10.0.0", 2, ["an IP address is wanted"]), ("--address", None, 2, ["--address"]),
            ("--peer", "10.0.0.1", 2, ["own"]), ("--peer", "10.0.0.2,ff:ff:ff:ff:ff:ff", 2, ["MAC"]), ("--key", None, 2, ["--make-key"]),
            ("--key", loose, 2, ["chmod 600"]), ("--key", short, 2, ["32 hexadecimal"]), ("--key", folder, 2, ["no file"]), ("--key", "/no/where", 2, ["/no/where"]),
            ("--rate", None, 2, ["found"]), ("--rate", "fast", 2, ["250Mbps"]), ("--rate", "1bps", 2, ["250Mbps"]), ("--encrypt", "maybe", 2, ["yes or no"]),
            ("--multicast", "snoop", 2, ["drop or flood"]), ("--streams", "0", 2, ["--streams"]), ("--streams", "99", 2, ["--streams"]),
            ("--make-key", key, 2, ["a file already"]), ("--seconds", "1", 3, ["no memif server", "--inner"])]:
        given = dict(good, **{option: value})
        arguments = [word for pair in given.items() if pair[1] is not None for word in pair]
        result = execute([causeway, "gateway"] + arguments)
        refused(result, words, f"{option} {value}", code)


with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    refusals(folder)
with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    sites(folder)
