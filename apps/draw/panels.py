"""The picture of `causeway draw`, as a script of gnuplot: a column for each run, its throughput above and its queue below;
under all of them the times."""
from gnuplot import text

# In points.
COLUMN_WIDTH, ALONE_WIDTH = 560, 860
LEFT, RIGHT = 88, 28
TITLE_HEIGHT, KEY_LINE, KEY_WIDTH = 44, 20, 165
RATE_HEIGHT, GAP_HEIGHT, QUEUE_HEIGHT, AXIS_HEIGHT = 250, 44, 170, 66
TIMES_TITLE, TIME_HEIGHT, TIMES_NAMES, TIMES_RIGHT = 60, 52, 190, 150

# Colours that people with any sort of colour vision tell apart: Okabe and Ito, Color Universal Design (2008).
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"]
LIMIT, QUEUE, DROPPED = "#000000", "#8A93A6", "#D55E00"


class Picture:
    def __init__(self, runs, times):
        self.runs, self.times = runs, times
        self.hosts = list(dict.fromkeys(host.host for run in runs for host in run.hosts))
        self.column = ALONE_WIDTH if len(runs) <= 1 else COLUMN_WIDTH
        self.width = self.column * max(len(runs), 1)
        entries = max(len(self.hosts), 1) + 4
        self.key_columns = self.width // KEY_WIDTH
        self.legend = KEY_LINE * (-(-entries // self.key_columns) + 1)
        self.runs_height = self.legend + TITLE_HEIGHT + RATE_HEIGHT + GAP_HEIGHT + QUEUE_HEIGHT + AXIS_HEIGHT if runs else 0
        self.height = self.runs_height + (TIMES_TITLE + len(times) * TIME_HEIGHT + AXIS_HEIGHT if times else 0)

    def margins(self, left, right, top, bottom):
        """Where the next plot is, in points from the left upper corner."""
        places = (("l", left / self.width), ("r", right / self.width), ("t", 1 - top / self.height), ("b", 1 - bottom / self.height))
        return [f"set {side}margin at screen {place:.5f}" for side, place in places]

    def key(self, top):
        return f"set key at screen 0.5, screen {1 - top / self.height:.5f} center top horizontal Left reverse samplen 1.5 maxcols {self.key_columns}"

    def script(self):
        lines = ["set multiplot", "set style fill solid 1 noborder", "set border 3 lc rgb '#444444'", "set tics nomirror out", "set grid ytics lc rgb '#dddddd'", "set boxwidth 0.5"]
        if self.runs:
            lines += self.legend_lines()
            # the same scales for all runs, so that they can be compared
            bins = [(each, run.total.width_ns / 1e9) for run in self.runs for each in run.total.bins]
            seconds = max(len(run.total.bins) * run.total.width_ns / 1e9 for run in self.runs)
            rate = max(max(megabits(each.bytes, width), each.rate / 1e6) for each, width in bins)
            queue = max(max(max(each.queue, each.limit) / 1e3 for each, _ in bins), 1)
            for number, run in enumerate(self.runs):
                lines += self.run_lines(number, run, seconds, rate, queue)
        if self.times:
            lines += self.times_lines()
        return lines + ["unset multiplot"]

    def legend_lines(self):
        """A plot of nothing, with the key of all that any panel shows."""
        keys = [f"keyentry with boxes fc rgb '{COLOURS[i % len(COLOURS)]}' title {text(host)}" for i, host in enumerate(self.hosts)]
        keys = keys or [f"keyentry with boxes fc rgb '{COLOURS[0]}' title 'throughput'"]
        keys += [
            f"keyentry with lines lw 2 dt 2 lc rgb '{LIMIT}' title 'rate of the link'",
            f"keyentry with boxes fc rgb '{QUEUE}' title 'longest queue'",
            f"keyentry with lines lw 2 dt 3 lc rgb '{LIMIT}' title 'limit of the queue'",
            f"keyentry with points pt 7 ps 0.6 lc rgb '{DROPPED}' title 'frames dropped'",
        ]
        lines = self.margins(0, self.width, 0, self.legend) + [self.key(KEY_LINE / 2), "unset border", "unset tics", "set xrange [0:1]", "set yrange [0:1]"]
        return lines + ["plot NaN notitle, " + ", ".join(keys), "unset key", "set border 3 lc rgb '#444444'", "set xtics nomirror out", "set ytics nomirror out"]

    def run_lines(self, number, run, seconds, rate, queue):
        left, right = number * self.column + LEFT, (number + 1) * self.column - RIGHT
        top = self.legend + TITLE_HEIGHT
        title = text(f"{run.label}: link {run.total.name}, {run.total.direction}")
        lines = data_lines(number, run) + self.margins(left, right, top, top + RATE_HEIGHT)
        lines.append(f"set label 1 {title} at screen {(left + right) / 2 / self.width:.5f}, screen {1 - (top - 20) / self.height:.5f} center font ',15'")
        lines += [f"set xrange [0:{seconds:.9g}]", f"set yrange [0:{rate * 1.08:.6g}]", "unset xlabel", "set format x ''", "set ylabel 'on the line, Mb/s'"]
        # the highest first, each covered by those below
        steps = [(5 + i, COLOURS[self.hosts.index(host.host) % len(COLOURS)]) for i, host in enumerate(run.hosts)][::-1] or [(2, COLOURS[0])]
        plots = [f"$r{number} using 1:{column} with fillsteps fc rgb '{colour}' notitle" for column, colour in steps]
        lines.append("plot " + ", ".join(plots + [f"$l{number} using 1:($2 > 0 ? $2 : NaN) with steps lw 2 dt 2 lc rgb '{LIMIT}' notitle"]))
        top += RATE_HEIGHT + GAP_HEIGHT
        dropped = f"{run.dropped} frames dropped" if run.dropped else "no frame dropped"
        lines += ["unset label 1", "set format x '%g'", "set xlabel 'time, s'"] + self.margins(left, right, top, top + QUEUE_HEIGHT)
        lines += [f"set title '{dropped}' offset 0,-0.7", f"set yrange [0:{queue * 1.14:.6g}]", "set ylabel 'queue, KB'"]
        # drops are above the limit, which they would hide
        lines.append(
            f"plot $r{number} using 1:3 with fillsteps fc rgb '{QUEUE}' notitle, $l{number} using 1:($3 > 0 ? $3 : NaN) with steps lw 2 dt 3 lc rgb '{LIMIT}' notitle, "
            f"$r{number} using 1:($4 > 0 ? {queue * 1.07:.6g} : NaN) with points pt 7 ps 0.6 lc rgb '{DROPPED}' notitle"
        )
        return lines + ["unset title"]

    def times_lines(self):
        top = self.runs_height + TIMES_TITLE
        lines = ["$times << EOD"] + [f"{i} {predicted / 1e9:.9g} {measured / 1e9:.9g} {measured / predicted:.6g}" for i, (_, predicted, measured) in enumerate(self.times)] + ["EOD"]
        lines += self.margins(TIMES_NAMES, self.width - TIMES_RIGHT, top, top + len(self.times) * TIME_HEIGHT) + [self.key(top - 3 * KEY_LINE / 2)]
        most = max(max(predicted, measured) for _, predicted, measured in self.times) / 1e9
        names = ", ".join(f"{text(name)} {i}" for i, (name, _, _) in enumerate(self.times))
        lines += [f"set xrange [0:{most:.9g}]", f"set yrange [{len(self.times) - 0.5:.1f}:-0.5]", "set xlabel 'time, s'", "unset ylabel", f"set ytics ({names}) scale 0", "unset grid", "set grid xtics lc rgb '#dddddd'"]
        bars = "$times using (0):($1{0}0.19):(0):{1}:({2}):({3}) with boxxyerror fc rgb '{4}' title '{5}'"
        lines.append(
            "plot "
            + bars.format("-", 2, "$1-0.36", "$1-0.02", "#999999", "predicted")
            + ", "
            + bars.format("+", 3, "$1+0.02", "$1+0.36", COLOURS[0], "measured")
            + ", $times using 2:($1-0.19):(sprintf('  %.3g s', $2)) with labels left notitle"
            + ", $times using 3:($1+0.19):(sprintf('  %.3g s, %.2f x', $3, $4)) with labels left notitle"
        )
        return lines


def megabits(count, seconds):
    return count * 8e-6 / seconds


def data_lines(number, run):
    """$r0: time, throughput, queue, dropped frames; then the hosts, each on top of those before. $l0: time, rate and queue
    limit where they change, and at the end: dashes would begin anew at each point. The last line is the end."""
    bins, width = run.total.bins, run.total.width_ns / 1e9
    lines, limits = [f"$r{number} << EOD"], [f"$l{number} << EOD"]
    for i in range(len(bins) + 1):
        at = min(i, len(bins) - 1)
        each, hosts = bins[at], 0.0
        words = [f"{i * width:.9g}", f"{megabits(each.bytes, width):.6g}", f"{each.queue / 1e3:.6g}", str(each.dropped if i < len(bins) else 0)]
        for host in run.hosts:
            hosts += megabits(host.bytes_at(at), width)
            words.append(f"{hosts:.6g}")
        lines.append(" ".join(words))
        if i in (0, len(bins)) or (each.rate, each.limit) != (bins[i - 1].rate, bins[i - 1].limit):
            limits.append(f"{i * width:.9g} {each.rate / 1e6:.6g} {each.limit / 1e3:.6g}")
    return lines + ["EOD"] + limits + ["EOD"]
