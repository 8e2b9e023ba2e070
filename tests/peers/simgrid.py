#!/usr/bin/env python3
"""One MPI program under SimGrid's SMPI and under `causeway run --simulate`: simulated times, time that it takes, memory.

    apt-get install simgrid libsimgrid-dev
    tests/peers/simgrid.py [--build build] [--ranks 16,64]

Both simulate one switch, links of 10 Gb/s and 20 us from host to host, and computation takes no time. SMPI models the time of a
message: the ranks share the links' bandwidth, and no packet exists; its collectives are its own, by MPICH's rules. Causeway
runs the library that ships: each packet, acknowledgement, queue and loss. So the times of SMPI are those of another MPI
library on a network without protocol.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def platform_write(folder, ranks):
    """A star, as SimGrid's platform file, and its hosts."""
    platform, hosts = os.path.join(folder, "star.xml"), os.path.join(folder, "hosts")
    with open(platform, "w") as file:
        file.write(f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="star" prefix="h" suffix="" radical="0-{ranks - 1}" speed="1Gf" bw="1250MBps" lat="10us"/>
</platform>
""")
    with open(hosts, "w") as file:
        file.writelines(f"h{rank}\n" for rank in range(ranks))
    return platform, hosts


def run(command):
    """The times by name, seconds, and the most memory of all processes together, in MB."""
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        most = 0
        while job.poll() is None:
            most = max(most, memory(job.pid))
            time.sleep(0.1)
        out, err = job.communicate()
    if job.returncode != 0:
        sys.exit(f"{' '.join(command)}: {job.returncode} {err[-2000:]}")
    times = dict(line.rsplit(": ", 1) for line in out.splitlines() if line.endswith(" us"))
    return times, time.monotonic() - start, most


def memory(process):
    """Of a process and its descendants, each shared page divided among those that have it."""
    total = 0
    try:
        with open(f"/proc/{process}/smaps_rollup") as file:
            total = next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024
        with open(f"/proc/{process}/task/{process}/children") as file:
            total += sum(memory(int(child)) for child in file.read().split())
    except (OSError, StopIteration):
        pass
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--ranks", default="16,64")
    options = parser.parse_args()
    if shutil.which("smpicc") is None:
        sys.exit("there is no smpicc: apt-get install simgrid libsimgrid-dev")
    causeway = os.path.join(options.build, "causeway")
    source = os.path.join(HERE, "simulated.c")
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = os.path.join(folder, "smpi"), os.path.join(folder, "ours")
        subprocess.run(["smpicc", "-O2", source, "-o", theirs], check=True)
        subprocess.run([os.path.join(options.build, "mpi", "mpicc"), "-O2", source, "-o", ours], check=True)
        for ranks in map(int, options.ranks.split(",")):
            platform, hosts = platform_write(folder, ranks)
            smpi = run(["smpirun", "-np", str(ranks), "-platform", platform, "-hostfile", hosts, "--cfg=smpi/simulate-computation:no", theirs])
            own = run([causeway, "run", "-n", str(ranks), "--simulate", "cpu=0,rate=10Gbps,delay=20us", ours])
            print(f"{ranks} ranks{'':26}{'SMPI':>14}{'causeway':>14}")
            for name in own[0]:
                print(f"  {name:<32}{smpi[0].get(name, '-'):>14}{own[0][name]:>14}")
            print(f"  {'takes':<32}{smpi[1]:>12.1f} s{own[1]:>12.1f} s")
            print(f"  {'memory':<32}{smpi[2]:>11.0f} MB{own[2]:>11.0f} MB", flush=True)


main()
