"""Equation 3: what compression saves."""
import re

from cmpi.network import FEW, ITS_NAME, KERNELS
from cmpi.programs import CHOICE, codec_ns, rate, run
from runner import Cell, Failed, Model, Within

TITLE = "What compression saves of a byte's time at 100 Mb/s, by equation 3 and measured"
CLAIM = "a byte saves (R - 1) / R of the link's time, less the codec's time; a message loses a constant"
SOURCE = f"{ITS_NAME}, Equation 3"
UNIT = "ns/B"
VALUES = "model"
DIFFERENCE = (
    "Each flow sends parts of its data with and without compression, and measures both; the model has the link's 80 ns, and the rate R and codec times of the same flows. "
    "It leaves out headers, waits for the receiver, and the constant of a message, and messages of some 10 KB do not fill the link. AZTEC's kernel is left out: its flows take too few long messages for such a trial."
)
LINK_NS = 80  # a byte at 100 Mb/s
COLUMN = "saved"
PROGRAMS = ("BT", "LU", "sPPM", "Sweep3D")
CLAIMS = [Within(f"{program}: within a factor of 1.5 of the model", ((f"{program} ({KERNELS[program]})", COLUMN),), 1 / 1.5, 1.5) for program in PROGRAMS]


def modelled_ns(output):
    return LINK_NS * (rate(output) - 1) / rate(output) - codec_ns(output)


def saved_ns(output):
    """The mean over all flows, by their bytes."""
    found = re.findall(r"compression of doubles to rank \d+: .*; (\d+) bytes became \d+; ([\d.]+) ns/byte compressed, ([\d.]+) ns/byte plain", output)
    if not found:
        raise Failed(f"no flow has tried compression: {output[-300:]}")
    rows = [tuple(map(float, words)) for words in found]
    return sum(size * (without - with_it) for size, with_it, without in rows) / sum(size for size, _, _ in rows)


def cells(quick):
    jobs = [(program, run(program, FEW, CHOICE)) for program in PROGRAMS]
    return [Cell(f"{program} ({KERNELS[program]})", COLUMN, Model((job,), modelled_ns), job, saved_ns) for program, job in jobs]
