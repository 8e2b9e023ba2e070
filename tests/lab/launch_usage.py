#!/usr/bin/env python3
"""launch_usage.py BUILD EXCHANGE FENCE_LARGE: `causeway run` across the hosts of a laboratory (hosts.py), as user nobody: what it
promises on one host holds on several, every failure is told in one line that names the host, and nothing is left
anywhere. EXCHANGE, FENCE_LARGE: programs that only ask their launcher for addresses (exchange.c, fence_large.c)."""
import contextlib
import os
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpi"))
import hosts
from ending import children_of
from expectation import HANG_S, expect, wait_until

build = os.path.abspath(sys.argv[1])
CAUSEWAY = "/tmp/build/causeway"
EXCHANGE, FENCE_LARGE = ("/tmp/build/" + os.path.relpath(os.path.abspath(each), build) for each in sys.argv[2:])
FOREVER = "exec sleep infinity"
PATIENCE_S = 5  # CAUSEWAY_FAILURE_TIMEOUT where it is to end something

hosts.skip_without_hosts()


def row(lab, command, code=0, out=None, err=None, stdin=None, lines=0, then=None):
    """One command on the first host; `out`: lines in any order, or text; `err`: expressions that match in it. `then`
    is called when the command has written so many lines, which are not in `out`."""
    # the folder in which nsenter begins is the machine's, not the host's
    process = lab.start("h0", ["sh", "-c", f"cd /tmp; {command}"], stdin=subprocess.PIPE)
    for _ in range(lines):
        process.stdout.readline()
    if then is not None:
        then(lab)
    try:
        got, said = process.communicate(stdin or "", timeout=HANG_S)
    except subprocess.TimeoutExpired:
        lab.kill(process)
        got, said = process.communicate()
        expect(False, f"{command}: ends: {got} {said}")
        return got
    wrong = []
    if process.returncode != code:
        wrong.append(f"exit code {process.returncode}, not {code}")
    if out is not None and sorted(got.splitlines()) != sorted(out.splitlines()):
        wrong.append(f"wrote {got!r}, not {out!r}")
    for each in [err] if isinstance(err, str) else err or []:
        if not re.search(each, said):
            wrong.append(f"does not say {each!r}")
    if err is None and said:
        wrong.append("says something")
    behind = lab.left(HANG_S)
    if behind:
        wrong.append(f"leaves {behind}")
    expect(not wrong, f"{command}: {'; '.join(wrong)}\n{said}")
    return got


def exchanged_by(count):
    return "".join(f"rank {rank} of {count} universe {count} app 0 by PMI-1\n" for rank in range(count))


def script(name, *lines):
    """Makes a shell script that all hosts see; returns its path there."""
    with open(f"{scripts}/{name}", "w", encoding="ascii") as file:
        file.write("\n".join(["#!/bin/sh", *lines, ""]))
    os.chmod(file.name, 0o755)
    return f"/tmp/scripts/{name}"


def ranks_of(names):
    return "".join(f"[{rank}] {name}\n" for rank, name in enumerate(names))


