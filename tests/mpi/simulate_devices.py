#!/usr/bin/env python3
"""RDMA devices and NIC offloads of `causeway run --simulate`: what they carry, their faults, the same run each time.

usage: simulate_devices.py CAUSEWAY PAIRS SIMULATED COLLECTIVE      PAIRS: the kernel `pairs`; SIMULATED: errors/simulated.c;
                                                                    COLLECTIVE: apps/measure/collective_measure.c
"""
import os
import re
import subprocess
import sys

from expectation import HANG_S, exit_code, expect

causeway, pairs, simulated, collective = map(os.path.abspath, sys.argv[1:5])
environment = {name: value for name, value in os.environ.items() if not name.startswith("CAUSEWAY_")}
MESSAGE, MESSAGES = 1 << 20, 20


def run(ranks, simulate, *program, variables=None):
    """The exit code and all lines of a job in which each of half of the ranks sends MESSAGES to one of the other half."""
    command = [causeway, "run", "-n", str(ranks), "--explain", "--simulate", "cpu=0," + simulate]
    command += program or (pairs, "--bytes", str(MESSAGE), "--messages", str(MESSAGES))
    done = subprocess.run(command, capture_output=True, text=True, env=environment | (variables or {}), timeout=HANG_S)
    return done.returncode, done.stdout + done.stderr


def number(pattern, text):
    found = re.search(pattern, text)
    return float(found.group(1)) if found else -1


def last(text):
    """Virtual time, packets and digest."""
    found = re.search(r"simulated .*digest \w+", text)
    return found.group(0) if found else None


def duration(text):
    return number(r"bytes each: ([0-9.]+) s", text)


def verified(code, text):
    return code == 0 and "verified" in text


# Queue pairs carry the data, at the rate of a host's line, which the ranks of a host share, in and out.
line_s = MESSAGES * MESSAGE * 8 / 10e9
code, text = run(2, "rate=10Gbps,rdma=on")
expect(verified(code, text) and number(r"(\d+) queue pairs came up", text) == 1, f"a queue pair: {text}")
expect(number(r"(\d+) packets sent", text) < 100, f"no data in packets: {text}")
expect(line_s <= duration(text) <= 1.05 * line_s, f"{line_s} s by the line's rate, not {duration(text)}")
code, text = run(4, "rate=10Gbps,hosts=2,rdma=on")
expect(verified(code, text) and 1.7 * line_s <= duration(text) <= 2.2 * line_s, f"two ranks share a line: {duration(text)} s, {text}")
code, text = run(5, "rate=10Gbps,rdma=on", simulated, "incast", variables={"CAUSEWAY_ALGORITHM": "gather=flat"})
expect(code == 0 and number(r"simulated ([0-9.]+) s", text) > 4e6 * 8 / 10e9, f"four senders share the line of one receiver: {text}")
code, text = run(2, "rdma=on", variables={"CAUSEWAY_RDMA": "off"})
expect(verified(code, text) and "queue pairs" not in text and number(r"(\d+) packets sent", text) > MESSAGES * MESSAGE / 1500, f"CAUSEWAY_RDMA=off: packets: {text}")

code, text = run(2, "rdma=on", variables={"CAUSEWAY_RDMA": "mlx5_0"})
expect(code != 0 and "no device 'mlx5_0'" in text, f"simulated devices have no names: {code} {text}")

# The same run each time, next to busy processes; another one with another seed.
FAULTS = "hosts=4,loss=1%,rdma=on,rdma-break=2%,nic=random"
first = run(6, FAULTS)
busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
again = [run(6, FAULTS) for _ in range(3)]
for process in busy:
    process.kill()
    process.wait()
expect(first[0] == 0 and all(last(text) == last(first[1]) for _, text in again), f"the same run each time: {first} {again}")
expect(last(run(6, FAULTS + ",seed=2")[1]) != last(first[1]), f"another run with another seed: {first}")

