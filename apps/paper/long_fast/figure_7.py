"""Figure 7: broadcasts and all-reduces without delay."""
from long_fast.figure_6 import LONGEST, MIDDLE, ahead
from long_fast.network import ITS_NAME, NO_DELAY
from long_fast.throughput import ALLREDUCE, ALLREDUCE_ORIGINAL, BCAST, BCAST_ORIGINAL, throughput_cells, with_senders
from runner import Alike

TITLE = "throughput of broadcasts and all-reduces on two clusters of 16 nodes without delay, with n senders"
CLAIM = "the originals are slower, and the number of senders has almost no effect"
SOURCE = f"{ITS_NAME}, Figure 7 and section 3.6"
UNIT = "MB/s"
DIFFERENCE = (
    "The costs of Table 1 say that one sender takes 1.4 times as long as 8, with and without delay; so it does here, and it did not in the paper. Our "
    "original van de Geijn gathers around a ring, which sends one message over the long link at a time, so that it is not slower. With 16 senders "
    "packets are lost at the 1 MB queue of the long link."
)
CLAIMS = [
    ahead("broadcast with 8 senders is ahead of the original", with_senders(BCAST, 8), BCAST_ORIGINAL, size) for size in (MIDDLE, LONGEST)
] + [
    ahead("all-reduce with 8 senders is ahead of the original", with_senders(ALLREDUCE, 8), ALLREDUCE_ORIGINAL, size) for size in (MIDDLE, LONGEST)
] + [
    Alike(f"{MIDDLE}: 8 and 16 senders are alike, within 1.1 times", (with_senders(row, 8), MIDDLE), (with_senders(row, 16), MIDDLE), 1.1)
    for row in (BCAST, ALLREDUCE)
] + [
    Alike(f"{MIDDLE}: one and 8 senders are alike, within 1.1 times", (with_senders(row, 1), MIDDLE), (with_senders(row, 8), MIDDLE), 1.1)
    for row in (BCAST, ALLREDUCE)
]


def cells(quick):
    return throughput_cells(NO_DELAY, quick)
