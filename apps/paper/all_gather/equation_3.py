"""Equation 3: Concurrent exchange with index 2."""
from all_gather.exchange import NEW, SIZES, all_gather, new_time, parameters_both, places, ranks_of
from all_gather.network import ITS_NAME
from runner import Cell, Model, Within, collective

TITLE = "Concurrent exchange with index 2: T3 = sum of T(m 2^i) over log2(n/2) steps"
CLAIM = "each step takes the time of one exchange, though it sends two messages"
SOURCE = f"{ITS_NAME}, Equation 3"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = "The equation counts two messages at once as one. Their latencies do overlap, but the link carries the bytes of both: Figure 5 has two puts of 256 KB take 1.9 times as long as one. So T3 is a lower bound that only short messages come near."
CLAIMS = [Within(f"{ranks} processes: the closed form is a lower bound, and right within a factor of 2", places(ranks), 1, 2) for ranks in ranks_of(False)]


def cells(quick):
    found = []
    for ranks in ranks_of(quick):
        job = all_gather(ranks, SIZES, (NEW,))
        for size in SIZES:
            model = Model((parameters_both(),), lambda output, ranks=ranks, size=size: new_time(output, ranks, size))
            found.append(Cell(f"{ranks} processes", f"{size} B", model, job, collective(NEW, size)))
    return found
