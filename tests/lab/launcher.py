"""What tests of other launchers share: a laboratory or the reason why there is none, and what is expected of a job."""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

from expectation import HANG_S, expect, wait_until
from hosts import Lab, skip_without_hosts


def lab_or_skip(programs, keep, count=2):
    """A laboratory that has the programs. Only a machine without privileges is a reason that stays."""
    missing = [each for each in programs if shutil.which(each, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None]
    if missing:
        print(f"SKIPPED: {', '.join(missing)} not there: ./setup develop")
        sys.exit(77)
    skip_without_hosts()
    return Lab(count, keep=[os.path.dirname(os.path.abspath(__file__)), *keep])


@contextlib.contextmanager
def folder_make():
    """A folder that others may look into."""
    with tempfile.TemporaryDirectory(prefix="causeway-launcher-") as folder:
        os.chmod(folder, 0o755)
        yield folder


def exchanged(what, result, size, client):
    """All ranks of `exchange` have said who they are."""
    code, out, err = result
    expect(code == 0, f"{what} ends well, not {code}: {err}")
    said = sorted(int(rank) for rank in re.findall(rf"^rank (\d+) of {size} .* by {client}$", out, re.M))
    expect(said == list(range(size)), f"{what}: ranks 0 to {size - 1} by {client}: {out}{err}")


def left(lab, name="exchange"):
    """Processes of a job on all hosts."""
    return {f"{host} {pid}": line for host in lab.names for pid, line in lab.processes(host).items()
            if os.path.basename(line.split(" ")[0]) == name}


def gone(lab, what):
    """All processes of a job end."""
    expect(wait_until(lambda: not left(lab)), f"{what}: nothing is left: {left(lab)}")


def kill_while_waiting(lab, what, process, launcher, victim, hosts, grace_s=HANG_S):
    """With `exchange wait` under way, kills -9 whatever `victim` names on these hosts: no rank stays. Returns whether the launcher ends, too; else it is killed."""
    line = process.stdout.readline()
    expect(line.startswith("waiting"), f"{what}: rank 0 waits: {line}")
    for host in hosts:
        expect(kill(lab, host, victim), f"{what}: somebody on {host} is {victim}: {lab.processes(host)}")
    gone(lab, what)
    try:
        process.communicate(timeout=grace_s)
    except subprocess.TimeoutExpired:
        kill(lab, lab.names[0], rf"(\S*/)?{launcher} ")
        process.communicate()
        return False
    expect(process.returncode != 0, f"{what}: it is a failure")
    return True


def kill(lab, host, command):
    """Whether there was one."""
    victims = [pid for pid, line in lab.processes(host).items() if re.match(command, line)]
    for pid in victims:
        number = inside(pid)
        if number:
            subprocess.run([*lab.enter(host), "kill", "-9", str(number)], stderr=subprocess.DEVNULL, check=False)
    return bool(victims)


def inside(pid):
    """The number of a process in its own namespace, or None once it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            return int(re.search(r"^NSpid:.*\s(\d+)$", file.read(), re.M).group(1))
    except (FileNotFoundError, ProcessLookupError):
        return None
