#!/usr/bin/env python3
"""Examples in README.md, HACKING.md, docs/ and the pages of tests/ do what they should: each is run where it says, in a folder that looks like a checkout with a build in build/, and ends with 0. NOT_RUN names those that are not, and why.

usage: documents_usage.py BUILD SOURCES CC [--list]     --list: only prints the commands, with what is done with each
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpi"))
from expectation import execute, exit_code, expect

build, sources, compiler = map(os.path.abspath, sys.argv[1:3] + [shutil.which(sys.argv[3]) or sys.argv[3]])
SECONDS_MAX = 600  # A command that hangs: far above what any takes on a machine with other work.

ELSEWHERE = "another test runs it: "
NOT_RUN = [
    (r"dpkg-buildpackage|^apt-get install \.\./", ELSEWHERE + "tests/bare/bare.sh; it writes beside the checkout"),
    (r"^\./(demo|check|setup)|^tests/bare/|documents_usage", ELSEWHERE + "tests/bare/bare.sh, or it is what runs this test"),
    (r"^perf |^mpiexec\.hydra|^tshark|^apt-get|\b(gdb|valgrind) |venv/", "needs a package that is no part of the build"),
    (r"^(meson install|cc (put|simulated_protocol)\.c|\./simulated_protocol)", ELSEWHERE + "library_usage"),
    (r"^meson setup|^tests/walks/", "minutes: another build"),
    (r"build/causeway bench (?!\w+ --help)", ELSEWHERE + "tests/bare/bare.sh has those of docs/, minutes others"),
    (r"^python3 tests/lab/hosts.py build/causeway run --hosts h0", ELSEWHERE + "node_usage, hosts_usage; it needs root"),
    (r"--hosts a:|doctor --transport", ELSEWHERE + "hosts_usage, on hosts of its own"),
    (r"^tests/metal/", ELSEWHERE + "metal_guest"),
    (r"^tests/(peers|ecosystem)/|^tests/lab/startup|\bbench_peers|^ip |^for s in|ethtool", "needs root, or other libraries"),
    (r"^build/causeway plogp", ELSEWHERE + "plogp_usage; minutes, and nothing beside it"),
    (r"build/tests/simulate_", ELSEWHERE + "the tests of these names, with fewer seeds"),
    (r"--seeds 10000|CW_TEST_|CW_CALLS|CW_KILLS", ELSEWHERE + "fewer of the same; minutes"),
    (r"^build/causeway top$", ELSEWHERE + "top_usage; it goes on until it is ended"),
    (r"mpi_hang|mpi_severed", ELSEWHERE + "hang_usage, severed_usage; it ends with an error, or after a minute"),
    (r"CAUSEWAY_MESSAGES=", ELSEWHERE + "bench_codec_usage"),
    (r"memif build/apps/kernels/dsm", ELSEWHERE + "kernel_dsm_memif_4"),
    (r"mpi_arguments", ELSEWHERE + "arguments_1, arguments_2"),
    (r"levels_measure|^for p in on", ELSEWHERE + "levels_usage, pairs; half a minute"),
    (r"^clang-format", "FILE stands for a source"),
]

PROGRAM = """#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    enum { BYTES = 65536 };
    char *all = calloc(64, BYTES), *mine = calloc(64, BYTES);
    int number = 1;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 10; i++) {
        MPI_Bcast(mine, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        MPI_Alltoall(mine, BYTES / 8, MPI_BYTE, all, BYTES / 8, MPI_BYTE, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return number != 1;
}
"""
FORTRAN = "program main\n  use mpi\n  integer :: code\n  call MPI_Init(code)\n  call MPI_Finalize(code)\nend program\n"

# What the snippet in docs/c-interface.md is part of.
SNIPPET = """#include <string.h>
#include "dataplane/host/host.h"
void snippet(unsigned char *key, unsigned char *memory, uint64_t bytes, unsigned char *buffer, const char *their_card, uint64_t their_token, uint64_t timeout_ns);
void snippet(unsigned char *key, unsigned char *memory, uint64_t bytes, unsigned char *buffer, const char *their_card, uint64_t their_token, uint64_t timeout_ns)
{
    struct cw_host_config config; struct cw_host *host; uint64_t token; struct cw_event events[16];
    char error[256]; char card[CW_CARD_BYTES]; uint32_t peer;
    %s
    (void)count;
}
"""


def bare(line):
    """A line without what is said of it."""
    return re.sub(r"(\S)(?:   +|  +#).*", r"\1", line).strip().removeprefix("$ ")


STARTS = re.compile(r"(?:[A-Z_]+=\S+ )*(?:build/|\./|tests/|meson |cc |ip |for |perf |tshark |clang-format |mpiexec|apt-get )")


def commands_of(text):
    """Command lines, each a list of lines; a block that starts servers is one list. Lines that are indented are further options of the one before."""
    found = []
    for block in re.findall(r"^```\n(.*?)^```", text, re.M | re.S):
        lines = [line for line in block.split("\n") if line.strip()]
        if any(bare(line).endswith("&") for line in lines):
            found.append([line if line.startswith(" ") else bare(line) for line in lines])
            continue
        base = ""
        for line in lines:
            if line.startswith("    --") and base:
                found.append([f"{base} {bare(line)}"])
            elif STARTS.match(line.removeprefix("$ ")):
                base = bare(line)
                found.append([base])
    for row in re.findall(r"^\|[^|\n]*\|((?:`[^`]*`|[^`\n])*)\|$", text, re.M):
        found += [[span.replace("\\|", "|")] for span in re.findall(r"`([^`]+)`", row) if STARTS.match(span)]
    return found


def tests_named(command, there):
    """`meson test`: the tests and suites that it names are there."""
    words = command.split(" | ")[0].partition("meson test ")[2].split()
    words = [word for at, word in enumerate(words) if not word.startswith("-") and words[at - 1] not in ("-C", "-t")]
    missing = [word for word in words if word not in there]
    expect(not missing, f"{command}: there is no test {missing}")


def words_check(command, folder, there):
    """Of what is not run: the files, tests and options of `causeway` that it names are there."""
    if "meson test -C build " in command:
        tests_named(command, there)
    missing = [] if "mpifort" in command else [path for path in re.findall(r"(?:^|[ =])((?:build|tests|apps)/[\w./-]+)", command) if not os.path.exists(os.path.join(folder, path))]
    expect(not missing, f"{command}: there is no {missing}")
    for words, arguments in re.findall(r"build/causeway ((?:bench |plan )?[a-z]+)([^;&\n]*)", command):
        help = execute([os.path.join(build, "causeway"), *words.split(), "--help"])
        missing = [name for name in re.findall(r" (--?[a-z][\w-]*)", arguments) if not re.search(rf"(?<![\w-]){name}(?![\w-])", help.stdout)]
        expect(help.returncode == 0 and (not missing or words == "run"), f"{command}: there is no {missing}: {help.stderr}")


def ready(server):
    for line in server.stdout:
        if line.startswith("ready"):
            return True
    return False


def run(command, folder):
    """One command; servers are left running: those that say `ready`."""
    command = re.sub(r"(?<![\w.])/tmp/", folder + "/", command)
    with open(os.path.join(folder, "output"), "w+") as output:
        job = subprocess.Popen(["bash", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        try:
            code = job.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            code = job.wait()
        output.seek(0)
        expect(code == 0, f"{command}: 0, not {code}:\n{output.read()[-1500:]}")


def serve(command, folder, servers):
    command = re.sub(r"(?<![\w.])/tmp/", folder + "/", command.removesuffix("&"))
    server = subprocess.Popen(["bash", "-c", "exec " + command], cwd=folder, stdout=subprocess.PIPE, text=True)
    servers.append(server)
    expect(ready(server), f"{command}: is ready")


def end(servers):
    for server in servers:
        server.send_signal(signal.SIGTERM)
    for server in servers:
        server.stdout.read()
        expect(server.wait() == 0, f"{server.args[-1]}: ends with 0, not {server.returncode}")


def block_run(lines, folder):
    """A block with servers: what ends with & is one, the rest is run in between."""
    servers, script = [], []
    for line in lines:
        if line.endswith("&"):
            run("\n".join(script) or "true", folder)
            script = []
            serve(line, folder, servers)
        elif line.startswith("kill -USR1 %"):
            run("\n".join(script), folder)
            script = []
            servers[int(line[-1]) - 1].send_signal(signal.SIGUSR1)
        else:
            script.append(line)
    run("\n".join(script) or "true", folder)
    end(servers)


def checkout(folder):
    for name in ("apps", "tests", "dataplane", "mpi"):
        os.symlink(os.path.join(sources, name), os.path.join(folder, name))
    os.symlink(build, os.path.join(folder, "build"))
    os.symlink(os.path.join(sources, "apps/examples/four_sites.json"), os.path.join(folder, "FILE"))
    for name, text in (("program.c", PROGRAM), ("program.f90", FORTRAN)):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    with open(os.path.join(folder, "t.csv"), "w") as file:
        file.write("name,predicted_ns,measured_ns\nbinomial,1000000,1100000\n")
    run("build/mpi/mpicc program.c -o program && ln -s program server && ln -s program client", folder)
    run("build/causeway run -n 8 --emulate topology=FILE,memif,stats=on.csv ./program && cp on.csv off.csv", folder)


def snippet_check(folder):
    with open(os.path.join(sources, "docs/c-interface.md")) as file:
        snippet = re.search(r"^```c\n(?:#include [^\n]*\n)*(.*?)^```", file.read(), re.M | re.S)[1]
    with open(os.path.join(folder, "snippet.c"), "w") as file:
        file.write(SNIPPET % snippet)
    run(f"{compiler} -std=gnu17 -D_GNU_SOURCE -Wall -Werror -fsyntax-only -I{sources} snippet.c", folder)


def main():
    with open(os.path.join(build, "meson-info/intro-tests.json")) as file:
        tests = json.load(file)
    there = {test["name"] for test in tests} | {suite.split(":")[-1] for test in tests for suite in test["suite"]}
    done, servers = set(), []
    with tempfile.TemporaryDirectory() as folder:
        checkout(folder)
        snippet_check(folder)
        for path in [os.path.join(sources, "README.md"), *sorted(glob.glob(os.path.join(sources, "docs/*.md"))), os.path.join(sources, "HACKING.md"),
                     *sorted(glob.glob(os.path.join(sources, "tests/**/README.md"), recursive=True))]:
            with open(path) as file:
                found = commands_of(file.read())
            expect(found or os.path.dirname(path) != sources, f"{path} has commands")
            for lines in found:
                command, begin = "\n".join(lines), time.monotonic()
                without = [(r"build/mpi/mpifort", "there is no Fortran")] if not os.path.exists(os.path.join(build, "mpi/mpifort")) else []
                why = next((why for pattern, why in NOT_RUN + without if re.search(pattern, command)), None)
                if command in done:
                    continue
                done.add(command)
                if why:
                    words_check(command, folder, there)
                if "--list" in sys.argv or why:
                    print(f"{'not run' if why else 'run'}: {lines[0]}" + (f" ({why})" if why else ""), flush=True)
                elif command.startswith("meson test"):
                    tests_named(command, there)
                elif len(lines) > 1:
                    block_run(lines, folder)
                elif re.match(r"build/causeway switch (?!.*--command)", command):
                    end(servers)
                    servers = []
                    serve(command, folder, servers)
                else:
                    run(command.replace("--first-seed N", "--first-seed 7"), folder)
                if "mpifort" in command:
                    run("build/mpi/mpicc program.c -o program", folder)
                print(f"{time.monotonic() - begin:6.1f} s  {os.path.relpath(path, sources)}: {lines[0]}", flush=True)
        end(servers)
    sys.exit(exit_code())


main()
