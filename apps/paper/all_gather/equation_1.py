"""Equation 1: Pairwise exchange by blocking messages."""
from all_gather.exchange import PAIRWISE, SIZES, all_gather, parameters_one, places, ranks_of, steps, time_one
from all_gather.network import ITS_NAME
from runner import Cell, Model, Within, collective

TITLE = "Pairwise exchange by blocking messages: T1 = sum of 2 t(m 2^i) over log2(n) steps"
CLAIM = "blocking messages take twice the time of one direction in each step; nonblocking ones need no more"
SOURCE = f"{ITS_NAME}, Equation 1"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = "Causeway has no pairwise exchange that is blocking; ours is the nonblocking one, which uses both directions of a link at once. Latencies and link times are those of t(m), so it takes about half of T1."
CLAIMS = [Within(f"{ranks} processes: nonblocking messages take about half the time of blocking ones, up to all of it", places(ranks), 0.45, 1) for ranks in ranks_of(False)]


def blocking_time(output, ranks, size):
    return sum(2 * time_one(output, size << step) for step in range(steps(ranks)))


def cells(quick):
    found = []
    for ranks in ranks_of(quick):
        job = all_gather(ranks, SIZES, (PAIRWISE,))
        for size in SIZES:
            model = Model((parameters_one(),), lambda output, ranks=ranks, size=size: blocking_time(output, ranks, size))
            found.append(Cell(f"{ranks} processes", f"{size} B", model, job, collective(PAIRWISE, size)))
    return found
