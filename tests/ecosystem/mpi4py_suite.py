"""mpi4py: its own tests, a module at a time, with the numbers of ranks asked for."""
import os
import re

PACKAGES = {
    "python3-dev": "Python's headers, for the extension module",
    "python3-setuptools": "mpi4py's setup.py",
    "cython3": "makes the extension module of mpi4py's sources",
    "dpkg-dev": "unpacks Debian's sources",
    "python3-numpy": "arrays, which a part of the suite sends",
}
PYTHON = "/usr/bin/python3"  # Debian's, which the packages above are for


def cases(output):
    """Ranks print the same summary of unittest; what is counted is the tests of one."""
    ran = [int(number) for number in re.findall(r"^Ran (\d+) tests? in", output, re.M)]
    failed = re.findall(r"^FAILED \((.*)\)", output, re.M)
    wrong = sum(int(number) for number in re.findall(r"(?:failures|errors)=(\d+)", failed[0])) if failed else 0
    return max(ran, default=0) - wrong, wrong


def run(workshop):
    workshop.packages(PACKAGES)
    source = workshop.source("mpi4py")
    workshop.call(PYTHON, "setup.py", "build", "--mpicc=" + workshop.wrapper("mpicc"), cwd=source)
    modules = sorted(name[:-3] for name in os.listdir(os.path.join(source, "test")) if re.fullmatch(r"test_\w+\.py", name))
    for module in modules:
        for ranks in workshop.ranks:
            for network, emulate in workshop.places(ranks):
                command = workshop.launcher(ranks, emulate) + [PYTHON, os.path.join("test", "runtests.py"), "-v", "-i", f"^{module}$"]
                workshop.test("mpi4py", module, network, ranks, command, cases, cwd=source)
