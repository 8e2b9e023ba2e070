#!/usr/bin/env python3
"""`causeway run --simulate`: virtual time, the same run each time, faults, deadlocks, bad input.

usage: simulate_usage.py CAUSEWAY PROGRAM TOPOLOGY      PROGRAM: errors/simulated.c; TOPOLOGY: two clusters
"""
import csv
import os
import re
import subprocess
import sys
import tempfile

from expectation import HANG_S, JOB_HANG, execute, expect

causeway, program, topology = map(os.path.abspath, sys.argv[1:4])
environment = {name: value for name, value in os.environ.items() if not name.startswith("CAUSEWAY_")}


def run(ranks, simulate, *arguments, options=(), variables=None):
    """The exit code, the standard output, and the standard error, of a job that is simulated."""
    command = [causeway, "run", "-n", str(ranks), *options, "--simulate", simulate, *(arguments or (program, "exchange"))]
    done = subprocess.run(command, capture_output=True, text=True, env=environment | (variables or {}), timeout=HANG_S)
    return done.returncode, done.stdout, done.stderr


def digest(errors):
    found = re.search(r"digest ([0-9a-f]{16})", errors)
    return found.group(1) if found else None


def times(out):
    """The round trip of 8 bytes and the time of 1 MB, in microseconds."""
    found = re.search(r"round trip ([0-9.]+), message ([0-9.]+)", out)
    return (float(found.group(1)), float(found.group(2))) if found else (0, 0)


# The same packets at the same times in each run, also with a busy process on each core; others with another seed.
LOSSY = "hosts=3,cpu=0,loss=1%,reorder=1%,duplicate=1%,corrupt=1%"
first = run(5, LOSSY)
expect(first[0] == 0 and "sum 10," in first[1] and digest(first[2]), f"a right result and a digest: {first}")
long = run(6, f"topology={topology},cpu=0")  # with encrypted sessions
busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
again = [run(5, LOSSY) for _ in range(3)]
long_again = [run(6, f"topology={topology},cpu=0") for _ in range(3)]
for process in busy:
    process.kill()
    process.wait()
for other in again:
    expect((other[1], digest(other[2])) == (first[1], digest(first[2])), f"the same times and digest as {first}, not {other}")
for other in long_again:
    expect((other[1], digest(other[2])) == (long[1], digest(long[2])), f"clusters: the same times and digest as {long}, not {other}")
other = run(6, f"topology={topology},cpu=0,loss=5%")
expect(other[0] == 0 and times(other[1])[1] > 1.02 * times(long[1])[1], f"clusters with loss take longer than {long}: {other}")
other = run(5, LOSSY + ",seed=2")
expect(other[0] == 0 and digest(other[2]) != digest(first[2]), f"another digest than {first} with another seed: {other}")

# Times that follow from the network: a round trip is two delays at least, and 1 MB takes its bits' time on a link.
for rate, delay in (("10Gbps", 10), ("1Gbps", 50)):
    code, out, errors = run(2, f"cpu=0,rate={rate},delay={delay}us")
    trip, message = times(out)
    bits_us = 8e6 / (1000 * int(rate[:-4]))
    expect(2 * delay <= trip <= 2 * delay + 15, f"{rate}, {delay} us: a round trip of two delays and a little, not {trip}")
    expect(bits_us <= message <= 1.15 * bits_us + 8 * delay, f"{rate}, {delay} us: 1 MB takes {bits_us} us and a little, not {message}")
