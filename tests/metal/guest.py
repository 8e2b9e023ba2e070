#!/usr/bin/env python3
"""A command on a kernel of our choice: Debian's, in QEMU, over the files of this machine, of which it may write to none.

    guest.py [--root FOLDER] [--module NAME]... [--parameter WORD]... [--qemu WORD]... [--time SECONDS] COMMAND [ARGUMENT...]

runs COMMAND as root of the guest, in this folder, and ends with its exit code; 77: this machine has no such guest (the reason is said), 125: the
guest hung, died or did not start (the last lines of its console are said). The guest has no network but what --qemu gives it; modules are loaded when
they are wanted, as on any machine, and those of --module before. What it writes is gone with it. QEMU translates all instructions, so that every
machine is good enough for a guest, whose programs take ten times as long: give CAUSEWAY_FAILURE_TIMEOUT more (env NAME=VALUE COMMAND).

Tests use `run`: run(["ip", "link"], modules=["e1000e"], qemu=["-device", "e1000e"]).out
"""
import argparse
import ctypes
import mmap
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

from collections import namedtuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpi"))
from expectation import HANG_S
from kernel import Unavailable, kernel_find

SKIPPED, FAILED = 77, 125
PREFIX = "causeway-guest-"  # of folders in /tmp
TAIL_LINES, DEATH_LINES = 40, 160
DEATH = re.compile(r"(Kernel panic|BUG:|Oops|general protection fault)")  # says why; the call trace behind it, where, in any number of lines
CACHE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/metal")

PARAMETERS = ["console=ttyS0", "panic=-1", "oops=panic", "mitigations=off", "nowatchdog",
              "tsc=reliable"]  # else a busy machine makes the guest doubt it, and take a slow clock
COUNTER_READ = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # rdtsc; shl $32, %rdx; or %rdx, %rax; ret
SECOND = """
guest=/run/guest
fail() {{
    echo "guest: no $*"
    $guest/busybox poweroff -f
}}
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
echo $guest/modprobe >/proc/sys/kernel/modprobe
$guest/busybox ip link set lo up
$guest/busybox hostname guest
for each in {modules}; do $guest/modprobe "$each" || fail module "$each"; done
cd {directory} || fail folder {directory}
/usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin {command} \\
    </dev/null >>$guest/exchange/out 2>>$guest/exchange/err
echo $? >$guest/exchange/code
$guest/busybox poweroff -f
"""

# What a command left: exit code, output, and what the guest's console said meanwhile.
Result = namedtuple("Result", "code out err console")


class Failed(Exception):
    """The guest has not come to the end of the command. Its text has the last lines of the console."""


def text_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def tail(what, text):
    """The last lines, and all from where a kernel began to die."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    death = next((at for at, line in enumerate(lines) if DEATH.search(line)), len(lines))
    first = max(min(death, len(lines) - TAIL_LINES), 0)
    return [f"its {what}:", *(f"    {line}" for line in lines[first:first + DEATH_LINES])] if lines else []


def counter_khz():
    """How fast this machine's time stamp counter runs, which is the guest's, too: on a busy machine a guest that measures it itself may find a third."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
        page.write(COUNTER_READ)
        start = ctypes.c_char.from_buffer(page)
        read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(start))

        def pair():
            """Time and counter at the same moment: the look that was interrupted least."""
            looks = [(time.monotonic_ns(), read(), time.monotonic_ns()) for _ in range(20)]
            before_ns, count, after_ns = min(looks, key=lambda look: look[2] - look[0])
            return (before_ns + after_ns) // 2, count

        first_ns, first = pair()
        time.sleep(0.1)
        last_ns, last = pair()
        del start, read
    return (last - first) * 1000000 // (last_ns - first_ns)


def share(tag, path, mode=""):
    return ["-virtfs", f"local,path={path.replace(',', ',,')},mount_tag={tag},security_model=none,multidevs=remap{mode}"]


