"""The closed forms of Tables 1 to 3, and the pLogP parameters that they need.

`causeway plogp` measures the parameters between two hosts of the same simulated network. Times are in milliseconds, sizes
in bytes. P is the number of machines, m the size of the message or block, s that of a segment.
"""
import json
import math

from plogp_models.network import LINKS, SEGMENT, TCP
from runner import Cell, Failed, Job, Model, collective

# 100 ms of virtual time: each size is measured a few times, and all of them take as long.
PARAMETERS = Job(2, LINKS, "plogp_measure", ("wire", 100, "parameters", 8), TCP)
NS_PER_MS = 1e6


class Plogp:
    """L, g(m), os(m) and or(m): a table, with straight lines between its sizes."""

    def __init__(self, output):
        try:
            row = json.loads(output.split("\n", 1)[1])["networks"][0]
        except (ValueError, KeyError, IndexError):
            raise Failed(f"plogp_measure prints no parameters: {output[-300:]}") from None
        self.latency = row["latency_ns"] / NS_PER_MS
        self.points = row["points"]  # [bytes, g, os, or] in nanoseconds

    def at(self, size, column):
        above = next((i for i, point in enumerate(self.points) if point[0] >= size), len(self.points) - 1)
        low, high = self.points[max(above - 1, 0)], self.points[above]
        share = (size - low[0]) / (high[0] - low[0]) if high[0] > low[0] else 0
        return (low[column] + share * (high[column] - low[column])) / NS_PER_MS

    def gap(self, size):
        return self.at(size, 1)

    def send(self, size):
        return self.at(size, 2)

    def receive(self, size):
        return self.at(size, 3)


def floor_log2(ranks):
    return ranks.bit_length() - 1


def ceiling_log2(ranks):
    return (ranks - 1).bit_length()


def segments(size):
    """Their size, and their number."""
    return min(size, SEGMENT), math.ceil(size / SEGMENT)


# ---- Table 1 ----


def flat(p, ranks, m):
    return (ranks - 1) * p.gap(m) + p.latency


def flat_rendezvous(p, ranks, m):
    return (ranks - 1) * p.gap(m) + 2 * p.gap(1) + 3 * p.latency


def segmented_flat(p, ranks, m):
    s, k = segments(m)
    return (ranks - 1) * (p.gap(s) * k) + p.latency


def chain(p, ranks, m):
    return (ranks - 1) * (p.gap(m) + p.latency)


def chain_rendezvous(p, ranks, m):
    return (ranks - 1) * (p.gap(m) + 2 * p.gap(1) + 3 * p.latency)


def segmented_chain(p, ranks, m):
    s, k = segments(m)
    return (ranks - 1) * (p.gap(s) + p.latency) + p.gap(s) * (k - 1)


def binary(p, ranks, m):
    return ceiling_log2(ranks) * (2 * p.gap(m) + p.latency)


def binomial(p, ranks, m):
    return floor_log2(ranks) * p.gap(m) + ceiling_log2(ranks) * p.latency


def binomial_rendezvous(p, ranks, m):
    return floor_log2(ranks) * p.gap(m) + ceiling_log2(ranks) * (2 * p.gap(1) + 3 * p.latency)


def segmented_binomial(p, ranks, m):
    s, k = segments(m)
    return floor_log2(ranks) * p.gap(s) * k + ceiling_log2(ranks) * p.latency


# ---- Table 2 ----


def scatter_chain(p, ranks, m):
    return sum(p.gap(j * m) for j in range(1, ranks)) + (ranks - 1) * p.latency


def scatter_binomial(p, ranks, m):
    return sum(p.gap(2**j * m) for j in range(ceiling_log2(ranks))) + ceiling_log2(ranks) * p.latency


# ---- Table 3 ----


def upper(p, ranks, m):
    return (ranks - 1) * p.gap(m) + (ranks - 1) * p.receive(m) + p.latency


def lower(p, ranks, m):
    return (ranks - 1) * p.send(m) + (ranks - 1) * p.receive(m) + p.latency


# ---- the forms by their rows: (row, algorithm of `causeway plan list`, form) ----

BROADCASTS = [
    ("flat tree", "flat", flat),
    ("flat tree rendezvous", "flat-rendezvous", flat_rendezvous),
    ("segmented flat tree", f"segmented-flat:segment={SEGMENT}", segmented_flat),
    ("chain", "chain", chain),
    ("chain rendezvous", "chain-rendezvous", chain_rendezvous),
    ("segmented chain", f"segmented-chain:segment={SEGMENT}", segmented_chain),
    ("binary tree", "binary", binary),
    ("binomial tree", "binomial", binomial),
    ("binomial tree rendezvous", "binomial-rendezvous", binomial_rendezvous),
    ("segmented binomial tree", f"segmented-binomial:segment={SEGMENT}", segmented_binomial),
]
SCATTERS = [
    ("flat tree", "flat", flat),
    ("chain", "chain", scatter_chain),
    ("pipelined chain", "pipelined-chain", chain),
    ("binomial tree", "binomial", scatter_binomial),
]
RUNS = 1


def size_name(size):
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB" if size >= 1 << 10 else f"{size} B"


def measure_job(what, ranks, size, algorithms):
    return Job(ranks, LINKS, "collective_measure", ("--alone", what, size, RUNS, *algorithms), TCP)


def form_cell(what, form_row, ranks, size, measured, row, column):
    """The model of a form next to its time. Those of `measured` are measured by one job."""
    _, algorithm, form = form_row
    job = measure_job(what, ranks, size, [algorithm for _, algorithm, _ in measured])
    model = Model((PARAMETERS,), lambda output: form(Plogp(output), ranks, size))
    return Cell(row, column, model, job, collective(algorithm, size))


def by_size(what, forms, ranks, sizes):
    """A row for each form, a column for each size."""
    return [form_cell(what, form, ranks, size, forms, form[0], size_name(size)) for form in forms for size in sizes]


def by_machines(what, form, measured, machines, sizes):
    """A row for each number of machines, a column for each size."""
    return [form_cell(what, form, ranks, size, measured, f"{ranks} machines", size_name(size)) for ranks in machines for size in sizes]


def places(rows, sizes):
    return tuple((row, size_name(size)) for row in rows for size in sizes)


def forms_named(forms, names):
    return [form for form in forms if form[0] in names]


# ---- all-to-alls ----

EXCHANGES = ("direct", "rotated")  # those of LAM/MPI 6 and 7
FIT = 16, 65536  # machines, and bytes of a block, whose contention is measured
PAPER_CONTENTION = 2 / 5


def exchange_job(ranks, size):
    return measure_job("alltoall", ranks, size, EXCHANGES)


def exchange_cell(algorithm, ranks, size, form, row, column):
    model = Model((PARAMETERS,), lambda output: form(Plogp(output), ranks, size))
    return Cell(row, column, model, exchange_job(ranks, size), collective(algorithm, size))


def contended(p, ranks, m, gamma):
    return lower(p, ranks, m) + (upper(p, ranks, m) - lower(p, ranks, m)) * gamma


def contention(p, output):
    """gamma of this network, by a rotated exchange."""
    ranks, m = FIT
    return (collective("rotated", m)(output) - lower(p, ranks, m)) / (upper(p, ranks, m) - lower(p, ranks, m))


def contended_cell(algorithm, ranks, size, row, column):
    """With the contention that was measured on this network."""

    def read(parameters, fit):
        p = Plogp(parameters)
        return contended(p, ranks, size, contention(p, fit))

    return Cell(row, column, Model((PARAMETERS, exchange_job(*FIT)), read), exchange_job(ranks, size), collective(algorithm, size))
