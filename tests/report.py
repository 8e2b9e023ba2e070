#!/usr/bin/env python3
"""Reads what `meson test` recorded of one suite, prints a line for each test that did not pass, and the counts last.

usage: report.py TESTLOG.json CONSOLE.log yes|no   (yes: ./check can install packages here, so that a skip is a failure)
       report.py --slowest TESTLOG.json...         the ten tests of all that took longest

The last line is "PASSED FAILED SKIPPED" in numbers; the names of those that failed are left in TESTLOG.failed. A test that exits with 77 says why as "SKIPPED: reason"
(tests/skip.h); a cmocka test that calls skip() is a skip of its own inside a test that passed.
"""
import json
import os
import re
import sys

TAIL_LINES = 25
SLOWEST = 10


def tail(text):
    return "\n".join("    " + line for line in text.rstrip().splitlines()[-TAIL_LINES:])


def slowest_print(paths):
    took = []
    for path in filter(os.path.exists, paths):
        folder = path.split(os.sep, 1)[0]
        for line in open(path, errors="replace"):
            test = json.loads(line)
            took.append((test["duration"] or 0, test["name"].split(" / ")[-1], folder))
    took.sort(reverse=True)
    print("the slowest:")
    for seconds, name, folder in took[:SLOWEST]:
        print(f"         {seconds:4.0f} s  {name}, in {folder}")


def main():
    if sys.argv[1] == "--slowest":
        slowest_print(sys.argv[2:])
        return
    record_path, console_path, can_install = sys.argv[1], sys.argv[2], sys.argv[3] == "yes"
    passed = failed = skipped = 0
    names = []

    if not os.path.exists(record_path):
        console = open(console_path, errors="replace").read()
        if "No tests defined" in console or "No suitable tests defined" in console:
            print("0 0 0")
            return
        print(tail(console))
        print(f"    log: {console_path}")
        print("0 1 0")
        return

    def skip(name, reason):
        nonlocal failed, skipped
        if can_install and not reason.startswith("machine: "):
            print(f"failed           {name}: skipped, though ./check can install packages here: {reason}")
            failed += 1
        else:
            print(f"skipped          {name}: {reason}")
            skipped += 1

    for line in open(record_path, errors="replace"):
        test = json.loads(line)
        name = test["name"].split(" / ")[-1]
        output = (test.get("stdout") or "") + (test.get("stderr") or "")
        result = test["result"]
        if result == "SKIP":
            reason = re.search(r"^SKIPPED: (.*)$", output, re.M)
            skip(name, reason.group(1) if reason else "no reason given")
        elif result in ("OK", "EXPECTEDFAIL"):
            passed += 1
            for inner in sorted(set(re.findall(r"^\[  SKIPPED \] (\w+)$", output, re.M))):
                skip(f"{name}: {inner}", "the test called skip()")
        else:
            failed += 1
            names.append(name)
            print(f"failed   {test['duration']:4.0f} s  {name} ({result.lower()})")
            print(tail(output))
            print(f"    log: {os.path.splitext(record_path)[0]}.txt; again: {' '.join(test['command'])}")
    with open(f"{os.path.splitext(record_path)[0]}.failed", "w", encoding="utf-8") as file:
        file.writelines(f"{name}\n" for name in names)
    print(passed, failed, skipped)


main()
