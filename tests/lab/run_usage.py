#!/usr/bin/env python3
"""run_usage.py CAUSEWAY MEMBER EXCHANGE: `causeway run` with real processes: output, input, exit codes, and that nothing is left, whoever
dies; and our PMI-1 client under Hydra.

This process adopts whoever loses its parent, so that a process which stays behind is a child that it finds. No time is checked.
"""
import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from expectation import HANG_S, expect

PR_SET_CHILD_SUBREAPER = 36
KILL_ROUNDS, KILL_RANKS = 20, 4
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]
causeway, member, exchange = map(os.path.abspath, sys.argv[1:4])
DEAF = ["sh", "-c", "trap '' TERM; echo ready; exec sleep 100000"]

# words behind `causeway run`, the exit code, a part of what is said (None: nothing is)
EXIT_CODES = [
    ("-n 1 false", 1, None),
    ("-n 3 MEMBER crash 1", 128 + signal.SIGSEGV, "rank 1 (process "),
    ("-n 3 MEMBER crash 1", 128 + signal.SIGSEGV, "ended by signal 11 (SIGSEGV)"),
    ("-n 3 EXCHANGE abort 7", 7, "rank 1: aborts\n"),
    ("-n 2 MEMBER leave 0", 1, "rank 0"),
    ("-n 2 MEMBER leave 1", 1, "without MPI_Finalize"),
    ("-n 1 MEMBER leave 0", 0, None),
    ("-n 2 MEMBER nonsense 1", 1, "rank 1"),
    ("-n 1 EXCHANGE : -n 1 true", 1, "rank 1"),
    ("-n 1 EXCHANGE : -n 2 EXCHANGE", 0, None),
    ("-n 2 --timeout 50ms sleep 1000", 124, "still running: rank 0-1\n"),
    ("-n 2 ./does-not-exist", 127, "./does-not-exist: no such program\n"),
    ("-n 2 does-not-exist-either", 127, "no such program in PATH"),
    ("-n 2 --wdir /usr ./does-not-exist", 127, "./does-not-exist: no such program in /usr\n"),
    ("-n 1 true : -n 1 does-not-exist-either", 127, "no such program in PATH"),
    ("-n 2 /dev/null", 126, "/dev/null: may not be executed"),
    ("-n 2 /", 126, "/: may not be executed"),
    ("-n 2 --wdir /does-not-exist true", 126, "/does-not-exist"),
    ("-n 0 true", 2, "-n 0"),
    ("-n 5000 true", 2, "-n 5000"),
    ("-n -1 true", 2, "-n -1"),
    ("-n x true", 2, "-n x"),
    ("-n 4096 true : -n 1 true", 2, "4097 ranks"),
    ("-n", 2, "an argument is missing"),
    ("-n 2", 2, "no program"),
    ("-n 2 true :", 2, "no program"),
    ("--what true", 2, "unknown option: --what"),
    ("--env A true", 2, "NAME=VALUE"),
    ("--stdin 2 -n 2 true", 2, "no rank 2"),
    ("--timeout 0 true", 2, "--timeout 0"),
    ("-nolocal true", 2, "not an option here: -nolocal (--hosts, --hostfile, --map-by and --bind-to say"),
    ("-npernode 2 true", 2, "not an option here: -npernode"),
    ("--hosts= true", 2, "--hosts"),
    ("--hosts -x true", 2, "--hosts"),
    ("--hosts a:0 true", 2, "a:0"),
    ("--hostfile=/nonexistent true", 2, "/nonexistent"),
    ("-machinefile /nonexistent -n 2 true", 2, "/nonexistent"),
    ("--launcher= true", 2, "--launcher"),
    ("--ports 40000 true", 2, "bad value: --ports 40000 (FIRST-LAST is wanted, UDP ports of 1 to 65535)"),
    ("--ports 40009-40000 true", 2, "FIRST-LAST is wanted"),
    ("--ports= true", 2, "FIRST-LAST is wanted"),
    ("--mca btl tcp true", 2, "not an option here: --mca"),
    ("--map-by socket true", 2, "--map-by"),
    ("-genvlist A true", 2, "-genvlist"),
    ("-hello true", 2, "unknown option: -hello"),
    ("-lx true", 2, "unknown option: -lx"),
    ("--emul 1,memif true", 2, "unknown option: --emul"),
    ("--label=x true", 2, "unknown option: --label=x"),
    ("-genv A", 2, "an argument is missing: -genv"),
    ("-genv A=B 1 true", 2, "-genv A=B"),
    ("-env A", 2, "an argument is missing"),
    ("-ppn 0 true", 2, "-ppn 0"),
    ("-n 4 -ppn 3 --emulate 2,memif true", 2, "-ppn 3 with 4 ranks on 2 hosts"),
    ("--bind-to socket true", 2, "'core', 'numa', 'hwthread' or 'none'"),
    ("-n 4096 --bind-to hwthread true", 2, "4096 ranks, and there is one for"),
    ("-n 2 -ppn 2 --oversubscribe --allow-run-as-root --bind-to none -genvall true", 0, None),
    ("-np 2 -- true", 0, None),
    ("-n2 true", 0, None),
]
# ... of jobs that end well: how their output begins
OUTPUTS = [
    ("-env A 1 printenv A", "1\n"),
    ("-env A=2 printenv A", "2\n"),
    ("-genv A 3 printenv A", "3\n"),
    ("-genv A 3 -env A 4 printenv A", "4\n"),
    ("-x A=5 printenv A", "5\n"),
    ("-genv A 6 -n 1 printenv A : -n 1 printenv A", "6\n6\n"),
    ("-n 1 printenv A : -x A=7 -n 1 printenv A", "7\n7\n"),
    ("-x PATH -wd / pwd", "/\n"),
    ("--wdir / pwd", "/\n"),
    ("-n 1 -prepend-rank -wd / pwd : -n 1 true", "[0] /\n"),
    ("--version", "causeway "),
    ("-V", "causeway "),
]
INPUTS = [
    ("-n 2 -l cat", "[0] line\n"),
    ("-n 2 -l --stdin 1 cat", "[1] line\n"),
    ("-n 2 --stdin all cat", "line\nline\n"),
    ("-n 2 --stdin none cat", ""),
]


