"""kernel_usage.py CAUSEWAY KERNEL: a kernel refuses wrong usage with exit code 2 and one line, whatever the number of ranks; --help ends with 0."""
import sys

from expectation import JOB_HANG, execute, expect


def run(ranks, arguments):
    done = execute([sys.argv[1], "run", "-n", str(ranks), "--timeout", JOB_HANG, sys.argv[2], *arguments])
    return done, [line for line in done.stderr.splitlines() if not line.startswith("causeway run:")]


for ranks, arguments, says in ((1, [], "no problem class"), (3, [], "no problem class"), (2, ["B"], "no such problem class: B"), (2, ["s"], "no such problem class: s"),
                               (2, ["SW"], "no such problem class: SW"), (2, [""], "no such problem class: "), (2, ["S", "W"], "more than one argument: W"),
                               (65, ["S"], "too many ranks: 65")):
    done, lines = run(ranks, arguments)
    expect(done.returncode == 2 and len(lines) == 1 and says in lines[0], f"{ranks} ranks, {arguments}: {says}, not {done.returncode}: {done.stderr}")
done, lines = run(2, ["--help"])
expect(done.returncode == 0 and not lines and "usage:" in done.stdout, f"--help: {done}")
