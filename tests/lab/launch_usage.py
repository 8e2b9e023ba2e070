#!/usr/bin/env python3
"""launch_usage.py BUILD FENCE: `causeway run` across the hosts of a laboratory (hosts.py), as user nobody: what it
promises on one host holds on several, every failure is told in one line that names the host, and nothing is left
anywhere. FENCE: a program that only asks its launcher for addresses (fence.c)."""
import os
import re
import subprocess
import sys
import time

import hosts

build, fence = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
CAUSEWAY = "/tmp/build/causeway"
FENCE = "/tmp/build/" + os.path.relpath(fence, build)
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


with hosts.Lab(4, user="nobody", keep=[f"{build}:build"]) as four:
    for part in placed, passed_on, fenced, failed:
        part(four)
with hosts.Lab(40, user="nobody", keep=[f"{build}:build"]) as forty:
    grown(forty)
sys.exit(1 if failures else 0)