def placed(lab):
    row(lab, f"{CAUSEWAY} run --hosts h0:2,h1,h2:2 -l hostname", out=ranks_of("h0 h0 h1 h2 h2".split()))
    row(lab, f"{CAUSEWAY} run --hosts h1,h2:2 -n 4 -l hostname", out=ranks_of("h1 h2 h2 h1".split()))
    row(lab, f"{CAUSEWAY} run --hosts h1:3,h2:3 -n 5 --map-by node -l hostname", out=ranks_of("h1 h2 h1 h2 h1".split()))
    row(lab, f"{CAUSEWAY} run --hosts h1,h2,h3 -ppn 2 -n 4 -l hostname", out=ranks_of("h1 h1 h2 h2".split()))
    row(lab, f"printf 'h3 slots=2 # two\\n\\nh1:1\\n' > f; {CAUSEWAY} run --hostfile f -l hostname",
        out=ranks_of("h3 h3 h1".split()))
    row(lab, f"printf 'h3\\nh1\\nh3\\n' > f; PBS_NODEFILE=f {CAUSEWAY} run -l hostname", out=ranks_of("h3 h3 h1".split()))
    row(lab, f"{CAUSEWAY} run --launcher ssh -l -n 2 --hosts h2,h1 hostname : -n 1 echo other",
        out=ranks_of("h2 h1 other".split()))
    # an agent that begins in another folder; a launcher's command of any length
    row(lab, f"printf '#!/bin/sh\ncd / && exec {CAUSEWAY} agent' > away; chmod +x away; mkdir -p sub; "
             f"{CAUSEWAY} run --launcher ./away --hosts a:2 --wdir sub pwd", out="/tmp/sub\n" * 2)
    row(lab, f"{CAUSEWAY} run --launcher 'ssh {'-o Some=thing ' * 60}' --hosts h2,h1 -l hostname", out=ranks_of("h2 h1".split()))
    row(lab, f"{CAUSEWAY} run --launcher 'ssh -o Some=thing' --hosts h2,h1 -l hostname", out=ranks_of("h2 h1".split()))
    row(lab, f"{CAUSEWAY} run --hosts h1,h2 -l --bind-to core sh -c 'grep -c . /proc/self/status >/dev/null; echo $PMI_SIZE'",
        out=ranks_of("2 2".split()))


def prompted(lab):
    """A prompt is shown before its line ends, since the answer ends it."""
    ask = "if [ $PMI_RANK = 0 ]; then printf 'name? '; read name; echo hello $name; fi"
    process = lab.start("h0", [CAUSEWAY, "run", "--hosts", "h1,h2", "sh", "-c", ask], stdin=subprocess.PIPE, text=False)
    shown = b""
    while not shown.endswith(b"name? ") and select.select([process.stdout], [], [], HANG_S)[0]:
        got = os.read(process.stdout.fileno(), 100)
        if not got:
            break
        shown += got
    expect(shown == b"name? ", f"a prompt: {shown}")
    out, err = process.communicate(b"Ada\n", timeout=HANG_S)
    expect(process.returncode == 0 and out == b"hello Ada\n" and err == b"",
           f"its answer: {process.returncode}: {out} {err}")


def passed_on(lab):
    row(lab, f"A=here {CAUSEWAY} run --hosts h1,h2 --env B=there -l sh -c 'echo $A $B $(pwd); echo error >&2'",
        out=ranks_of(["here there /tmp"] * 2), err=r"^\[[01]\] error\n\[[01]\] error\n$")
    row(lab, f"TMPDIR=/here LOGNAME=me {CAUSEWAY} run --hosts h1,h2 -x TMPDIR -x MAIL=none -l sh -c 'echo $TMPDIR $MAIL $LOGNAME'",
        out=ranks_of(["/here none"] * 2))  # what speaks of a host is handed on where it is asked for
    text = "".join(f"line {i}\n" for i in range(20000))
    row(lab, f"{CAUSEWAY} run --hosts h1,h2 --stdin 1 -l cat", stdin=text,
        out="".join(f"[1] {line}\n" for line in text.splitlines()))
    row(lab, f"{CAUSEWAY} run --hosts h0,h2 --stdin all md5sum", stdin=text,
        out="".join(2 * [subprocess.run("md5sum", input=text, text=True, capture_output=True, check=True).stdout]))
    row(lab, f"{CAUSEWAY} run --hosts h1,h2 --stdin 1 true", stdin=text)  # nobody reads
    lines = row(lab, f"{CAUSEWAY} run --hosts h0:2,h1:2,h2:2 sh -c 'i=0; while [ $i -lt 3000 ]; do echo $PMI_RANK-$i-x; i=$((i+1)); done'")
    for rank in range(6):
        own = [line for line in lines.splitlines() if line.startswith(f"{rank}-")]
        expect(own == [f"{rank}-{i}-x" for i in range(3000)], f"lines of rank {rank} are whole and in order: {len(own)}")
    row(lab, f"{CAUSEWAY} run --hosts h1,h2 yes | head -n 1000 | wc -l", out="1000\n")


