"""Figure 9: MPI_Scatter on 29 nodes."""
from cc_mpi.network import ITS_NAME, LINKS, TCP
from runner import Cell, Claim, Job, collective

TITLE = "MPI_Scatter on 29 nodes"
CLAIM = "multicast is ahead only while blocks are short (50 bytes), since each node receives the blocks of all"
SOURCE = f"{ITS_NAME}, Figure 9"
UNIT = "ms"
DIFFERENCE = "The paper prints no numbers. In direction both agree."
COLUMNS = [("CC-MPI multicast", "multicast"), ("one by one, as LAM/MPI and MPICH", "flat")]
CLAIMS = [
    Claim("50 bytes: multicast is ahead", ("50 B", "CC-MPI multicast"), ("50 B", "one by one, as LAM/MPI and MPICH")),
    Claim("1 KB: one by one is ahead", ("1024 B", "one by one, as LAM/MPI and MPICH"), ("1024 B", "CC-MPI multicast")),
]


def cells(quick):
    sizes = (50, 1024) if quick else (50, 200, 500, 1024)
    found = []
    for column, algorithm in COLUMNS:
        arguments = ("--alone", "scatter", ",".join(map(str, sizes)), 3, algorithm)
        job = Job(29, LINKS, "collective_measure", arguments, TCP if algorithm == "flat" else ())
        found += [Cell(f"{size} B", column, None, job, collective(algorithm, size)) for size in sizes]
    return sorted(found, key=lambda cell: int(cell.row.split()[0]))
