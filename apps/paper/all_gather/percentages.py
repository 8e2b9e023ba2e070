"""What Figures 6 to 8 share: the time of the new method as a percentage of another algorithm's.

The new method is concurrent exchange with index 2, or with message splitting where that is faster. 128 processes have short
sizes only, and on InfiniBand the one whose number the paper prints: the simulation of all of them takes minutes.
"""
from all_gather.exchange import NEW, PAIRWISE, SPLIT, all_gather, new_method
from all_gather.network import INFINIBAND
from runner import Cell, collective

SIZES = (512, 1024, 2048, 4096, 8192, 32768)
LARGEST = SIZES[-1]
RANKS = (4, 8, 16, 32, 64, 128)
QUICK_RANKS, QUICK_SIZES = (4, 8, 16), SIZES[:5]
COLLECTED = "gather-bcast"  # of Elan-4's MPI_Allgather


def sizes_of(ranks, quick, network):
    if quick:
        return QUICK_SIZES
    if ranks == RANKS[-1]:
        return (*SIZES[:2], SIZES[3]) + ((LARGEST,) if network == INFINIBAND else ())
    return SIZES


def is_alone(ranks, size):
    """Whether it has a job of its own, without the algorithm for short messages."""
    return ranks == RANKS[-1] and size == LARGEST


def sizes_job(network, ranks, size, quick):
    """Short sizes of one number of processes share a job."""
    if is_alone(ranks, size):
        return all_gather(ranks, (LARGEST,), (PAIRWISE, SPLIT), network)
    sizes = [each for each in sizes_of(ranks, quick, network) if not is_alone(ranks, each)]
    return all_gather(ranks, sizes, (PAIRWISE, NEW, SPLIT), network)


def new_percentage(size, algorithm):
    return lambda output: 100 * new_method(size)(output) / collective(algorithm, size)(output)


def split_percentage(size):
    return lambda output: 100 * collective(SPLIT, size)(output) / collective(PAIRWISE, size)(output)


def pairwise_cells(network, column, papers, quick):
    found = []
    for ranks in QUICK_RANKS if quick else RANKS:
        for size in sizes_of(ranks, quick, network):
            read = split_percentage(size) if is_alone(ranks, size) else new_percentage(size, PAIRWISE)
            found.append(Cell(f"{size} B, {ranks} processes", column, papers.get((size, ranks)), sizes_job(network, ranks, size, quick), read))
    return found


def collected_cells(network, column, quick):
    """Against gather and broadcast, for up to 32 processes: more take minutes."""
    found = []
    for ranks in QUICK_RANKS if quick else RANKS[:4]:
        sizes = sizes_of(ranks, quick, network)
        job = all_gather(ranks, sizes, (COLLECTED,), network)
        for size in sizes:
            jobs = (sizes_job(network, ranks, size, quick), job)
            found.append(Cell(f"{size} B, {ranks} processes", column, None, jobs, collected_percentage(size)))
    return found


def collected_percentage(size):
    return lambda new, collected: 100 * new_method(size)(new) / collective(COLLECTED, size)(collected)


def places(column, ranks, sizes):
    return tuple((f"{size} B, {number} processes", column) for number in ranks for size in sizes)
