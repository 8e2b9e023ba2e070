"""Table 3: run times with compression."""
from cmpi.network import FEW, ITS_NAME, KERNELS
from cmpi.programs import CHOICE, DFCM, OFF, ranks_of, runs, time_ratio
from runner import AtMost, Cell

TITLE = "Run times with compression at 100 Mb/s, as a percentage of those without"
CLAIM = "every program is faster with compression, and the more, the more processes there are"
SOURCE = f"{ITS_NAME}, Table 3"
UNIT = "%"
DIFFERENCE = (
    "The paper's programs have large problems on 32 to 128 processes; the kernels here have small ones on 4 and 16 ranks, whose messages have 0.01 to 0.4 times the length (Table 4), "
    "and spend most of their time in communication. 4 ranks stand next to 64 processes, 16 ranks next to 100 or 128. dfcm compresses each long message, whether that pays or not; "
    "by its own choice, Causeway compresses with the codec that has saved time on the flow. Times vary from run to run."
)
# Seconds without and with compression: on 64 processes, and on 100 or 128.
PAPERS = {
    "BT": [(2086, 1986), (1537, 1399)],
    "SP": [(2361, 2001), (2130, 1692)],
    "LU": [(1696, 1665), (1130, 1098)],
    "sPPM": [(1195, 1108), (1200, 607)],
    "Sweep3D": [(298, 289), (207, 198)],
    "AZTEC": [(1526, 1343), (1543, 1198)],
}
QUICK_CHOSEN = ("BT", "AZTEC")
FIXED, CHOSEN = "dfcm, the paper's codec", "Causeway's choice"
CLAIMS = [AtMost(f"{program}: faster with the paper's codec, on 4 ranks", ((f"{program} ({KERNELS[program]}), 4 ranks", FIXED),), 100) for program in PAPERS if program != "SP"]
CLAIMS += [AtMost(f"{program}: faster with the paper's codec, on 16 ranks", ((f"{program} ({KERNELS[program]}), 16 ranks", FIXED),), 100) for program in PAPERS if program != "SP"]
CLAIMS += [AtMost("all programs: by its own choice, Causeway is at most 3 % slower, on 4 ranks", tuple((f"{program} ({KERNELS[program]}), 4 ranks", CHOSEN) for program in PAPERS), 103)]


def percentage(count):
    return lambda *outputs: 100 * time_ratio(count)(*outputs)


def cells(quick):
    found = []
    for program, papers in PAPERS.items():
        for ranks in ranks_of(quick):
            without, with_compression = papers[0 if ranks == FEW else 1]
            before = runs(program, ranks, OFF, quick)
            row = f"{program} ({KERNELS[program]}), {ranks} ranks"
            found.append(Cell(row, FIXED, 100 * with_compression / without, before + runs(program, ranks, DFCM, quick), percentage(len(before))))
            if ranks == FEW and (not quick or program in QUICK_CHOSEN):
                found.append(Cell(row, CHOSEN, None, before + runs(program, ranks, CHOICE, quick), percentage(len(before))))
    return found
