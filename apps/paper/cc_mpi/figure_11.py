"""Figure 11: MPI_Alltoall on 4 nodes."""
from cc_mpi.alltoall import LAM, MPICH, PHASED, alltoall_cells
from cc_mpi.network import ITS_NAME
from runner import Claim

TITLE = "MPI_Alltoall on 4 nodes"
CLAIM = "phases are ahead of LAM/MPI and MPICH from 16 KB on"
SOURCE = f"{ITS_NAME}, Figure 11"
UNIT = "ms"
DIFFERENCE = "The paper prints no numbers. Three senders to one port fill the buffer of the switch from 64 KB on."
CLAIMS = [Claim(f"64 KB: phases are ahead of {name}", ("65536 B", PHASED), ("65536 B", other)) for name, other in (("LAM/MPI", LAM), ("MPICH", MPICH))]


def cells(quick):
    return alltoall_cells(4, (65536,) if quick else (1024, 4096, 16384, 65536, 262144))
