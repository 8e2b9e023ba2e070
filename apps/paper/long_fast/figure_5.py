"""Figure 5: the setting, by the queue before the long link."""
import csv

from long_fast.network import ITS_NAME, LINKS
from long_fast.throughput import BCAST, measure_job, senders_of, sizes_of, with_senders
from runner import Cell, Claim, Failed

TITLE = "the setting: two clusters, and the longest queue before the link between them, in broadcasts with n senders"
CLAIM = "up to 8 senders fit the link, and nothing is sent again; 16 senders overwhelm it"
SOURCE = f"{ITS_NAME}, Figure 5 and section 3.4"
UNIT = "KB"
DIFFERENCE = (
    "The paper has a picture of the setting, and says that nothing was sent again with up to 8 senders. 8 senders fill 8 of the 10 Gb/s, so that no "
    "queue grows. 16 senders fill the queue, whose limit of 1 MB (977 KB) is ours."
)
COLUMN = "longest queue"
BYTES_PER_KB = 1024


def longest_queue(output):
    """Of the long link, in the direction from the root's cluster."""
    begin = output.find("time_ns,")
    rows = csv.DictReader(output[begin:].splitlines()) if begin >= 0 else []
    queues = [int(row["queue_max_bytes"]) for row in rows if row["name"] == "wide"]
    if not queues:
        raise Failed("the statistics of the links have no link 'wide'")
    return max(queues) / BYTES_PER_KB


def place(senders):
    return with_senders(BCAST, senders), COLUMN


CLAIMS = [Claim(f"the queue of n={n} is shorter than that of n=16", place(n), place(16)) for n in (1, 8)]


def cells(quick):
    found = []
    for n in senders_of(quick):  # the jobs of Figure 6
        job = measure_job(LINKS, "bcast", sizes_of(quick), f"clusters-van-de-geijn:senders={n}", has_links=True)
        found.append(Cell(*place(n), None, job, longest_queue))
    return found
