"""Figure 7: MPI_Bcast of 1 byte by the number of nodes."""
from cc_mpi.broadcast import MULTICAST, TREE, broadcast_cells
from cc_mpi.network import ITS_NAME
from runner import Claim

TITLE = "MPI_Bcast of 1 byte to 4 to 28 other nodes"
CLAIM = "a tree is ahead of multicast, whose root processes an acknowledgement of each receiver"
SOURCE = f"{ITS_NAME}, Figure 7"
UNIT = "ms"
DIFFERENCE = "The root of the paper spends CPU time on each acknowledgement, and its trees share that work. Processing takes no time here, and a multicast needs one trip through the network where a tree needs several. So this claim cannot hold without the CPUs of the time."
CLAIMS = [Claim("29 nodes: a tree is ahead of multicast", ("29 nodes", TREE), ("29 nodes", MULTICAST))]


def cells(quick):
    return broadcast_cells(1, quick)