def start(words, *more, stdin=subprocess.DEVNULL, launcher=(causeway, "run")):
    """In a process group of its own."""
    names = {"MEMBER": member, "EXCHANGE": exchange}
    command = [*launcher, *(names.get(word, word) for word in words.split()), *more]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, process_group=0)


def finish(job):
    """What a shell would call the exit code, and both outputs."""
    try:
        out, err = job.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        raise
    return job.returncode if job.returncode >= 0 else 128 - job.returncode, out.decode("latin-1"), err.decode()


def nobody_left(what):
    try:
        expect(False, f"{what}: nobody is left: {os.waitpid(-1, os.WNOHANG)}")
    except ChildProcessError:
        pass


def run(words, *more, **how):
    found = finish(start(words, *more, **how))
    nobody_left(words)
    return found


def ready(words, *more, ranks=KILL_RANKS):
    """A job all of whose ranks have said that they are ready."""
    job = start(words, *more)
    for _ in range(ranks):
        expect(job.stdout.readline() == b"ready\n", f"{words}: ranks are ready")
    return job


def child_of(parent, index):
    with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as file:
        return int(file.read().split()[index])


def rank_of(job, rank):
    return child_of(child_of(job.pid, 0), rank)


def outputs():
    for words, wanted in [("-n 3 /bin/echo hello", "hello\n" * 3), ("-n 64 true", "")]:
        found = run(words)
        expect(found == (0, wanted, ""), f"{words}: {found}")
    code, out, _ = run("-n 3 --label EXCHANGE")
    expect(code == 0 and sorted(re.findall(r"^\[(\d)\] rank \1 of 3 .* by PMI-1$", out, re.M)) == ["0", "1", "2"] and out.count("\n") == 3, f"labels: {out}")
    every_byte = bytes(range(256)) * 1200
    with tempfile.NamedTemporaryFile() as file:
        file.write(every_byte)
        file.flush()
        code, out, _ = run("-n 1 cat", file.name)
    expect(code == 0 and out.encode("latin-1") == every_byte, "output is binary")
    code, out, _ = run("--wdir /tmp --env A=b=c --env LAB=1 env")
    expect(code == 0 and {"A=b=c", "LAB=1", "PMI_SIZE=1"} <= set(out.splitlines()), f"--env: {out}")
    for words, wanted in OUTPUTS:
        code, out, _ = run(words)
        expect(code == 0 and out.startswith(wanted), f"{words}: {code}: {out}")


