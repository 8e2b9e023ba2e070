#!/usr/bin/env python3
"""Prints the names of tests, a line each: all tests of a build, but of some suites only every Nth one.

usage: sample.py BUILD SUITE=N...     tests of suite `long` are left out

The sample rotates: the number of commits decides which tests are in it, so that N commits in a row run all of them.
"""
import json
import os
import subprocess
import sys


def commits():
    counted = subprocess.run(["git", "rev-list", "--count", "HEAD"], capture_output=True, text=True, check=False)
    return int(counted.stdout) if counted.returncode == 0 else 0


def main():
    with open(os.path.join(sys.argv[1], "meson-info/intro-tests.json"), encoding="utf-8") as file:
        tests = [(test["name"], {suite.split(":")[-1] for suite in test["suite"]}) for test in json.load(file)]
    tests = [(name, suites) for name, suites in tests if "long" not in suites]
    every = {suite: int(number) for suite, number in (word.split("=") for word in sys.argv[2:])}
    names, turn = {name for name, suites in tests if not suites & every.keys()}, commits()
    for suite, number in every.items():
        names.update(sorted(name for name, suites in tests if suite in suites)[turn % number::number])
    print("\n".join(sorted(names)))


main()
