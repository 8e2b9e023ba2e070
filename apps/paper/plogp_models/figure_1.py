"""Figure 1: the pLogP parameters of the network."""
from plogp_models.equations import PARAMETERS, Plogp, size_name
from plogp_models.network import ITS_NAME
from runner import Cell, Claim

TITLE = "the pLogP parameters of the network, by message size"
CLAIM = "a gap is longer than the overheads of sending and receiving"
SOURCE = f"{ITS_NAME}, Figure 1"
UNIT = "us"
DIFFERENCE = (
    "The figure prints no numbers. Processing takes no time here: os is the time of a look at the clock, and so is or for messages that have come already. Longer "
    "messages than 8 KB come while the receiver receives them, so that or is the time of the transfer."
)
SIZES = (1, 1024, 8192, 65536, 262144, 1048576)
COLUMNS = (("g", Plogp.gap), ("os", Plogp.send), ("or", Plogp.receive))
ONCE = "any size"
CLAIMS = [Claim(f"{size_name(size)}: {column} is below g", (size_name(size), column), (size_name(size), "g")) for size in SIZES[1::2] for column in ("os", "or")]


def parameter_cell(row, column, read):
    return Cell(row, column, None, PARAMETERS, lambda output: 1000 * read(Plogp(output)))


def cells(quick):
    found = [parameter_cell(ONCE, "L", lambda p: p.latency)]
    for size in SIZES:
        found += [parameter_cell(size_name(size), column, lambda p, size=size, read=read: read(p, size)) for column, read in COLUMNS]
    return found
