"""Figure 11: two all-to-alls."""
from plogp_models.equations import EXCHANGES, exchange_job, size_name
from plogp_models.network import ITS_NAME
from runner import Alike, Cell, collective

TITLE = "two all-to-alls of 24 machines: direct (LAM/MPI 6), rotated (LAM/MPI 7, MPICH)"
CLAIM = "both take about the same time, so that contention is in the network and not at one machine"
SOURCE = f"{ITS_NAME}, Figure 11"
UNIT = "ms"
DIFFERENCE = (
    "On the paper's network contention was in the network. A direct exchange of 64 KB here sends 1.5 MB to one machine at a time, more than the 1 MB "
    "of its port: packets are lost, and senders wait 200 ms. With a buffer of 4 MB it takes 27 ms."
)
SIZES = (1024, 8192, 32768, 65536)
CLAIMS = [Alike(f"{size_name(size)}: both are alike, within 1.25 times", (size_name(size), "direct"), (size_name(size), "rotated"), 1.25) for size in SIZES]


def cells(quick):
    return [Cell(size_name(size), each, None, exchange_job(24, size), collective(each, size)) for size in (SIZES[1::2] if quick else SIZES) for each in EXCHANGES]
