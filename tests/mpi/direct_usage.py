"""direct_usage.py CAUSEWAY ALLREDUCE BEHIND TWO: between hosts the long messages of collectives are put where their targets say, one way long."""
import os
import re
import sys

from expectation import execute, expect

causeway, program, behind, two = map(os.path.abspath, sys.argv[1:])

RUNS = 3


def counted(ranks, emulated, algorithm):
    """Long messages of all ranks, put and got; the kernel checks every element."""
    result = execute([causeway, "run", "-n", str(ranks), "--emulate", emulated, program, "--bytes", "800000", "--runs", str(RUNS)], CAUSEWAY_EXPLAIN="all",
                     CAUSEWAY_ALGORITHM=f"allreduce={algorithm}")
    found = re.findall(r"(\d+) puts and (\d+) gets over the network", result.stderr)
    expect(result.returncode == 0 and len(found) == ranks, f"{algorithm} on {emulated} is right, and says what was sent: {result.stdout}{result.stderr}")
    return sum(int(put) for put, _ in found), sum(int(got) for _, got in found)


expect(counted(4, "4,memif", "ring") == (RUNS * 4 * 2 * 3, 0), "a ring has 2 (P - 1) messages a rank")
expect(counted(4, "4,memif", "rabenseifner") == (RUNS * 4 * 2 * 2, 0), "Rabenseifner's has 2 log P a rank")
expect(counted(2, "1,memif", "ring") == (0, 0), "nothing goes over the wire on one host")
put, got = counted(8, f"topology={two},memif", "clusters-rabenseifner")
expect(put > 0 and got == 0, f"across clusters as well: {put} put, {got} got")
behind_sends = execute([causeway, "run", "-n", "2", "--emulate", "2,memif", behind], CAUSEWAY_ALGORITHM="allreduce=ring")
expect(behind_sends.returncode == 0, "puts behind many sends are there once")
