"""Table 1: the cycles that a link leaves to compress and expand a byte."""
from cmpi.network import FEW, GIGABIT, ITS_NAME
from cmpi.programs import DFCM, codec_ns, run
from runner import Cell, Claim, Job, collective

TITLE = "Cycles of a 3 GHz processor that compression may take for a byte at 1 Gb/s, by equation 4, and what codecs take"
CLAIM = "8 cycles for a compression ratio of 1.5 suffice for a fast codec"
SOURCE = f"{ITS_NAME}, Table 1"
UNIT = "cycles"
DIFFERENCE = (
    "The link's time for a byte is measured on the simulated network, where headers and a round trip add some per cent to the paper's 8 ns. "
    "What codecs take is measured on this processor, in nanoseconds to compress and expand a byte, and counted at 3 GHz."
)
GHZ = 3
MESSAGE_BYTES = 1 << 20
COLUMN = "at 1 Gb/s"
RATIOS = [("ratio 1.2", 1.2, 4), ("ratio 1.5", 1.5, 8), ("ratio 2.0", 2.0, 12), ("ratio 4.0", 4.0, 18)]
CODECS = (DFCM, "lorenzo")
CLAIMS = [
    Claim("the paper's codec pays at a ratio of 2", (f"{DFCM}, sPPM's messages", COLUMN), ("ratio 2.0", COLUMN)),
    Claim("the paper's codec pays at a ratio of 1.5", (f"{DFCM}, sPPM's messages", COLUMN), ("ratio 1.5", COLUMN)),
    Claim("lorenzo pays at a ratio of 1.5", ("lorenzo, sPPM's messages", COLUMN), ("ratio 1.5", COLUMN)),
]


def cycles_left(compression_ratio):
    def read(output):
        byte_ns = collective("binomial", MESSAGE_BYTES)(output) * 1e6 / MESSAGE_BYTES
        return GHZ * byte_ns * (compression_ratio - 1) / compression_ratio

    return read


def cells(quick):
    link = Job(2, GIGABIT.replace("cpu=1", "cpu=0"), "collective_measure", ("--alone", "bcast", MESSAGE_BYTES, 3, "binomial"))
    found = [Cell(row, COLUMN, paper, link, cycles_left(compression_ratio)) for row, compression_ratio, paper in RATIOS]
    for codec in CODECS:
        job = run("sPPM", FEW, codec, GIGABIT)
        found.append(Cell(f"{codec}, sPPM's messages", COLUMN, None, job, lambda output: GHZ * codec_ns(output)))
    return found
