#!/usr/bin/env python3
"""usage: causeway draw [TABLE.csv...] -o PICTURE.svg|.png [OPTION...]

Draws what `causeway switch --stats FILE` writes, or `causeway run --simulate stats=FILE`, or --emulate
topology=FILE,memif,stats=FILE: the throughput of a link over time by the hosts that send across it, the link's rate, the queue
in front of it, its limit, and when frames were dropped. Several files (up to 4) are drawn beside one another, on the same
scales. With --times, also or alone: predicted and measured times. Throughput is what has come to the link's end, in bytes as
they are on the line: 24 for Ethernet more than a frame has.

options:
  -o, --output FILE            the picture, .svg or .png
  --label TEXT                 of the first file, given again of the next one (their names)
  --link NAME                  which link, or host (the one between sites where most was dropped, or carried)
  --direction TEXT             of it, as delft>leiden, or up or down of a host (where more was dropped, or carried)
  --bin TIME                   what is drawn as one (so that there are up to 400)
  --from TIME                  of the file's time_ns, where to begin (where traffic does)
  --to TIME                    likewise, where to end
  --times FILE                 CSV with columns name, predicted_ns, measured_ns
  --data FILE                  also writes what is drawn of the links, as CSV
  -h, --help                   print this help
"""
import os
import re
import sys

from gnuplot import path_check, picture_make
from links import runs_read
from panels import Picture
from table import Refused, Table, file_write
from timeline import COLUMNS as EVENTS, timeline_draw

RUNS_MAX, TIMES_MAX, LABEL_MAX = 4, 64, 255
UNITS_NS = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
TIME_LEAST_NS = {"--bin": 1000, "--from": 0, "--to": 0}
# The table that is drawn alone, by its columns: that of `causeway plan draw` (apps/plan/draw.c).
ALONE = {EVENTS: timeline_draw}
TEXTS = ("--output", "--link", "--direction", "--times", "--data")


def time_read(option, value):
    found = re.fullmatch(r"([0-9.]+)(ns|us|ms|s|m|h)", value)
    try:
        time_ns = round(float(found.group(1)) * UNITS_NS[found.group(2)])
    except (AttributeError, ValueError) as error:
        raise Refused("bad value", f"{option} {value}", "a time has a unit: 10ms") from error
    if time_ns < TIME_LEAST_NS[option]:
        raise Refused("bad value", f"{option} {value}", f"{TIME_LEAST_NS[option]}ns or more")
    return time_ns


def label_read(labels, value):
    if len(labels) == RUNS_MAX:
        raise Refused("more labels than files can be drawn", value, f"{RUNS_MAX} files are possible")
    if "," in value or "\n" in value or len(value) > LABEL_MAX:
        raise Refused("bad value", value, "a label is short and has no comma")
    labels.append(value)


def arguments_read(words):
    """(files, {option: value}, labels)"""
    files, options, labels, rest = [], {}, [], list(words)
    while rest:
        word, equals, value = rest.pop(0).partition("=")
        option = "--output" if word == "-o" else word
        if not word.startswith("-"):
            files.append(word + equals + value)
            continue
        if option not in TEXTS and option not in TIME_LEAST_NS and option != "--label":
            raise Refused("no such option", word, "`causeway draw --help` has the usage")
        if not equals:
            if not rest:
                raise Refused("a value is missing", word, "`causeway draw --help` has the usage")
            value = rest.pop(0)
        if option == "--label":
            label_read(labels, value)
        else:
            options[option] = time_read(option, value) if option in TIME_LEAST_NS else value
    return files, options, labels


def arguments_check(files, options, labels):
    if "--output" not in options:
        raise Refused("nowhere to draw", "-o FILE is missing", "-o x.svg or -o x.png")
    if not files and "--times" not in options:
        raise Refused("nothing to draw", "no file is named", "causeway draw x.csv -o x.svg; `causeway switch --stats x.csv` writes one")
    if len(files) > RUNS_MAX:
        raise Refused("more files than can be drawn", files[RUNS_MAX], f"{RUNS_MAX} files are possible")
    if len(labels) > len(files):
        raise Refused("a label without a file", labels[len(files)], "--label is for the files in their order")
    if 0 < options.get("--to", 0) <= options.get("--from", 0):
        raise Refused("there is no time between --from and --to", "--to", "it must be the later one")


def columns_alone(path):
    """The columns by which a table is drawn alone; None: it is not. A pipe, which can be read once, is not."""
    try:
        with open(path if os.path.isfile(path) else os.devnull, encoding="utf-8", errors="replace") as file:
            head = file.readline().rstrip("\r\n").split(",")
    except OSError:
        return None  # Table reports the reason
    return next((columns for columns in ALONE if set(columns) <= set(head)), None)


def alone_draw(files, columns, options, labels):
    path, *others = files + [option for option in options if option != "--output"]
    if others:
        raise Refused("this table is drawn alone, without options", path, f"leave {others[0]} out")
    table = Table(path, columns, "")
    try:
        ALONE[columns](table, (labels + [os.path.basename(path)])[0], options["--output"])
    except (ArithmeticError, LookupError, ValueError) as error:
        raise Refused(f"line {table.number} has a value that cannot be drawn", path, "is it damaged?") from error


def times_read(path):
    names = ("name", "predicted_ns", "measured_ns")
    table = Table(path, names, "it is a table of times: each line has a name and two times in nanoseconds")
    times = [(name, table.positive("predicted_ns", predicted), table.positive("measured_ns", measured)) for name, predicted, measured in table.rows()]
    if len(times) > TIMES_MAX:
        raise Refused("more times than can be drawn", path, f"{TIMES_MAX} are possible")
    if not times:
        raise Refused("there is nothing behind the first line", path, "a line is NAME,PREDICTED,MEASURED in nanoseconds")
    return times


def data_write(runs, path):
    lines = ["run,name,direction,host,from_ns,to_ns,bytes,rate_bps,queue_max_bytes,queue_limit_bytes,queue_frames\n"]
    for run in runs:
        for i, each in enumerate(run.total.bins):
            begin = run.begin_ns + i * run.total.width_ns
            head, times = f"{run.label},{run.total.name},{run.total.direction}", f"{begin},{begin + run.total.width_ns}"
            lines.append(f"{head},,{times},{each.bytes},{each.rate},{each.queue},{each.limit},{each.dropped}\n")
            lines += [f"{head},{host.host},{times},{host.bytes_at(i)},,,,\n" for host in run.hosts]
    file_write("the data", path, "".join(lines).encode())


def main():
    words = sys.argv[2:]  # behind the command itself
    if "--help" in words or "-h" in words:
        print(__doc__, end="")
        return 0
    files, options, labels = arguments_read(words)
    arguments_check(files, options, labels)
    columns = columns_alone(files[0]) if files else None
    if columns is not None:
        alone_draw(files, columns, options, labels)
        return 0
    path_check(options["--output"])
    labels += [os.path.basename(path) for path in files[len(labels) :]]
    runs = runs_read(files, labels, options.get("--link"), options.get("--direction"), options.get("--bin", 0), options.get("--from", 0), options.get("--to", 0)) if files else []
    picture = Picture(runs, times_read(options["--times"]) if "--times" in options else [])
    picture_make(options["--output"], picture.width, picture.height, picture.script())
    for run in runs:
        print(run.words())
    if "--data" in options:
        data_write(runs, options["--data"])
    return 0


try:
    sys.exit(main())
except Refused as refused:
    print(f"causeway draw: {refused}", file=sys.stderr)
    sys.exit(refused.code)
except BrokenPipeError:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes at its end
    sys.exit(3)
