"""Figure 6: broadcasts and all-reduces over a long link."""
from long_fast.network import ITS_NAME, LINKS
from long_fast.throughput import ALLREDUCE, ALLREDUCE_ORIGINAL, BCAST, BCAST_ORIGINAL, FARFIRST, TWO_TIER, size_cells, throughput_cells, with_senders
from runner import Alike, Claim

TITLE = "throughput of broadcasts and all-reduces on two clusters of 16 nodes, 10 ms apart, with n senders"
CLAIM = "with 32 MB, the modified algorithms are 1.6 times (broadcast) and 3.2 times (all-reduce) as fast as farfirst and two-tier"
SOURCE = f"{ITS_NAME}, Figure 6 and section 3.4"
UNIT = "MB/s"
DIFFERENCE = (
    "The figure prints no numbers, and the text has factors for 32 MB. The costs of Table 1 say 1.4 and 2.3 times for these. Two-tier loses packets where all nodes of a cluster send to one, and waits 200 ms for time-outs; how often "
    "depends on the size, and on the buffers, which the paper does not give."
)
PRINTED, LONGEST, MIDDLE = "32 MB", "8 MB", "4 MB"


def ahead(what, faster, slower, size, ratio=None):
    return Claim(f"{size}: {what}", (faster, size), (slower, size), ratio, is_throughput=True)


CLAIMS = [
    ahead("broadcast with 8 senders is ahead of farfirst", with_senders(BCAST, 8), FARFIRST, size, factor) for size, factor in ((MIDDLE, None), (PRINTED, 1.6))
] + [
    ahead("all-reduce with 8 senders is ahead of two-tier", with_senders(ALLREDUCE, 8), TWO_TIER, size, factor) for size, factor in ((MIDDLE, None), (PRINTED, 3.2))
] + [
    Alike(f"{MIDDLE}: farfirst is like one sender, within 1.1 times", (FARFIRST, MIDDLE), (with_senders(BCAST, 1), MIDDLE), 1.1),
    ahead("all-reduce with one sender is ahead of two-tier", with_senders(ALLREDUCE, 1), TWO_TIER, MIDDLE),
    ahead("broadcast with 8 senders is ahead of one sender", with_senders(BCAST, 8), with_senders(BCAST, 1), MIDDLE),
    ahead("broadcast with 8 senders is ahead of 16", with_senders(BCAST, 8), with_senders(BCAST, 16), MIDDLE),
    ahead("broadcast with 8 senders is ahead of the original", with_senders(BCAST, 8), BCAST_ORIGINAL, MIDDLE),
    ahead("all-reduce with 8 senders is ahead of the original", with_senders(ALLREDUCE, 8), ALLREDUCE_ORIGINAL, MIDDLE),
]


def cells(quick):
    found = throughput_cells(LINKS, quick, has_links=True)  # which Figure 5 shows
    if not quick:
        found += size_cells(LINKS, 32 << 20, (FARFIRST, with_senders(BCAST, 8), TWO_TIER, with_senders(ALLREDUCE, 8)))
    return found
