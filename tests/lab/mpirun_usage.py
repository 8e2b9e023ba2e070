#!/usr/bin/env python3
"""mpirun_usage.py CAUSEWAY EXCHANGE KERNEL PROGRAM...: jobs of Open MPI's mpirun (PMIx) and of Hydra (PMI-1) on two hosts, by ssh; jobs that fail, and
daemons that are killed. KERNEL and the PROGRAMs of the conformance suite run on a host."""
import os
import sys

from expectation import HANG_S, expect
from launcher import exchanged, folder_make, gone, kill_while_waiting, lab_or_skip

causeway, exchange, kernel, *programs = [os.path.abspath(each) for each in sys.argv[1:]]
build = os.path.commonpath([causeway, exchange, kernel])
# client: command, before the program; what to set; its daemon on another host
OPENMPI = ["mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", "ssh"]
HYDRA = ["mpiexec.hydra", "-launcher", "ssh"]
LAUNCHERS = {
    "Open MPI": ("PMIx", [*OPENMPI, "-H", "h0:2,h1:3"], [*OPENMPI, "-H", "h0:4"], {}, r"\S*orted"),
    "Hydra": ("PMI-1", [*HYDRA, "-hosts", "h0:2,h1:3"], [*HYDRA, "-hosts", "h0:4"], {}, r"\S*hydra_pmi_proxy"),
}


def run(lab, command, environment):
    return lab.run("h0", command, timeout=HANG_S, environment=environment)


def library_hide(lab):
    """Without the library of PMIx: a line that says what to install; but a process that is the only one needs none."""
    _, out, _ = run(lab, ["ldconfig", "-p"], {})
    library = os.path.realpath(next(line.split(" => ")[1] for line in out.splitlines() if "libpmix.so.2 " in line))
    run(lab, ["mount", "--bind", "/dev/null", library], {})
    started = {"PMIX_NAMESPACE": "a", "PMIX_RANK": "0"}
    code, _, err = run(lab, [exchange], started)
    expect(code == 2 and "libpmix2" in err and err.count("\n") == 1, f"a line without the library: {code}: {err}")
    code, out, err = run(lab, [exchange], {**started, "OMPI_COMM_WORLD_SIZE": "1"})
    expect(code == 0 and "by none" in out, f"alone without the library: {code}: {out}{err}")


def main():
    with folder_make() as folder, lab_or_skip(["mpirun.openmpi", "orted", "mpiexec.hydra"], [build, folder]) as lab:
        for name, (client, hosts, host, environment, daemon) in LAUNCHERS.items():
            exchanged(name, run(lab, [*hosts, exchange, "4"], environment), 5, client)
            exchanged(f"{name}, one", run(lab, [*host, "-n", "1", exchange], environment), 1, client)
            exchanged(f"causeway run within {name}", run(lab, [*host, "-n", "1", causeway, "run", "-n", "3", exchange], environment), 3, "PMI-1")
            code, out, err = run(lab, [*host, kernel, "S"], environment)
            expect(code == 0 and "verified" in out, f"IS by {name}: {code}: {out}{err}")
            for program in programs:
                code, out, err = run(lab, [*host, program], environment)
                expect(code == 0, f"{os.path.basename(program)} by {name}: {code}: {out}{err}")
            # into a file: Hydra's proxies end at once, and may lose what a rank says last
            code, _, err = run(lab, [*hosts, "sh", "-c", f"exec {exchange} abort 5 2>>'{folder}/{name}'"], environment)
            with open(f"{folder}/{name}", encoding="utf-8") as file:
                said = file.read()
            expect(code == 5 and "rank 1: aborts" in said, f"an abort by {name}: {code}: {err}: {said}")
            gone(lab, f"an abort by {name}")
            process = lab.start("h0", [*hosts, exchange, "wait"], environment=environment)
            expect(kill_while_waiting(lab, f"the daemon of {name} is killed", process, hosts[0], daemon, ["h1"]), f"{name} ends with its daemon")
        library_hide(lab)


main()
