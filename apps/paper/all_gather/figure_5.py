"""Figure 5: concurrency and overhead tests on eight processes."""
from all_gather.network import CREDITS, ITS_NAME, NETWORKS
from runner import AtMost, Cell, Failed, Job

TITLE = "Two puts to different ranks, as a percentage of the time of one put, on eight processes in a ring"
CLAIM = "up to 16 KB two puts take much less than twice the time of one; a put that is not awaited costs little on Elan-4, more on InfiniBand"
SOURCE = f"{ITS_NAME}, Figure 5"
UNIT = "%"
DIFFERENCE = (
    "The paper's figure is a picture. Two puts overlap their latencies here, as there, and share the link: the longer they are, the closer to 200 %. "
    "Descriptors cost nothing here, so short puts that are not awaited are free on both networks. Long ones share the link with the awaited one."
)
SIZES = (8, 512, 1024, 4096, 16384, 65536, 262144)
PUTS, ROUNDS = 2, 3
BOTH, FIRST = "both complete", "the first complete"
CLAIMS = [
    AtMost("up to 16 KB two puts take less than 1.6 times as long as one", tuple((f"{name}, {size} B", BOTH) for name, _ in NETWORKS for size in SIZES[:5]), 160),
    AtMost("up to 4 KB a put that is not awaited costs less than 10 %", tuple((f"{name}, {size} B", FIRST) for name, _ in NETWORKS for size in SIZES[:4]), 110),
]


def percentage(size, column):
    def read(output):
        for line in output.splitlines():
            words = line.split()
            if words[:2] == [str(size), str(PUTS)]:
                return 100 * float(words[column]) / float(words[2])
        raise Failed(f"puts_measure prints no line for {size} bytes")

    return read


def cells(quick):
    found = []
    for name, network in NETWORKS:
        job = Job(8, network, "puts_measure", (",".join(map(str, SIZES)), PUTS, ROUNDS), CREDITS)
        for size in SIZES:
            found.append(Cell(f"{name}, {size} B", BOTH, None, job, percentage(size, 3)))
            found.append(Cell(f"{name}, {size} B", FIRST, None, job, percentage(size, 4)))
    return found