def inputs():
    """Once of a pipe, once of a file."""
    for words, wanted in INPUTS:
        read, write = os.pipe()
        os.write(write, b"line\n")
        os.close(write)
        with os.fdopen(read) as pipe, tempfile.TemporaryFile() as file:
            file.write(b"line\n")
            file.seek(0)
            for stdin in (pipe, file):
                code, out, _ = run(words, stdin=stdin)
                expect((code, out) == (0, wanted), f"{words}: {code}: {out}")


def exit_codes():
    for words, wanted, error in EXIT_CODES:
        code, _, err = run(words)
        expect(code == wanted and (err == "" if error is None else error in err), f"{words}: {code}: {err}")


def ranks_are_bound():
    """Each rank may run on a processor of its own, and on no other one."""
    here = os.sched_getaffinity(0)
    count = min(2, len(here))
    code, out, _ = run(f"-n {count} --bind-to hwthread grep Cpus_allowed_list: /proc/self/status")
    lists = re.findall(r"^Cpus_allowed_list:\s*(\d+)$", out, re.M)
    expect(code == 0 and len(set(lists)) == len(lists) == count and set(map(int, lists)) <= here, f"--bind-to hwthread: {out}")
    expect(run("--bind-to core true")[0] == 0, "--bind-to core")


def kills():
    """Who ignores SIGTERM is killed; who has left the group is found."""
    job = ready("-n 3", *DEAF, ranks=3)
    os.kill(rank_of(job, 1), signal.SIGKILL)
    expect(finish(job)[0] == 128 + signal.SIGKILL, "ranks that ignore SIGTERM: the exit code")
    nobody_left("ranks that ignore SIGTERM")
    expect(run("-n 3 MEMBER daemon-and-end")[0] == 0, "ranks that leave somebody end well")
    draw = random.Random(9)
    for _ in range(KILL_ROUNDS):
        rank = draw.randrange(KILL_RANKS)
        job = ready("-n 4 MEMBER daemon")
        os.kill(rank_of(job, rank), signal.SIGKILL)
        code, _, err = finish(job)
        expect(code == 128 + signal.SIGKILL and f"rank {rank} (process " in err, f"rank {rank} is killed: {code}: {err}")
        nobody_left("a rank is killed")
    for number in range(KILL_ROUNDS):
        is_launcher = number % 2 == 0
        job = ready("-n 4 MEMBER daemon")
        os.kill(child_of(job.pid, 0) if is_launcher else job.pid, signal.SIGKILL)
        expect(finish(job)[0] == 128 + signal.SIGKILL, "the launcher or the supervisor is killed: the exit code")
        if is_launcher:
            nobody_left("the launcher is killed")
        try:  # all that the supervisor has left becomes ours, and must end by itself
            while os.waitpid(-1, 0):
                pass
        except ChildProcessError:
            pass


def signals():
    """To the launcher, or to all processes of its group, as a terminal does."""
    for number in SIGNALS:
        for send in (os.kill, os.killpg):
            job = ready("-n 4 MEMBER wait")
            send(job.pid, number)
            code, _, err = finish(job)
            expect(code == 128 + number and err.count("\n") == 1, f"{number.name}: {code}: {err}")
            nobody_left(number.name)


def the_reader_goes():
    """Nobody reads any more: ends as a process would."""
    job = start("-n 2 yes")
    job.stdout.read(1)
    job.stdout.close()
    job.stdout = None
    expect(job.wait(timeout=HANG_S) == 128 + signal.SIGPIPE, f"without a reader: {job.returncode}")
    job.stderr.close()
    nobody_left("without a reader")


def hydra():
    if shutil.which("mpiexec.hydra") is None:
        print("mpiexec.hydra is not there (apt-get install mpich)")
        return
    for count in (1, 2, 5):
        for port in ((), ("-pmi-port",)):
            code, out, err = finish(start(f"-n {count} EXCHANGE", launcher=("mpiexec.hydra", *port)))
            expect(code == 0 and out.count("\n") == out.count("by PMI-1\n") == count, f"Hydra, {count} ranks {port}: {code}: {out}{err}")


ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
for each in SIGNALS:
    signal.signal(each, signal.SIG_DFL)  # whoever runs the tests may ignore some, as nohup does
for test in (outputs, inputs, exit_codes, ranks_are_bound, kills, signals, the_reader_goes, hydra):
    test()