def fenced(lab):
    """Addresses put on one host are got on all, over several fences."""
    for where, count in (("h0:2,h1:3,h2", 6), ("h1:4", 4), ("h1,h2,h3", 3)):
        row(lab, f"{CAUSEWAY} run --hosts {where} --map-by node {EXCHANGE} 4", out=exchanged_by(count))


def fenced_large(lab):
    """More than a frame between hosts can have, 64 MiB; by pieces."""
    row(lab, f"{CAUSEWAY} run --hosts h1:560,h2:560 {FENCE_LARGE}", out="all found\n")
    row(lab, f"{CAUSEWAY} run --hosts h0:20,h1:2 {FENCE_LARGE}", out="all found\n")  # the launcher has ranks itself


def limited(lab):
    """Limits of a machine are held against the ranks that it has."""
    row(lab, f"ulimit -n 240; {CAUSEWAY} run --hosts h0:2,h1:30 true")
    row(lab, f"ulimit -n 210; {CAUSEWAY} run -n 10 true", 2, err=r"^causeway run: 10 ranks take 232 open files, and 210 are allowed \(raise")
    few = script("few", "ulimit -n 210", f"exec {CAUSEWAY} agent")
    row(lab, f"{CAUSEWAY} run --launcher {few} --hosts a:10 true", 2, err="^causeway run: host a: 10 ranks take 232 open files, and 210 are allowed")


def elsewhere(lab):
    """All ranks on one host, which is not the launcher's."""
    row(lab, f"{CAUSEWAY} run --hosts h1:2 nosuch", 127, err=r"^causeway run: host h1: nosuch: no such program in PATH")
    row(lab, f"{CAUSEWAY} run --hosts h1:2 sh -c 'if [ $PMI_RANK = 1 ]; then exit 7; fi; {FOREVER}'", 7,
        err=r"^causeway run: rank 1 \(process \d+ on h1\) ended with exit code 7: ending the others\n$")


def noisy(lab):
    """What shells and commands say around an agent."""
    greeter = script("greeter", "printf hello", 'exec ssh "$@"')
    row(lab, f"{CAUSEWAY} run --launcher {greeter} --hosts h1,h2 -l hostname", out=ranks_of("h1 h2".split()))
    row(lab, f"{CAUSEWAY} run --launcher 'yes #' --hosts a,b true", 3, err="host [ab]: a shell there says too much, and no agent answers")
    row(lab, f"{CAUSEWAY} run --launcher 'sh -c \"echo why >&2; for i in 1 2 3 4 5 6 7 8; do yes why >&2 & done; exit 1\"' --hosts a,b true", 3, err="no agent could be started .*exit code 1: why")
    library = "causeway: error while loading shared libraries: libsodium.so.23: cannot open shared object file: No such file or directory"
    row(lab, f"{CAUSEWAY} run --launcher 'sh -c \"echo {library} >&2; exit 127\"' --hosts a,b true", 127,
        err=r"host [ab]: causeway is there, and lacks a shared library .*libsodium\.so\.23")
    script("srun", "echo $* > /tmp/args", "while [ $1 != sh ]; do shift; done", 'exec "$@"')
    row(lab, f"PATH=/tmp/scripts:$PATH {CAUSEWAY} run --launcher srun --hosts a:2 true; grep -o -e --cpu-bind=none args", out="--cpu-bind=none\n")


def frame(kind, rank, value):
    """As printf takes it (control/launch/frame.h)."""
    return "".join(f"\\{byte:03o}" for byte in struct.pack("<IIiI", kind, rank, value, 0))