code, out, errors = run(2, "hosts=1,cpu=0,memory=700ns")
expect(1.4 <= times(out)[0] <= 3, f"a round trip of two latencies of the memory, not {out}")
fast, slow = (times(run(2, f"hosts=1,cpu=0,copy={rate}")[1])[1] for rate in ("80Gbps", "8Gbps"))
expect(90 <= fast <= 400 and slow >= 9 * fast, f"1 MB is copied at the rate of the memory: {fast}, {slow} us")
code, out, errors = run(2, "cpu=5us")
expect(14 <= times(out)[0] <= 20, f"a round trip of two sends of 5 us, and two delays of 2 us: {out}")
code, out, errors = run(2, "cpu=1")
expect(code == 0 and times(out)[0] > 4, f"computation takes time: {out}{errors}")
code, out, errors = run(4, f"topology={topology},cpu=0")
expect(code == 0 and times(out)[0] >= 2000, f"a round trip between clusters: {out}{errors}")

# Sleeps and clocks of the C library.
code, out, errors = run(4, "cpu=0", program, "sleeps")
expect(code == 0 and sorted(out.splitlines()) == [f"rank {rank}: 300 s, 300 s, 300 s" for rank in range(4)], f"sleeps in virtual time: {out}{errors}")

code, out, errors = run(2, "cpu=0,poll=1ms", program, "clock")
expect(code == 0 and sorted(out.splitlines()) == [f"rank {rank}: 2.001000 s" for rank in range(2)], f"each look at the clock takes 1 ms: {out}{errors}")
code, out, errors = run(1, "cpu=100,poll=1ms", program, "clock")
expect(code == 0 and float((out.split() + ["0"] * 3)[2]) > 2.1, f"computation counts: {out}{errors}")

# Deadlocks end, with the calls that the ranks wait in.
code, out, errors = run(3, "cpu=0", program, "stuck")
expect(code == 1 and "no rank of the job can continue" in errors, f"a deadlock is found: {code} {errors}")
for rank in range(3):
    expect(re.search(rf"rank {rank}: [0-9.]+ s in MPI_Recv: a message from rank {(rank + 1) % 3}, tag 7", errors), f"rank {rank} says what it waits for: {errors}")
code, out, errors = run(3, "cpu=0", program, "stuck", variables={"CAUSEWAY_WATCHDOG": "5"})
expect(code == 1 and re.search(r"virtual time 1?[0-9]\.", errors), f"sooner with a shorter CAUSEWAY_WATCHDOG: {errors}")

# A link that is down for a while costs time; a host that stops for ever is named.
code, out, errors = run(4, "cpu=0,down=3@10us+50ms")
expect(code == 0 and "sum 6," in out, f"a link that was down: {out}{errors}")
code, out, errors = run(4, "cpu=0,stop=2@10us+20ms")
expect(code == 0 and "sum 6," in out, f"a host that was stopped: {out}{errors}")
code, out, errors = run(4, "cpu=0,stop=2@10us+1000s")
expect(code != 0 and "rank 2" in errors and "declared failed" in errors, f"a host that stops for ever: {errors}")

for begin in ("0us", "1us", "30us"):  # in MPI_Init, too
    code, out, errors = run(4, f"cpu=0,stop=2@{begin}")
    expect(code != 0 and "rank 2" in errors, f"a host that stops for ever at {begin}: {code} {errors}")
code, out, errors = run(4, "cpu=0,down=1@10us+200s", variables={"CAUSEWAY_FAILURE_TIMEOUT": "0"})
expect(code == 0 and "sum 6," in out, f"who waits for ever sees the link come back: {code} {errors}")
code, out, errors = run(4, "cpu=0,kill=2@300us")
expect(code == 137 and "rank 2" in errors and "SIGKILL" in errors, f"a host whose process is killed: {code} {errors}")

# A host that computes slowly, a switch that forgets groups, and one whose ports share a buffer: the results are right.
quick, slow = (times(run(2, f"cpu=5us{more}")[1])[0] for more in ("", ",slow=1@10"))
expect(slow >= quick + 40, f"calls of one host take 10 times as long: {quick}, {slow} us")
plain, small = (run(6, f"cpu=0,rate=1Gbps{more}", program, "incast", variables={"CAUSEWAY_ALGORITHM": "gather=flat"}) for more in ("", ",shared=64KB"))
expect(small[0] == 0 and digest(small[2]) != digest(plain[2]), f"a small shared buffer: {small}")

