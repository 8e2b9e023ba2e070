#!/usr/bin/env python3
"""slurm_usage.py CAUSEWAY EXCHANGE KERNEL PROGRAM...: jobs of a Slurm cluster of two hosts: srun with each kind of MPI, an allocation without srun, jobs that fail,
servers that are killed, and processors. KERNEL and the PROGRAMs of the conformance suite run on a host."""
import os
import sys

from expectation import expect
from launcher import exchanged, folder_make, gone, kill_while_waiting, lab_or_skip
from slurm import SERVERS, Slurm

causeway, exchange, kernel, *programs = [os.path.abspath(each) for each in sys.argv[1:]]
build = os.path.commonpath([causeway, exchange, kernel])
CLIENTS = {"pmi2": "PMI-1", "pmix": "PMIx"}


def jobs_run(slurm):
    for mpi, client in CLIENTS.items():
        exchanged(f"srun --mpi={mpi}", slurm.run(["srun", "-N2", "-n5", f"--mpi={mpi}", exchange, "4"]), 5, client)
        exchanged(f"{mpi} of many", slurm.run(["srun", "-N2", "-n16", f"--mpi={mpi}", exchange, "2"]), 16, client)
        exchanged(f"{mpi} of one", slurm.run(["srun", "-n1", f"--mpi={mpi}", exchange]), 1, client)
        code, out, err = slurm.run(["srun", "-N1", "-n4", f"--mpi={mpi}", kernel, "S"])
        expect(code == 0 and "verified" in out, f"IS by {mpi}: {code}: {out}{err}")
        for program in programs:
            code, out, err = slurm.run(["srun", "-N1", "-n4", f"--mpi={mpi}", program])
            expect(code == 0, f"{os.path.basename(program)} by {mpi}: {code}: {out}{err}")
        # by somebody who is not root
        exchanged(f"{mpi} of nobody", slurm.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "srun",
                                                 "-D", "/tmp", "-N2", "-n4", f"--mpi={mpi}", exchange]), 4, client)


def others_run(slurm):
    code, _, err = slurm.run(["srun", "-N2", "-n2", "--mpi=none", exchange])
    expect(code != 0 and "srun --mpi=pmi2" in err and "srun --mpi=pmix" in err, f"what starts it right: {code}: {err}")
    code, out, err = slurm.run(["srun", "-n1", "--mpi=none", exchange])
    expect(code == 0 and "by none" in out, f"one process is a job of its own: {code}: {out}{err}")
    exchanged("causeway run in an allocation", slurm.run(["salloc", "-Q", "-N2", "-n5", causeway, "run", exchange]), 5, "PMI-1")
    for mpi in CLIENTS:
        exchanged(f"causeway run within srun --mpi={mpi}", slurm.run(["srun", "-n1", f"--mpi={mpi}", causeway, "run", "--hosts", "localhost:3",
                                                                      "-n", "3", exchange]), 3, "PMI-1")


def wait_start(lab, slurm, mpi):
    return lab.start("h0", ["srun", "-N2", "-n4", f"--mpi={mpi}", exchange, "wait"], environment=slurm.environment)


def failures_run(lab, slurm):
    for mpi in CLIENTS:
        code, _, err = slurm.run(["srun", "-N2", "-n4", f"--mpi={mpi}", exchange, "abort", "5"])
        # Slurm kills the others, and at times the one that asked for it before it has ended by itself
        expect(code in (5, 137), f"an abort by {mpi} ends the job, not {code}: {err}")
        expect("rank 1: aborts" in err, f"who aborted: {err}")
        gone(lab, f"an abort by {mpi}")
        process = wait_start(lab, slurm, mpi)
        expect(process.stdout.readline().startswith("waiting"), f"rank 0 waits under {mpi}")
        slurm.run(["scancel", "--name=exchange"])
        gone(lab, f"scancel under {mpi}")
        process.communicate()
        expect(process.returncode != 0, f"a job of {mpi} that is cancelled is a failure")
        process = wait_start(lab, slurm, mpi)
        # srun itself waits on
        kill_while_waiting(lab, f"slurmstepd under {mpi} is killed", process, "srun", "slurmstepd: ", lab.names, grace_s=0)


WISHES = ["", "SLURM_CPU_BIND=cores", "SLURM_HINT=nomultithread", "SRUN_CPUS_PER_TASK=1", "SLURM_EXACT=1", "SLURM_LABELIO=1", "SLURM_STDINMODE=none",
          "SLURM_STDOUTMODE=/tmp/out", "SLURM_EXPORT_ENV=NONE"]


def unbound_run(slurm):
    """Ranks have all processors of the allocation, and agents their standard files, whatever the steps of the job are to be."""
    for wish in WISHES:
        code, out, err = slurm.run(["salloc", "-Q", "-N2", "--ntasks-per-node=2", "env", *([wish] if wish else []), causeway, "run", "grep",
                                    "Cpus_allowed_list", "/proc/self/status"])
        lines = out.splitlines()
        expect(code == 0 and len(lines) == 4 and len(set(lines)) == 1, f"nobody is bound under {wish or 'Slurm'}: {code}: {out}{err}")


def main():
    with folder_make() as folder, lab_or_skip(SERVERS, [build, folder]) as lab, Slurm(lab, folder) as slurm:
        jobs_run(slurm)
        others_run(slurm)
        failures_run(lab, slurm)
    with folder_make() as folder, lab_or_skip(SERVERS, [build, folder]) as lab, Slurm(lab, folder, "affinity") as slurm:
        unbound_run(slurm)


main()
