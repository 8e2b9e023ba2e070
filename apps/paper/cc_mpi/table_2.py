"""Table 2: MPI_Alltoallv with equal counts on 16 nodes, at the levels of compiled communication."""
import json

from cc_mpi.network import ITS_NAME, LINKS, TCP
from runner import Cell, Claim, Failed, Job

TITLE = "MPI_Alltoallv as an all-to-all on 16 nodes, by what is known when the program is compiled"
CLAIM = "the more is known, the faster; phases are ahead of point-to-point from 16 KB on"
SOURCE = f"{ITS_NAME}, Table 2"
UNIT = "ms"
DIFFERENCE = (
    "Point-to-point messages collide in the switch from 8 KB on, as in the paper, and more of them are dropped here: the paper does not give the buffer of its switch. "
    "Phases of long messages lose packets, too, where a sender begins before the one before it has ended, and each time-out takes 200 ms: so levels 2 and 3 differ by chance, although scheduling takes no time with cpu=0."
)
COLUMNS = ["level 1", "level 2", "level 3", "pairs"]
ROWS = [
    ("2 KB", 2048, [23.6, 21.2, 20.0, 3.5]),
    ("4 KB", 4096, [26.4, 24.1, 22.8, 8.5]),
    ("8 KB", 8192, [32.5, 30.1, 28.8, 30.2]),
    ("16 KB", 16384, [44.5, 42.2, 40.9, 88.0]),
    ("32 KB", 32768, [67.4, 65.1, 63.7, 142.4]),
    ("64 KB", 65536, [112.0, 109.7, 108.4, 214.1]),
]
CLAIMS = [
    Claim("4 KB: level 3 is ahead of level 1", ("4 KB", "level 3"), ("4 KB", "level 1")),
    Claim("2 KB: point-to-point is ahead of level 3", ("2 KB", "pairs"), ("2 KB", "level 3")),
    Claim("64 KB: level 3 is ahead of point-to-point", ("64 KB", "level 3"), ("64 KB", "pairs")),
]


def calls_of(quick):
    return 1 if quick else 4


def rounds_median(size, column):
    def read(output):
        try:
            return next(row[column] for row in json.loads(output)["rows"] if row["bytes"] == size) / 1000
        except (ValueError, KeyError, StopIteration):
            raise Failed(f"levels_measure prints no {column} for {size} bytes") from None

    return read


def cells(quick):
    """The quick form has the sizes of the claims."""
    cells = []
    for row, size, papers in [ROWS[i] for i in (0, 1, 5)] if quick else ROWS:
        job = Job(16, LINKS, "levels_measure", ("--json", "--rounds", 1, "--calls", calls_of(quick), "--size", size), TCP)
        cells += [Cell(row, column, paper, job, rounds_median(size, column)) for column, paper in zip(COLUMNS, papers)]
    return cells
