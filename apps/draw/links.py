"""What statistics of links say, as amounts over time in bins of equal length."""
import re
from dataclasses import dataclass, field

from table import Refused, Table

ETHERNET_BYTES = 24  # preamble, check sequence and gap: what a frame has on the line beside its bytes
WIDTH_NS = 1000000  # of a bin at least, unless --bin says another
BINS_MAX = 1 << 14  # of a series; with more, bins become twice as long
BINS_SHOWN = 400
HOSTS_MAX = 8  # as many as there are colours
COLUMNS = ("time_ns", "name", "direction", "delivered_frames", "delivered_bytes", "queue_frames", "queue_max_bytes", "rate_bps", "queue_limit_bytes")


@dataclass
class Bin:
    bytes: int = 0  # on the line
    dropped: int = 0  # frames that found the queue full
    queue: int = 0  # the longest, in bytes
    rate: int = 0  # of the link, in bits per second
    limit: int = 0  # of the queue, in bytes

    def add(self, other, count, dropped):
        self.bytes += count
        self.dropped += dropped
        self.queue = max(self.queue, other.queue)
        self.rate = max(self.rate, other.rate)
        self.limit = max(self.limit, other.limit)


@dataclass
class Series:
    """One direction of a link, or what one host has sent of it."""

    name: str
    direction: str
    host: str  # "": all
    width_ns: int
    bytes: int = 0
    dropped: int = 0
    bins: list = field(default_factory=list)

    def add(self, from_ns, to_ns, what):
        """Divides an amount among the bins by the time it has in each. Parts are rounded down so that they add up."""
        last_ns = max(to_ns - 1, from_ns)
        while last_ns // self.width_ns >= BINS_MAX:
            self.join(0, len(self.bins), 2)
        first, last = from_ns // self.width_ns, last_ns // self.width_ns
        self.bins.extend(Bin() for _ in range(last + 1 - len(self.bins)))
        before = (0, 0)
        for index in range(first, last + 1):
            done = (what.bytes, what.dropped)
            if index < last:
                passed = (index + 1) * self.width_ns - from_ns
                done = tuple(amount * passed // (to_ns - from_ns) for amount in done)
            self.bins[index].add(what, done[0] - before[0], done[1] - before[1])
            before = done

    def join(self, first, end, factor):
        """Keeps the bins from `first` to `end`, `factor` of them as one."""
        bins = self.bins[first:end]
        self.bins = []
        for begin in range(0, len(bins), factor):
            total = bins[begin]
            for other in bins[begin + 1 : begin + factor]:
                total.add(other, other.bytes, other.dropped)
            self.bins.append(total)
        self.width_ns *= factor

    def bytes_at(self, index):
        return self.bins[index].bytes if index < len(self.bins) else 0


def statistics_read(path, link, width_ns):
    """The series of `link` and of its hosts; None: of all links between sites."""
    table = Table(path, COLUMNS, "`causeway switch --stats FILE` writes such files")
    found, now, before = {}, 0, 0
    for time, name, place, *cells in table.rows():
        time = table.count("time_ns", time)
        if time < now:
            table.refuse("time_ns", "before the line above", str(time))
        if time > now:
            before, now = now, time
        direction, _, host = place.partition("/")
        if name != link if link is not None else ">" not in direction:
            continue
        amounts = [table.count(*pair) for pair in zip(COLUMNS[3:6] if host else COLUMNS[3:], cells)]
        frames, count, dropped, *queue = amounts
        what = Bin(count + frames * ETHERNET_BYTES, dropped, *queue)
        series = found.setdefault((name, direction, host), Series(name, direction, host, width_ns))
        series.bytes += what.bytes
        series.dropped += dropped
        series.add(before, now, what)
    if not found:
        if table.number == 1:
            raise Refused("there is nothing behind the first line", path, "`causeway switch --stats-interval 1ms` writes lines as long as it runs")
        if link is not None:
            raise Refused("no such link or host", path, "--link wants a name of the column `name`")
        raise Refused("there is no link between sites", path, "--link NAME draws another one, by its name in the column `name`")
    widest = max(series.width_ns for series in found.values())
    for series in found.values():
        series.join(0, len(series.bins), widest // series.width_ns)
    return list(found.values())


def natural(text):
    """b2 before b10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text) if part]


class Run:
    """What is drawn of one file."""

    def __init__(self, path, label, link, width_ns):
        self.path, self.label = path, label
        self.series = statistics_read(path, link, width_ns)
        self.total, self.hosts = None, []
        self.first = self.end = self.begin_ns = self.queue_max = self.dropped = 0

    def totals(self, direction=None):
        return [series for series in self.series if not series.host and direction in (None, series.direction)]

    def choose(self, runs, direction):
        """The direction where most was dropped, or carried, in all runs together; and its hosts."""
        best, best_sums = None, None
        for series in self.totals(direction):
            same = [other for run in runs for other in run.totals() if (other.name, other.direction) == (series.name, series.direction)]
            sums = (sum(other.dropped for other in same), sum(other.bytes for other in same))
            if best is None or sums > best_sums:
                best, best_sums = series, sums
        if best is None:
            raise Refused("no such direction", direction, "--direction wants a text of the column `direction`, as delft>leiden")
        if best.bytes == 0:
            raise Refused(f"nothing has come over {best.name}, {best.direction}", self.path, "--link NAME draws another link")
        self.total = best
        self.hosts_choose([series for series in self.series if series.host and (series.name, series.direction) == (best.name, best.direction)])
        self.excess_spread()

    def hosts_choose(self, hosts):
        """The hosts in the order of their names. If there are too many, those that have sent least are one."""
        others = None
        if len(hosts) > HOSTS_MAX:
            most = sorted(hosts, key=lambda series: -series.bytes)[: HOSTS_MAX - 1]
            least = [series for series in hosts if not any(series is other for other in most)]
            others = Series(self.total.name, self.total.direction, f"{len(least)} others", self.total.width_ns)
            for series in least:
                for index, each in enumerate(series.bins):
                    others.add(index * series.width_ns, (index + 1) * series.width_ns, each)
            hosts = most
        self.hosts = sorted(hosts, key=lambda series: natural(series.host)) + ([others] if others else [])

    def excess_spread(self):
        """Frames that were counted late, all together, were on the line before: no bin has more than the rate allows."""
        bins = self.total.bins
        for index in range(len(bins) - 1, 0, -1):
            most = bins[index].rate * self.total.width_ns // 8000000000
            excess = bins[index].bytes - most
            if bins[index].rate == 0 or excess <= 0:
                continue
            whole = sum(host.bytes_at(index) for host in self.hosts)
            so_far = moved = 0
            for host in self.hosts:
                count = host.bytes_at(index)
                if count > 0:
                    so_far += count
                    share = min(min(excess, excess * so_far // whole) - moved, count)
                    moved += share
                    host.bins[index].bytes -= share
                    host.bins[index - 1].bytes += share
            bins[index - 1].bytes += excess
            bins[index].bytes = most

    def trim(self, from_ns, to_ns):
        """The bins of a time; without one, those without the idle time at both ends, but for a bin."""
        bins, width = self.total.bins, self.total.width_ns
        self.end = min(-(-to_ns // width) if to_ns else len(bins), len(bins))
        self.first = from_ns // width
        if self.first >= self.end:
            raise Refused("there is nothing in that time", self.path, "--from and --to are times of the column time_ns")
        if not from_ns and not to_ns:
            least = (max(each.bytes for each in bins) + 99) // 100
            busy = [index for index, each in enumerate(bins) if each.bytes >= least]
            self.first, self.end = max(busy[0] - 1, 0), min(busy[-1] + 2, len(bins))
        shown = bins[self.first : self.end]
        self.queue_max = max(each.queue for each in shown)
        self.dropped = sum(each.dropped for each in shown)
        self.begin_ns = self.first * width

    def length_ns(self):
        return (self.end - self.first) * self.total.width_ns

    def join(self, width_ns):
        factor = -(-width_ns // self.total.width_ns)
        for series in [self.total] + self.hosts:
            series.join(self.first, self.end, factor)

    def words(self):
        limit = self.total.bins[-1].limit
        seconds = len(self.total.bins) * self.total.width_ns / 1e9
        return (
            f"{self.label}: link {self.total.name}, {self.total.direction}: {sum(each.bytes for each in self.total.bins)} bytes in {seconds:.3g} s; "
            f"queue up to {self.queue_max}{f' of {limit}' if limit else ''} bytes, {self.dropped} frames dropped"
        )


def width_choose(runs):
    """1, 2 or 5 times a power of ten, at which the longest run has no more bins than can be seen."""
    longest = max(run.length_ns() for run in runs)
    power = WIDTH_NS
    while True:
        for step in (1, 2, 5):
            if longest // (step * power) <= BINS_SHOWN:
                return step * power
        power *= 10


def runs_read(paths, labels, link, direction, bin_ns, from_ns, to_ns):
    runs = [Run(path, label, link, bin_ns or WIDTH_NS) for path, label in zip(paths, labels)]
    for run in runs:
        run.choose(runs, direction)
    for run in runs:
        if bin_ns and run.total.width_ns != bin_ns:
            raise Refused("with so short bins there are too many", run.path, f"--bin {run.total.width_ns // 1000000 + 1}ms, or longer")
        run.trim(from_ns, to_ns)
    width = bin_ns or width_choose(runs)
    for run in runs:
        run.join(width)
    return runs
