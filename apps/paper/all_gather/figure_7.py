"""Figure 7: the new method on InfiniBand."""
from all_gather.network import INFINIBAND, ITS_NAME
from all_gather.percentages import SIZES, pairwise_cells, places
from runner import AtMost

TITLE = "Time of the new all-gather on InfiniBand, as a percentage of recursive doubling (MPI_Allgather and the pairwise exchange)"
CLAIM = "it is faster for all sizes and numbers of processes, by 7 to 58 %, and by 65 % for 32 KB on 128 processes"
SOURCE = f"{ITS_NAME}, Figure 7 and section 4.2"
UNIT = "%"
DIFFERENCE = (
    "Short messages are faster, since fewer latencies follow each other. Long ones are not: all algorithms bring the same bytes over the link of each process, and a single message fills it "
    "(Figure 5: two puts of 256 KB take 1.9 times as long as one). The last step of 32 KB on 128 processes has messages of 2 MB. The paper's gain for these must come from elsewhere, such as the handshakes and copies of its MPI_Allgather, which take no time here."
)
COLUMN = "of pairwise exchange"
PAPERS = {(32768, 128): 35}
CLAIMS = [
    AtMost("faster: 4 to 16 processes, 512 B to 2 KB", places(COLUMN, (4, 8, 16), SIZES[:3]), 100),
    AtMost("faster: 4 to 16 processes, 4 and 8 KB", places(COLUMN, (4, 8, 16), SIZES[3:5]), 100),
    AtMost("faster: 32 and 64 processes, 512 B", places(COLUMN, (32, 64), SIZES[:1]), 100),
    AtMost("faster: 32 and 64 processes, 1 to 8 KB", places(COLUMN, (32, 64), SIZES[1:5]), 100),
    AtMost("faster: 4 to 64 processes, 32 KB", places(COLUMN, (4, 8, 16, 32, 64), SIZES[5:]), 100),
    AtMost("faster: 128 processes, 32 KB", places(COLUMN, (128,), SIZES[5:]), 100),
]


def cells(quick):
    return pairwise_cells(INFINIBAND, COLUMN, PAPERS, quick)
