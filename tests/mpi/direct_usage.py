"""direct_usage.py CAUSEWAY ALLREDUCE BEHIND TWO: between hosts the long messages of collectives are put where their targets say, one way long."""
import os
import re
import subprocess
import sys

from expectation import HANG_S, exit_code, expect

causeway, program, behind, two = map(os.path.abspath, sys.argv[1:])

RUNS = 3


def counted(ranks, emulated, algorithm, **environment):
    """Long messages of all ranks, put and got; the kernel checks every element."""
    environment = dict(os.environ, CAUSEWAY_EXPLAIN="all", CAUSEWAY_ALGORITHM=f"allreduce={algorithm}", **environment)
    command = [causeway, "run", "-n", str(ranks), "--emulate", emulated, program, "--bytes", "800000", "--runs", str(RUNS)]
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANG_S)
    found = re.findall(r"(\d+) put and (\d+) got over the wire", result.stdout)
    expect(result.returncode == 0 and len(found) == ranks, f"{algorithm} on {emulated} is right, and says what was sent: {result.stdout}")
    return sum(int(put) for put, _ in found), sum(int(got) for _, got in found)


expect(counted(4, "4,memif", "ring") == (RUNS * 4 * 2 * 3, 0), "a ring has 2 (P - 1) messages a rank")
expect(counted(4, "4,memif", "rabenseifner") == (RUNS * 4 * 2 * 2, 0), "Rabenseifner's has 2 log P a rank")
expect(counted(2, "1,memif", "ring") == (0, 0), "nothing goes over the wire on one host")
put, got = counted(8, f"topology={two},memif", "clusters-rabenseifner")
expect(put > 0 and got == 0, f"across clusters as well: {put} put, {got} got")
behind_sends = subprocess.run([causeway, "run", "-n", "2", "--emulate", "2,memif", behind], env=dict(os.environ, CAUSEWAY_ALGORITHM="allreduce=ring"), timeout=HANG_S)
expect(behind_sends.returncode == 0, "puts behind many sends are there once")
sys.exit(exit_code())
