"""What Figures 11 and 12 share: MPI_Alltoall in phases and all at once."""
from cc_mpi.network import LINKS, TCP
from runner import Cell, Job, collective

PHASED, LAM, MPICH = "CC-MPI phased", "all at once, as LAM/MPI", "all at once, rotated, as MPICH"
COLUMNS = [(PHASED, "phased-barriers"), (LAM, "direct"), (MPICH, "rotated")]


def alltoall_cells(nodes, sizes):
    found = []
    for size in sizes:
        for column, algorithm in COLUMNS:
            job = Job(nodes, LINKS, "collective_measure", ("--alone", "alltoall", size, 3, algorithm), TCP)
            found.append(Cell(f"{size} B", column, None, job, collective(algorithm, size)))
    return found
