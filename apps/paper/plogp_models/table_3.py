"""Table 3: the bounds of the all-to-all."""
from plogp_models.equations import EXCHANGES, exchange_cell, lower, places, size_name, upper
from plogp_models.network import ITS_NAME
from runner import Within

TITLE = "the bounds of an all-to-all, and exchanges of 16 machines: direct (LAM/MPI 6), rotated (LAM/MPI 7, MPICH)"
CLAIM = "an all-to-all takes more than the lower bound and less than the upper one"
SOURCE = f"{ITS_NAME}, Table 3"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = (
    "Sending takes no processing here: os and or(m) up to 8 KB are 0.1 us, so that the lower bound has hardly more than L, although a link has to carry P-1 messages. "
    "Above 8 KB a message waits for its receiver, so that or(m) is the whole transfer, and the lower bound is about the time of a link that is never idle. With 8 KB, "
    "a direct exchange is slower than the upper bound, since all machines send to the same one: rotated it takes 0.6 times as long."
)
SIZES = (1024, 8192, 65536, 131072)
BOUNDS = (("lower: (P-1) os + (P-1) or + L", lower), ("upper: (P-1) g + (P-1) or + L", upper))
LOWER, UPPER = (bound[0] for bound in BOUNDS)


def row(bound, algorithm):
    return f"{bound}, {algorithm}"


CLAIMS = [
    Within("no exchange is faster than the lower bound", places([row(LOWER, each) for each in EXCHANGES], SIZES), 1, float("inf")),
    Within("no direct exchange is slower than the upper bound", places((row(UPPER, "direct"),), SIZES), 0, 1),
    Within("no rotated exchange is slower than the upper bound", places((row(UPPER, "rotated"),), SIZES), 0, 1),
]


def cells(quick):
    sizes = SIZES[:3] if quick else SIZES
    return [exchange_cell(each, 16, size, form, row(name, each), size_name(size)) for name, form in BOUNDS for each in EXCHANGES for size in sizes]
