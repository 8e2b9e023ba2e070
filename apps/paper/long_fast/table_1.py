"""Table 1: the costs of the algorithms, on clusters of equal and of unequal size."""
from long_fast.network import ITS_NAME, LINKS, RANKS, UNEQUAL, UNEQUAL_RANKS, UNSEALED
from long_fast.throughput import measure_job, size_name
from runner import Cell, Model, Within, collective

TITLE = "the costs of the algorithms, and their times on two clusters"
CLAIM = "a cost is the delay L, the message through the senders' links, M / (n B), and M / B for each stage inside a cluster"
SOURCE = f"{ITS_NAME}, Table 1 and section 2.5"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = (
    "The senders have Causeway's congestion control, which loses nothing here; Figures 6 and 7 have TCP. The costs have no beginning: here each size is one "
    "call after one that sets up connections, and windows still grow in it. So 1 MB takes up to a round trip of the long link (20 ms) longer than its "
    "cost, and a job with 8 MB alone takes longer than one that sent 1 and 4 MB before. Where stages overlap, they wait for each other least."
)
B = 125e3  # bytes per millisecond
L = 10.0  # ms
SIZES = (1 << 20, 4 << 20, 8 << 20)
EQUAL, OTHER = "16 and 16 nodes", "16 and 8 nodes"
NETWORKS = {EQUAL: (LINKS, RANKS), OTHER: (UNEQUAL, UNEQUAL_RANKS)}
# row, collective, algorithm, network, senders, stages inside clusters
ROWS = [
    ("bcast, farfirst", "bcast", "clusters-farfirst", EQUAL, 1, 2),
    ("bcast, van de Geijn, n=1", "bcast", "clusters-van-de-geijn:senders=1", EQUAL, 1, 2),
    ("bcast, van de Geijn, n=8", "bcast", "clusters-van-de-geijn:senders=8", EQUAL, 8, 2),
    ("allreduce, two-tier", "allreduce", "clusters-two-tier", EQUAL, 1, 4),
    ("allreduce, Rabenseifner, n=1", "allreduce", "clusters-rabenseifner:senders=1", EQUAL, 1, 2),
    ("allreduce, Rabenseifner, n=8", "allreduce", "clusters-rabenseifner:senders=8", EQUAL, 8, 2),
    ("bcast, overlapped (not in the paper), n=8", "bcast", "clusters-overlapped:senders=8", EQUAL, 8, 1),
    ("allreduce, overlapped (not in the paper), n=8", "allreduce", "clusters-overlapped:senders=8", EQUAL, 8, 2),
    (f"bcast, van de Geijn, n=8, {OTHER}", "bcast", "clusters-van-de-geijn:senders=8", OTHER, 8, 2),
    (f"allreduce, Rabenseifner, n=8, {OTHER}", "allreduce", "clusters-rabenseifner:senders=8", OTHER, 8, 2),
]


def cost(size, senders, stages):
    return L + size / (senders * B) + stages * size / B


def places(row, sizes=SIZES):
    return tuple((row, size_name(size)) for size in sizes)


CLAIMS = [Within(f"{row}: within 1.5 times its cost, from 4 MB on", places(row, SIZES[1:]), 0.67, 1.5) for row, *_ in ROWS]


def cells(quick):
    found = []
    sizes = (SIZES[1],) if quick else SIZES
    for row, what, algorithm, which, senders, stages in (ROWS[1], ROWS[2], ROWS[5]) if quick else ROWS:
        network, ranks = NETWORKS[which]
        job = measure_job(network, what, sizes, algorithm, ranks, UNSEALED)
        for size in sizes:
            model = Model((), lambda size=size, senders=senders, stages=stages: cost(size, senders, stages))
            found.append(Cell(row, size_name(size), model, job, collective(algorithm, size)))
    return found