def forged(lab):
    """An agent that says what cannot be: an exit code of 512, which as that of a process would be 0."""
    started, ended = frame(10, 0, 7), frame(13, 0, 512)
    liar = script("liar", f"echo causeway-agent $({CAUSEWAY} --version | cut -d ' ' -f2) x", f"printf '{started}{ended}'", "exec cat > /dev/null")
    row(lab, f"{CAUSEWAY} run --launcher {liar} --hosts a true", 1, err="host a: invalid message from its agent")


def slow_hold(lab, host):
    """/tmp/slow of a host starts late: while another process has a lease of a file, for up to 45 s, the kernel holds up its
    execution. The lease ends with the holder's input."""
    hold = ("import fcntl, os, signal, shutil, sys; signal.signal(signal.SIGIO, signal.SIG_IGN); shutil.copy('/bin/true', '/tmp/slow'); "
            "file = os.open('/tmp/slow', os.O_RDONLY); fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK); print('held', flush=True); "
            "sys.stdin.read()")
    holder = lab.start(host, [hosts.SYSTEM_PYTHON, "-c", hold], stdin=subprocess.PIPE, stderr=None)
    expect(holder.stdout.readline() == "held\n", f"a lease on {host}")
    return holder


def slow_await(lab, host, word):
    """Until a host has a supervisor, a launcher, and the rank that is to become a program."""
    wait_until(lambda: sum(f"{CAUSEWAY} {word}" in line for line in lab.processes(host).values()) >= 3)


def slow(lab):
    """The launcher is killed, or another rank fails, while an agent waits for a program."""
    for how in "the launcher is killed", "another rank fails":
        holder = slow_hold(lab, "h1")
        process = lab.start("h0", ["sh", "-c", f"exec {CAUSEWAY} run --hosts h0,h1 -n 1 sh -c 'read line; exit 5' : -n 1 /tmp/slow"],
                            stdin=subprocess.PIPE, stdout=None, stderr=subprocess.DEVNULL)
        slow_await(lab, "h1", "agent")
        if how == "the launcher is killed":
            lab.kill(process)
        process.communicate("\n")
        goes_on = {}

        def is_over():
            goes_on.update(left={number: line for number, line in lab.processes("h1").items() if "SETLEASE" not in line})
            return not goes_on["left"]

        expect(wait_until(is_over), f"{how} while an agent waits for a program: {goes_on} ends")
        lab.kill(holder)
        lab.left(HANG_S)


def until(name):
    """What a rank does until `go(name)`."""
    return f"until [ -e /tmp/scripts/{name} ]; do sleep 0.1; done"


def go(name):
    script(name)


def slow_here(lab):
    """A program of the launcher's own host takes longer to start than agents wait for a word of the launcher."""
    holder = slow_hold(lab, "h0")

    def late(lab):
        slow_await(lab, "h0", "run")
        time.sleep(PATIENCE_S + 1)  # an agent that minds the silence ends in this time
        holder.communicate("")
        go("started")

    row(lab, f"CAUSEWAY_FAILURE_TIMEOUT={PATIENCE_S} {CAUSEWAY} run --hosts h0,h1 -n 1 /tmp/slow : -n 1 sh -c '{until('started')}'", then=late)


def launcher_of(lab):
    """The supervisor of `causeway run`: the launcher's parent."""
    found = [process for process, line in lab.processes("h0").items() if line.startswith(f"{CAUSEWAY} run")]
    return next(process for process in found if set(children_of(process)) & set(found))


