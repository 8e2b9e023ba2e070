"""Table 4: statistics about large messages."""
import re

from cmpi.network import FEW, ITS_NAME, KERNELS
from cmpi.programs import OFF, ranks_of, run
from runner import Cell, Claim, Failed

TITLE = "Messages of doubles above 1 KB: how many, how long, and predictors per process"
CLAIM = "twice the processes send about twice the messages, somewhat shorter ones; each process has few partners"
SOURCE = f"{ITS_NAME}, Table 4"
UNIT = "number"
DIFFERENCE = (
    "The paper's problems are larger (class C, 64 and more processes), and run for up to an hour. 4 ranks stand next to 64 processes, 16 ranks next to 100 or 128. "
    "A process has one predictor for each partner and direction: two for each rank that it sends to. Causeway's own codecs keep no predictors between packets."
)
COUNT, LENGTH, PREDICTORS = "messages", "average kB", "predictors per process"
PAPERS = {
    "BT": [(617856, 80.9, 12), (1206600, 54.1, 12)],
    "SP": [(1232256, 71.8, 12), (2406600, 47.3, 12)],
    "LU": [(56476, 256.2, 7), (116972, 194.4, 7.3)],
    "sPPM": [(74048, 654.4, 11), (156480, 428.2, 11.5)],
    "Sweep3D": [(286720, 24.0, 7), (593920, 18.2, 7.3)],
    "AZTEC": [(207522, 785.1, 3.9), (418338, 785.1, 4)],
}
CLAIMS = [Claim(f"{program}: more ranks send more messages", (f"{program} ({KERNELS[program]}), 4 ranks", COUNT), (f"{program} ({KERNELS[program]}), 16 ranks", COUNT)) for program in PAPERS if program != "SP"]
CLAIMS += [Claim(f"{program}: more ranks send shorter messages", (f"{program} ({KERNELS[program]}), 16 ranks", LENGTH), (f"{program} ({KERNELS[program]}), 4 ranks", LENGTH)) for program in PAPERS if program != "SP"]


def statistic(number):
    def read(output):
        found = re.search(r"messages: (\d+) of ([\d.]+) bytes on average, to ([\d.]+) per rank", output)
        if found is None:
            raise Failed(f"messages.so prints no line: {output[-300:]}")
        count, length, peers = map(float, found.groups())
        return (count, length / 1000, 2 * peers)[number]

    return read


def cells(quick):
    found = []
    for program, papers in PAPERS.items():
        for ranks in ranks_of(quick):
            for number, column in enumerate((COUNT, LENGTH, PREDICTORS)):
                paper = papers[0 if ranks == FEW else 1][number]
                found.append(Cell(f"{program} ({KERNELS[program]}), {ranks} ranks", column, paper, run(program, ranks, OFF), statistic(number)))
    return found
