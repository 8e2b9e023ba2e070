"""Equation 2: Pairwise exchange by nonblocking messages."""
from all_gather.exchange import PAIRWISE, SIZES, all_gather, pairwise_time, parameters_both, places, ranks_of
from all_gather.network import ITS_NAME
from runner import Cell, Model, Within, collective

TITLE = "Pairwise exchange by nonblocking messages: T2 = sum of T(m 2^i) over log2(n) steps"
CLAIM = "each step takes the time of one exchange in both directions"
SOURCE = f"{ITS_NAME}, Equation 2"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = "In a step all pairs exchange at once, and no two of them share a link. The closed form leaves out that a rank begins a step when its own partner is there, later than the first ranks do."
CLAIMS = [Within(f"{ranks} processes: the closed form is right within a factor of 1.5", places(ranks), 1 / 1.5, 1.5) for ranks in ranks_of(False)]


def cells(quick):
    found = []
    for ranks in ranks_of(quick):
        job = all_gather(ranks, SIZES, (PAIRWISE,))
        for size in SIZES:
            model = Model((parameters_both(),), lambda output, ranks=ranks, size=size: pairwise_time(output, ranks, size))
            found.append(Cell(f"{ranks} processes", f"{size} B", model, job, collective(PAIRWISE, size)))
    return found
