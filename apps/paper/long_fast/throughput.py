"""What Figures 6 and 7 share: throughput of MPI_Bcast and MPI_Allreduce by algorithm and size."""
from long_fast.network import RANKS, TCP
from runner import Cell, Job, collective

BYTES_PER_MB = 1e6
SENDERS = (1, 2, 4, 8, 16)
SIZES = (1 << 20, 4 << 20, 8 << 20)
BCAST = "bcast, van de Geijn"
BCAST_ORIGINAL = "bcast, original van de Geijn"
FARFIRST = "bcast, farfirst"
ALLREDUCE = "allreduce, Rabenseifner"
ALLREDUCE_ORIGINAL = "allreduce, original Rabenseifner"
TWO_TIER = "allreduce, two-tier"


def senders_of(quick):
    return (1, 8, 16) if quick else SENDERS


def sizes_of(quick):
    return SIZES[1:2] if quick else SIZES


def with_senders(row, senders):
    return f"{row}, n={senders}"


def rows(quick):
    """(row, collective, algorithm)"""
    bcasts = [(with_senders(BCAST, n), "bcast", f"clusters-van-de-geijn:senders={n}") for n in senders_of(quick)]
    allreduces = [(with_senders(ALLREDUCE, n), "allreduce", f"clusters-rabenseifner:senders={n}") for n in ((1, 8) if quick else SENDERS)]
    bcasts += [(FARFIRST, "bcast", "clusters-farfirst"), (BCAST_ORIGINAL, "bcast", "van-de-geijn")]
    allreduces += [(TWO_TIER, "allreduce", "clusters-two-tier"), (ALLREDUCE_ORIGINAL, "allreduce", "rabenseifner")]
    return bcasts + allreduces


def size_name(size):
    return f"{size >> 20} MB"


def measure_job(network, what, sizes, algorithm, ranks=RANKS, environment=TCP, has_links=False):
    sizes = ",".join(map(str, sizes))
    return Job(ranks, network, "collective_measure", ("--alone", what, sizes, 1, algorithm), environment, has_links=has_links)


def throughput(what, algorithm, size):
    """In MB/s: M * nprocs / T for broadcasts, M * nprocs^2 / T for all-reduces (sections 3.4 and 3.5)."""
    times = RANKS if what == "bcast" else RANKS**2
    milliseconds = collective(algorithm, size)
    return lambda output: size * times / BYTES_PER_MB / (milliseconds(output) / 1000)


def size_cells(network, size, names):
    """Of some rows, for one more size."""
    return cells_of(network, [row for row in rows(False) if row[0] in names], (size,))


def throughput_cells(network, quick, has_links=False):
    return cells_of(network, rows(quick), sizes_of(quick), has_links)


def cells_of(network, rows_wanted, sizes, has_links=False):
    found = []
    for row, what, algorithm in rows_wanted:
        job = measure_job(network, what, sizes, algorithm, has_links=has_links)
        found += [Cell(row, size_name(size), None, job, throughput(what, algorithm, size)) for size in sizes]
    return found
