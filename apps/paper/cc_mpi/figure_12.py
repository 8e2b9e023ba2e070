"""Figure 12: MPI_Alltoall on 16 nodes."""
from cc_mpi.network import ITS_NAME, LINKS, TCP
from runner import Cell, Claim, Job, collective

TITLE = "MPI_Alltoall on 16 nodes"
CLAIM = "with 64 KB, phases are 1.5 times as fast as LAM/MPI and 5 times as fast as MPICH"
SOURCE = f"{ITS_NAME}, Figure 12"
UNIT = "ms"
DIFFERENCE = "LAM/MPI and MPICH lose packets where several senders meet at a port of the switch, and wait 200 ms for each time-out. Here senders avoid drops, so that sending all at once fills all links."
COLUMNS = [("CC-MPI phased", "phased-barriers"), ("all at once, as LAM/MPI", "direct"), ("all at once, rotated, as MPICH", "rotated")]
CLAIMS = [
    Claim("64 KB: phases are ahead of LAM/MPI", ("65536 B", "CC-MPI phased"), ("65536 B", "all at once, as LAM/MPI"), 1.5),
    Claim("64 KB: phases are ahead of MPICH", ("65536 B", "CC-MPI phased"), ("65536 B", "all at once, rotated, as MPICH"), 5),
]


def cells(quick):
    found = []
    for size in (1024, 65536) if quick else (1024, 2048, 4096, 8192, 16384, 65536):
        for column, algorithm in COLUMNS:
            job = Job(16, LINKS, "collective_measure", ("--alone", "alltoall", size, 3, algorithm), TCP)
            found.append(Cell(f"{size} B", column, None, job, collective(algorithm, size)))
    return found
