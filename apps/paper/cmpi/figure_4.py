"""Figure 4: what compression and expansion take of the run time."""
from cmpi.network import FEW, ITS_NAME, KERNELS
from cmpi.programs import DFCM, flows, run, seconds
from runner import AtMost, Cell

TITLE = "Time of compression and expansion on 4 ranks at 100 Mb/s, as a percentage of the run time"
CLAIM = "0.4 to 1.8 % each, 5.7 % for AZTEC"
SOURCE = f"{ITS_NAME}, Figure 4 and section 4.4"
UNIT = "%"
DIFFERENCE = (
    "Ours is the time of the codec for all bytes that a rank sends, by its measured nanoseconds per byte, for both ends together; the paper's is measured in the runs, for each end. "
    "The kernels send much and compute little. sPPM's sends more than five times the bytes of any other one (Table 4), and compression halves its run time. Elsewhere most of the time is latency."
)
COLUMN = "dfcm, both ends"
CLAIMS = [AtMost("the codec takes at most 6 % of each end's time, as in the paper", tuple((f"{program} ({KERNELS[program]})", COLUMN) for program in KERNELS if program != "SP"), 12)]
PROGRAMS = [program for program in KERNELS if program != "SP"]


def share(output):
    codec_s = sum(ns * before for ns, before, _ in flows(output)) / FEW * 1e-9
    return 100 * codec_s / seconds(output)


def cells(quick):
    return [Cell(f"{program} ({KERNELS[program]})", COLUMN, 5.7 if program == "AZTEC" else None, run(program, FEW, DFCM), share) for program in PROGRAMS]
