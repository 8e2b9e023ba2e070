#!/usr/bin/env python3
"""The library as programs outside of this tree meet it: installed, it compiles and runs the examples in C and in C++, shows its own symbols and nothing else, and refuses what is wrong in one line.

usage: library_usage.py BUILD EXAMPLES SANITIZERS COMPILER...     EXAMPLES: a folder; SANITIZERS: as -fsanitize takes them, or none
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpi"))
from expectation import HANG_S, expect
from hosts import Lab, has_hosts

build, examples, sanitizers, *compilers = sys.argv[1:]
LINES_MAX = {"put": 60, "multicast": 150, "own_loop": 125, "exchange": 125, "simulated_protocol": 160}
MESSAGES = 1000
TICKS = 20 # of own_loop.c
CROWD = 100 # runs of own_loop
BYTES = 1000000 # of exchange.c
LOOPBACK = ["localhost", "127.0.0.1", "::1"]
SEEDS = 200


def run(command, **how):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANG_S, **how)


def library_of(folder):
    for root, _, names in os.walk(folder):
        if "libcauseway.so" in names:
            return root
    return sys.exit("there is no libcauseway.so")


def words_of(libraries, folder):
    environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(libraries, "pkgconfig"), PKG_CONFIG_SYSROOT_DIR=folder)
    return run(["pkg-config", "--cflags", "--libs", "causeway"], env=environment).stdout.split()


def example_make(name, compiler, folder, libraries):
    """Its program; None: it does not compile."""
    language = "c++" if "++" in compiler else "c"
    program = os.path.join(folder, name)
    sanitize = [] if sanitizers == "none" else [f"-fsanitize={sanitizers}"]
    source = os.path.join(examples, name + ".c")
    made = run([compiler, "-Wall", "-Wextra", "-Werror", *sanitize, "-x", language, source, *words_of(libraries, folder), "-o", program])
    expect(made.returncode == 0, f"{compiler} compiles {name}: {made.stdout}")
    return program if made.returncode == 0 else None


def put_run(program, compiler, environment):
    there = set(os.listdir("/tmp"))
    done = run([program], env=environment)
    expect(done.returncode == 0 and re.fullmatch(r"\d+ bytes: .+\n", done.stdout), f"{compiler}: one line tells what came: {done.returncode} {done.stdout}")
    left = [name for name in set(os.listdir("/tmp")) - there if name.startswith("put-")]
    expect(not left, f"{compiler}: nothing stays behind: {left}")


def own_loop_run(program, compiler, environment, ports=()):
    """Two processes with event loops of their own."""
    done = run([program, *ports], env=environment)
    expected = [f"{name}: {TICKS} ticks, {TICKS} puts" for name in ("child", "parent")]
    expect(done.returncode == 0 and sorted(done.stdout.splitlines()) == expected, f"{compiler} {ports}: each tick is put: {done.returncode} {done.stdout}")


def own_loop_crowd(program, compiler, environment):
    """Many at a time, so that either process may learn of the other's end before it looks at its socket."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda _: own_loop_run(program, compiler, environment), range(CROWD)):
            pass


def exchange_run(program, compiler, start, host):
    """Two programs, which find each other by TCP: `start` starts one of them, `host` is where the first one listens."""
    files = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    listener = start(0, [program, "listen", "0"], **files)
    port = listener.stdout.readline().removeprefix("listening at port ").strip()
    connector = start(1, [program, "connect", host, port], **files)
    for name, process in (("connector", connector), ("listener", listener)):
        text = process.communicate(timeout=HANG_S)[0]
        if process.returncode != 0:
            listener.kill()
        expect(process.returncode == 0 and re.fullmatch(rf"{BYTES} bytes of \S+ are right\n", text), f"{compiler} {host}: the {name} has all bytes: {process.returncode} {text}")


def exchange_run_everywhere(program, own_loop, compiler, environment, folder):
    """On this host, and, as root, between two: by names and by addresses, over IPv4 and IPv6."""
    for host in LOOPBACK:
        exchange_run(program, compiler, lambda _, command, **files: subprocess.Popen(command, env=environment, **files), host)
    if not has_hosts():
        return
    with Lab(2, keep=[folder]) as lab:
        inside = {"LD_LIBRARY_PATH": environment["LD_LIBRARY_PATH"]}
        for host in ["h0", lab.address(0), lab.address(0, 6)]:
            exchange_run(program, compiler, lambda index, command, **files: lab.start(f"h{index}", command, environment=inside, **files), host)
        code, text, _ = lab.run("h0", [own_loop, "udp:h1", "udp:h1"], HANG_S, environment=inside, stderr=subprocess.STDOUT)
        expect(code == 1 and "h1 resolves to no address of this host. Fix: " in text, f"{compiler}: the name of another host is refused: {code} {text}")


