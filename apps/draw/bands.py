"""The timeline of a large plan: time in columns, in which the height of a colour is the share of the time that it is at
work. All of a lane's colour is one path, in columns and levels: some hundred kilobytes for any plan."""
from svg import bytes_text, colour, COLOURS, COMBINES, COPIES

CELLS_MAX = 16000  # of all lanes together
COLUMNS_MIN, COLUMNS_MAX = 60, 280
LEVELS = 12  # of heights
LINES_MAX = 4000  # more would be a grey cloud
LOCALS = ((COPIES, "copies"), (COMBINES, "combines"))


class Band:
    """What one colour of a lane does: the time of each column in which it is at work."""

    def __init__(self, columns):
        self.busy, self.bytes, self.parts = [0.0] * (columns + 1), 0, 0

    def add(self, count, start, end):
        """From `start` to `end` in columns."""
        self.bytes += count
        self.parts += 1
        first, last = int(start), int(end)
        if first == last:
            self.busy[first] += end - start
            return
        self.busy[first] += first + 1 - start
        for column in range(first + 1, last):
            self.busy[column] += 1
        self.busy[last] += end - last


class Bands:
    def __init__(self, timeline):
        self.timeline, self.phases, self.bands, self.lines = timeline, 0, {}, {}
        self.columns = min(max(CELLS_MAX // (3 * timeline.ranks), COLUMNS_MIN), COLUMNS_MAX)
        clusters, messages = timeline.clusters, 0
        for kind, rank, peer, _, _, phase, count, start_ns, sent_ns, end_ns in timeline.events():
            self.phases = max(self.phases, phase + 1)
            if kind != "message":
                self.mark(rank, "local", int(kind == "reduce"), count, start_ns, end_ns)
                continue
            sends, receives = (clusters[peer], clusters[rank]) if timeline.by_cluster else 2 * (phase % len(COLOURS),)
            self.mark(rank, "sends", sends, count, start_ns, sent_ns)
            self.mark(peer, "receives", receives, count, end_ns - (sent_ns - start_ns), end_ns)
            messages += 1
            if messages <= LINES_MAX:
                place = "M{:.5g} {:.4g}L{:.5g} {:.4g}".format(*timeline.line(rank, peer, start_ns, end_ns))
                self.lines.setdefault(colour(receives) if count else "#bbbbbb", []).append(place)
        if messages > LINES_MAX:
            self.lines = {}

    def mark(self, rank, lane, key, count, start_ns, end_ns):
        if count > 0 and end_ns > start_ns:
            bands = self.bands.setdefault((rank, lane), {})
            if key not in bands:
                bands[key] = Band(self.columns)
            width_ns = self.timeline.end_ns / self.columns
            bands[key].add(count, max(start_ns / width_ns, 0.0), min(end_ns / width_ns, self.columns))

    def parts(self):
        parts = [self.path(place, *band) for place in sorted(self.bands) for band in levels(self.bands[place], self.columns)]
        look = 'fill="none" stroke-width="0.5" stroke-opacity="0.5"'
        return parts + [f'<path {look} stroke="{stroke}" d="{"".join(places)}"/>' for stroke, places in self.lines.items()]

    def path(self, place, key, band, lows, highs):
        """Neighbouring columns of the same height are one."""
        rank, lane = place
        y, height = self.timeline.lane(rank, lane)
        fill, does = LOCALS[key] if lane == "local" else (colour(key), lane)
        data, column = [], 0
        while column < self.columns:
            low, high, begin = lows[column], highs[column], column
            while column < self.columns and (lows[column], highs[column]) == (low, high):
                column += 1
            if high > low:
                data.append(f"M{begin} {LEVELS - high}h{column - begin}v{high - low}h-{column - begin}z")
        x, end = self.timeline.x(0), self.timeline.x(self.timeline.end_ns)
        scale = f"matrix({(end - x) / self.columns:.4f} 0 0 {height / LEVELS:.4f} {x} {y:.2f})"
        words = f"rank {rank} {does} {bytes_text(band.bytes)} in {band.parts} parts"
        words += f", {'to' if lane == 'sends' else 'from'} cluster {key}" if self.timeline.by_cluster and lane != "local" else ""
        return f'<path fill="{fill}" transform="{scale}" d="{"".join(data)}"><title>{words}</title></path>'


def levels(bands, columns):
    """(key, band, lower ends, upper ends) of each colour, one on top of the other: what is there at all is seen, and
    together they are no higher than the lane."""
    whole = [max(sum(band.busy[column] for band in bands.values()), 1.0) for column in range(columns)]
    sums, lows = [0.0] * columns, [0] * columns
    for key, band in sorted(bands.items()):
        sums = [total + busy for total, busy in zip(sums, band.busy)]
        highs = [min(max(round(LEVELS * total / all), low + (busy > 0)), LEVELS) for total, all, low, busy in zip(sums, whole, lows, band.busy)]
        yield key, band, lows, highs
        lows = highs