# A rank whose port has no room sleeps until a frame has left, so that simulations are resumed about as often as packets move.
pairs = os.path.join(os.path.dirname(causeway), "apps/kernels/pairs")
code, out, errors = run(4, "cpu=0,rate=100Mbps,delay=100us", pairs, "--bytes", "1048576", "--messages", "3", variables={"CAUSEWAY_CONGESTION": "loss"})
found = re.search(r"(\d+) packets sent.* (\d+) resumed ranks", errors)
expect(code == 0 and found is not None and int(found.group(2)) < 4 * int(found.group(1)), f"resumed ranks and packets: {code} {out} {errors}")


def links(path, network, *arguments, variables=None):
    """The frames that were delivered by (name, direction), and the times of the samples."""
    code, out, errors = run(6, f"{network},cpu=0,stats={path},stats-interval=100us", *arguments, variables=variables)
    expect(code == 0, f"{network}: {code} {out} {errors}")
    with open(path) as file:
        rows = list(csv.DictReader(file))
    sums = {}
    for row in rows:
        link = row["name"], row["direction"]
        sums[link] = sums.get(link, 0) + int(row["delivered_frames"])
    return sums, [int(row["time_ns"]) for row in rows]


# Links over time: the sums of the rows are the packets of the run; `causeway draw` reads them.
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "links.csv")
    sums, stamps = links(path, "hosts=3")
    expect(set(sums) == {(f"h{i}", direction) for i in range(3) for direction in ("up", "down")}, f"two rows for each host: {sums}")
    expect(sums["h0", "up"] > 5000 and sums["h2", "down"] > 5000, f"the long message is on the links of its hosts: {sums}")
    expect(stamps == sorted(stamps) and all(stamp % 100000 == 0 for stamp in stamps[:-len(sums)]), f"equal intervals: {stamps}")
    # five senders to one: with the congestion control of TCP the port's buffer overflows
    drops = {}
    for congestion in ("delay", "loss"):
        links(path, "rate=1Gbps,shared=64KB", program, "incast", variables={"CAUSEWAY_ALGORITHM": "gather=flat", "CAUSEWAY_CONGESTION": congestion})
        with open(path) as file:
            drops[congestion] = sum(int(row["queue_frames"]) for row in csv.DictReader(file))
    expect(drops["loss"] > 50 and drops["loss"] != drops["delay"], f"packets that find no room in the switch: {drops}")
    links(path, f"topology={topology}")
    drawn = execute([causeway, "draw", path, "-o", os.path.join(folder, "x.svg")])
    expect(drawn.returncode == 0 and "queue up to" in drawn.stdout, f"a picture of the long link: {drawn}")
    # switches that forget who wants a multicast flood it, also to a host outside of the group
    outside = [links(path, "rate=10Gbps" + more, program, "half", variables={"CAUSEWAY_ALGORITHM": "bcast=multicast"})[0]["h5", "down"] for more in ("", ",forget=2ms")]
    expect(outside[1] > outside[0] + 500, f"multicasts at a host outside of the group, before and after switches forget: {outside}")

code, out, errors = run(2, "cpu=0", variables={"CAUSEWAY_CONGESTION": "red"})
expect(code != 0 and "CAUSEWAY_CONGESTION=red: wanted is delay" in errors, f"a congestion control that is none: {code} {errors}")

# --seeds: all seeds run, or the command that repeats the first that fails.
code, out, errors = run(3, "cpu=0,loss=1%,seed=5", options=("--seeds", "3"))
expect(code == 0 and out.count("sum 3,") == 3, f"three seeds: {out}{errors}")
code, out, errors = run(2, "cpu=0,seed=5", program, "stuck", options=("--seeds", "3"), variables={"CAUSEWAY_WATCHDOG": "5"})
repeat = re.search(r"this one fails with exit code 1: (causeway run .*)", errors)
expect(code == 1 and repeat and "seed=5" in repeat.group(1), f"the seed that fails: {errors}")
if repeat:
    words = repeat.group(1).split()
    done = subprocess.run([causeway, *words[1:]], capture_output=True, text=True, env=environment | {"CAUSEWAY_WATCHDOG": "5"}, timeout=HANG_S)
    expect(done.returncode == 1 and digest(done.stderr) == digest(errors), f"the same failure again: {done.stderr}")

