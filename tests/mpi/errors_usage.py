#!/usr/bin/env python3
"""errors_usage.py CAUSEWAY WRONG: how a job ends when a rank makes an error, aborts or is killed (errors/wrong.c), and what it prints."""
import os
import subprocess
import sys

from expectation import JOB_HANG, expect

causeway, wrong = sys.argv[1:]
# what rank 1 does, the exit code (None: any but 0 and that of --timeout), the words of the one line that says so
TOLD = [("rank", None, "rank 1:|MPI_Send on MPI_COMM_WORLD: destination 99 is none of the 4 ranks|MPI_ERR_RANK"),
        ("count", None, "MPI_Send on MPI_COMM_WORLD: the count is -5; it cannot be negative|MPI_ERR_COUNT"),
        ("uncommitted", None, "MPI_Recv on MPI_COMM_WORLD: the datatype has not been committed; call MPI_Type_commit|MPI_ERR_TYPE"),
        ("op", None, "MPI_Allreduce on MPI_COMM_WORLD: MPI_BAND does not apply to MPI_FLOAT|MPI_ERR_OP"),
        ("null", None, "MPI_Comm_size on MPI_COMM_WORLD: size is NULL; give an address|MPI_ERR_ARG"),
        ("buffer", None, "MPI_Bsend on MPI_COMM_WORLD: no attached buffer has room for 4 bytes|MPI_Buffer_attach|MPI_ERR_BUFFER"),
        ("truncate", None, "rank 1:|MPI_Recv|river|MPI_ERR_TRUNCATE"),
        ("abort", 7, "rank 1:|MPI_Abort|7"),
        ("abort_self", 9, "rank 1:|MPI_Abort|9"),
        ("files", None, "rank 1:|MPI_Send|Too many open files|ulimit -n"),
        ("exit", 5, "rank 1 |5")]
# Several ranks may print such a line. The first three: also where nothing but a receive waits for the rank that cannot be reached.
TOLD_OFTEN = [(4, "files_self", "rank 1: rank 1 cannot be reached|inbox|Too many open files|ulimit -n"),
              (4, "space_self", "rank 1: rank 1 cannot be reached|inbox|Cannot allocate memory|ulimit -v"),
              (4, "space", "rank 1: rank |cannot be reached|inbox|Cannot allocate memory|ulimit -v"),
              (3, "before", "MPI_Comm_rank|before MPI_Init"),
              (3, "after", "MPI_Barrier|after MPI_Finalize")]


def run(ranks, *how, environment={}):
    """Exit code and output of a job that ends, and not by --timeout."""
    done = subprocess.run([causeway, "run", "-n", str(ranks), "--timeout", JOB_HANG, wrong, *how], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, **environment}, check=False)
    expect(done.returncode not in (0, 124), f"{how} ends the job with an error: {done.returncode} {done.stdout}")
    return done.returncode, done.stdout


def lines_with(output, words):
    return sum(all(word in line for word in words.split("|")) for line in output.splitlines())


for how, wanted, words in TOLD:
    code, output = run(4, how)
    expect(wanted in (None, code) and lines_with(output, words) == 1 and "went on" not in output, f"{how}: {wanted}, one line with {words}, not {code}: {output}")
for ranks, how, words in TOLD_OFTEN:
    code, output = run(ranks, how)
    expect(lines_with(output, words) >= 1 and "went on" not in output, f"{how}: a line with {words}: {output}")
# The root's buffer cannot be read. How many ranks find that out by themselves depends on the algorithm.
code, output = run(4, "unmapped", environment={"CAUSEWAY_ALGORITHM": "bcast=flat"})
expect("the buffer of rank 1 cannot be read" in output and lines_with(output, "MPI_Bcast|MPI_ERR_BUFFER") >= 1 and "went on" not in output, f"a buffer that is not there: {output}")
# The others wait for the rank that is gone. Who notices first, the launcher or another rank, gives the exit code.
for number in range(20):
    run(2 + number % 4, "killed", str(number * 7 + 1))
