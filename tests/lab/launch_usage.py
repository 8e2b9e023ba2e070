#!/usr/bin/env python3
"""launch_usage.py BUILD FENCE FENCE_LARGE: `causeway run` across the hosts of a laboratory (hosts.py), as user nobody: what it
promises on one host holds on several, every failure is told in one line that names the host, and nothing is left
anywhere. FENCE, FENCE_LARGE: programs that only ask their launcher for addresses (fence.c, fence_large.c)."""
import os
import re
import struct
import subprocess
import sys
import tempfile
import time

import hosts

build = os.path.abspath(sys.argv[1])
CAUSEWAY = "/tmp/build/causeway"
FENCE, FENCE_LARGE = ("/tmp/build/" + os.path.relpath(os.path.abspath(each), build) for each in sys.argv[2:])
LEFT_S = 8  # until nobody is left
failures = 0

if os.geteuid() != 0:
    print("SKIPPED: machine: hosts of a laboratory need root")
    sys.exit(77)


def fail(what):
    global failures
    failures += 1
    print("failed:", what, flush=True)


def row(lab, command, code=0, out=None, err=None, stdin=None, within_s=30, environment=None):
    """One command on the first host; `out`: lines in any order, or text; `err`: expressions that match in it."""
    before = time.monotonic()
    # the folder in which nsenter begins is the machine's, not the host's
    process = lab.start("h0", ["sh", "-c", f"cd /tmp; {command}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True, environment=environment or {})
    try:
        got, said = process.communicate(stdin or "", timeout=within_s)
    except subprocess.TimeoutExpired:
        lab.kill(process)
        got, said = process.communicate()
        fail(f"{command}: has not ended within {within_s} s: {got} {said}")
        return got, said
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
    behind = lab.left(LEFT_S)
    if behind:
        wrong.append(f"leaves {behind}")
    if wrong:
        fail(f"{command}: {'; '.join(wrong)}\n{said}")
    return got, time.monotonic() - before


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
    lines = row(lab, f"{CAUSEWAY} run --hosts h0:2,h1:2,h2:2 sh -c 'i=0; while [ $i -lt 3000 ]; do echo $PMI_RANK-$i-x; i=$((i+1)); done'")[0]
    for rank in range(6):
        own = [line for line in lines.splitlines() if line.startswith(f"{rank}-")]
        if own != [f"{rank}-{i}-x" for i in range(3000)]:
            fail(f"lines of rank {rank} are lost, broken or out of order: {len(own)}")
    row(lab, f"{CAUSEWAY} run --hosts h1,h2 yes | head -n 1000 | wc -l", out="1000\n")


def fenced(lab):
    """Addresses put on one host are got on all, over several fences."""
    for where, count in (("h0:2,h1:3,h2", 6), ("h1:4", 4), ("h1,h2,h3", 3)):
        row(lab, f"{CAUSEWAY} run --hosts {where} --map-by node {FENCE}", out="".join(f"{i} of {count}: all found\n" for i in range(count)))


def fenced_large(lab):
    """More than a frame between hosts can have, 64 MiB; by pieces."""
    row(lab, f"{CAUSEWAY} run --hosts h1:560,h2:560 {FENCE_LARGE}", out="all found\n", within_s=200)
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
    row(lab, f"{CAUSEWAY} run --hosts h1:2 sh -c 'if [ $PMI_RANK = 1 ]; then exit 7; fi; sleep 100'", 7,
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
    row(lab, f"{CAUSEWAY} run --launcher {liar} --hosts a true", 1, err="host a: what its agent sends makes no sense")


def slow_hold(lab, host, seconds):
    """/tmp/slow of a host takes its time to start: whoever holds a lease of a file has the kernel wait, for up to 45 s, to execute it."""
    hold = ("import fcntl, os, signal, shutil, sys, time; signal.signal(signal.SIGIO, signal.SIG_IGN); shutil.copy('/bin/true', '/tmp/slow'); "
            "file = os.open('/tmp/slow', os.O_RDONLY); fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK); print('held', flush=True); "
            "time.sleep(float(sys.argv[1]))")
    holder = lab.start(host, [hosts.SYSTEM_PYTHON, "-c", hold, str(seconds)], stdout=subprocess.PIPE, text=True)
    if holder.stdout.readline() != "held\n":
        fail(f"no lease on {host}")
    return holder


def slow(lab):
    """The launcher is killed while an agent waits for a program."""
    for how in "the launcher is killed", "another rank fails":
        holder = slow_hold(lab, "h1", 300)
        fails = "sh -c 'sleep 1; exit 5'" if how == "another rank fails" else "sleep 100"
        process = lab.start("h0", ["sh", "-c", f"exec {CAUSEWAY} run --hosts h0,h1 -n 1 {fails} : -n 1 /tmp/slow"], stdin=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while time.monotonic() < end and sum("agent" in line for line in lab.processes("h1").values()) < 3:  # front, worker, and the rank to be
            time.sleep(0.02)
        if how == "the launcher is killed":
            lab.kill(process)
        process.wait()
        end = time.monotonic() + LEFT_S
        while time.monotonic() < end and len(lab.processes("h1")) > 1:
            time.sleep(0.02)
        behind = {number: line for number, line in lab.processes("h1").items() if "SETLEASE" not in line}
        if behind:
            fail(f"{how} while an agent waits for a program: {behind} goes on")
        lab.kill(holder)
        lab.left(LEFT_S)


def slow_here(lab):
    """A program of the launcher's own host takes longer to start than agents wait for a word of the launcher."""
    holder = slow_hold(lab, "h0", 5)
    row(lab, f"CAUSEWAY_FAILURE_TIMEOUT=2 {CAUSEWAY} run --hosts h0,h1 -n 1 /tmp/slow : -n 1 sleep 6")
    holder.wait()


def failed(lab):
    ssh = r"`ssh %s` ended with exit code 255"
    row(lab, f"{CAUSEWAY} run --hosts h1,nosuch true", 3, err=[r"^causeway run: host nosuch: no agent could be started", ssh % "nosuch",
                                                              "Could not resolve", r"`ssh nosuch true` has to work"])
    row(lab, f"{CAUSEWAY} run --hosts h1,h2 nosuch", 127, err=r"^causeway run: host h[12]: nosuch: no such program in PATH")
    row(lab, f"{CAUSEWAY} run --hosts h1,h2 --wdir /nowhere true", 126, err=r"host h[12]: rank [01] cannot enter its directory: /nowhere")
    row(lab, f"{CAUSEWAY} run --hosts h0,h2 sh -c 'if [ $PMI_RANK = 1 ]; then exit 7; fi; sleep 100'", 7,
        err=r"^causeway run: rank 1 \(process \d+ on h2\) ended with exit code 7: ending the others\n$")
    row(lab, f"{CAUSEWAY} run --hosts h0,h2 sh -c 'if [ $PMI_RANK = 1 ]; then kill -SEGV $$; fi; sleep 100'", 139,
        err=r"rank 1 \(process \d+ on h2\) was ended by signal 11")
    row(lab, f"{CAUSEWAY} run --hosts h1,h2 --timeout 1 sh -c 'sleep 100 & sleep 100'", 124, err=r"still running: rank 0-1")
    row(lab, f"{CAUSEWAY} run --hosts h1,h2 sh -c 'trap \"\" TERM; while :; do sleep 1; done' & sleep 1; kill -TERM $!; wait $!", 143,
        err="SIGTERM: ending all ranks")
    row(lab, f"bash -c 'set -m; CAUSEWAY_FAILURE_TIMEOUT=2 {CAUSEWAY} run --hosts h0,h1 sleep 100 & sleep 1; kill -STOP -$!; sleep 4; "
             "kill -CONT -$!; wait $!'", 1, err=r"host h1: its agent has ended: the launcher was stopped for \d s, and agents wait 2 s")
    row(lab, f"bash -c 'set -m; CAUSEWAY_FAILURE_TIMEOUT=1 {CAUSEWAY} run --hosts h0,h1,h2 sleep 5 & sleep 1; kill -TSTP -$!; sleep 3; "
             "kill -CONT -$!; wait $!'", err="Done")  # as Ctrl-Z and fg do it
    row(lab, f"bash -c 'set -m; CAUSEWAY_FAILURE_TIMEOUT=0 {CAUSEWAY} run --hosts h0,h1 sleep 3 & sleep 1; kill -STOP -$!; sleep 1; "
             "kill -CONT -$!; wait $!'", err="Done")  # bash's own word
    row(lab, f"{CAUSEWAY} run --hosts h0,{lab.address(0)} true", 3, err="host 10.77.0.1")  # the fake ssh knows no addresses
    row(lab, f"printf '#!/bin/sh\nexec {CAUSEWAY} agent' > here; chmod +x here; {CAUSEWAY} run --launcher ./here --hosts a,b true",
        2, err=r"hosts [ab] and [ab] are the same machine: name it once")
    row(lab, f"{CAUSEWAY} run --launcher 'echo causeway-agent 0.0.1 x #' --hosts a,b true", 3,
        err=r"host [ab] has Causeway 0\.0\.1, and this is .*: install the same version")
    row(lab, f"{CAUSEWAY} run --launcher 'sleep 100 #' --hosts a,b true", 3, err="host [ab] does not answer within 10 s", within_s=20)
    row(lab, f"{CAUSEWAY} run --launcher 'sh -c \"echo nonsense; exit 1\"' --hosts a,b true", 3,
        err="no agent could be started .*exit code 1: nonsense")
    row(lab, f"{CAUSEWAY} run --launcher 'sh -c \"exec nosuchprogram\"' --hosts a,b true", 127, err="host [ab]: there is no causeway")
    row(lab, f"{CAUSEWAY} run --launcher nosuchlauncher --hosts a,b true", 127, err="nosuchlauncher")


def grown(lab):
    """Above 32 hosts agents start agents."""
    names = ",".join(lab.names)
    row(lab, f"{CAUSEWAY} run --hosts {names} -l hostname", out=ranks_of(lab.names), within_s=60)
    row(lab, f"{CAUSEWAY} run --hosts {names} {FENCE}", out="".join(f"{i} of {lab.count}: all found\n" for i in range(lab.count)), within_s=60)
    last = lab.names[-1]
    row(lab, f"{CAUSEWAY} run --hosts {names} sh -c 'if [ $(hostname) = {last} ]; then exit 5; fi; sleep 100'", 5,
        err=rf"rank {lab.count - 1} \(process \d+ on {last}\) ended with exit code 5", within_s=60)


with tempfile.TemporaryDirectory() as scripts, hosts.Lab(4, user="nobody", keep=[f"{build}:build", f"{scripts}:scripts"]) as four:
    os.chmod(scripts, 0o755)
    for part in placed, passed_on, fenced, fenced_large, limited, elsewhere, noisy, forged, slow, slow_here, failed:
        part(four)
with hosts.Lab(40, user="nobody", keep=[f"{build}:build"]) as forty:
    grown(forty)
sys.exit(1 if failures else 0)
