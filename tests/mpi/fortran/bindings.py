#!/usr/bin/env python3
"""bindings.py MPIFORT LIBRARY NAMES CONSTANTS LAUNCHER|-: what Fortran programs are compiled and linked with.

Every function has its two symbols and its two interfaces, every constant the value of the ABI, in mpif.h (fixed and free form) and in the module; wrong arguments
are refused; the wrapper says what it does. LAUNCHER: also that what it links runs ("-": not under sanitizers, whose runtime gfortran would not link).
"""
import csv
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from expectation import exit_code, expect

mpifort, library, names_path, constants_path, launcher = sys.argv[1:]

# Constants of C that Fortran has by other means: addresses, functions, indices into statuses.
NOT_NUMBERS = re.compile(r"MPI_(F_\w+|T_\w+|\w+_FN|CONVERSION_FN_NULL\w*|BOTTOM|IN_PLACE|BUFFER_AUTOMATIC|ARGVS?_NULL|ERRCODES_IGNORE"
                         r"|STATUS(ES)?_IGNORE|UNWEIGHTED|WEIGHTS_EMPTY)")
# A call and what is wrong with it.
WRONG = [
    ("call MPI_Send(x, 1.5, MPI_REAL, 0, 0, MPI_COMM_WORLD, code)", "a REAL count"),
    ("call MPI_Send(x, 1_8, MPI_REAL, 0, 0, MPI_COMM_WORLD, code)", "a long count"),
    ("call MPI_Send(x, 1, MPI_REAL, 0, 0, MPI_COMM_WORLD)", "no ierror"),
    ("call MPI_Comm_free(MPI_COMM_NULL, code)", "a constant that is to be changed"),
    ("call MPI_Recv(x, 1, MPI_REAL, 0, 0, MPI_COMM_WORLD, code, code)", "a status that is no array"),
    ("call MPI_Get_address(x, code, code)", "an address of the wrong kind"),
    ("call MPI_Test(code, code, MPI_STATUS_IGNORE, code)", "a flag that is no LOGICAL"),
    ("call MPI_Comm_set_name(MPI_COMM_WORLD, 5, code)", "a name that is no string"),
    ("call MPI_Type_vector(1, 2, 3.0, MPI_REAL, code, code)", "a REAL stride"),
]
RIGHT = "call MPI_Send(x, 1, MPI_REAL, 0, 0, MPI_COMM_WORLD, code)"


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def compiles(folder, name, text, *options):
    path = os.path.join(folder, name)
    open(path, "w").write(text)
    return run(mpifort, "-c", *options, path, "-o", path + ".o")


def symbols_are_there(names):
    found = {}
    for line in run("nm", "--dynamic", "--defined-only", library).stdout.splitlines():
        _, kind, symbol = line.split()
        found[symbol.split("@")[0]] = kind
    for name in names + ["MPI_F_sync_reg"]:
        short = name.removeprefix("MPI_").lower()
        expect(found.get(f"mpi_{short}_") == "W", f"mpi_{short}_ is weak, not {found.get(f'mpi_{short}_')}")
        expect(found.get(f"pmpi_{short}_") == "T", f"pmpi_{short}_ is strong, not {found.get(f'pmpi_{short}_')}")


def interfaces_are_there(folder, names):
    uses = "".join(f"use mpi, only: {prefix}{name}\n" for name in names + ["MPI_Sizeof"] for prefix in ("", "P"))
    result = compiles(folder, "uses.f90", f"program uses\n{uses}end program\n")
    expect(result.returncode == 0, f"the module has an interface of every function: {result.stdout[:2000]}")


def constant_rows():
    """(name, value in Fortran): a division by 0 in the program below is a wrong value."""
    for row in csv.DictReader(open(constants_path)):
        if not NOT_NUMBERS.fullmatch(row["name"]):
            value = int(re.search(r"-?(0x[0-9a-fA-F]+|\d+)", row["value"]).group(0), 0)
            yield row["name"], value - 1 if row["name"].startswith("MPI_MAX_") else value
    yield from {"MPI_STATUS_SIZE": 8, "MPI_SOURCE": 1, "MPI_TAG": 2, "MPI_ERROR": 3, "MPI_ADDRESS_KIND": 8, "MPI_COUNT_KIND": 8,
                "MPI_OFFSET_KIND": 8, "MPI_INTEGER_KIND": 4}.items()


