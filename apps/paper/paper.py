#!/usr/bin/env python3
"""usage: causeway paper list
       causeway paper PAPER TABLE [OPTION...]
       causeway paper all -o DIRECTORY [OPTION...]

Rebuilds tables and figures of the papers behind Causeway, by MPI programs on simulated networks. An example: causeway paper
cc-mpi table 1. A table has the paper's number, ours, and ours as a multiple of the paper's. Then come the paper's claims, and
whether they hold.

list prints each table and figure with its claim, and its last result and duration here. all writes one HTML page, one text
file, and a CSV file for each table.

options:
  --quick                      fewer and smaller sizes
  --commands                   print the command of each number
  -o DIRECTORY                 where `all` writes
  -h, --help                   print this help
"""
import csv
import html
import importlib
import json
import os
import sys
import time

from picture import dot_plot
from runner import Failed, Runner, progress

HERE = os.path.dirname(os.path.abspath(__file__))
# The order is that of the papers.
PAPERS = {
    "cc-mpi": ("cc_mpi", "CC-MPI: a compiled communication capable MPI prototype for Ethernet switched clusters (PPoPP 2003)"),
    "plogp-models": ("plogp_models", "Performance characterisation of intra-cluster collective communications (2004)"),
    "all-gather": ("all_gather", "Optimizing all-to-all collective communication by exploiting concurrency in modern networks (SC'05)"),
    "cmpi": ("cmpi", "Runtime compression of MPI messages to improve the performance and scalability of parallel applications (SC'04)"),
    "long-fast": ("long_fast", "Efficient MPI collective operations for clusters in long-and-fast networks (Cluster 2006)"),
}


KINDS = ("table", "figure", "equation")
NAME_WIDTH = 24


def tables_find():
    """{"cc-mpi table 1": module}"""
    tables = {}
    for paper, (folder, _) in PAPERS.items():
        words = [name[:-3].split("_") for name in os.listdir(os.path.join(HERE, folder)) if name.endswith(".py")]
        found = [(KINDS.index(word[0]), int(word[1])) for word in words if word[0] in KINDS]
        names = [f"{KINDS[kind]}_{number}" for kind, number in sorted(found)]
        for name in names:
            tables[f"{paper} {name.replace('_', ' ')}"] = importlib.import_module(f"{folder}.{name}")
    return tables


# ---- the last results ----


def results_path():
    return os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "causeway", "papers.json")


def results_read():
    try:
        with open(results_path()) as file:
            results = json.load(file)
    except (OSError, ValueError):
        return {}
    is_valid = isinstance(results, dict) and all(isinstance(each, dict) and {"seconds", "verdict"} <= each.keys() for each in results.values())
    return results if is_valid else {}


def results_note(name, quick, seconds, verdict):
    results = results_read()
    results[name + (" --quick" if quick else "")] = {"seconds": round(seconds, 1), "verdict": verdict}
    try:
        os.makedirs(os.path.dirname(results_path()), exist_ok=True)
        with open(results_path(), "w") as file:
            json.dump(results, file, indent=1)
    except OSError:
        pass  # the list has no last result then


# ---- one table ----


class Result:
    def __init__(self, name, module, runner):
        start = time.monotonic()
        self.name, self.module, self.runner = name, module, runner
        self.cells = module.cells(runner.quick)
        found = runner.measure(self.cells, lambda share: progress(f"{name}: {100 * share:.0f} %, {time.monotonic() - start:.0f} s"))
        progress("")
        self.papers = {place: paper for place, (paper, _) in found.items()}
        self.values = {place: ours for place, (_, ours) in found.items()}
        self.source = getattr(module, "VALUES", "paper")  # what the first column of numbers has: the paper, or its equation
        self.claims = [claim for claim in module.CLAIMS if claim.is_measured(self.values)]
        self.seconds = time.monotonic() - start

    def rows(self):
        for cell in self.cells:
            paper, ours = self.papers[cell.row, cell.column], self.values[cell.row, cell.column]
            yield cell, paper, ours, ours / paper if paper else None

    def checks(self):
        """(claim, whether it holds, factors in words)"""
        for claim in self.claims:
            yield claim, *claim.check(self.papers, self.values, self.source)

    def verdict(self):
        held = sum(holds for _, holds, _ in self.checks())
        return f"{held} of {len(self.claims)} claims hold"

    def commands(self):
        return [self.runner.command_text(job) for job in dict.fromkeys(job for cell in self.cells for job in cell.jobs_all())]

    def text(self, commands):
        unit = self.module.UNIT
        lines = [f"{self.name}: {self.module.TITLE}", f"source: {self.module.SOURCE}", f"claim: {self.module.CLAIM}", ""]
        widths = max(len(cell.row) for cell in self.cells) + 2, max(len(cell.column) for cell in self.cells) + 2
        lines.append(f"{'':{widths[0]}}{'':{widths[1]}}{f'{self.source}/{unit}':>12}{f'ours/{unit}':>12}{f'ours/{self.source}':>12}")
        before = None
        for cell, paper, ours, ratio in self.rows():
            paper = "-" if paper is None else f"{paper:.5g}"
            row = cell.row if cell.row != before else ""
            lines.append(f"{row:{widths[0]}}{cell.column:{widths[1]}}{paper:>12}{ours:>12.4g}{'-' if ratio is None else f'{ratio:.2f}':>12}")
            before = cell.row
        for claim, holds, factors in self.checks():
            lines.append(f"{'holds' if holds else 'does not hold'}: {claim.text}: {factors}")
        lines += ["why they differ: " + self.module.DIFFERENCE]
        if commands:
            lines += ["", "commands:"] + self.commands()
        return "\n".join(lines) + "\n"

    def picture(self):
        entries = [(f"{cell.row}, {cell.column}", paper, ours) for cell, paper, ours, _ in self.rows()]
        return dot_plot(entries, self.module.UNIT, self.source)

    def csv_write(self, path):
        with open(path, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["row", "column", f"{self.source}_{self.module.UNIT}", f"ours_{self.module.UNIT}", "command"])
            for cell, paper, ours, _ in self.rows():
                commands = "; ".join(map(self.runner.command_text, cell.jobs()))
                writer.writerow([cell.row, cell.column, "" if paper is None else f"{paper:.6g}", f"{ours:.6g}", commands])