def stopped(lab, how, patience_s, name, meanwhile, code=0, err="(?s)^(?!.*causeway run:)"):
    """A launcher is stopped while its ranks run, as a shell does it, and continued."""
    def stop(lab):
        group = os.getpgid(launcher_of(lab))
        os.killpg(group, how)
        meanwhile(lab)
        os.killpg(group, signal.SIGCONT)
        go(name)

    ended = "tail --pid=$! -f /dev/null; wait $!"  # bash itself stops waiting for a job that stops, and leaves a loop
    row(lab, f"bash -c 'set -m; CAUSEWAY_FAILURE_TIMEOUT={patience_s} {CAUSEWAY} run --hosts h0,h1,h2 sh -c \"echo runs; {until(name)}\" & {ended}'",
        code, err=err, lines=3, then=stop)


def stopped_reported(lab):
    """Ctrl-Z and fg: agents wait as long as it takes."""
    # an agent that minds the silence ends in this time
    stopped(lab, signal.SIGTSTP, PATIENCE_S, "told", lambda lab: time.sleep(PATIENCE_S + 1))


def stopped_untold(lab):
    """Agents take a launcher that is stopped otherwise for lost, but for CAUSEWAY_FAILURE_TIMEOUT=0."""
    def lost(lab):
        end = time.monotonic() + PATIENCE_S
        wait_until(lambda: time.monotonic() > end and not lab.processes("h1") and not lab.processes("h2"))

    stopped(lab, signal.SIGSTOP, 0, "never", lambda lab: None)
    stopped(lab, signal.SIGSTOP, PATIENCE_S, "lost", lost, 1, rf"host h[12]: its agent has ended: the launcher was stopped for \d+ s, and agents wait {PATIENCE_S} s")


def agent_stopped(lab):
    """Both agent processes of a host are stopped for good: the job ends, and the rank there, which waits for the others."""
    waits = f"if [ $PMI_RANK = 0 ]; then echo runs; {FOREVER}; fi; echo runs; exec {EXCHANGE}"
    process = lab.start("h0", ["env", f"CAUSEWAY_FAILURE_TIMEOUT={PATIENCE_S}", CAUSEWAY, "run", "--hosts", "h1,h2", "sh", "-c", waits])
    for _ in range(2):
        process.stdout.readline()
    agents = [number for number, command in lab.processes("h2").items() if command.endswith("causeway agent")]
    expect(len(agents) == 2, f"two agent processes: {lab.processes('h2')}")
    for number in agents:
        os.kill(number, signal.SIGSTOP)
    out, err = process.communicate(timeout=HANG_S)
    expect(process.returncode != 0 and "host h2: its agent is silent" in err, f"the job ends: {process.returncode}: {out} {err}")
    wait_until(lambda: not any("exchange" in command for command in lab.processes("h2").values()))
    for number in agents:
        with contextlib.suppress(ProcessLookupError):  # one of them ends with the other
            os.kill(number, signal.SIGKILL)
    expect(not lab.left(HANG_S), "a stopped agent: no other process is left")


def mute(lab):
    row(lab, f"CAUSEWAY_FAILURE_TIMEOUT={PATIENCE_S} {CAUSEWAY} run --launcher 'sleep infinity #' --hosts a,b true", 3, err="host [ab] does not answer within 10 s")


def launcher_end(lab):
    os.kill(launcher_of(lab), signal.SIGTERM)


def timed_out(lab):
    """With --timeout, as long as both ranks take to start."""
    timeout_s, got, code, said = 1, "", None, ""
    while got.count("runs") < 2 and timeout_s < HANG_S:
        code, got, said = lab.run("h0", [CAUSEWAY, "run", "--hosts", "h1,h2", "--timeout", str(timeout_s), "sh", "-c", f"echo runs; sleep infinity & {FOREVER}"], timeout=HANG_S)
        timeout_s *= 2
    expect(code == 124 and "still running: rank 0-1" in said, f"--timeout ends two ranks: {code}: {said}")
    expect(not lab.left(HANG_S), "--timeout leaves no process")