def constants_have_their_values(folder):
    rows = list(constant_rows())
    expect(len(rows) > 250, f"more than 250 constants, not {len(rows)}")
    checks = "".join(f"      integer, parameter :: c{i} = 1 / merge(1, 0, &\n     & {name} == {value})\n" for i, (name, value) in enumerate(rows))
    fixed = checks.replace(" &\n", "\n")
    include = "      implicit none\n      include 'mpif.h'\n"
    cases = {"module.f90": f"program p\nuse mpi\nimplicit none\n{checks}end program\n",
             "free.f90": f"program p\n{include}{checks}end program\n", "fixed.f": f"      program p\n{include}{fixed}      end program\n"}
    for name, text in cases.items():
        result = compiles(folder, name, text)
        expect(result.returncode == 0, f"constants of {name}: {result.stdout[:2000]}")
    first, value = rows[0]
    wrong = cases["module.f90"].replace(f"{first} == {value}", f"{first} == {value + 1}", 1)
    expect(compiles(folder, "wrong.f90", wrong).returncode != 0, "a wrong constant is noticed")


def includes_fit_every_compilation(folder):
    """mpif.h in either form, whatever the length of lines and the standard."""
    calls = "      call MPI_Send(1, 1, 1, 0, 0, 0, i)\n      call MPI_Send(1.0d0, 1, 1, 0, 0, 0, i)\n      call MPI_Bcast('a', 1, 1, 0, 0, i)\n"
    text = f"      program p\n      include 'mpif.h'\n      integer i\n{calls}      end program\n"
    for name, options in [("a.f", []), ("a.f", ["-ffixed-line-length-none"]), ("a.f", ["-ffixed-line-length-132"]), ("a.f90", []),
                          ("a.f90", ["-std=f2018"]), ("a.f90", ["-std=f95"]), ("a.f", ["-fimplicit-none", "-Wall", "-Werror"])]:
        result = compiles(folder, name, text, *options)
        expect(result.returncode == 0, f"mpif.h in {name} with {options}: {result.stdout[:2000]}")
    missing = text.replace("call MPI_Bcast('a', 1, 1, 0, 0, i)", "call MPI_Bcast('a', 1, 1, 0, 0)")
    expect(compiles(folder, "b.f", missing).returncode != 0, "mpif.h: a call without ierror is refused")


def wrong_arguments_are_rejected(folder):
    for call, what in [(RIGHT, None)] + WRONG:
        text = f"program p\nuse mpi\nimplicit none\nreal :: x\ninteger :: code\n{call}\nend program\n"
        result = compiles(folder, "call.f90", text)
        if what is None:
            expect(result.returncode == 0, f"what is right compiles: {result.stdout}")
        else:
            expect(result.returncode != 0 and "Error" in result.stdout, f"{what} is refused: {call}")


def wrapper_prints_what_it_does():
    folder = os.path.dirname(mpifort)
    for name in ["mpifort", "mpif77", "mpif90"]:
        wrapper = os.path.join(folder, name)
        shown = run(wrapper, "-show", "-O2", "x.f90").stdout
        expect(shown.startswith("gfortran -I") and "-O2 x.f90" in shown and "-lmpi_abi_fortran -lmpi_abi" in shown, f"{name} -show: {shown}")
        compile_only = run(wrapper, "-show", "-c", "x.f90").stdout
        expect("-lmpi_abi" not in compile_only, f"{name} -show -c: {compile_only}")
        expect(run(wrapper, "-showme:compile").stdout.startswith("-I"), f"{name} -showme:compile")
        expect("-lmpi_abi_fortran" in run(wrapper, "-showme:link").stdout, f"{name} -showme:link")


def programs_link_and_run(folder):
    text = "program p\nuse mpi\ninteger :: code, r, s\ncall MPI_Init(code)\ncall MPI_Comm_rank(MPI_COMM_WORLD, r, code)\n" \
           "call MPI_Allreduce(r, s, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)\nif (s /= 1) error stop 1\ncall MPI_Finalize(code)\nend program\n"
    source, program = os.path.join(folder, "run.f90"), os.path.join(folder, "run")
    open(source, "w").write(text)
    linked = run(mpifort, source, "-o", program)
    expect(linked.returncode == 0, f"mpifort links: {linked.stdout}")
    ended = run(launcher, "run", "-n", "2", "--timeout", "60", program)
    expect(ended.returncode == 0, f"what mpifort links runs: {ended.stdout}")


def main():
    names = open(names_path).read().split()
    expect(len(names) > 400, f"more than 400 functions, not {len(names)}")
    symbols_are_there(names)
    wrapper_prints_what_it_does()
    with tempfile.TemporaryDirectory() as folder:
        interfaces_are_there(folder, names)
        constants_have_their_values(folder)
        includes_fit_every_compilation(folder)
        wrong_arguments_are_rejected(folder)
        if launcher != "-":
            programs_link_and_run(folder)
    return exit_code()


sys.exit(main())
