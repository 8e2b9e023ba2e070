"""Table 6: the page exchange of a software DSM."""
from cc_mpi.network import ITS_NAME, LINKS, TCP
from runner import Cell, Claim, Failed, Job

TITLE = "Page exchange of a software DSM, 100 barriers"
CLAIM = "level 1 is ahead of dynamic communication on 8 and 16 nodes, by nearly a factor of two with 4 pages per node"
SOURCE = f"{ITS_NAME}, Table 6"
UNIT = "s"
DIFFERENCE = "A node computes its diffs in no time here (cpu=0), and barriers of the paper took longer than its data. Where senders lose packets, the time-outs of TCP decide, as in the paper."
BARRIERS = 5  # of 100; the time is multiplied
LEVEL_1, DYNAMIC = "level 1", "dynamic"
PAPERS = {
    1: {LEVEL_1: (0.93, 2.02, 4.57), DYNAMIC: (0.90, 4.29, 6.75)},
    4: {LEVEL_1: (3.07, 6.76, 15.8), DYNAMIC: (4.13, 12.1, 27.5)},
    8: {LEVEL_1: (9.46, 15.7, 35.5), DYNAMIC: (8.35, 18.6, 48.4)},
}
NODES = (4, 8, 16)
ROW = "{} pages per node, {} nodes"
CLAIMS = [Claim(f"{pages} pages per node, {nodes} nodes: level 1 is ahead", (ROW.format(pages, nodes), LEVEL_1), (ROW.format(pages, nodes), DYNAMIC)) for pages in (4, 8) for nodes in (8, 16)]


def total(exchange):
    """Seconds of 100 barriers, from the line of an exchange."""

    def read(output):
        for line in output.splitlines():
            words = line.split()
            if len(words) > 2 and words[1] == exchange:
                return float(words[2]) * 100 / BARRIERS
        raise Failed(f"dsm prints no line for {exchange}")

    return read


def cells(quick):
    found = []
    for pages in (4,) if quick else PAPERS:
        for nodes in (16,) if quick else NODES:
            for column, exchange in ((LEVEL_1, "level1"), (DYNAMIC, "dynamic")):
                job = Job(nodes, LINKS, "dsm", ("--pages", pages, "--exchange", exchange, "--iterations", BARRIERS), TCP + (("CAUSEWAY_COMPRESSION", "off"),))
                found.append(Cell(ROW.format(pages, nodes), column, PAPERS[pages][column][NODES.index(nodes)], job, total(exchange)))
    return found
