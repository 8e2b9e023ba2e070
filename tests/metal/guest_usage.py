#!/usr/bin/env python3
"""guest_usage.py CACHE: what guest.py makes of commands that end, of those that do not, and of a kernel that dies; a door that is late."""
import os
import re
import shlex
import socket
import sys
import tempfile
import threading
import time

from door import Call, Server
from expectation import exit_code, expect, wait_until
from guest import Failed, Guest, counter_khz, run, tail, text_of, with_guests

CACHE = sys.argv[1]


def fails(words, command, **options):
    try:
        result = run(command, cache=CACHE, **options)
        expect(False, f"{command}: the guest fails, and does not end with {result}")
    except Failed as error:
        expect(all(word in str(error) for word in words), f"{command}: {words}: {error}")


class Late:
    """A connection whose thread does not go on for a while once it has answered, as on a busy machine."""

    def __init__(self, line):
        self.line = line

    def sendall(self, data):
        self.line.sendall(data)
        if data == b"+":
            time.sleep(0.3)

    def __getattr__(self, name):
        return getattr(self.line, name)


def busy_door():
    """A command by a door whose threads come late."""
    server, door = Server(), socket.create_server(("127.0.0.1", 0))

    def listen():
        for _ in range(2):
            threading.Thread(target=server.take, args=(Late(door.accept()[0]),), daemon=True).start()

    threading.Thread(target=listen, daemon=True).start()
    call = Call("127.0.0.1:%d" % door.getsockname()[1], ["sh", "-c", "echo said; echo more >&2; exit 3"], has_input=False)
    said = [call.record(), call.record(), call.files.recv(100)]
    expect(said == [("e", b"more\n"), ("x", 3), b"said\n"], f"a door that is late loses no command: {said}")
    call.close()
    door.close()


def long_trace():
    """A kernel that says much on its way down."""
    console = ["booted"] * 100 + ["Kernel panic - not syncing: why"] + ["?  where"] * 100
    said = tail("console", "\n".join(console))
    expect(said[1].endswith("why") and len(said) == 102, f"a panic is said from its first line: {said[:2]}, {len(said)} lines")
    expect(len(tail("console", "\n".join(console[:100]))) == 41, "... and of a console without one the last lines")


def late():
    """A command that does not end, once it runs."""
    with tempfile.TemporaryDirectory() as folder:
        guest = Guest(folder, ["sh", "-c", "echo runs; exec sleep 1000"], cache=CACHE)
        expect(wait_until(lambda: text_of(f"{folder}/exchange/out")), "the command runs")
        try:
            expect(False, f"a guest whose command does not end fails: {guest.wait(0)}")
        except Failed as error:
            expect(all(word in str(error) for word in ("not done within 0 s", "console", "runs")), f"a command that does not end: {error}")


def main():
    busy_door()
    long_trace()
    mine = os.path.abspath(__file__)
    word = shlex.quote(mine)
    script = f'cmp {word} {word} && ip link add left type veth peer name right && echo said && echo more >&2; rm {word}; ls /sys/bus/pci/drivers/e1000e/0*; exit 5'
    result = run(["sh", "-c", script], modules=["e1000e"], qemu=["-device", "e1000e"], parameters=["guest.word=1"], cache=CACHE)
    expect(result.code == 5, f"a command's exit code is 5: {result}")
    expect(result.out.startswith("said\n") and "bind" not in result.err, f"... its output, a module that is loaded when it is wanted, and a device: {result}")
    expect(result.err == "more\n", f"... its errors: {result}")
    expect("guest.word=1" in result.console, "... and a word for its kernel")
    clock_mhz = [float(each) for each in re.findall(r"tsc: Detected ([0-9.]+) MHz", result.console)]
    expect(clock_mhz and abs(clock_mhz[-1] / counter_khz() * 1000 - 1) < 0.01, f"its clock runs as fast as this machine's: {clock_mhz} MHz")
    expect(os.path.exists(mine), "a guest removes what it wants, and nothing of this machine")
    fails(["sysrq triggered crash", "the guest ended"], ["sh", "-c", "echo c >/proc/sysrq-trigger"])
    late()
    fails(["no module nosuch"], ["true"], modules=["nosuch"])
    fails(["no folder /nosuch"], ["true"], directory="/nosuch")
    fails(["nosuch-device"], ["true"], qemu=["-device", "nosuch-device"])


def work():
    main()
    return exit_code()


sys.exit(with_guests(work))
