#!/usr/bin/env python3
"""paper_usage.py CAUSEWAY: `causeway paper` rebuilds all tables in their quick form; files, claims, bad input."""
import csv
import os
import re
import sys
import tempfile

from expectation import execute, expect

causeway = os.path.abspath(sys.argv[1])


def run(*arguments, cache):
    done = execute([causeway, "paper", *arguments], **{"XDG_CACHE_HOME": cache})
    return done.returncode, done.stdout, done.stderr


with tempfile.TemporaryDirectory() as cache:
    folder = os.path.join(cache, "out")
    code, out, errors = run("list", cache=cache)
    names = [line[:24].strip() for line in out.splitlines() if line[0] != " " and "not rebuilt: " not in line]
    expect(code == 0 and len(names) >= 40 and out.count("claim: ") == len(names) and out.count("not run yet") == len(names), f"a list: {code} {out} {errors}")
    code, out, errors = run("all", "-o", folder, "--quick", cache=cache)
    expect(code == 0 and "s left" in out and errors == "", f"all tables: {code} {out} {errors}")
    files = sorted(os.listdir(folder))
    expect(files == sorted(["papers.html", "papers.txt"] + [name.replace(" ", "_") + ".csv" for name in names]), f"the files: {files}")
    for name in names:
        with open(os.path.join(folder, name.replace(" ", "_") + ".csv")) as file:
            rows = list(csv.DictReader(file))
        ours = [float(value) for row in rows for key, value in row.items() if key.startswith("ours_")]
        expect(rows and len(ours) == len(rows) and all(value > 0 for value in ours), f"{name}: a number in each row: {rows}")
        expect(all(" run -n " in row["command"] and "--simulate cpu=0," in row["command"] for row in rows), f"{name}: the command of each number: {rows}")
    with open(os.path.join(folder, "papers.txt")) as file:
        text = file.read()
    expect(all(f"{name}: " in text for name in names) and text.count("why they differ: ") == len(names), f"the text: {text}")
    with open(os.path.join(folder, "papers.html")) as file:
        page = file.read()
    expect(page.count("<svg ") == page.count("</svg>") == len(names) and not re.search('="(nan|inf)', page), "a picture of each table")
    code, out, errors = run("list", cache=cache)
    expect(out.count(" claims hold") == len(names), f"the last results: {out}")
    for wrong, words in ((["cc-mpi", "table", "77"], "no table or figure"), ([], "nothing is asked for"), (["all"], "no table or figure"), (["cc-mpi", "table", "1", "--fast"], "unknown option '--fast'")):
        code, out, errors = run(*wrong, cache=cache)
        expect(code == 2 and words in errors and errors.count("\n") == 1, f"{wrong}: exit code 2 and a line: {code} {errors}")
    code, out, errors = run("all", "-o", "/proc/no", cache=cache)
    expect(code == 3 and "/proc/no" in errors and errors.count("\n") == 1, f"a folder that cannot be made: {code} {errors}")
