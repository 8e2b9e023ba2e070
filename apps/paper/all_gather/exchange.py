"""What equations and figures of the paper share: the times of all-gathers, and t(m) and T(m) of the equations.

T(m), the time of an exchange of m bytes in both directions, is an all-gather of two ranks; t(m), in one direction, a broadcast
of two ranks. Starting a message and a step take no time here, so the paper's constants for them are 0.
"""
from all_gather.network import CREDITS, INFINIBAND
from runner import Job, collective

SIZES = (512, 4096)
PAIRWISE, NEW, SPLIT = "recursive-doubling", "concurrent:concurrency=2", "concurrent-split"
PARAMETER_SIZES = [256 << power for power in range(12)]


def falling(sizes):
    """Long messages first: they open the windows of the senders, which begin small."""
    return ",".join(map(str, sorted(sizes, reverse=True)))


def all_gather(ranks, sizes, algorithms, network=INFINIBAND):
    return Job(ranks, network, "collective_measure", ("--alone", "allgather", falling(sizes), 1, *algorithms), CREDITS)


def steps(ranks):
    return ranks.bit_length() - 1


def parameters_both(network=INFINIBAND):
    """The job that measures T(m)."""
    return all_gather(2, PARAMETER_SIZES, (PAIRWISE,), network)


def parameters_one(network=INFINIBAND):
    """The job that measures t(m)."""
    return Job(2, network, "collective_measure", ("--alone", "bcast", falling(PARAMETER_SIZES), 1, "binomial"), CREDITS)


def time_both(output, size):
    return collective(PAIRWISE, size)(output)


def time_one(output, size):
    return collective("binomial", size)(output)


def pairwise_time(output, ranks, size):
    """Equation 2."""
    return sum(time_both(output, size << step) for step in range(steps(ranks)))


def new_time(output, ranks, size, index=2):
    """Equation 3, with concurrency index `index`."""
    return sum(time_both(output, size << step) for step in range(steps(ranks // index)))


def split_time(output, ranks, size):
    """Equation 5: in each step two exchanges of half the bytes at the same time."""
    return sum(time_both(output, size // 2 << step) for step in range(steps(ranks)))


def new_method(size):
    """Milliseconds of the paper's method, which splits messages where that is faster."""

    def read(output):
        return min(collective(NEW, size)(output), collective(SPLIT, size)(output))

    return read


def ranks_of(quick):
    return (8,) if quick else (8, 32)


def places(ranks):
    """The cells of an equation."""
    return tuple((f"{ranks} processes", f"{size} B") for size in SIZES)