# ---- commands ----


def list_print(tables):
    results = results_read()
    for name, module in tables.items():
        full = results.get(name)
        last = full or results.get(name + " --quick")
        print(f"{name:<{NAME_WIDTH}} {module.TITLE}")
        print(f"{'':<{NAME_WIDTH}} claim: {module.CLAIM}")
        print(f"{'':<{NAME_WIDTH}} last{'' if full else ', --quick'}: {last['seconds']} s, {last['verdict']}" if last else f"{'':<{NAME_WIDTH}} not run yet")
    for paper, (folder, _) in PAPERS.items():
        for name, reason in importlib.import_module(f"{folder}.network").NOT_REBUILT.items():
            print(f"{paper} {name}: not rebuilt: {reason}")


def one_run(name, module, runner):
    result = Result(name, module, runner)
    results_note(name, runner.quick, result.seconds, result.verdict())
    return result


def pages_write(results, folder):
    texts = [result.text(True) for result in results]
    with open(os.path.join(folder, "papers.txt"), "w") as file:
        file.write("\n".join(texts))
    with open(os.path.join(folder, "papers.html"), "w") as file:
        file.write("<!DOCTYPE html><meta charset=utf-8><title>Causeway: the papers rebuilt</title>\n")
        for result, text in zip(results, texts):
            file.write(f"<h2>{html.escape(result.name)}</h2>\n{result.picture()}<pre>{html.escape(text)}</pre>\n")


def all_run(tables, runner, folder):
    os.makedirs(folder, exist_ok=True)
    start, done, results = time.monotonic(), [], results_read()
    for number, (name, module) in enumerate(tables.items()):
        left = sum(results.get(later + (" --quick" if runner.quick else ""), {}).get("seconds", 60) for later in list(tables)[number:])
        print(f"{number + 1} of {len(tables)}: {name}, {time.monotonic() - start:.0f} s, about {left:.0f} s left", flush=True)
        done.append(one_run(name, module, runner))
        done[-1].csv_write(os.path.join(folder, name.replace(" ", "_") + ".csv"))
        pages_write(done, folder)  # after each one: a later one may fail
    print(f"{folder}: papers.html, papers.txt, and {len(tables)} CSV files")


def usage_fail(what):
    print(f"causeway paper: {what}: `causeway paper --help` has the usage", file=sys.stderr)
    return 2


def main():
    causeway, *words = sys.argv[1:]
    quick, commands = "--quick" in words, "--commands" in words
    words = [word for word in words if word not in ("--quick", "--commands")]
    unknown = [word for word in words if word.startswith("-") and word not in ("-h", "--help", "-o")]
    if unknown:
        return usage_fail(f"unknown option '{unknown[0]}'")
    if "--help" in words or "-h" in words:
        print(__doc__, end="")
        return 0
    tables = tables_find()
    runner = Runner(causeway, quick)
    name = " ".join(words)
    try:
        if words == ["list"]:
            list_print(tables)
        elif len(words) == 3 and words[:2] == ["all", "-o"]:
            all_run(tables, runner, words[2])
        elif name in tables:
            print(one_run(name, tables[name], runner).text(commands), end="")
        elif not words:
            return usage_fail("nothing is asked for")
        else:
            return usage_fail(f"'{name}' is no table or figure (`causeway paper list`)")
    except Failed as failure:
        progress("")
        print(f"causeway paper: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        progress("")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes at its end
        return 3
    except OSError as error:
        print(f"causeway paper: {error.filename}: {error.strerror}", file=sys.stderr)
        return 3
    return 0


sys.exit(main())