code, out, errors = run(1, "cpu=0,seed=18446744073709551615", program, "arguments", "--seeds", "5", "--simulate", "foo", options=("--seeds", "2"))
expect(code == 0 and out.split() == ["--seeds", "5", "--simulate", "foo"] * 2, f"the program's own arguments: {out}{errors}")
done = subprocess.run(["sh", "-c", f"ulimit -Sn 24; exec {causeway} run -n 40 --simulate cpu=0 {program} none"], capture_output=True, text=True,
                      env=environment, timeout=HANG_S)
expect(done.returncode == 0, f"40 ranks, and 24 descriptors until the limit is raised: {done.stderr}")
code, out, errors = run(3, "cpu=0", program, "forks")
expect(code == 0 and "sum 3," in out and "a child" not in out, f"children of ranks, which sleep in real time: {out}{errors}")
code, out, errors = run(2, "cpu=0", program, "threads")
expect(code == 0 and out == "funneled\n" * 2, f"one thread calls MPI: {out}")

# Bad input.
for simulate, words in (("hosts=3", "hosts=3"), ("hosts=0", "hosts=0"), ("speed=1", "speed=1"), ("rate=fast", "rate=fast"), ("loss=101%", "loss=101%"),
                        ("cpu=-1", "cpu=-1"), ("down=5@1ms+1ms", "host 5"), ("stop=0", "stop=0"), ("kill=0@1ms+1s", "kill=0@1ms+1s"), ("kill=0", "kill=0"), ("mtu=100", "mtu=100"),
                        ("topology=/no/file", "/no/file"),
                        (f"topology={topology},rate=1Gbps", "rate=1Gbps"), ("down=3@10us+5s,hosts=2", "host 3"), ("rate=20Tbps", "rate"),
                        ("delay=2h", "delay"), ("pcap=/no/file", "/no/file"), ("faults=some", "faults=some"), (",=", "'='")):
    code, out, errors = run(2, simulate)
    expect(code == 2 and words in errors and errors.count("\n") == 1, f"--simulate {simulate}: exit code 2 and a line with {words}: {code} {errors}")
for options in (("--emulate", "2,memif"), ("--hosts", "localhost"), ("--transport", "lo"), ("-ppn", "1"), ("--seeds", "0"), ("--seeds", "many")):
    code, out, errors = run(2, "cpu=0", options=options)
    expect(code == 2 and errors.count("\n") == 1, f"{options} with --simulate: exit code 2 and a line: {code} {errors}")
code, out, errors = run(2, "cpu=0", "true")
expect(code == 0 and "0 of 2 ranks have called MPI_Init" in errors, f"a program without MPI: {errors}")
with subprocess.Popen([causeway, "run", "-n", "2", "--simulate", "cpu=0", "--timeout", JOB_HANG, program, "watches"], stderr=subprocess.PIPE, text=True, env=environment) as job:
    errors = next((line for line in job.stderr if "without an MPI call" in line), "")
    job.terminate()
    job.stderr.read()
expect("rank 0 has run for 10 s without an MPI call" in errors and job.returncode not in (0, 124), f"a rank that waits for memory: {job.returncode} {errors}")
done = subprocess.run([causeway, "run", "-n", "2", "--simulate", "cpu=0", "--timeout", "3", program, "polls"], capture_output=True, text=True,
                      env=environment, timeout=HANG_S)
expect(done.returncode == 124, f"a program that polls for ever ends by --timeout: {done.returncode} {done.stderr}")