# Queue pairs that break, devices that fail or reach nobody: nothing is lost.
code, text = run(4, "rdma=on,rdma-break=5%")
expect(verified(code, text) and number(r"came up, (\d+) broke", text) > 0, f"queue pairs break: {text}")
code, text = run(4, "rdma=on,rdma-fail=0@100us")
expect(verified(code, text) and "the device has failed" in text, f"a device fails: {text}")
code, text = run(4, "rdma=on,rdma-fail=0@0s")
expect(verified(code, text) and number(r"(\d+) packets sent", text) > MESSAGES * MESSAGE / 1500, f"a device that fails before it is opened: {text}")
alone = duration(run(4, "rdma=on,rdma-cut=0@100us+50ms")[1])
both = duration(run(4, "rdma=on,rdma-cut=0@100us+50ms,rdma-cut=0@1ms+1ms")[1])
expect(alone > 0.045 and both >= alone, f"a fault that ends does not heal another one: {alone}, {both} s")
code, text = run(4, "rdma=on,rdma-cut=0@100us+50ms")
expect(verified(code, text) and "the device has failed" not in text and duration(text) > 0.045, f"a device that reaches nobody for 50 ms: {text}")
code, text = run(4, "rdma=on,kill=2@100us", simulated, "exchange")
expect(code == 137 and "rank 2" in text, f"a process with a device is killed: {code} {text}")

# Groups by datagrams of the devices, whose members are all who have one.
code, text = run(4, "rdma=on", collective, "--alone", "bcast", "65536", "3", "multicast")
expect(code == 0 and number(r"(\d+) packets to groups", text) > 0, f"multicast by datagrams: {text}")

# NICs: each state, of all offloads or of one, of all hosts or of one. A checksum that lies is put away, and no data is wrong.
without = run(4, "rate=10Gbps,corrupt=0.5%")[1]
for nic in ("honest", "slow", "lying", "mute", "random", "lying:udp-checksum-out@1", "lying:arrival-time", "honest,nic=lying:steer@0"):
    code, text = run(4, f"rate=10Gbps,corrupt=0.5%,nic={nic}")
    expect(verified(code, text), f"nic={nic}: the data is right: {code} {text}")
    expect("arrival" in nic or "out@1" in nic or last(text) != last(without), f"nic={nic}: something is different: {last(text)}")
honest, lying = (run(4, f"rate=10Gbps,nic={nic}", pairs, "--bytes", str(MESSAGE), "--messages", "100")[1] for nic in ("honest", "lying"))
expect("by the NICs" in honest and "by the NICs" not in lying, f"checksums of NICs count unless they lie: {honest} {lying}")
code, text = run(4, "rate=10Gbps,nic=lying-later,down=1@1ms+1ms")
expect(verified(code, text), f"offloads that lie once a link was down: {text}")
plain, slow = (duration(run(2, f"rate=10Gbps{nic}", pairs, "--bytes", "8", "--messages", "200")[1]) for nic in ("", ",nic=slow"))
expect(slow > plain > 0, f"slow offloads take time: {plain}, {slow} s")

# Bad input.
for simulate, words in (("rdma=off", "rdma=off"), ("rdma-break=1%", "add rdma=on"), ("rdma-fail=0@1ms", "add rdma=on"), ("rdma=on,rdma-fail=0@1ms+1ms", "rdma-fail=0@1ms+1ms"),
                        ("rdma=on,rdma-cut=7@1ms", "host 7"), ("rdma=on,topology=/no/file", "/no/file"), ("nic=good", "nic=good"), ("nic=honest:foo", "nic=honest:foo"),
                        ("nic=honest@4", "nic=...@4"), ("nic=honest@", "nic=honest@")):
    code, text = run(2, simulate)
    expect(code == 2 and words in text and text.count("\n") == 1, f"{simulate}: exit code 2 and a line with {words}: {code} {text}")
sys.exit(exit_code())
