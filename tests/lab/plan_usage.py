#!/usr/bin/env python3
"""plan_usage.py CAUSEWAY DAMAGE: `causeway plan` builds, checks, prices and draws plans; it refuses what is wrong in one line.
DAMAGE is tests/schedules/damage.c."""
import json
import os
import shlex
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpi"))
from expectation import HANG_S, exit_code, expect

causeway, damage = map(os.path.abspath, sys.argv[1:3])
MUTATIONS, SITES, SITES_APART = 19, 12, 5
PICTURE_BYTES_MAX = 500000


def plan(words):
    return subprocess.run([causeway, "plan", *shlex.split(words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANG_S, check=False)


def passes(words, prints="", code=0):
    result = plan(words)
    expect(result.returncode == code and prints in result.stdout, f"plan {words}: exit code {code} and {prints!r}, not {result.returncode}: {result.stdout}")


def build(words, file="x.plan"):
    passes(f"build --collective {words} -o {shlex.quote(file)}")


def refused(words, *named):
    """Exit code 2, and one line that says what is wrong."""
    result = plan(words)
    expect(result.returncode == 2 and all(name in result.stdout for name in named) and result.stdout.startswith("causeway plan") and result.stdout.count("\n") == 1,
           f"plan {words} is refused with {named}, not {result.returncode}: {result.stdout}")


def write(name, data):
    with open(name, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def the_whole_way():
    passes("list", "segmented-chain")
    build("bcast --algorithm segmented-chain --ranks 16 --root 3 --size 100003")
    for words, prints in (("check x.plan", "passed"), ("check x.plan --json", '"passed":true'), ("dump x.plan --rank 4", "repeat 13 times"),
                          ("price x.plan --network gigabit", "closed form"),
                          ("choose --collective allreduce --ranks 12 --size 1M -o best.plan", " 1. "), ("check best.plan", "passed"),
                          ("networks --json", '"latency_ns"')):
        passes(words, prints)
    build("bcast --algorithm clusters-heads --clusters 4,3 --senders 2 --ranks 7 --size 1000", "c.plan")
    passes("check c.plan", "passed")


def picture_of(words, *options):
    """The texts of a plan's picture, and those that are seen where the mouse is."""
    build(words, "p.plan")
    passes(" ".join(["draw p.plan -o x.svg", *options]))
    with open("x.svg", encoding="utf-8") as file:
        picture = file.read()
    expect(len(picture) <= PICTURE_BYTES_MAX and '"nan' not in picture and '"inf' not in picture, f"{words}: {len(picture)} bytes, all numbers are finite")
    elements = list(xml.etree.ElementTree.fromstring(picture).iter())
    text_of = lambda kind: [element for element in elements if element.tag.endswith("}" + kind)]
    return text_of("text"), [element.text for element in text_of("title")]


def timelines_show_each_message():
    texts, titles = picture_of("bcast --algorithm binomial --ranks 16 --size 65536 --eager all")
    expect(sum(": 64 KiB, phase 0, op " in title for title in titles) == 15 * 3, f"each message is sent, received, and a line: {titles}")
    expect({title.split(":")[0] for title in titles if "KiB" in title} >= {"0 to 8", "14 to 15"}, "the binomial tree is there")
    expect(sum("is done at" in title for title in titles) == 16 and sum(element.text.startswith("rank ") for element in texts) == 16, "each rank has a row and its end")
    price = json.loads(plan("price p.plan --json").stdout)
    marked = [element.text for element in texts if "bold" in element.attrib.get("font-weight", "") and "font-size" not in element.attrib]
    time = f"{price['time_ns'] / 1e6:.3g} ms"
    expect(marked == [f"rank {price['last_rank']}", time] and time in texts[0].text, f"the last rank is marked, with its time: {marked} {price}")
    _, titles = picture_of("allreduce --algorithm rabenseifner --ranks 4 --size 64K --element 8", "--network wan")
    expect(any("reduce of" in title for title in titles) and any("signal" in title for title in titles), f"combining, and messages without data: {titles}")
    for words in ("bcast --algorithm flat --ranks 3 --size 0", "bcast --algorithm flat --ranks 1 --size 9", "barrier --algorithm tree --ranks 5", "alltoall --algorithm bruck --ranks 5 --size 20000"):
        picture_of(words)
    passes("draw p.plan -o -", "</svg>\n")


def large_plans_are_bands():
    """Thousands of segments: some hundred kilobytes, and all parts are counted. Across clusters: in the clusters' colours."""
    _, titles = picture_of(f"bcast --algorithm segmented-chain --ranks 12 --size {8192 * 4000} --eager all")
    parts = lambda words: [int(title.split(" in ")[1].split()[0]) for title in titles if title.startswith(words)]
    expect(sum(parts("rank 5 receives ")) == 4000 == sum(parts("rank 0 sends ")) and not parts("rank 11 sends "), f"all parts are there: {titles}")
    for algorithm in ("clusters-overlapped", "van-de-geijn"):
        texts, titles = picture_of(f"bcast --algorithm {algorithm} --ranks 32 --clusters 16,16 --size 32M --eager all")
        expect([element.text for element in texts if element.text.startswith(("cluster ", "phase "))] == ["cluster 0", "cluster 1"], f"{algorithm}: the clusters are named")
        expect(any(title.endswith("to cluster 1") for title in titles) and any(title.endswith("from cluster 0") for title in titles), f"{algorithm}: they are the colours: {titles}")


def files_that_are_no_plans():
    build("gather --algorithm binomial --ranks 5 --size 100")
    with open("x.plan", "rb") as file:
        data = file.read()
    for name, bad, named in (("short.plan", data[:100], "cut off"), ("altered.plan", data[:60] + b"X" + data[61:], "altered"), ("text.plan", "text\n", "no plan file")):
        write(name, bad)
        refused(f"check {name}", named)
    refused("price nowhere.plan", "nowhere.plan")
    refused("draw . -o y.svg", "cannot be read")
    refused("dump x.plan --rank 5", "rank")


def counts_are_read_strictly():
    scatter = "build --collective scatter --algorithm flat --ranks 4 -o x.plan --counts"
    for counts, named in (("1,,3,4", "line 1, entry 2"), ("1,2,3,4,", "a count is missing"), (",1,2,3,4", "entry 1"), ("1,2,3,", "a count is missing"), ("", "0 of 4"),
                          ("1,2,3,4,5", "more counts"), ("1,2,x,4", "entry 3, x"), ("1,-2,3,4", "entry 2, -2"), ("1,2;3,4,5", "entry 2, 2;3"), ("1,2,3", "3 of 4"),
                          ("1,2,3,6000000000000000000000000000000000000000000", "entry 4, 6000"),
                          ("1,2,3,00000000000000000000000000000007K", "entry 4, 0000")):  # 31 characters of it would have been a size
        refused(f"{scatter} '{counts}'", named)
    write("counts.txt", "1 2,\n3, 4\n")
    write("holes.txt", "1, 2,\n,3, 4\n")
    passes(f"{scatter} @counts.txt")
    passes("dump x.plan", "counts: 1, 2, 3, 4\n")
    refused(f"{scatter} @holes.txt", "line 2, entry 3")
    for words, named in (("scatter --ranks 2 --element 4 --counts 8,6", "entry 2, 6"), ("bcast --ranks 4 --clusters 2,2, --size 1", "--clusters"),
                         ("bcast --ranks 4 --clusters ' 2,2' --size 1", "--clusters"), ("bcast --ranks 3 --clusters 1,1,1 --via 0-2:1, --size 1", "--via")):
        refused(f"build --algorithm flat -o x.plan --collective {words}", named)


def options_that_do_not_fit():
    for words, named in (("scatter --algorithm flat --size 8 --counts 1,2", "both --size and --counts"), ("barrier --algorithm tree --size 8", "--size"),
                         ("bcast --algorithm flat --counts 1,2", "give one size"), ("bcast --algorithm flat", "--size"), ("none --algorithm flat --size 1", "no such collective"),
                         ("bcast --algorithm none --size 1", "segmented-chain"), ("bcast --algorithm flat --root 2 --size 1", "root"),
                         ("bcast --algorithm clusters-heads --size 1", "two clusters"), ("bcast --algorithm flat --clusters 2,3 --size 1", "clusters"),
                         ("reduce --algorithm ring --ordered --size 4", "commutative"), ("bcast --algorithm flat --size 10 --element 4", "--element")):
        refused(f"build -o x.plan --ranks 2 --collective {words}", named)
    for option in ("--segment 4", "--degree 2", "--concurrency 2", "--senders 1", "--threshold 1"):
        refused(f"build --collective bcast --algorithm flat --ranks 2 --size 8 -o x.plan {option}", option.split()[0])
    refused("choose --collective scatter --ranks 2 --size 8 --counts 1,2", "both --size and --counts")
    refused("choose --collective bcast --ranks 4 --size 10 --network none", "gigabit")
    refused("none", "unknown subcommand")
    build("bcast --algorithm flat --ranks 3 --size 8")
    refused("draw x.plan", "-o FILE is missing")
    result = plan("draw x.plan -o x.png")
    expect(result.returncode == 2 and ".svg" in result.stdout and result.stdout.count("\n") == 1, f"there are no plans as .png: {result.stdout}")


def networks_with_unknown_keys():
    write("wan.json", plan("networks wan --json").stdout)
    build("bcast --algorithm flat --ranks 3 --size 8")
    passes("price x.plan --network @wan.json", "rank")
    write("top.json", '{"lan": {"latency_ns": 1, "points": [[0, 1, 1, 1]]}, "port": 2}')
    write("inner.json", '{"lan": {"latency": 1, "points": [[0, 1, 1, 1]]}}')
    refused("price x.plan --network @top.json", "unknown key: port (known here: name lan wan ports")
    refused("price x.plan --network @inner.json", "unknown key: lan.latency (known here: latency_ns points")


def more_than_memory_holds():
    for words, named in (("alltoall --algorithm pairwise --size 8", "too much memory"), ("allgather --algorithm ring --size 8", "too much memory"),
                         ("alltoall --algorithm direct --counts 1,2", "2 of 1000000000000")):
        refused(f"build -o x.plan --ranks 1000000 --collective {words}", named)
    build("bcast --algorithm flat --ranks 2 --size 1G")


def wrong_plans_with_right_checksums():
    """A plan that the checker refuses can be dumped, and nothing else."""
    faults = 0
    for words in ("bcast --algorithm segmented-chain --segment 40", "allreduce --algorithm rabenseifner", "alltoall --algorithm greedy-barriers"):
        build(words + " --ranks 4 --element 4 --eager 16 --size 160", "right.plan")
        for place in range(0, MUTATIONS * SITES, SITES_APART):
            found = subprocess.run([damage, "right.plan", "m.plan", str(place // SITES), str(place % SITES)], capture_output=True, text=True, timeout=HANG_S, check=False)
            if found.returncode != 0:
                continue
            faults += 1
            passes("check m.plan", found.stdout.strip(), code=1)
            passes("dump m.plan")
            for other in ("price m.plan", "draw m.plan -o m.svg"):
                refused(other, "the plan is wrong: ")
    expect(faults > 10, f"many of the changes are faults: {faults}")


def what_is_printed():
    build("alltoall --algorithm direct --ranks 3 --counts 0,5,5,7,7,7,7,7,7")
    passes("dump x.plan", "counts of rank 0: 0, 2 x 5\ncounts of ranks 1 to 2: 3 x 7\n")
    passes("choose --collective bcast --ranks 4 --size 1K", "--eager 4096")
    passes("choose --collective bcast --ranks 4 --size 1K --eager all", "--eager all")
    passes("list --collective alltoall", "; of use only where --counts differ")
    passes("draw --help", "drawn as bands")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for test in (the_whole_way, timelines_show_each_message, large_plans_are_bands, files_that_are_no_plans, counts_are_read_strictly, options_that_do_not_fit, networks_with_unknown_keys, more_than_memory_holds,
                 wrong_plans_with_right_checksums, what_is_printed):
        test()
    os.chdir("/")

sys.exit(exit_code())
