"""Equation 5: Concurrent exchange with message splitting."""
from all_gather.exchange import SIZES, SPLIT, all_gather, parameters_both, places, ranks_of, split_time
from all_gather.network import ITS_NAME
from runner import Cell, Model, Within, collective

TITLE = "Concurrent exchange with message splitting: T4 = sum of T(m 2^i / 2) over log2(n) steps"
CLAIM = "the two halves of a message take the time of one half"
SOURCE = f"{ITS_NAME}, Equation 5"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = "The equation counts two halves at once as one half. The link carries both, so long messages take up to twice as long."
CLAIMS = [Within(f"{ranks} processes: the closed form is a lower bound, and right within a factor of 2", places(ranks), 1, 2) for ranks in ranks_of(False)]


def cells(quick):
    found = []
    for ranks in ranks_of(quick):
        job = all_gather(ranks, SIZES, (SPLIT,))
        for size in SIZES:
            model = Model((parameters_both(),), lambda output, ranks=ranks, size=size: split_time(output, ranks, size))
            found.append(Cell(f"{ranks} processes", f"{size} B", model, job, collective(SPLIT, size)))
    return found