def failed(lab):
    ssh = r"`ssh %s` ended with exit code 255"
    row(lab, f"{CAUSEWAY} run --hosts h1,nosuch true", 3, err=[r"^causeway run: host nosuch: no agent could be started", ssh % "nosuch",
                                                              "Could not resolve", r"`ssh nosuch true` has to work"])
    row(lab, f"{CAUSEWAY} run --hosts h1,h2 nosuch", 127, err=r"^causeway run: host h[12]: nosuch: no such program in PATH")
    row(lab, f"{CAUSEWAY} run --hosts h1,h2 --wdir /nowhere true", 126, err=r"host h[12]: rank [01] cannot enter its directory: /nowhere")
    row(lab, f"{CAUSEWAY} run --hosts h0,h2 sh -c 'if [ $PMI_RANK = 1 ]; then exit 7; fi; {FOREVER}'", 7,
        err=r"^causeway run: rank 1 \(process \d+ on h2\) ended with exit code 7: ending the others\n$")
    row(lab, f"{CAUSEWAY} run --hosts h0,h2 sh -c 'if [ $PMI_RANK = 1 ]; then kill -SEGV $$; fi; {FOREVER}'", 139,
        err=r"rank 1 \(process \d+ on h2\) was ended by signal 11")
    row(lab, f"{CAUSEWAY} run --hosts h1,h2 sh -c 'trap \"\" TERM; echo runs; while :; do sleep 1; done'", 143,
        err="SIGTERM: ending all ranks", lines=2, then=launcher_end)
    row(lab, f"{CAUSEWAY} run --hosts h0,{lab.address(0)} true", 3, err="host 10.77.0.1")  # the fake ssh knows no addresses
    row(lab, f"printf '#!/bin/sh\nexec {CAUSEWAY} agent' > here; chmod +x here; {CAUSEWAY} run --launcher ./here --hosts a,b true",
        2, err=r"hosts [ab] and [ab] are the same machine: name it once")
    row(lab, f"{CAUSEWAY} run --launcher 'echo causeway-agent 0.0.1 x #' --hosts a,b true", 3,
        err=r"host [ab] has Causeway 0\.0\.1, and this is .*: install the same version")
    row(lab, f"{CAUSEWAY} run --launcher 'sh -c \"echo nonsense; exit 1\"' --hosts a,b true", 3,
        err="no agent could be started .*exit code 1: nonsense")
    row(lab, f"{CAUSEWAY} run --launcher 'sh -c \"exec nosuchprogram\"' --hosts a,b true", 127, err="host [ab]: there is no causeway")
    row(lab, f"{CAUSEWAY} run --launcher nosuchlauncher --hosts a,b true", 127, err="nosuchlauncher")


def grown(lab):
    """Above 32 hosts agents start agents."""
    names = ",".join(lab.names)
    row(lab, f"{CAUSEWAY} run --hosts {names} -l hostname", out=ranks_of(lab.names))
    row(lab, f"{CAUSEWAY} run --hosts {names} {EXCHANGE}", out=exchanged_by(lab.count))
    last = lab.names[-1]
    row(lab, f"{CAUSEWAY} run --hosts {names} sh -c 'if [ $(hostname) = {last} ]; then exit 5; fi; {FOREVER}'", 5,
        err=rf"rank {lab.count - 1} \(process \d+ on {last}\) ended with exit code 5")


PARTS = (stopped_untold, agent_stopped, mute, timed_out, stopped_reported, slow_here, fenced_large, failed, slow, placed, passed_on,
         prompted, fenced, limited, elsewhere, noisy, forged)


def part_run(part):
    """In a laboratory of its own: half of what they take is waiting."""
    with hosts.Lab(4, user="nobody", keep=[f"{build}:build", f"{scripts}:scripts"]) as four:
        part(four)


with tempfile.TemporaryDirectory() as scripts, ThreadPoolExecutor(4) as pool:
    os.chmod(scripts, 0o755)
    list(pool.map(part_run, PARTS))
    with hosts.Lab(40, user="nobody", keep=[f"{build}:build"]) as forty:
        grown(forty)
