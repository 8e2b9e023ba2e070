"""Table 1: MPI_Allgather on 16 nodes."""
from cc_mpi.network import ITS_NAME, LINKS, TCP
from runner import Cell, Claim, Job, collective

TITLE = "MPI_Allgather on 16 nodes"
CLAIM = "multicast is the fastest of CC-MPI's three for 1 KB, phases for long messages"
SOURCE = f"{ITS_NAME}, Table 1"
UNIT = "ms"
DIFFERENCE = (
    "Processing takes no time here, and unicast around the ring gains more by that than 16 multicasts, which follow one another. Phases of short messages take less time than in the paper, for the same reason. "
    "The gather of LAM/MPI loses packets at the root's port here; its 4 MB at the root take most of the time also without losses."
)
COLUMNS = [("CC-MPI multicast", "multicasts"), ("CC-MPI unicast", "ring"), ("CC-MPI phased", "phased-barriers"), ("LAM/MPI", "gather-bcast"), ("MPICH", "ring")]
ROWS = [
    ("1 B", 1, [1.8, 1.1, 17.7, 0.7, 1.9]),
    ("1 KB", 1024, [8.7, 9.4, 18.1, 7.6, 5.0]),
    ("8 KB", 8192, [61.4, 82.5, 28.7, 108.4, 15.3]),
    ("64 KB", 65536, [494.2, 705.2, 112.2, 937.7, 335.0]),
    ("256 KB", 262144, [1987.0, 2739.6, 378.8, 3706.8, 905.1]),
]
CLAIMS = [
    Claim("1 KB: multicast is ahead of unicast", ("1 KB", "CC-MPI multicast"), ("1 KB", "CC-MPI unicast")),
    Claim("64 KB: phases are ahead of LAM/MPI", ("64 KB", "CC-MPI phased"), ("64 KB", "LAM/MPI")),
    Claim("64 KB: phases are ahead of multicast", ("64 KB", "CC-MPI phased"), ("64 KB", "CC-MPI multicast")),
    Claim("256 KB: phases are ahead of MPICH", ("256 KB", "CC-MPI phased"), ("256 KB", "MPICH")),
]


def cells(quick):
    found = []
    for row, size, papers in ROWS[: 3 if quick else None]:
        for (column, algorithm), paper in zip(COLUMNS, papers):
            environment = () if algorithm == "multicasts" else TCP
            job = Job(16, LINKS, "collective_measure", ("--alone", "allgather", size, 1 if quick else 3, algorithm), environment)
            found.append(Cell(row, column, paper, job, collective(algorithm, size)))
    return found
