"""Figure 8: MPI_Bcast of 10 KB by the number of nodes."""
from cc_mpi.network import ITS_NAME, LINKS
from runner import Cell, Claim, Job, collective

TITLE = "MPI_Bcast of 10 KB to 4 to 28 other nodes"
CLAIM = "multicast is far ahead, since each byte leaves the root once"
SOURCE = f"{ITS_NAME}, Figure 8"
UNIT = "ms"
DIFFERENCE = "The paper prints no numbers. In direction both agree."
SIZE = 10240
COLUMNS = [("CC-MPI multicast", "multicast"), ("tree, as LAM/MPI and MPICH", "binomial")]
CLAIMS = [Claim("29 nodes: multicast is ahead of a tree", ("29 nodes", "CC-MPI multicast"), ("29 nodes", "tree, as LAM/MPI and MPICH"))]


def cells(quick):
    found = []
    for nodes in (5, 29) if quick else (5, 9, 17, 29):
        for column, algorithm in COLUMNS:
            job = Job(nodes, LINKS, "collective_measure", ("--alone", "bcast", SIZE, 3, algorithm))
            found.append(Cell(f"{nodes} nodes", column, None, job, collective(algorithm, SIZE)))
    return found
