#!/usr/bin/env python3
"""bench_codec_usage.py CAUSEWAY KERNEL MESSAGES: `causeway bench codec` tells rates of fields and files, in lines and a table, and refuses what makes no sense; messages of a program are recorded for it. No time is judged."""
import json
import os
import struct
import subprocess
import sys
import tempfile

from expectation import HANG_S, JOB_HANG, exit_code, expect

causeway, kernel, messages = sys.argv[1:4]
FIELDS = ["smooth", "noisy", "turbulent", "records", "lastbits", "single", "floats", "integers", "text", "random", "zeros"]
QUICK = ["--bytes", "64K", "--rounds", "1"]


def run(*arguments):
    return subprocess.run([causeway, "bench", "codec", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)


def lines(*arguments):
    result = run(*arguments, "--json")
    expect(result.returncode == 0, f"{arguments}: it ends well: {result.stderr}")
    return [json.loads(line) for line in result.stdout.splitlines()]


def refused(arguments, named):
    result = run(*arguments)
    expect(result.returncode == 2 and len(result.stderr.splitlines()) == 1 and named in result.stderr, f"{arguments} are refused: {result.returncode} {result.stderr}")


with tempfile.TemporaryDirectory() as folder:
    rows = lines(*QUICK, "--chunks")
    measured = {(row["field"], row["codec"]): row for row in rows if row["bench"] == "codec"}
    expect(list(dict.fromkeys(field for field, _ in measured)) == FIELDS, f"each field in its place: {list(measured)}")
    for (field, codec), row in measured.items():
        expect(row["ratio"] > 0.9 and row["fill_ns"] > 0 and ("break_even_bps" in row) == (row["ratio"] > 1), f"figures: {row}")
        expect((codec == "dfcm stream") == ("packets" not in row), f"streams have no packets: {row}")
        expect(field != "random" or row["ratio"] <= 1, f"random data stays as it is: {row}")
        expect(field != "zeros" or row["ratio"] > 5, f"zeros vanish: {row}")
    expect(("text", "lorenzo") not in measured and ("floats", "dfcm") not in measured, "codecs have only what they take")
    expect(measured["noisy", "lorenzo"]["ratio"] > measured["noisy", "lz4"]["ratio"], "neighbours tell more of numbers than repetitions do")
    sizes = [row for row in rows if row["bench"] == "codec-chunks"]
    expect(len(sizes) == len([1 for _, codec in measured if codec != "dfcm stream"]), f"a line of sizes for each codec and field: {len(sizes)}")
    expect(all(row["ratio_65528"] >= 0.9 and ("ratio_stream" in row) == (row["codec"] == "dfcm") for row in sizes), f"sizes: {sizes}")
    means = rows[-1]
    expect(means["bench"] == "codec-means" and means["fields"] == 6, f"means over the fields of doubles: {means}")
    expect(abs(means["lorenzo_to_dfcm"] * means["dfcm"] / means["lorenzo"] - 1) < 1e-4, f"means agree: {means}")

    text = run(*QUICK).stdout
    expect("pays below" in text and "geometric means" in text, f"a table for people: {text}")

    numbers = os.path.join(folder, "numbers")
    with open(numbers, "wb") as file:
        file.write(b"".join(struct.pack("<f", 1 + i / 1000) for i in range(5000)) + b"abc")
    for element in ["double", "float", "int2", "int4", "int8", "bytes"]:
        rows = lines("--element", element, "--rounds", "1", "--chunk", "333", numbers)
        expect({row["field"] for row in rows if row["bench"] == "codec"} == {numbers}, f"{element}: only the file: {rows}")
    recorded = os.path.join(folder, "recorded")
    result = subprocess.run([causeway, "run", "-n", "2", "--timeout", JOB_HANG, "env", "LD_PRELOAD=" + messages, "CAUSEWAY_MESSAGES=" + recorded, kernel, "S"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANG_S)
    expect(result.returncode == 0 and "verified" in result.stdout, f"the program does not notice: {result.stdout}")
    size = os.path.getsize(recorded)
    expect(size % 8 == 0 and 1024 <= size <= 16 << 20, f"doubles were recorded: {size}")
    rows = lines("--rounds", "1", recorded)
    expect(rows[-1]["fields"] == 1, f"... and are measured: {rows}")

    empty = os.path.join(folder, "empty")
    open(empty, "w").close()
    refused([empty], "too little")
    refused([os.path.join(folder, "no")], "cannot be read")
    refused([folder], "cannot be read")
    refused(["--field", "prose"], "turbulent")
    refused(["--element", "quad"], "int8")
    refused(["--chunk", "10"], "--chunk")
    refused(["--chunk", "1M"], "--chunk")

sys.exit(exit_code())
