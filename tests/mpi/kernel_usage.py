"""Wrong usage of a kernel: exit code 2 and one line of its own, however many ranks; --help: exit code 0.

usage: kernel_usage.py CAUSEWAY KERNEL
"""

import subprocess
import sys

from expectation import JOB_HANG

# ranks, arguments, exit code, what the line says
CASES = [
    (1, [], 2, "no problem class"),
    (3, [], 2, "no problem class"),
    (2, ["B"], 2, "no such problem class: B"),
    (2, ["s"], 2, "no such problem class: s"),
    (2, ["SW"], 2, "no such problem class: SW"),
    (2, [""], 2, "no such problem class: "),
    (2, ["S", "W"], 2, "more than one argument: W"),
    (65, ["S"], 2, "too many ranks: 65"),
    (2, ["--help"], 0, None),
]


def fault_find(causeway, kernel, ranks, arguments, exit_code, says):
    """What is wrong with a case, or None."""
    command = [causeway, "run", "-n", str(ranks), "--timeout", JOB_HANG, kernel, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("causeway run:")]
    if done.returncode != exit_code:
        return f"exit code {done.returncode} instead of {exit_code}: {done.stderr}"
    if says is None:
        return None if not lines and "usage:" in done.stdout else f"no help: {done.stdout}{done.stderr}"
    return None if len(lines) == 1 and says in lines[0] else f"not one line with '{says}': {lines}"


def main():
    faults = 0
    for case in CASES:
        fault = fault_find(sys.argv[1], sys.argv[2], *case)
        if fault:
            print(f"{case[0]} ranks, {case[1]}: {fault}", file=sys.stderr)
            faults += 1
    return 1 if faults else 0


sys.exit(main())
