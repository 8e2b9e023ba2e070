#!/usr/bin/env python3
"""run.py [--build DIR] [fftw|boost|mpi4py|all]: suites that others wrote, from Debian's sources, on Causeway.

Fetches and builds them in DIR/ecosystem with DIR/mpi/mpicc and mpicxx, and runs them on shared memory, and on emulated or simulated hosts.
Lists what passes, what is not there yet (a call that raised MPI_ERR_UNSUPPORTED_OPERATION), and what fails; the exit code is 1 if anything fails.
As root it installs the packages that it needs. README.md has the last list.
"""
import argparse
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True  # no cache among the sources

import boost  # noqa: E402
import fftw  # noqa: E402
import mpi4py_suite  # noqa: E402
from suite import Workshop  # noqa: E402

SUITES = {"fftw": fftw, "boost": boost, "mpi4py": mpi4py_suite}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", default=["all"], help="fftw, boost, mpi4py; all of them without one")
    parser.add_argument("--build", default="build", help="the build tree of Causeway (build)")
    parser.add_argument("--networks", default="shm,memif", help="shm: one host; memif: a host for each rank, at most 4; sim: simulated hosts in virtual time (shm,memif)")
    parser.add_argument("--ranks", default="2,4", help="where the suite leaves the number open (2,4)")
    parser.add_argument("--seconds", type=int, default=120, help="for each test (120)")
    parser.add_argument("--only", default="", help="tests whose name contains this")
    parser.add_argument("--json", help="the results are written there as well")
    return parser.parse_args()


def main():
    options = arguments()
    names = list(SUITES) if "all" in options.suites else options.suites
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        sys.exit(f"run.py: there is no suite {unknown[0]}; there are {', '.join(SUITES)}")
    workshop = Workshop(options)
    for name in names:
        try:
            SUITES[name].run(workshop)
        except subprocess.CalledProcessError as error:
            workshop.lost(name, f"{' '.join(map(str, error.cmd))[:200]}: exit code {error.returncode}; see {workshop.log}")
        except LookupError as error:
            workshop.lost(name, str(error))
    workshop.report()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(workshop.results, file, indent=1)
    sys.exit(any(result["verdict"] == "fails" for result in workshop.results))


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    main()
