"""What Figures 7 and 8 share: MPI_Bcast of one size, by the number of nodes."""
from cc_mpi.network import LINKS, TCP
from runner import Cell, Job, collective

MULTICAST, TREE = "CC-MPI multicast", "tree, as LAM/MPI and MPICH"


def broadcast_cells(size, quick):
    found = []
    for nodes in (5, 29) if quick else (5, 9, 17, 29):
        for column, algorithm in ((MULTICAST, "multicast"), (TREE, "binomial")):
            job = Job(nodes, LINKS, "collective_measure", ("--alone", "bcast", size, 3, algorithm), () if algorithm == "multicast" else TCP)
            found.append(Cell(f"{nodes} nodes", column, None, job, collective(algorithm, size)))
    return found
