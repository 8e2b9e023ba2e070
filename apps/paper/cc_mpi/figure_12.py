"""Figure 12: MPI_Alltoall on 16 nodes."""
from cc_mpi.alltoall import LAM, MPICH, PHASED, alltoall_cells
from cc_mpi.network import ITS_NAME
from runner import Claim

TITLE = "MPI_Alltoall on 16 nodes"
CLAIM = "with 64 KB, phases are 1.5 times as fast as LAM/MPI and 5 times as fast as MPICH"
SOURCE = f"{ITS_NAME}, Figure 12"
UNIT = "ms"
DIFFERENCE = "LAM/MPI and MPICH lose packets here as they did in the paper. Why MPICH was more than three times slower than LAM/MPI the paper does not say; here both send all at once."
CLAIMS = [
    Claim("64 KB: phases are ahead of LAM/MPI", ("65536 B", PHASED), ("65536 B", LAM), 1.5),
    Claim("64 KB: phases are ahead of MPICH", ("65536 B", PHASED), ("65536 B", MPICH), 5),
]


def cells(quick):
    return alltoall_cells(16, (1024, 65536) if quick else (1024, 2048, 4096, 8192, 16384, 65536))
