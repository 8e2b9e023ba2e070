"""Figure 8: MPI_Bcast of 10 KB by the number of nodes."""
from cc_mpi.broadcast import MULTICAST, TREE, broadcast_cells
from cc_mpi.network import ITS_NAME
from runner import Claim

TITLE = "MPI_Bcast of 10 KB to 4 to 28 other nodes"
CLAIM = "multicast is far ahead, since each byte leaves the root once"
SOURCE = f"{ITS_NAME}, Figure 8"
UNIT = "ms"
DIFFERENCE = "The paper prints no numbers. In direction both agree."
CLAIMS = [Claim("29 nodes: multicast is ahead of a tree", ("29 nodes", MULTICAST), ("29 nodes", TREE))]


def cells(quick):
    return broadcast_cells(10240, quick)
