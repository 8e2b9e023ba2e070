#!/usr/bin/env python3
"""Reads what `meson test` recorded, and prints the results.

usage: report.py RECORD.json CONSOLE.log yes|no [NAME=VALUE...]
           A line for each test that did not pass, with the command that repeats it. The last line is
           "PASSED FAILED SKIPPED" in numbers. yes: ./check can install packages here, so that a skipped test is a failure.
           NAME=VALUE: the environment of the run.
       report.py --slowest RESULTS SECONDS CORES RECORD.json...
           The slowest tests and steps of ./check, and the shares of computing and waiting. A line of RESULTS is a step:
           its outcome, seconds, milliseconds of computing and name, separated by tabs.
       report.py --computed BEFORE AFTER
           The milliseconds that the children of a shell computed between two outputs of its `times`.

A test that exits with 77 gives its reason as "SKIPPED: reason" (tests/skip.h). A cmocka test that calls skip() is a skip
inside a test that passed.
"""
import json
import os
import re
import sys

TAIL_LINES, EXPECTED_LINES = 25, 10
SLOWEST_TESTS, SLOWEST_STEPS = 20, 3
# The variables that a suite reads: without the others, the command that repeats a test is short.
AMOUNTS = {"unit": ["CW_TEST_SEEDS", "CW_TEST_PATTERNS"], "schedules": ["CW_TEST_THIN", "CW_TEST_SEEDS"], "simulation": ["CW_TEST_SEEDS"],
           "fuzz": ["CW_TEST_PACKETS"]}


def tail(text):
    """The expectations that were not met (tests/mpi/expectation.py), and the last lines."""
    lines = text.rstrip().splitlines()
    expected = [line for line in lines[:-TAIL_LINES] if line.startswith("expected:")]
    return "\n".join("    " + line for line in expected[:EXPECTED_LINES] + lines[-TAIL_LINES:])


def tests_of(path):
    for line in open(path, encoding="utf-8", errors="replace"):
        test = json.loads(line)
        suites, _, name = test["name"].rpartition(" / ")
        yield test | {"name": name, "suites": suites.split(":")[-1].split("+")}


def repeat(test, folder, output, environment):
    """The command that runs a failed test alone, with its amounts of work and the seed that failed."""
    names = {name for suite in test["suites"] for name in AMOUNTS.get(suite, [])}
    words = [each for each in environment if each.split("=")[0] in names]
    seed = re.findall(r"(?:^|failed with )seed (\d+)\b", output, re.M)
    if seed:
        words.insert(0, f"CW_TEST_SEED={seed[-1]}")
    return " ".join([*words, "meson test -C", folder, "--no-rebuild -v", test["name"]])


def slowest_print(results_path, seconds, cores, paths):
    steps = []
    for line in open(results_path, encoding="utf-8"):
        _, step_s, computed_ms, name = line.rstrip("\n").split("\t")
        steps.append((int(step_s), int(computed_ms) / 1000, name))
    took = [(test["duration"] or 0, test["name"], path.split(os.sep, 1)[0]) for path in paths if os.path.exists(path) for test in tests_of(path)]
    if took:
        print("the slowest tests:")
    for test_s, name, folder in sorted(took, reverse=True)[:SLOWEST_TESTS]:
        print(f"         {test_s:4.0f} s  {name}, in {folder}")
    print("the slowest steps:")
    for step_s, computed_s, name in sorted(steps, reverse=True)[:SLOWEST_STEPS]:
        print(f"         {step_s:4} s  {name}: {computed_s:.0f} s of computing")
    computed_s = sum(step[1] for step in steps)
    share = min(1, computed_s / max(1, cores * seconds))
    print(f"in all:  {seconds:4} s on {cores} cores: {share:.0%} computing, {1 - share:.0%} waiting")


def computed_print(before_path, after_path):
    def computed_s(path):
        with open(path, encoding="ascii") as file:
            children = file.read().splitlines()[1]
        return sum(60 * int(minutes) + float(seconds) for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", children))

    print(round(1000 * (computed_s(after_path) - computed_s(before_path))))


def record_print(record_path, console_path, can_install, environment):
    passed = failed = skipped = 0

    def skip(name, reason):
        nonlocal failed, skipped
        if can_install and not reason.startswith("machine: "):
            print(f"failed           {name}: skipped, though ./check can install packages here: {reason}")
            failed += 1
        else:
            print(f"skipped          {name}: {reason}")
            skipped += 1

    for test in tests_of(record_path):
        name, result = test["name"], test["result"]
        output = (test.get("stdout") or "") + (test.get("stderr") or "")
        if result == "SKIP":
            reason = re.search(r"^SKIPPED: (.*)$", output, re.M)
            skip(name, reason.group(1) if reason else "no reason given")
        elif result in ("OK", "EXPECTEDFAIL"):
            passed += 1
            for inner in sorted(set(re.findall(r"^\[  SKIPPED \] (\w+)$", output, re.M))):
                skip(f"{name}: {inner}", "the test called skip()")
        else:
            failed += 1
            print(f"failed   {test['duration']:4.0f} s  {name} ({result.lower()})")
            print(tail(output))
            print(f"    log: {os.path.splitext(record_path)[0]}.txt")
            print(f"    repeat: {repeat(test, record_path.split(os.sep, 1)[0], output, environment)}")
    print(passed, failed, skipped)


def main():
    if sys.argv[1] == "--slowest":
        slowest_print(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
        return
    if sys.argv[1] == "--computed":
        computed_print(sys.argv[2], sys.argv[3])
        return
    record_path, console_path, can_install = sys.argv[1], sys.argv[2], sys.argv[3] == "yes"
    if os.path.exists(record_path):
        record_print(record_path, console_path, can_install, sys.argv[4:])
        return
    console = open(console_path, encoding="utf-8", errors="replace").read()
    if "No tests defined" in console or "No suitable tests defined" in console:
        print("0 0 0")
        return
    print(tail(console))
    print(f"    log: {console_path}")
    print("0 1 0")


main()
