"""Figure 6: ideal and actual time of 1024 bytes."""
from all_gather.exchange import PAIRWISE, new_time, pairwise_time, parameters_both
from all_gather.network import ITS_NAME, NETWORKS
from all_gather.percentages import new_percentage, sizes_job
from runner import Cell, Model, Within

TITLE = "All-gather of 1024 bytes by the new method, as a percentage of pairwise exchange: by the equations, and measured"
CLAIM = "on InfiniBand the actual time is close to the ideal one; on Elan-4 it is less close"
SOURCE = f"{ITS_NAME}, Figure 6"
UNIT = "%"
VALUES = "model"
DIFFERENCE = (
    "The ideal counts two messages at once as one. That holds while latencies dominate. From 64 processes on, 1024 bytes of each fill the links: "
    "both methods bring the same bytes to each process, and need about the time of the link for them."
)
SIZE = 1024
RANKS = (4, 8, 16, 32, 64, 128)
CLAIMS = [
    Within("InfiniBand, 4 to 16 processes: within a factor of 1.5 of the ideal", tuple(("InfiniBand", f"{ranks} processes") for ranks in RANKS[:3]), 1 / 1.5, 1.5),
    Within("InfiniBand, 32 to 128 processes: within a factor of 1.5 of the ideal", tuple(("InfiniBand", f"{ranks} processes") for ranks in RANKS[3:]), 1 / 1.5, 1.5),
    Within("Elan-4, 4 to 16 processes: within a factor of 1.5 of the ideal", tuple(("Elan-4", f"{ranks} processes") for ranks in RANKS[:3]), 1 / 1.5, 1.5),
]


def cells(quick):
    found = []
    for name, network in NETWORKS:
        for ranks in RANKS[: 3 if quick else None]:
            model = Model((parameters_both(network),), lambda output, ranks=ranks: 100 * new_time(output, ranks, SIZE) / pairwise_time(output, ranks, SIZE))
            found.append(Cell(name, f"{ranks} processes", model, sizes_job(network, ranks, SIZE, quick), new_percentage(SIZE, PAIRWISE)))
    return found
