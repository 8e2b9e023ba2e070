"""Table 5: compression ratios."""
from cmpi.network import FEW, ITS_NAME, KERNELS
from cmpi.programs import CHOICE, DFCM, ranks_of, rate, run
from runner import Cell, Claim, Within

TITLE = "Compression rates of the programs' messages"
CLAIM = "1.24 to 1.46, sPPM more than 4, whatever the number of processes"
SOURCE = f"{ITS_NAME}, Table 5"
UNIT = "ratio"
DIFFERENCE = (
    "The kernels have the paper's kinds of messages, not its data: what a predictor makes of them depends on the problem. Rates are bytes before by bytes after, over all bytes of doubles that go "
    "in more than one packet; parts that became no shorter count as they were sent. Causeway's packets stand alone, so that its dfcm learns anew in each message. Its own choice leaves flows uncompressed where that does not pay."
)
PAPERS = {"BT": (1.35, 1.36), "SP": (1.30, 1.29), "LU": (1.24, 1.24), "sPPM": (4.39, 4.63), "Sweep3D": (1.39, 1.40), "AZTEC": (1.46, 1.46)}
FIXED, CHOSEN = "dfcm, the paper's codec", "Causeway's choice"
ROWS = {(program, ranks): f"{program} ({KERNELS[program]}), {ranks} ranks" for program in PAPERS for ranks in ranks_of(False)}
CLAIMS = [Claim(f"{program} compresses less than sPPM", (ROWS[program, FEW], FIXED), (ROWS["sPPM", FEW], FIXED)) for program in PAPERS if program not in ("SP", "sPPM")]
CLAIMS += [
    Within("4 ranks: within a factor of 1.5 of the paper", tuple((ROWS[program, FEW], FIXED) for program in PAPERS), 1 / 1.5, 1.5),
    Within("16 ranks: within a factor of 1.5 of the paper", tuple((ROWS[program, 16], FIXED) for program in PAPERS), 1 / 1.5, 1.5),
]


def cells(quick):
    found = []
    for program, papers in PAPERS.items():
        for ranks in ranks_of(quick):
            found.append(Cell(ROWS[program, ranks], FIXED, papers[0 if ranks == FEW else 1], run(program, ranks, DFCM), rate))
        found.append(Cell(ROWS[program, FEW], CHOSEN, None, run(program, FEW, CHOICE), rate))
    return sorted(found, key=lambda cell: list(ROWS.values()).index(cell.row))
