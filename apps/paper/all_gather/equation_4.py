"""Equation 4: what concurrent exchange saves."""
from all_gather.exchange import NEW, PAIRWISE, SIZES, all_gather, new_time, pairwise_time, parameters_both
from all_gather.network import ITS_NAME
from runner import Cell, Model, Within, collective

TITLE = "What concurrent exchange with index 2 saves of pairwise exchange, 512 bytes: T2 - T3 = T(m n/2)"
CLAIM = "it saves the last step of pairwise exchange, the one with the longest message"
SOURCE = f"{ITS_NAME}, Equation 4"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = (
    "The last step's bytes do not vanish: they come in the steps before, as second messages. What is saved is latency, and not the time of "
    "the link. So the share of the closed form that is really saved falls with the number of processes, and 4,096 bytes save nothing on 32 processes (ours of Equations 2 and 3)."
)
SIZE = 512
RANKS = (4, 8, 16, 32)
CLAIMS = [Within("4 processes: the closed form is right within a factor of 1.5", (("4 processes", "512 B"),), 1 / 1.5, 1.5)]


def cells(quick):
    found = []
    for ranks in RANKS[: 2 if quick else None]:
        model = Model((parameters_both(),), lambda output, ranks=ranks: pairwise_time(output, ranks, SIZE) - new_time(output, ranks, SIZE))
        job = all_gather(ranks, SIZES, (PAIRWISE, NEW))
        found.append(Cell(f"{ranks} processes", f"{SIZE} B", model, job, lambda output: collective(PAIRWISE, SIZE)(output) - collective(NEW, SIZE)(output)))
    return found
