"""The timeline of a plan: a row for each rank, time from left to right. Above is what it sends, below what it receives,
between what it combines and copies; lines are messages. Plans of more than some hundred messages are drawn as bands."""
import math

from bands import Bands
from svg import bytes_text, colour, COLOURS, COMBINES, COPIES, picture_write, rect, text, time_text
from table import Refused

COLUMNS = ("kind", "rank", "cluster", "peer", "op", "iteration", "phase", "bytes", "start_ns", "sent_ns", "end_ns")

LEFT, WIDTH, RIGHT, TOP, BOTTOM, ROWS_HIGH = 70, 1120, 90, 64, 44, 900
BARS_MAX = 500  # messages, copies and combinings; each is up to two bars and a line, with their texts
LANES = {"sends": (0.06, 0.34), "local": (0.40, 0.20), "receives": (0.60, 0.34)}  # of a row: from where, how high
LOCALS = {"copy": COPIES, "reduce": COMBINES}
RED = "#d62728"


class Timeline:
    def __init__(self, table, title):
        """The lines of ranks are the first, in the order of their numbers."""
        self.table, self.done, self.clusters, self.last, self.parts = table, [], [], 0, []
        for kind, *cells in table.rows():
            if kind not in ("rank", "last"):
                break
            self.last = len(self.done) if kind == "last" else self.last
            self.done.append(table.time("end_ns", cells[9]))
            self.clusters.append(int(cells[1]))
        if not self.done:
            raise Refused("there is no rank behind the first line", table.path, "`causeway plan draw` draws plans")
        self.ranks, self.end_ns, self.title = len(self.done), self.done[self.last], title
        self.row = min(max(ROWS_HIGH / self.ranks, 4), 36)
        self.is_banded = len(table.lines) - 1 - self.ranks > BARS_MAX
        self.by_cluster = self.is_banded and max(self.clusters) > 0

    def events(self):
        """(kind, rank, peer, op, iteration, phase, bytes, start_ns, sent_ns, end_ns) of each message and local op."""
        for kind, *cells in self.table.rows():
            if kind not in ("rank", "last"):
                peer, sent_ns = (self.table.below("peer", cells[2], self.ranks), self.table.time("sent_ns", cells[8])) if kind == "message" else (0, 0.0)
                rank, start_ns, end_ns = self.table.below("rank", cells[0], self.ranks), self.table.time("start_ns", cells[7]), self.table.time("end_ns", cells[9])
                yield (kind, rank, peer, *map(int, cells[3:7]), start_ns, sent_ns, end_ns)

    def x(self, time_ns):
        return LEFT + (WIDTH * time_ns / self.end_ns if self.end_ns > 0 else 0)

    def y(self, rank):
        return TOP + self.row * rank

    def lane(self, rank, name):
        """(upper end, height)"""
        begin, height = LANES[name]
        return self.y(rank) + begin * self.row, height * self.row

    def line(self, source, target, start_ns, end_ns):
        """Its ends: (x, y, x, y)."""
        return self.x(start_ns), self.y(source + 0.5), self.x(end_ns), self.y(target + 0.5)

    def bar(self, rank, lane, start_ns, end_ns, fill, title):
        y, height = self.lane(rank, lane)
        x = self.x(start_ns)
        self.parts.append(rect(x, y, max(self.x(end_ns) - x, 0.4), height, f'fill="{fill}"', title))

    def rows_draw(self):
        """The last rank is drawn last, so that no neighbour covers its frame."""
        every = math.ceil(11 / self.row)
        for rank in sorted(range(self.ranks), key=lambda rank: rank == self.last):
            y, is_last, done_ns = self.y(rank), rank == self.last, self.done[rank]
            look = f'stroke="{RED}" stroke-width="1.5"' if is_last else 'stroke="#dddddd" stroke-width="0.5"'
            self.parts.append(rect(LEFT, y, WIDTH, self.row, f'fill="#ffffff" {look}'))
            x, done = self.x(done_ns), f"rank {rank} is done at {time_text(done_ns)}"
            self.parts.append(rect(x, y + 0.5, LEFT + WIDTH - x, self.row - 1, 'fill="#e4e4e4"', done))
            look = f'dominant-baseline="middle" fill="{RED}" font-weight="bold"' if is_last else 'dominant-baseline="middle"'
            if is_last or rank % every == 0:
                self.parts.append(text(LEFT - 6, y + self.row / 2, f"rank {rank}", f'text-anchor="end" {look}'))
            if is_last:
                self.parts.append(text(LEFT + WIDTH + 6, y + self.row / 2, time_text(done_ns), look))

    def scale_draw(self):
        """About ten steps of 1, 2 or 5 times a power of ten."""
        power = 10 ** math.floor(math.log10(self.end_ns / 10)) if self.end_ns > 0 else 1
        step = next(power * factor for factor in (1, 2, 5, 10) if self.end_ns <= 10 * power * factor)
        for i in range(int(self.end_ns * 1.0001 / step) + 1):
            x, bottom = self.x(i * step), self.y(self.ranks)
            self.parts.append(f'<path d="M{x:.2f} {TOP}V{bottom + 4:.2f}" stroke="#cccccc" stroke-width="0.5" stroke-dasharray="2 3"/>')
            self.parts.append(text(x, bottom + 18, time_text(i * step), 'text-anchor="middle"'))

    def bars_draw(self):
        """Returns how many phases there are."""
        phases = 0
        for kind, rank, peer, op, iteration, phase, count, start_ns, sent_ns, end_ns in self.events():
            phases = max(phases, phase + 1)
            if kind != "message":
                self.bar(rank, "local", start_ns, end_ns, LOCALS[kind], f"rank {rank}, op {op}: {kind} of {bytes_text(count)}")
                continue
            fill, what = (colour(phase), bytes_text(count)) if count else ("#bbbbbb", "signal")
            what = f"{rank} to {peer}: {what}, phase {phase}, op {op}, iteration {iteration}; from {time_text(start_ns)} to {time_text(end_ns)}"
            if count:
                self.bar(rank, "sends", start_ns, sent_ns, fill, what)
                self.bar(peer, "receives", end_ns - (sent_ns - start_ns), end_ns, fill, what)
            place = "M{:.2f} {:.2f}L{:.2f} {:.2f}".format(*self.line(rank, peer, start_ns, end_ns))
            look = f'stroke="{fill}" stroke-width="{0.8 if count else 0.4}" stroke-opacity="0.5"'
            self.parts.append(f'<path d="{place}" {look}><title>{what}</title></path>')
        return phases

    def legend_draw(self, phases):
        count, name = (max(self.clusters) + 1, "cluster") if self.by_cluster else (phases, "phase")
        for i in range(min(count, len(COLOURS)) if count > 1 else 0):
            more = ", ..." if i + 1 == len(COLOURS) < count else ""
            self.parts += [rect(10 + 90 * i, 46, 10, 10, f'fill="{colour(i)}"'), text(24 + 90 * i, 55, f"{name} {i}{more}")]

    def draw(self, output):
        self.rows_draw()
        self.scale_draw()
        words = "upper half: sending; lower half: receiving; between: combining (black), copying (grey); white: idle; light grey: done; red: the last to finish"
        if self.is_banded:
            bands = Bands(self)
            self.parts += bands.parts()
            words += "; height: share of the time" if bands.lines else "; too many messages for lines; height: share of the time"
            words += "; colour: cluster at the other end" if self.by_cluster else ""
        self.legend_draw(bands.phases if self.is_banded else self.bars_draw())
        title = f"{self.title}, {self.ranks} ranks: {time_text(self.end_ns)}"
        picture_write(output, LEFT + WIDTH + RIGHT, self.y(self.ranks) + BOTTOM, title, words, self.parts)


def timeline_draw(table, title, output):
    Timeline(table, title).draw(output)
