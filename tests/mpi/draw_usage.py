"""draw_usage.py CAUSEWAY ALLREDUCE DEMO TOPOLOGY: what `causeway draw` draws is what is in its files, bin by bin; bad ones are refused in one line; the program and the demo that make such files work."""
import csv
import os
import random
import sys
import tempfile
import xml.etree.ElementTree

from expectation import execute, expect, refused

causeway, program, demo, topology = map(os.path.abspath, sys.argv[1:5])
wire = len(sys.argv) > 5
OVERHEAD, FRAME_MAX = 24, 1538
HEAD = ["time_ns", "name", "direction", "offered_frames", "offered_bytes", "delivered_frames", "delivered_bytes", "lost_frames", "queue_frames", "down_frames",
        "pool_frames", "oversize_frames", "port_frames", "queue_bytes", "queue_max_bytes", "rate_bps", "queue_limit_bytes"]


def run(arguments, folder, **environment):
    return execute([causeway] + arguments, cwd=folder, **environment)


def draw(arguments, folder, **environment):
    return run(["draw"] + arguments, folder, **environment)


def line_of(time_ns, name, direction, frames, count, dropped=0, queue=0, host=None, rate=4000000000):
    cells = dict.fromkeys(HEAD, "" if host else 0)
    cells.update(time_ns=time_ns, name=name, direction=direction if host is None else f"{direction}/{host}", offered_frames=frames + dropped, offered_bytes=count, lost_frames=0,
                 delivered_frames=frames, delivered_bytes=count, queue_frames=dropped)
    if host is None:
        cells.update(queue_max_bytes=queue, rate_bps=rate, queue_limit_bytes=512000)
    return [str(cells[key]) for key in HEAD]


def write(path, lines, end="\n"):
    with open(path, "w") as file:
        file.write("\n".join(",".join(line) for line in lines) + end)


def samples(seed, hosts, count, first_ns=0):
    """Lines as a switch writes them, and what is to be drawn of them: idle at first, then hosts that send across a link, in both directions."""
    draws = random.Random(seed)
    lines, rows, now = [HEAD], [], 0
    while len(rows) < count:
        before, now = now, now + draws.choice([1000000, 1000000, 1234567, 250000, 7654321])
        busy = now > first_ns
        for direction in ["a>b", "b>a"]:
            factor = 3 if direction == "b>a" else 1
            sent = {host: draws.randrange(0, 9) * factor if busy else 0 for host in hosts}
            dropped = draws.choice([0, 0, 0, 5]) if busy and direction == "b>a" else 0
            total, queue = sum(sent.values()), draws.randrange(0, 512000) if busy else 0
            lines.append(line_of(now, "sea", direction, total, total * 1000, dropped, queue))
            lines += [line_of(now, "sea", direction, frames, frames * 1000, 0, 0, host) for host, frames in sent.items() if frames > 0]
            if busy and direction == "b>a":
                rows.append((before, now, {host: frames * (1000 + OVERHEAD) for host, frames in sent.items()}, total * (1000 + OVERHEAD), dropped, queue))
        lines.append(line_of(now, "a0", "up", 1000, 1000000))
    return lines, rows


