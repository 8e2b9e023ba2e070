"""What the tables and figures of the paper share: runs of the kernels, and what their outputs say."""
import re
import statistics

from cmpi.network import FAST_ETHERNET, FEW, KERNELS, MANY
from runner import Failed, Job, number_after

OFF, DFCM, CHOICE = "off", "dfcm", "auto"  # CAUSEWAY_COMPRESSION: dfcm is the paper's codec
RUNS = 3  # of few ranks

seconds = number_after(r"ranks, ([\d.]+) s,")


def run(program, ranks, compression, network=FAST_ETHERNET, seed=1):
    environment = (("CAUSEWAY_COMPRESSION", compression), ("CAUSEWAY_MESSAGES_COUNT", "1"))
    return Job(ranks, f"{network},seed={seed}", KERNELS[program], ("S",), environment, preload="messages.so", explains=True)


def runs(program, ranks, compression, quick):
    return tuple(run(program, ranks, compression, seed=seed) for seed in range(1, 2 if quick or ranks == MANY else 1 + RUNS))


def ranks_of(quick):
    return (FEW,) if quick else (FEW, MANY)


def time_ratio(count):
    """Of two groups of outputs, the first of `count`: the median time of the second by that of the first."""

    def read(*outputs):
        first, second = (statistics.median(map(seconds, group)) for group in (outputs[:count], outputs[count:]))
        return second / first

    return read


def flows(output):
    """What all ranks explain about the compression of doubles: (nanoseconds of codecs per byte, bytes before, bytes after)."""
    pattern = r"compression of doubles to rank \d+: .*codecs: ([\d.]+) ns/byte.*; (\d+) bytes became (\d+)"
    found = [tuple(map(float, words)) for words in re.findall(pattern, output)]
    if not found:
        raise Failed(f"no rank explains its compression of doubles: {output[-300:]}")
    return found


def rate(output):
    """Bytes before by bytes after, of all flows."""
    return sum(before for _, before, _ in flows(output)) / sum(after for _, _, after in flows(output))


def codec_ns(output):
    """Nanoseconds to compress and expand a byte: the mean of all bytes."""
    return sum(ns * before for ns, before, _ in flows(output)) / sum(before for _, before, _ in flows(output))
