"""Ranks of one host that may not copy from or to others' memory, each pair or direction for itself: long messages arrive all the same. A rank that nobody reaches any more ends the job.

usage: denied_usage.py CAUSEWAY DENIED     DENIED: errors/denied.c
"""

import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from expectation import JOB_HANG, execute, expect

EXIT_TIMEOUT = 124
causeway, denied = sys.argv[1:]


def run(kind):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        # the transport is that of hidden ranks, which use packets
        return execute([causeway, "run", "-n", "3", "--timeout", JOB_HANG, denied, kind, folder], CAUSEWAY_TRANSPORT="127.0.0.1")


KINDS = ["readv", "writev", "both", "hidden", "later", "later-all"]
with ThreadPoolExecutor(2) as pool:
    jobs = dict(zip(KINDS, pool.map(run, KINDS)))
for kind in KINDS[:4]:
    expect(jobs[kind].returncode == 0, f"{kind}: {jobs[kind].returncode}: {jobs[kind].stderr}")
for kind in KINDS[4:]:
    done = jobs[kind]
    expect(done.returncode not in (0, EXIT_TIMEOUT), f"{kind}: the job fails, not {done.returncode}: {done.stderr}")
    expect("inbox of process" in done.stderr and "the kernel hides it" in done.stderr,
           f"{kind}: it is told why: {done.stderr}")
