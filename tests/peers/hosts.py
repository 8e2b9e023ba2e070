#!/usr/bin/env python3
"""Causeway by UDP sockets between hosts, beside MPICH and Open MPI over TCP between the same (apt-get install mpich libmpich-dev openmpi-bin libopenmpi-dev).

usage: sudo tests/peers/hosts.py [--build build] [--rounds 7] [--only pairs|crowd|multicast] [--user nobody] [--against OTHER_BUILD]

Hosts are namespaces of this machine (tests/lab/hosts.py), joined by a bridge; all run as the same user, each started by its own launcher through
the laboratory's ssh. Offloads are as the kernel has them, on, for all. Ranks of one host share memory in all three; between hosts the peers have TCP.

    pairs      a rank on each of two hosts: 8 bytes half a round trip (us), windows of 64 KiB and 1 MiB (MiB/s)
    crowd      8 ranks on 4 hosts, which share the cores of this machine: collectives, us
    multicast  8 hosts, a rank each: the collectives that multicast serves, us

Medians of interleaved rounds. A ratio below 1: Causeway is ahead of the better of the others, for times and bandwidths alike.
"""
import argparse
import os
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lab")]

from contest import Contender, Done, compile_all, ratio_row, rounds_run, table  # noqa: E402
from hosts import Lab  # noqa: E402

PAIRS = [("latency", 8), ("stream", 65536), ("stream", 1 << 20)]
CROWD = [("barrier", 8), ("allreduce", 8), ("allreduce", 65536), ("alltoall", 1024)]
MULTICAST = [("bcast", 1024), ("bcast", 65536), ("bcast", 1 << 20), ("scatter", 1024), ("allgather", 1024)]
# What holds MPICH to TCP between hosts: Debian's is built on UCX, others on libfabric. Inside of a host it has shared memory of its own.
MPICH = {"UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp", "UCX_WARN_UNUSED_ENV_VARS": "n"}
OPENMPI = ["--mca", "btl", "tcp,self,vader", "--mca", "pml", "ob1", "--mca", "btl_tcp_if_include", "10.77.0.0/24",
           "--mca", "oob_tcp_if_include", "10.77.0.0/24", "--mca", "orte_keep_fqdn_hostnames", "1"]


def sessions_raise(lab, nice, after_s=(0.1, 0.3, 0.6)):
    """Launchers make sessions of their own, and the kernel weighs these (autogroup(7)): all of a run are raised alike, soon."""
    def run():
        for pause in after_s:
            time.sleep(pause)
            for host in lab.names:
                for pid in lab.processes(host):
                    try:
                        with open(f"/proc/{pid}/autogroup", "w", encoding="ascii") as file:
                            file.write(str(nice))
                    except OSError:
                        pass  # it has ended
    threading.Thread(target=run, daemon=True).start()


def done(lab, nice, command, **options):
    if nice != 0:
        sessions_raise(lab, nice)
    return Done(lab, command, **options)


def contenders(lab, nice, folder, names, ranks_each, program):
    """All that are there, with this many ranks on each host."""
    hosts, count = lab.names, len(lab.names) * ranks_each
    root = ["--allow-run-as-root"] if lab.user is None else []
    run = ["run", "--timeout", "100", "--hosts", ",".join(f"{host}:{ranks_each}" for host in hosts)]
    known = {
        "causeway": ("Causeway, sockets", ["/tmp/build/causeway", *run], {"LD_LIBRARY_PATH": "/tmp/build/mpi"}),
        "against": ("the other build", ["/tmp/against/causeway", *run], {"LD_LIBRARY_PATH": "/tmp/against/mpi"}),
        "mpich": ("MPICH, TCP", ["mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", f"{lab.folder}/bin/ssh", "-hosts", ",".join(hosts),
                                 "-ppn", str(ranks_each), "-n", str(count)], MPICH),
        # unbound: each host would bind its rank to its first core, which is the same one; yielding, as --oversubscribe has it, where ranks outnumber cores
        "openmpi": ("Open MPI, TCP", ["mpirun.openmpi", *root, "--leave-session-attached", "--bind-to", "none", "--mca", "plm_rsh_agent", f"{lab.folder}/bin/ssh", *OPENMPI,
                                      *(["--mca", "mpi_yield_when_idle", "1"] if count > len(os.sched_getaffinity(0)) else []),
                                      "--host", ",".join(f"{host}:{ranks_each}" for host in hosts), "-n", str(count)], {}),
    }
    return [Contender(known[name][0], [*known[name][1], f"{folder}/{name}", *program], known[name][2],
                      run=lambda command, **options: done(lab, nice, command, **options)) for name in names]


def contest(options, what, hosts, ranks_each, source, program, keys):
    """One table."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        names = [name for name in compile_all(options.build, folder, source, options.against) if not options.contenders or name in options.contenders.split(",")]
        with Lab(hosts, user=options.user or None, keep=[f"{options.build}:build", folder, *([f"{options.against}:against"] if options.against else [])]) as lab:
            # the kernel weighs sessions first, and who yields makes room within its own only (autogroup(7)): these hosts share cores, and one session
            lab.has_sessions = False
            made = contenders(lab, options.nice, folder, names, ranks_each, program)
            rounds_run(made, options.rounds, options.wait)
    for value_of, how in ((Contender.median, "medians"), (Contender.best, "the best of the rounds, which others on the machine disturb least")):
        table(made, keys, f"{what}: {how}", value_of)
        ratio_row(made[0], made[1:], keys, "ratio", value_of)
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(os.path.dirname(os.path.dirname(HERE)), "build"))
    parser.add_argument("--against", help="another build folder of Causeway, to compare with that alone")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each figure of pairs")
    parser.add_argument("--only", choices=("pairs", "crowd", "multicast"))
    parser.add_argument("--contenders", help="some of causeway,mpich,openmpi")
    parser.add_argument("--user", default="nobody", help="'': root")
    parser.add_argument("--wait", type=float, default=2, help="seconds at most until others leave the machine alone, before each measurement")
    parser.add_argument("--nice", type=int, default=0, help="-19: others on the machine count less, for all who take part")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("hosts.py: hosts are namespaces, which are root's: sudo tests/peers/hosts.py")
    try:
        os.setsid()
    except PermissionError:
        pass  # it is a session already
    if os.path.exists("/proc/self/autogroup"):
        with open("/proc/self/autogroup", "w", encoding="ascii") as file:
            file.write(str(options.nice))
    options.build = os.path.abspath(options.build)
    options.against = options.against and os.path.abspath(options.against)
    if options.only in (None, "pairs"):
        contest(options, "2 hosts, a rank each: us, MiB/s", 2, 1, "pingpong.c",
                [str(options.seconds), *(str(size) for name, size in PAIRS if name == "stream")], PAIRS)
    for part, hosts, ranks_each, keys in (("crowd", 4, 2, CROWD), ("multicast", 8, 1, MULTICAST)):
        if options.only in (None, part):
            contest(options, f"{hosts} hosts, {ranks_each} ranks each: us", hosts, ranks_each, "bench.c",
                    [name if name == "barrier" else f"{name}:{size}" for name, size in keys], keys)


if __name__ == "__main__":
    main()
