#!/usr/bin/env python3
"""doctor_usage.py CAUSEWAY FUNCTIONS: `causeway doctor --mpi` counts every function of the ABI, in the chapter it is of."""
import json
import re
import subprocess
import sys

from expectation import exit_code, expect

causeway, functions_path = sys.argv[1:]


def lines(*options):
    done = subprocess.run([causeway, "doctor", "--mpi", *options], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


functions = open(functions_path).read().split()
text = lines()
chapters = [re.fullmatch(r" *(\d+)  (.+): (\d+) of (\d+) missing", line) for line in text]
chapters = {int(m[1]): (m[2], int(m[3]), int(m[4])) for m in chapters if m}
named = [line.strip() for line in text if line.startswith("      ")]
as_json = [json.loads(line) for line in lines("--json")]
expect(sum(chapter[2] for chapter in chapters.values()) == len(functions), "every function in one chapter")
expect(sum(chapter[1] for chapter in chapters.values()) == len(named), "as many names as are counted")
expect(set(named) <= set(functions) and len(set(named)) == len(named), "names of the ABI, each once")
expect([line["what"] for line in as_json] == named, "the same names in JSON")
expect(text[-1].startswith(f"{len(named)} of {len(functions)} "), "the sum at the end")
for number, title in ((3, "Point-to-point"), (6, "Collective"), (12, "One-sided"), (14, "I/O")):
    expect(chapters.get(number, ("",))[0].startswith(title), f"chapter {number} is {title}")
for line in as_json:
    wanted = 14 if re.match(r"MPI_File_(i?read|i?write|seek|open)", line["what"]) else \
        12 if re.match(r"MPI_(R?put|R?get|Win_lock)", line["what"]) else line["chapter"]
    expect(line["chapter"] == wanted, f"{line['what']} in chapter {wanted}")
sys.exit(exit_code())