def bins_of(rows, width, pick):
    """Each amount divided among bins by the time it has in each; parts are rounded down so that they add up."""
    bins = {}
    for before, now, *what in rows:
        amount, done = pick(what), 0
        for index in range(before // width, (now - 1) // width + 1):
            so_far = amount * (min(now, (index + 1) * width) - before) // (now - before)
            bins[index] = bins.get(index, 0) + so_far - done
            done = so_far
    return bins


def data_of(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def column(data, host, key, width):
    return {int(row["from_ns"]) // width: int(row[key]) for row in data if row["host"] == host}


def data_is_right(folder):
    hosts, width = ["b0", "b1", "b2", "b10"], 10000000
    lines, rows = samples(1, hosts, 200)
    write(os.path.join(folder, "x.csv"), lines)
    result = draw(["x.csv", "-o", "x.svg", "--data", "d.csv", "--bin", "10ms", "--from", "1ns", "--label", "it's <one> & only"], folder)
    expect(result.returncode == 0 and result.stderr == "", f"it draws: {result.stderr}")
    data = data_of(os.path.join(folder, "d.csv"))
    expect({(row["name"], row["direction"]) for row in data} == {("sea", "b>a")}, "the direction with more drops is drawn")
    last = (rows[-1][1] - 1) // width
    for host in hosts + [""]:
        wanted = bins_of(rows, width, lambda what, host=host: what[0][host] if host else what[1])
        expect(column(data, host, "bytes", width) == {i: wanted.get(i, 0) for i in range(last + 1)}, f"the bins of '{host}' are right")
    expect(column(data, "", "queue_frames", width) == bins_of(rows, width, lambda what: what[2]), "dropped frames are right")
    for index, most in column(data, "", "queue_max_bytes", width).items():
        expect(most == max(queue for before, now, *_, queue in rows if before < (index + 1) * width and now > index * width), f"the longest queue of bin {index} is right: {most}")
    text = "".join(xml.etree.ElementTree.parse(os.path.join(folder, "x.svg")).getroot().itertext())
    dropped = sum(row[4] for row in rows)
    for word in hosts + ["it's <one> & only: link sea, b>a", f"{dropped} frames dropped", "rate of the link", "limit", "Mb/s", "KB", "time, s"]:
        expect(word in text, f"'{word}' is in the picture")
    expect(f"{dropped} frames dropped" in result.stdout and "queue up to" in result.stdout, f"it is told in words, too: {result.stdout}")
    draw(["x.csv", "x.csv", "-o", "two.svg"], folder)
    texts = list(xml.etree.ElementTree.parse(os.path.join(folder, "two.svg")).getroot().itertext())
    expect(all(texts.count(word) == 1 for word in hosts + ["rate of the link", "limit of the queue", "frames dropped"]), f"one legend for all runs: {texts}")
    result = draw(["x.csv", "-o", "x.png", "--data", "e.csv", "--direction", "a>b"], folder)
    with open(os.path.join(folder, "x.png"), "rb") as file:
        expect(file.read(8) == b"\x89PNG\r\n\x1a\n", f"a picture in PNG: {result.stderr}")
    expect({row["direction"] for row in data_of(os.path.join(folder, "e.csv"))} == {"a>b"}, "the direction that is asked for is drawn")
    result = draw(["x.csv", "-o", "x.png", "--data", "e.csv", "--link", "a0"], folder)
    expect(result.returncode == 0 and {row["direction"] for row in data_of(os.path.join(folder, "e.csv"))} == {"up"}, f"a host's link: {result.stderr}")


def rate_is_kept(folder):
    """Frames that were counted late, all together: they were on the link before."""
    lines, rate, width = [HEAD], 250000000, 1000000
    sent = [0] * 3 + [20] * 5 + [0, 0, 60] + [20] * 4
    for i, frames in enumerate(sent):
        lines.append(line_of((i + 1) * width, "sea", "b>a", frames, frames * 1500, rate=rate))
        for host, share in [("b0", frames // 3), ("b1", frames - frames // 3)]:
            lines += [line_of((i + 1) * width, "sea", "b>a", share, share * 1500, host=host)] if share > 0 else []
    write(os.path.join(folder, "late.csv"), lines)
    result = draw(["late.csv", "-o", "x.svg", "--data", "d.csv", "--bin", "1ms"], folder)
    data = data_of(os.path.join(folder, "d.csv"))
    bytes_of = {host: column(data, host, "bytes", width) for host in ["", "b0", "b1"]}
    expect(max(bytes_of[""].values()) * 8e9 / width <= rate, f"no bar passes the link's rate: {result.stderr} {bytes_of['']}")
    expect(sum(bytes_of[""].values()) == sum(sent) * (1500 + OVERHEAD), "nothing is lost")
    expect(all(bytes_of[""][i] == bytes_of["b0"][i] + bytes_of["b1"][i] for i in bytes_of[""]), "hosts make up the whole")
    expect(bytes_of[""][3] == 20 * 1524, f"nothing is moved further than it must: {bytes_of['']}")


def time_is_trimmed(folder):
    hosts = [f"b{i}" for i in range(12)]
    lines, rows = samples(2, hosts, 4000, 20000000000)
    write(os.path.join(folder, "long.csv"), lines, "\n123456,sea,b>")  # the switch was killed while it wrote
    result = draw(["long.csv", "-o", "x.svg", "--data", "d.csv"], folder)
    expect(result.returncode == 0, f"a long file, whose last line does not end: {result.stderr}")
    data = data_of(os.path.join(folder, "d.csv"))
    shown = [row for row in data if row["host"] == ""]
    first = next(row for row in rows if row[3] > 0)
    width = int(shown[0]["to_ns"]) - int(shown[0]["from_ns"])
    expect(100 <= len(shown) <= 400, f"as many bins as can be seen: {len(shown)}")
    expect(0 < first[0] - int(shown[0]["from_ns"]) < 2 * width, f"idle time before is left out: {shown[0]['from_ns']} for {first[0]}")
    expect(sum(int(row["bytes"]) for row in shown) == sum(row[3] for row in rows), "nothing that was sent is")
    most = sorted(hosts, key=lambda host: (-sum(row[2][host] for row in rows), hosts.index(host)))[:7]
    names = {row["host"] for row in data}
    expect(names == set(most) | {"", "5 others"}, f"the hosts that have sent most, and all others: {names}")
    expect(sum(int(row["bytes"]) for row in data if row["host"] == "5 others") == sum(row[2][host] for row in rows for host in hosts if host not in most), "the others together")


def bad_input(folder):
    lines, _ = samples(1, ["b0"], 20)
    path = lambda name: os.path.join(folder, name)
    write(path("good.csv"), lines)
    open(path("empty.csv"), "w").close()
    write(path("head.csv"), [HEAD])
    write(path("column.csv"), [[cell for cell in line if cell != "rate_bps"] for line in lines[:1]] + lines[1:])
    write(path("other.csv"), [["a", "b"], ["1", "2"]])
    write(path("cell.csv"), lines[:2] + [lines[1][:6] + ["many"] + lines[1][7:]])
    write(path("short.csv"), lines[:2] + [lines[1][:5]])
    write(path("back.csv"), lines + [lines[1]])
    write(path("still.csv"), [HEAD] + [line_of(1000000 * i, "sea", "a>b", 0, 0) for i in range(1, 5)])
    write(path("hosts.csv"), [HEAD, line_of(1000000, "a0", "up", 5, 5000)])
    write(path("times.csv"), [["name", "predicted_ns", "measured_ns"], ["x", "1e9", "-3"]])
    write(path("no_times.csv"), [["name", "predicted_ns", "measured_ns"]])
    events = [["kind", "rank", "cluster", "peer", "op", "iteration", "phase", "bytes", "start_ns", "sent_ns", "end_ns"], ["last", "0", "0", "", "", "", "", "", "", "", "9"]]
    write(path("no_ranks.csv"), events[:1])
    write(path("events.csv"), events + [["copy", "0", "", "", "0", "0", "0", "many", "1", "", "2"]])
    out = ["-o", "x.svg"]
    for name, words in {"nowhere.csv": ["No such file"], "empty.csv": ["empty", "--stats"], "head.csv": ["nothing behind the first line"], "column.csv": ["rate_bps", "--stats"],
                        "other.csv": ["time_ns", "--stats"], "cell.csv": ["line 3", "delivered_bytes", "many"], "short.csv": ["line 3", "5 cells", "17"],
                        "back.csv": ["before the line above", "time_ns"], "still.csv": ["nothing has come over sea"], "hosts.csv": ["--link"],
                        "no_ranks.csv": ["no rank"],
                        "events.csv": ["line 3"]}.items():
        refused(draw([name] + out, folder), [name] + words, name)
    for name, words in {"times.csv": ["line 2", "measured_ns", "-3"], "no_times.csv": ["nothing"], "good.csv": ["predicted_ns"]}.items():
        refused(draw(["--times", name] + out, folder), [name] + words, f"--times {name}")
    for arguments, words in [([], ["-o"]), (out, ["no file"]), (["good.csv", "-o", "x.gif"], ["x.gif", ".svg", ".png"]), (["good.csv", "--link", "lake"] + out, ["good.csv", "--link"]),
                             (["good.csv", "--direction", "up"] + out, ["up"]), (["good.csv", "--bin", "1us"] + out, ["--bin"]), (["good.csv", "--from", "1h"] + out, ["--from"]),
                             (["good.csv", "--from", "2s", "--to", "1s"] + out, ["--to"]), (["good.csv", "--label", "a", "--label", "b"] + out, ["b", "--label"]),
                             (["good.csv", "--label", "a,b"] + out, ["a,b"]), (5 * ["good.csv"] + out, ["good.csv"]), (["good.csv", "-o", "no/such/x.svg"], ["no/such/x.svg"]),
                             (["events.csv", "--bin", "1ms"] + out, ["alone", "--bin"]), (["events.csv", "good.csv"] + out, ["alone", "good.csv"]),
                             (["good.csv", "--data", "no/such/d.csv"] + out, ["no/such/d.csv"])]:
        refused(draw(arguments, folder), words, f"draw {arguments}")
    with open(path("kept.svg"), "w") as file:
        file.write("old")
    os.mkdir(path("bin"))
    os.symlink(sys.executable, path("bin/python3"))
    refused(draw(["good.csv", "-o", "kept.svg"], folder, PATH=path("bin")), ["gnuplot-nox"], "no gnuplot", code=3)
    refused(draw(["good.csv", "-o", "kept.svg"], folder, PATH="/nowhere"), ["python3"], "no python3", code=3)
    with open(path("kept.svg")) as file:
        expect(file.read() == "old", "a picture that is there stays if none can be drawn")


def times_are_drawn(folder):
    rows = [{"name": f"{n} senders", "predicted_ns": n * 1e6, "measured_ns": n * 1.1e6} for n in (1, 2)]
    with open(os.path.join(folder, "t.csv"), "w") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    result = draw(["--times", "t.csv", "-o", "t.svg"], folder)
    text = "".join(xml.etree.ElementTree.parse(os.path.join(folder, "t.svg")).getroot().itertext())
    expect(result.returncode == 0 and all(row["name"] in text for row in rows) and "predicted" in text, f"times alone: {result.stderr}")


def program_verifies(folder):
    result = run(["run", "-n", "3", program, "--bytes", "80000", "--runs", "2"], folder)
    expect(result.returncode == 0 and result.stdout.count(" s, verified") == 2, f"it sums: {result.stdout} {result.stderr}")
    for arguments in [["--bytes", "7"], ["--bytes", "0"], ["--runs", "x"], ["--runs"], ["--speed", "1"]]:
        refused(run(["run", "-n", "1", program] + arguments, folder), arguments[:1], f"allreduce {arguments}")


def real_files(folder):
    for emulate in [f"topology={topology},memif,stats=real.csv", f"2,memif,rate=100Mbps,stats=flat.csv,stats-interval=2ms"]:
        ranks = "8" if "topology" in emulate else "2"
        result = run(["run", "-n", ranks, "--emulate", emulate, program, "--bytes", "800000"], folder)
        expect(result.returncode == 0 and result.stderr == "", f"{emulate} works: {result.stderr}")
    before = 0
    for row in data_of(os.path.join(folder, "real.csv")):
        now = int(row["time_ns"])
        if row["direction"] == "delft>leiden" and now > before:
            most = (now - before) * int(row["rate_bps"]) / 8e9 + FRAME_MAX
            arrived = int(row["delivered_bytes"]) + OVERHEAD * int(row["delivered_frames"])
            expect(arrived <= most, f"by {now} ns no more has arrived than the rate allows: {arrived}, {most}")
            before = now
    result = draw(["real.csv", "-o", "x.svg", "--data", "d.csv"], folder)
    expect(result.returncode == 0, f"what a switch writes can be drawn: {result.stderr}")
    data = data_of(os.path.join(folder, "d.csv"))
    whole = sum(int(row["bytes"]) for row in data if row["host"] == "")
    by_hosts = sum(int(row["bytes"]) for row in data if row["host"] != "")
    # a sample that came late is shared out among several bars, each rounded to a byte
    expect(whole > 100000 and abs(whole - by_hosts) <= len(data), f"hosts have sent all that has come over the link: {by_hosts} of {whole}")
    expect({row["rate_bps"] for row in data} == {"250000000", ""} and {row["queue_limit_bytes"] for row in data} == {"512000", ""}, "the link is that of the file")
    expect(draw(["flat.csv", "-o", "x.svg", "--link", "port1"], folder).returncode == 0, "a host's link without a topology")
    for word in ["stats=", "stats-interval=1ms", "stats=x.csv,stats-interval=0", "stats=x.csv,stats-interval=x"]:
        refused(run(["run", "-n", "2", "--emulate", f"2,memif,{word}", program], folder), ["--emulate"], word)
    refused(run(["run", "-n", "2", "--emulate", "2,memif,stats=no/such/x.csv", program], folder), ["no/such/x.csv"], "statistics nowhere")
    build = os.path.dirname(causeway)
    result = execute([demo, build, "demo.svg"], cwd=folder, TMPDIR=folder)
    expect(result.returncode == 0 and result.stderr == "", f"the demo works: {result.stderr}")
    expect(all(word in result.stdout for word in ["paced: link wan", "not paced: link wan", "demo.svg", "predicted"]), f"it says what is to be seen: {result.stdout}")
    text = "".join(xml.etree.ElementTree.parse(os.path.join(folder, "demo.svg")).getroot().itertext())
    expect(all(word in text for word in ["paced: link wan", "not paced: link wan", "in virtual time"]), "its picture has both runs")
    expect(not [name for name in os.listdir(folder) if name.startswith("causeway")], f"nothing is left: {os.listdir(folder)}")


with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    data_is_right(folder)
    rate_is_kept(folder)
    time_is_trimmed(folder)
    bad_input(folder)
    times_are_drawn(folder)
    program_verifies(folder)
    if wire:
        real_files(folder)