def multicast_run(program, compiler, environment, ports=()):
    """Three processes, over sockets or over ports of a switch."""
    done = run([program, *ports], env=environment)
    expected = [f"member 0: all have {MESSAGES} messages"] + [f"member {i}: {MESSAGES} messages, each once and in order" for i in (1, 2)]
    expect(done.returncode == 0 and sorted(done.stdout.splitlines()) == expected, f"{compiler} {ports}: all messages come: {done.returncode} {done.stdout}")


def multicast_run_with_loss(program, compiler, environment, folder):
    """Where a switch between them loses a twentieth of all packets."""
    socket = os.path.join(folder, "switch")
    with subprocess.Popen([os.path.join(build, "causeway"), "switch", "--memif", socket, "--ports", "3", "--loss", "5%"], stdout=subprocess.PIPE, text=True) as switch:
        if switch.stdout.readline().startswith("ready"):
            multicast_run(program, compiler, environment, [f"memif:{socket},port={i}" for i in range(3)])
        else:
            expect(False, "the switch starts")
        switch.terminate()


def simulated_protocol_run(program, compiler, environment):
    """The search ends at a fault, its seed shows the same one at the same time, and the corrected protocol has none. The output."""
    found = run([program], env=environment)
    match = re.fullmatch(r"seed (\d+): follower \d applies entry \d+ at [\d.]+ ms, before it arrives \(\d+ packets until [\d.]+ ms, digest [0-9a-f]{16}\)\n", found.stdout)
    expect(found.returncode == 1 and match, f"{compiler}: the search finds the fault: {found.returncode} {found.stdout}")
    if match:
        seed = int(match.group(1))
        again = run([program, str(seed)], env=environment)
        expect(again.returncode == 1 and again.stdout == found.stdout, f"{compiler}: the seed replays it: {again.returncode} {again.stdout}")
        expect(all(run([program, str(earlier)], env=environment).returncode == 0 for earlier in range(1, seed)), f"{compiler}: seeds before {seed} are good")
    fixed = run([program, "fixed", str(SEEDS)], env=environment)
    expect(fixed.returncode == 0 and fixed.stdout == f"seeds 1 to {SEEDS}: all entries are applied\n", f"{compiler}: the corrected protocol is good: {fixed.returncode} {fixed.stdout}")
    return found.stdout


with tempfile.TemporaryDirectory() as folder:
    installed = run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder])
    expect(installed.returncode == 0, f"it is installed: {installed.stdout[-2000:]}")
    libraries = library_of(folder)
    exported = [line.split()[-1] for line in run(["nm", "-D", "--defined-only", os.path.join(libraries, "libcauseway.so")]).stdout.splitlines()]
    wrong = [name for name in exported if not re.fullmatch(r"cw_\w+@@CAUSEWAY_\d+|CAUSEWAY_\d+", name)]
    expect(not wrong and len(exported) > 40, f"cw_ symbols with a version and no others: {wrong} of {len(exported)}")
    with open(os.path.join(examples, "../../debian/libcauseway0.symbols"), encoding="ascii") as file:
        packaged = {line.split("@")[0].strip() for line in file if line.startswith(" cw_")}
    shown = {name.split("@")[0] for name in exported if name.startswith("cw_")}  # some linkers list the version itself, too
    expect(packaged == shown, f"debian/libcauseway0.symbols has these symbols: {packaged ^ shown}")
    for name, most in LINES_MAX.items():
        expect(sum(1 for _ in open(os.path.join(examples, name + ".c"))) <= most, f"{name}.c has {most} lines at most")
    environment = dict(os.environ, LD_LIBRARY_PATH=libraries)
    faults = set()
    for compiler in filter(shutil.which, compilers):
        put, multicast, own_loop, exchange, simulated_protocol = (example_make(name, compiler, folder, libraries) for name in LINES_MAX)
        if put:
            put_run(put, compiler, environment)
        if multicast:
            multicast_run(multicast, compiler, environment)
            multicast_run(multicast, compiler, environment, ["udp:localhost"] * 3)
            multicast_run_with_loss(multicast, compiler, environment, folder)
        if own_loop:
            own_loop_crowd(own_loop, compiler, environment)
            own_loop_run(own_loop, compiler, environment, [f"memif:{folder}/own,role={role}" for role in ("server", "client")])
        if exchange and own_loop:
            exchange_run_everywhere(exchange, own_loop, compiler, environment, folder)
        if simulated_protocol:
            faults.add(simulated_protocol_run(simulated_protocol, compiler, environment))
    expect(len(faults) == 1, f"the run of a seed is the same with each compiler: {faults}")
