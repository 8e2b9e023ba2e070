#!/usr/bin/env python3
"""replay_usage.py CAUSEWAY TRACE PPM SWEEP CALLS: programs are recorded, and replayed in virtual time with and without compression; traces that are damaged, cut off, missing or of programs with other calls are refused. No real time is judged."""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

from expectation import HANG_S, JOB_HANG, exit_code, expect

causeway, recorder, ppm, sweep, calls = map(os.path.abspath, sys.argv[1:6])
RANKS = 4
CODECS = ["--codec-rate", "20Gbps"]
SEND, SENT, RECEIVE, ALLREDUCE, BARRIER, END = range(1, 7)


def replay(*arguments):
    return subprocess.run([causeway, "bench", "replay", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)


def refused(arguments, code, *named):
    result = replay(*arguments)
    right = result.returncode == code and len(result.stderr.splitlines()) == 1 and all(name in result.stderr for name in named)
    expect(right, f"{arguments} are refused with {named}: {result.returncode} {result.stderr}")


def record(folder, program, *arguments):
    command = [causeway, "run", "-n", str(RANKS), "--timeout", JOB_HANG, "env", f"LD_PRELOAD={recorder}", f"CAUSEWAY_TRACE={folder}", program, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)


def kernels_replayed(folder):
    for program in [ppm, sweep]:
        name = os.path.basename(program)
        traces = os.path.join(folder, name)
        result = record(traces, program, "S")
        expect(result.returncode == 0 and "verified" in result.stdout and result.stderr == "", f"{name} does not notice: {result.stdout} {result.stderr}")
        expect(sorted(os.listdir(traces)) == [f"{rank}.trace" for rank in range(RANKS)], f"a trace of each rank: {os.listdir(traces)}")
        result, again = (replay(traces, "--json", *CODECS) for _ in range(2))
        expect(result.returncode == 0 and result.stdout == again.stdout, f"the same twice: {result.stdout} {again.stdout} {result.stderr}")
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        expect([row["rate_bps"] for row in rows] == [100_000_000, 1_000_000_000], f"a row for each rate: {rows}")
        for row in rows:
            expect(row["trace"] == name and row["ranks"] == RANKS and row["bytes_most"] > 1 << 20, f"what it is: {row}")
            expect(row["off_ns"] >= 8e9 * row["bytes_most"] / row["rate_bps"], f"no link carries more than its rate: {row}")
            expect(abs(row["speed_up"] / (row["off_ns"] / row["auto_ns"]) - 1) < 1e-4 and row["compression_rate"] > 1, f"figures agree: {row}")
        expect(rows[0]["off_ns"] > rows[1]["off_ns"], f"slower links take longer: {rows}")
        if name == "ppm":
            # the ranks' own computing, as long as it took, is in both times
            saved_ns, sent_ns = rows[0]["off_ns"] - rows[0]["auto_ns"], 8e9 * rows[0]["bytes_most"] / rows[0]["rate_bps"]
            expect(saved_ns > sent_ns / 6 and rows[0]["compression_rate"] > 2, f"smooth fields on slow links are sooner: {rows[0]}")
            costly = json.loads(replay(traces, "--json", "--rate", "100Mbps", "--codec-rate", "50Mbps").stdout)
            expect(costly["chunk_bytes"] == 0 and abs(costly["speed_up"] - 1) < 0.01, f"codecs that are slower than the link are left alone: {costly}")
    expect("speed-up" in replay(traces, "--rate", "1Gbps", *CODECS).stdout, "a table for people")
    return traces


def line(compute_ns, operation, count=0, peer=0, tag=0, data=b""):
    return struct.pack("<QQiiII", compute_ns, count, peer, tag, operation, 0) + data + bytes(-len(data) % 8)


def write(folder, rank, records, ranks=2, magic=b"CWTRACE\0", version=1):
    with open(os.path.join(folder, f"{rank}.trace"), "wb") as file:
        file.write(struct.pack("<8sIIII", magic, version, rank, ranks, 0) + b"".join(records))


def small_ones(folder):
    """Written by hand: what takes how long is known."""
    link = ["--rate", "100Mbps", "--delay", "1ms", "--json", *CODECS]
    message = bytes(range(100))
    there = [line(5_000_000, SEND, 100, 1, 7, message), line(0, SENT, 0), line(0, RECEIVE, 100, 1, 8), line(1_000_000, BARRIER), line(2_000_000, END)]
    back = [line(1_000_000, RECEIVE, 100, 0, 7), line(3_000_000, SEND, 100, 0, 8, message), line(0, BARRIER), line(0, END)]
    write(folder, 0, there)
    write(folder, 1, back)
    row = json.loads(replay(folder, *link).stdout)
    # 5 ms, there, 3 ms, back, 1 ms, a barrier that the other rank has entered before, 2 ms; a way takes 1 ms and what some 200 bytes take on two links
    expect(13e6 <= row["off_ns"] <= 13.2e6 and row["auto_ns"] == row["off_ns"], f"computing and delays add up: {row}")
    write(folder, 0, [line(5_000_000, ALLREDUCE, 8), line(1_000_000, END)], 1)
    row = json.loads(replay(folder, *link).stdout)
    expect(row["off_ns"] == 6_000_000 and "compression_rate" not in row, f"one rank only computes: {row}")

    write(folder, 0, there[1:])
    refused([folder], 1, "0.trace", "not sent")
    write(folder, 0, [line(0, RECEIVE, 100, 1, 8), *there[:2], *there[3:]])
    refused([folder], 1, "0.trace", "waits")
    write(folder, 0, [line(0, SEND, 96, 1, 7, message[:96]), *there[2:]])
    refused([folder], 1, "1.trace", "another number")
    write(folder, 0, there[2:])
    refused([folder], 1, "1.trace", "does not send")
    for wrong, what in [(line(0, SEND, 1 << 60, 1), "longer"), (line(0, SEND, 0, 2), "nobody"), (line(0, RECEIVE, 0, 0), "nobody"), (line(0, 9), "operation"),
                        (line(0, ALLREDUCE, 1 << 40), "64 MiB"), (line(1 << 60, BARRIER), "a day"), (line(0, END), "behind its end")]:
        write(folder, 0, [wrong, *there])
        refused([folder], 1, "0.trace", what)
    for head, what in [({"magic": b"nothing\0"}, "no trace"), ({"version": 2}, "version"), ({"ranks": 0}, "head"), ({"ranks": 3}, "another rank or run")]:
        write(folder, 0, there, **head)
        refused([folder], 1, "1.trace" if "run" in what else "0.trace", what)
    write(folder, 0, there)


def damage(folder):
    """Any bytes of a file may be wrong: it is replayed or refused."""
    path = os.path.join(folder, "0.trace")
    whole = open(path, "rb").read()
    generator = random.Random(1)
    for _ in range(100):
        changed = bytearray(whole)
        for _ in range(generator.randint(1, 3)):
            changed[generator.randrange(len(whole))] = generator.choice([0, 1, 2, 3, 8, 127, 128, 255])
        with open(path, "wb") as file:
            file.write(changed)
        result = replay(folder, "--rate", "100Mbps", *CODECS)
        expect(result.returncode in (0, 1, 2) and len(result.stderr.splitlines()) == (result.returncode != 0), f"{changed.hex()}: {result.returncode} {result.stderr}")


def cut_off(folder):
    path = os.path.join(folder, "2.trace")
    whole = open(path, "rb").read()
    for length in [0, 7, 23, 24, 25, 56, len(whole) // 3, len(whole) // 2 + 1, len(whole) - 32, len(whole) - 1]:
        with open(path, "wb") as file:
            file.write(whole[:length])
        refused([folder], 1, path)
    os.remove(path)
    refused([folder], 2, path, "No such file")


def calls_recorded(folder):
    """Each call that is recorded moves what it should; what is not ends the trace, but for what comes before the part that is marked."""
    traces, other = os.path.join(folder, "calls"), os.path.join(folder, "other")
    result = record(traces, calls)
    expect(result.returncode == 0 and result.stderr == "", f"what comes before does no harm: {result.stderr}")
    row = json.loads(replay(traces, "--json", "--rate", "100Mbps", *CODECS).stdout)
    # rank 0 receives most: the ring, the persistent requests, the broadcast, what the others reduce, what they send to anybody
    expect(row["bytes_most"] == 24000 * (1 + 6 + 1 + 3) + 8 * (100 + 200 + 300), f"all of it was recorded: {row}")
    result = record(other, calls, "allgather")
    expect(result.returncode == 0 and result.stderr.count("MPI_Allgather is not recorded") == RANKS, f"calls that are not recorded are named: {result.stderr}")
    refused([other], 1, "0.trace", "breaks off")


def main():
    with tempfile.TemporaryDirectory() as folder:
        cut_off(kernels_replayed(folder))
        small = os.path.join(folder, "small")
        os.mkdir(small)
        small_ones(small)
        damage(small)

        calls_recorded(folder)
        refused([os.path.join(folder, "no")], 2, "0.trace", "cannot be read")
        refused([], 2, "which traces")
        refused([folder, "--rate", "10"], 2, "--rate")
        plain = subprocess.run([causeway, "run", "-n", "2", "--timeout", JOB_HANG, "env", f"LD_PRELOAD={recorder}", sweep, "S"], cwd=folder, stdout=subprocess.PIPE, timeout=HANG_S)
        expect(plain.returncode == 0 and sorted(os.listdir(folder)) == ["calls", "other", "ppm", "small", "sweep"], "without the variable nothing is written")
    return exit_code()


sys.exit(main())
