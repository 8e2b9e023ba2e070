"""FFTW: its MPI transforms, verified by its own script (tests/check.pl) on random problems, as `make check` in its folder mpi does."""
import os

PACKAGES = {"perl": "runs FFTW's check.pl", "make": "builds FFTW", "dpkg-dev": "unpacks Debian's sources"}
PROBLEMS = 20  # lists of them; each has some dozens of transforms
MAXSIZE = 10000


def build(workshop):
    source = workshop.source("fftw3")
    folder = os.path.join(workshop.folder, "fftw3-build")
    bench = os.path.join(folder, "mpi", "mpi-bench")
    if not os.path.exists(bench):
        os.makedirs(folder, exist_ok=True)
        workshop.call(os.path.join(source, "configure"), "--enable-mpi", "--enable-threads", "--disable-fortran", "--disable-doc", "--disable-shared",
                      "MPICC=" + workshop.wrapper("mpicc"), cwd=folder)
        workshop.call("make", "-j2", cwd=folder)
    return source, bench


def cases(output):
    """Every verified transform prints its three errors; the first one that is wrong ends the program."""
    verified = [line for line in output.splitlines() if len(line.split()) == 4 and line.split()[1][0].isdigit()]
    return len(verified), 0


def run(workshop):
    workshop.packages(PACKAGES)
    source, bench = build(workshop)
    for ranks in workshop.ranks:
        for network, emulate in workshop.places(ranks):
            program = " ".join(workshop.launcher(ranks, emulate) + [bench])
            check = ["perl", "-w", os.path.join(source, "tests", "check.pl"), "--verbose", "--random", f"--maxsize={MAXSIZE}", f"-c={PROBLEMS}", "--mpi"]
            workshop.test("fftw", "transforms", network, ranks, check + [program], cases)
            workshop.test("fftw", "threads", network, ranks, check + ["--nthreads=2", program], cases)
