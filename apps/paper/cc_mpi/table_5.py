"""Table 5: Fourier transform of the NAS suite."""
from cc_mpi.kernels import CC_MPI, LAM, MPICH, ahead, kernel_cells
from cc_mpi.network import ITS_NAME

TITLE = "Fourier transform of the NAS suite, on 4, 8 and 16 nodes"
CLAIM = "phases are ahead of both libraries on 8 and 16 nodes"
SOURCE = f"{ITS_NAME}, Table 5"
UNIT = "s"
DIFFERENCE = (
    "Computation takes no time here (cpu=0), and a transform computes more than it sends: so times are shorter. Class A is left out, whose 8 million points take minutes of "
    "real time here. On 4 and 8 nodes the buffer of the switch is large enough for all senders, so that phases have nothing to gain."
)
PAPERS = {
    "S": {LAM: (1.00, 0.70, 0.75), MPICH: (2.04, 1.63, 1.01), CC_MPI: (1.10, 0.63, 0.42)},
    "W": {LAM: (2.15, 1.55, 1.42), MPICH: (4.17, 2.77, 1.46), CC_MPI: (2.20, 1.28, 0.77)},
    "A": {LAM: (146.50, 27.37, 12.75), MPICH: (111.91, 46.71, 28.01), CC_MPI: (40.19, 21.34, 11.23)},
}
CLAIMS = [ahead("S", 16, LAM), ahead("S", 16, MPICH), ahead("W", 16, LAM), ahead("W", 16, MPICH)]


def cells(quick):
    return kernel_cells("ft", PAPERS, ("S",) if quick else ("S", "W"), (16,) if quick else (4, 8, 16))
