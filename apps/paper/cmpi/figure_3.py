"""Figure 3: speedups by compression."""
from cmpi.network import FEW, GIGABIT, ITS_NAME, KERNELS
from cmpi.programs import CHOICE, DFCM, OFF, run, runs, time_ratio
from cmpi.table_3 import PAPERS
from runner import Cell, Claim

TITLE = "Speedups by compression on 4 ranks, at 100 Mb/s and 1 Gb/s"
CLAIM = "sPPM gains most (98 % on 128 processes), then AZTEC and SP; none loses"
SOURCE = f"{ITS_NAME}, Figure 3 (speedups by the times of Table 3, 100 or 128 processes)"
UNIT = "times"
DIFFERENCE = (
    "At 1 Gb/s a byte takes 8 ns on the link. Equation 4 then leaves less than 3 ns for a ratio of 1.5, and a codec takes about as much here (Table 1). So dfcm gains for sPPM there, hardly for BT and SP, and loses for the others. Numbers at 1 Gb/s are of single runs, which vary. "
    "At 100 Mb/s the small problems of the kernels send short messages, which gain less than the paper's."
)
SLOW, FAST, CHOSEN = "100 Mb/s, dfcm", "1 Gb/s, dfcm", "1 Gb/s, Causeway's choice"
CLAIMS = [Claim(f"sPPM gains more than {program}, at 100 Mb/s", (f"{program} ({KERNELS[program]})", SLOW), (f"sPPM ({KERNELS['sPPM']})", SLOW)) for program in PAPERS if program not in ("SP", "sPPM")]
CLAIMS += [Claim("sPPM gains less at 1 Gb/s than at 100 Mb/s", (f"sPPM ({KERNELS['sPPM']})", FAST), (f"sPPM ({KERNELS['sPPM']})", SLOW))]


def cells(quick):
    found = []
    for program, papers in PAPERS.items():
        row = f"{program} ({KERNELS[program]})"
        after = runs(program, FEW, DFCM, quick)
        found.append(Cell(row, SLOW, papers[1][0] / papers[1][1], after + runs(program, FEW, OFF, quick), time_ratio(len(after))))
        for column, compression in ((FAST, DFCM), (CHOSEN, CHOICE)):
            jobs = (run(program, FEW, compression, GIGABIT), run(program, FEW, OFF, GIGABIT))
            if not quick or program == "sPPM":
                found.append(Cell(row, column, None, jobs, time_ratio(1)))
    return found
