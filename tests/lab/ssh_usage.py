#!/usr/bin/env python3
"""ssh_usage.py BUILD PROGRAM : a job across two hosts of a laboratory (hosts.py) by a real SSH server and client; and what
a user is told where that does not let him in, is not there, or ends. PROGRAM: an MPI program that ends well."""
import re
import subprocess
import tempfile

import across
from across import KEEP, nothing_left
from expectation import expect, wait_until
from hosts import Lab

PROGRAM = across.programs[0]
SSH = "/usr/bin/ssh -i /tmp/keys/{key} -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"


def server_start(lab, name):
    """With a home of its own for root, where its key is let in; no password is."""
    home = ("mount -t tmpfs -o mode=700 tmpfs /root && mkdir -m 700 /root/.ssh && cp /tmp/keys/good.pub /root/.ssh/authorized_keys && "
            "chmod 600 /root/.ssh/authorized_keys")
    subprocess.run([*lab.enter(name), "sh", "-c", home], check=True)
    server = lab.start(name, ["dropbear", "-F", "-E", "-s", "-p", "22", "-r", "/tmp/keys/host"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    listens = [*lab.enter(name), "sh", "-c", "grep -q ':0016 .* 0A ' /proc/net/tcp"]
    if not wait_until(lambda: subprocess.run(listens, check=False).returncode == 0 or server.poll() is not None) or server.poll() is not None:
        raise RuntimeError(f"no SSH server on {name}")
    return server


def start(lab, command, key="good", options=()):
    words = ["--launcher", SSH.format(key=key), "--hosts", "h0:2,h1:2", *options]
    return across.start(lab, words, command, environment={"HOME": "/root"})


def fails(process, what, line):
    said = process.communicate()[1]
    lines = [each for each in said.splitlines() if re.search(line, each)]
    expect(process.returncode != 0 and len(lines) == 1, f"{what}: one line says {line}: {process.returncode}: {said[-1500:]}")


def main():
    with tempfile.TemporaryDirectory() as keys:
        for key in ("good", "other"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{keys}/{key}"], check=True)
        subprocess.run(["dropbearkey", "-t", "ed25519", "-f", f"{keys}/host"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        with Lab(2, keep=[*KEEP, f"{keys}:keys"]) as lab:
            fails(start(lab, [PROGRAM, "S"]), "nobody listens", r"host h1: .*Connection refused")
            servers = [server_start(lab, name) for name in lab.names]
            process = start(lab, [PROGRAM, "S"])
            out, said = process.communicate()
            expect(process.returncode == 0, f"{PROGRAM}: {process.returncode}: {out[-1500:]}{said[-1500:]}")
            process = start(lab, ["sh", "-c", "echo $(hostname) $PMI_RANK; exit $((PMI_RANK == 3 ? 7 : 0))"], options=["-l"])
            out = process.communicate()[0]
            expect(process.returncode == 7, f"the exit code of rank 3 comes through: {process.returncode}")
            expect("[3] h1 3\n" in out and "[0] h0 0\n" in out, f"lines come through: {out}")
            fails(start(lab, [PROGRAM, "S"], key="other"), "a key that is not let in", r"host h1: .*Permission denied")
            fails(start(lab, ["/nowhere/program"]), "no such program", r"/nowhere/program: no such program")
            fails(start(lab, ["./program"]), "no such program there", r"\./program: no such program in /")
            process = start(lab, ["sh", "-c", "echo here; sleep 1000"])
            expect([process.stdout.readline() for _ in range(4)] == 4 * ["here\n"], "ranks run")
            for server in servers:
                lab.kill(server)
            subprocess.run([*lab.enter("h1"), "pkill", "-9", "dropbear"], check=False)
            fails(process, "connections end", r"host h1: its agent is gone")
            nothing_left(lab, "connections end")


if __name__ == "__main__":
    main()
