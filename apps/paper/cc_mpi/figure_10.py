"""Figure 10: MPI_Scatterv to 5 of 29 nodes, by group management."""
from cc_mpi.network import ITS_NAME, LINKS, TCP
from runner import Cell, Claim, Job, collective

TITLE = "MPI_Scatterv from one node to 5 of 29, by group management"
CLAIM = "compiler-assisted groups are the fastest; dynamic ones are the slowest; LAM/MPI is ahead of static ones"
SOURCE = f"{ITS_NAME}, Figure 10"
UNIT = "ms"
DIFFERENCE = "The paper prints no numbers. One by one (LAM/MPI) is faster here than in the paper, since its messages do not wait for processing."
COLUMNS = [("compiler-assisted", "explicit"), ("static", "static"), ("dynamic", "dynamic"), ("one by one, as LAM/MPI", "pairs")]
CLAIMS = [
    Claim("1 byte: compiler-assisted groups are ahead of one by one", ("1 B", "compiler-assisted"), ("1 B", "one by one, as LAM/MPI")),
    Claim("1 byte: compiler-assisted groups are ahead of static ones", ("1 B", "compiler-assisted"), ("1 B", "static")),
    Claim("1 byte: static groups are ahead of dynamic ones", ("1 B", "static"), ("1 B", "dynamic")),
    Claim("1 KB: one by one is ahead of static groups", ("1024 B", "one by one, as LAM/MPI"), ("1024 B", "static")),
]


def cells(quick):
    sizes = (1, 1024) if quick else (1, 256, 1024, 8192)
    found = []
    for column, algorithm in COLUMNS:
        arguments = ("--alone", "scatterv:5", ",".join(map(str, sizes)), 3, algorithm)
        job = Job(29, LINKS, "collective_measure", arguments, TCP if algorithm == "pairs" else ())
        found += [Cell(f"{size} B", column, None, job, collective(algorithm, size)) for size in sizes]
    return sorted(found, key=lambda cell: int(cell.row.split()[0]))