def boot(kernel, folder, root, parameters, qemu, memory_mib, processors, machine):
    """The command line of a guest. What others add stands first: an IOMMU has to be there before the devices behind it."""
    return ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-machine", machine, "-accel", "tcg,thread=multi", "-cpu", "max", "-m", str(memory_mib),
            "-smp", str(processors), "-nodefaults", "-no-reboot", "-display", "none", "-serial", f"file:{folder}/console", *qemu,
            *share("root", root, ",readonly=on"), *share("modules", kernel.modules, ",readonly=on"), *share("exchange", f"{folder}/exchange"),
            "-kernel", kernel.image, "-initrd", kernel.initramfs, "-append", " ".join([*PARAMETERS, f"tsc_early_khz={counter_khz()}", *parameters])]


class Guest:
    """A guest that is started; it ends with its command, by `close`, or with this process. `folder` is the caller's, and empty."""

    def __init__(self, folder, command, root="/", modules=(), parameters=(), qemu=(), memory_mib=2048, processors=2, directory=None, cache=CACHE,
                 machine="q35"):
        kernel = kernel_find(os.path.abspath(cache))
        self.folder, self.command = folder, command
        os.mkdir(f"{folder}/exchange")
        with open(f"{folder}/exchange/init", "w", encoding="utf-8") as file:
            file.write(SECOND.format(modules=shlex.join(modules), directory=shlex.quote(directory or os.getcwd()), command=shlex.join(command)))
        words = boot(kernel, folder, os.path.abspath(root), parameters, qemu, memory_mib, processors, machine)
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def wait(self, time_s):
        """The command's Result. Raises Failed."""
        try:
            said = self.process.communicate(timeout=time_s)[0] + "the guest ended"
        except subprocess.TimeoutExpired:
            said = f"it was not done within {time_s} s"
        finally:
            self.close()
        code, out, err, console = (text_of(f"{self.folder}/{each}") for each in ("exchange/code", "exchange/out", "exchange/err", "console"))
        if not code:
            raise self.failure(said)
        return Result(int(code), out, err, console)

    def failure(self, said):
        out, err, console = (text_of(f"{self.folder}/{each}") for each in ("exchange/out", "exchange/err", "console"))
        return Failed("\n".join([f"{shlex.join(self.command)[:200]}: {said}", *tail("console", console), *tail("output", out), *tail("errors", err)]))

    def close(self):
        self.process.kill()
        self.process.wait()


def run(command, time_s=HANG_S, **options):
    """The command's Result; options: Guest's. Raises Failed, or Unavailable if this machine has no such kernel."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        guest = Guest(folder, command, **options)
        try:
            return guest.wait(time_s)
        finally:
            guest.close()


def with_guests(work):
    """Exit code of what works with guests: what `work` returns; SKIPPED: this machine has none; FAILED: a guest did not come to the end. SIGTERM, by
    which meson ends tests that take too long, ends the guests and removes their folders."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return work()
    except Unavailable as error:
        print(f"SKIPPED: {error}")
        return SKIPPED
    except Failed as error:
        print(f"{os.path.basename(sys.argv[0])}: {error}", file=sys.stderr)
        return FAILED


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="/", help="the guest's files (/: this machine's)")
    parser.add_argument("--module", action="append", default=[], help="a module of the kernel that is loaded before; any number")
    parser.add_argument("--parameter", action="append", default=[], help="a word for the kernel's command line; any number")
    parser.add_argument("--qemu", action="append", default=[], metavar="WORD", help="for QEMU's command line; any number, as in --qemu=-device --qemu=e1000e")
    parser.add_argument("--time", type=float, default=120, metavar="SECONDS", help="until the guest is ended (120)")
    parser.add_argument("--memory", type=int, default=2048, metavar="MIB", help="(2048)")
    parser.add_argument("--console", action="store_true", help="prints the console, too")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("a command is wanted")
    result = run(options.command, options.time, root=options.root, modules=options.module, parameters=options.parameter, qemu=options.qemu,
                 memory_mib=options.memory)
    sys.stdout.write(result.out)
    sys.stderr.write((result.console if options.console else "") + result.err)
    return result.code


if __name__ == "__main__":
    sys.exit(with_guests(main))
