#!/usr/bin/env python3
"""rdma_suite.py BUILD NAME=PROGRAM...: the conformance suite and the kernels by the RDMA devices of two guests (rdma_guests.py), one rank a guest.
The programs verify what they move; queue pairs must have carried it.

    CW_TEST_METAL=all   then two ranks a guest, which takes an hour
"""
import os
import sys
import time

from expectation import JOB_HANG, exit_code, expect
from guest import with_guests
from rdma_guests import NONE, PROGRAMS, Devices, arguments, pairs, told

LAYOUTS = ["a,b", "a:2,b:2"] if os.environ.get("CW_TEST_METAL") == "all" else ["a,b"]


def work():
    with Devices(2) as machines:
        for name, program in PROGRAMS.items():
            for hosts in LAYOUTS:
                begun_s = time.monotonic()
                result = machines.job_run("--timeout", JOB_HANG, program, *arguments(name), hosts=hosts)
                up, broken, requests = pairs(result) or NONE
                print(f"{name} on {hosts}: {time.monotonic() - begun_s:.0f} s, {up} queue pairs, {requests} work requests", flush=True)
                expect(result.code == 0, f"{name} on {hosts}: {told(result)}")
                expect((requests > 0) == (up > 0), f"{name} on {hosts}: pairs carry what there is: {told(result)}")
    return exit_code()


sys.exit(with_guests(work))
