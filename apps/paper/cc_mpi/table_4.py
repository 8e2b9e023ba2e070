"""Table 4: Integer sort of the NAS suite."""
from cc_mpi.kernels import CC_MPI, LAM, MPICH, ahead, kernel_cells
from cc_mpi.network import ITS_NAME

TITLE = "Integer sort of the NAS suite, on 4, 8 and 16 nodes"
CLAIM = "phases are ahead but for the small problem: 54 % over LAM/MPI and 286 % over MPICH for class A on 16 nodes"
SOURCE = f"{ITS_NAME}, Table 4"
UNIT = "s"
DIFFERENCE = (
    "Computation takes no time here (cpu=0), so that all times are shorter. The senders of LAM/MPI and MPICH lose packets at the ports of the switch from class W on 16 nodes on, "
    "as in the paper. How much they lose depends on the buffer of the switch, which the paper does not give. MPICH's exchange is the rotated one, whose losses are like those of LAM/MPI here."
)
PAPERS = {
    "S": {LAM: (0.11, 0.09, 0.07), MPICH: (0.10, 0.08, 0.07), CC_MPI: (0.13, 0.16, 0.28)},
    "W": {LAM: (1.32, 1.02, 1.60), MPICH: (2.69, 2.16, 1.57), CC_MPI: (1.08, 0.69, 0.64)},
    "A": {LAM: (9.62, 5.88, 4.62), MPICH: (21.92, 15.40, 11.60), CC_MPI: (8.45, 4.90, 3.00)},
}
CLAIMS = [ahead("W", 16, LAM), ahead("W", 16, MPICH), ahead("A", 16, LAM), ahead("A", 16, MPICH)]


def cells(quick):
    return kernel_cells("is", PAPERS, ("S", "W") if quick else ("S", "W", "A"), (16,) if quick else (4, 8, 16))
