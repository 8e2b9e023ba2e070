"""Figure 7: MPI_Bcast of 1 byte by the number of nodes."""
from cc_mpi.network import ITS_NAME, LINKS
from runner import Cell, Claim, Job, collective

TITLE = "MPI_Bcast of 1 byte to 4 to 28 other nodes"
CLAIM = "a tree is ahead of multicast, whose root processes an acknowledgement of each receiver"
SOURCE = f"{ITS_NAME}, Figure 7"
UNIT = "ms"
DIFFERENCE = "The root of the paper spends CPU time on each acknowledgement, and its trees share that work. Processing takes no time here, and a multicast needs one trip through the network where a tree needs several. So this claim cannot hold without the CPUs of the time."
SIZE = 1
COLUMNS = [("CC-MPI multicast", "multicast"), ("tree, as LAM/MPI and MPICH", "binomial")]
CLAIMS = [Claim("29 nodes: a tree is ahead of multicast", ("29 nodes", "tree, as LAM/MPI and MPICH"), ("29 nodes", "CC-MPI multicast"))]


def cells(quick):
    found = []
    for nodes in (5, 29) if quick else (5, 9, 17, 29):
        for column, algorithm in COLUMNS:
            job = Job(nodes, LINKS, "collective_measure", ("--alone", "bcast", SIZE, 3, algorithm))
            found.append(Cell(f"{nodes} nodes", column, None, job, collective(algorithm, SIZE)))
    return found
