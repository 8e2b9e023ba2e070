#!/usr/bin/env python3
"""Prints the names of tests, a line each: all tests of a build, but of some suites only every Nth one.

usage: sample.py BUILD N SUITE...     tests of these suites are sampled, tests of suite `long` are left out

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
    build, every, sampled = sys.argv[1], int(sys.argv[2]), set(sys.argv[3:])
    with open(os.path.join(build, "meson-info/intro-tests.json"), encoding="utf-8") as file:
        tests = [(test["name"], {suite.split(":")[-1] for suite in test["suite"]}) for test in json.load(file)]
    tests = [(name, suites) for name, suites in tests if "long" not in suites]
    rotating = sorted(name for name, suites in tests if suites & sampled)
    names = {name for name, suites in tests if not suites & sampled} | set(rotating[commits() % every::every])
    print("\n".join(sorted(names)))


main()
