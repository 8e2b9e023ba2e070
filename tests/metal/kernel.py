"""A Debian kernel that is not installed on this machine: its package is fetched and unpacked into a folder, with what it starts first.

The first use takes the network and half a minute; after that the folder is used as it is, until somebody removes it."""
import fcntl
import os
import platform
import shutil
import subprocess

from collections import namedtuple

# Of `packages`, [unpack].
CURRENT = "linux-image-amd64"  # depends on the kernel
BUSYBOX = "busybox-static"
# A server that does not answer is no reason to wait for longer than a test may take.
BOUNDED = ("-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20")
# What the guest's root needs: from 9p over virtio, written to in memory.
EARLY_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")

# image and initramfs: files; modules: what is /lib/modules/RELEASE in the guest.
Kernel = namedtuple("Kernel", "release image modules initramfs")

FIRST = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /below /over /whole
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev
modprobe -a {early}
nine() {{
    mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,$2 "$1" "$3" && return
    echo "guest: no folder $1"
    poweroff -f
}}
nine root ro,cache=loose /below
mount -t tmpfs over /over && mkdir /over/upper /over/work
mount -t overlay -o lowerdir=/below,upperdir=/over/upper,workdir=/over/work whole /whole
for each in proc sys dev; do mkdir -p /whole/$each && mount --move /$each /whole/$each; done
mkdir -p /whole/run /whole/tmp /whole/lib/modules/{release}
mount -t tmpfs run /whole/run && mkdir -p /whole/run/guest/exchange
nine modules ro,cache=loose /whole/lib/modules/{release}
nine exchange rw,cache=none /whole/run/guest/exchange
for each in busybox modprobe; do cp /bin/busybox /whole/run/guest/$each; done
exec switch_root /whole /run/guest/busybox sh /run/guest/exchange/init
"""


class Unavailable(Exception):
    """Why this machine has no guests, as a test says why it is skipped."""


def reason(error):
    lines = [line for line in (error.stderr or "").splitlines() if line.strip()]
    return lines[-1] if lines else f"{error.cmd[0]} ended with {error.returncode}"


def output(*command, folder=None):
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, LC_ALL="C")).stdout  # apt speaks the user's language


def packages_fetch(folder):
    """The kernel's release; the packages are left in the folder."""
    depends = [line.split()[1] for line in output("apt-cache", "depends", CURRENT).splitlines() if "Depends:" in line]
    if not depends:
        raise Unavailable(f"machine: apt knows no kernel that {CURRENT} depends on")
    output("apt-get", "-q", *BOUNDED, "download", depends[0], BUSYBOX, folder=folder)
    return depends[0].removeprefix("linux-image-")


def fetch(folder):
    try:
        return packages_fetch(folder)
    except subprocess.CalledProcessError:
        if os.geteuid() != 0:
            raise
    output("apt-get", "-q", *BOUNDED, "update")  # apt's lists are missing, or of a time when the package was another
    return packages_fetch(folder)


def early_modules(modules):
    """Files of the modules and of what they need."""
    with open(f"{modules}/modules.dep", encoding="ascii") as file:
        needs = dict(line.rstrip("\n").split(":", 1) for line in file)
    paths = {os.path.basename(path).split(".")[0].replace("-", "_"): path for path in needs}
    found, open_ = set(), [paths[name] for name in EARLY_MODULES if name in paths]  # else it is part of the kernel
    while open_:
        path = open_.pop()
        if path not in found:
            found.add(path)
            open_ += needs[path].split()
    return found


def initramfs_make(folder, release):
    stage, modules = f"{folder}/stage", f"{folder}/lib/modules/{release}"
    os.makedirs(f"{stage}/bin")
    shutil.copy(f"{folder}/bin/busybox", f"{stage}/bin/busybox")
    for path in early_modules(modules):
        os.makedirs(os.path.dirname(f"{stage}/lib/modules/{release}/{path}"), exist_ok=True)
        shutil.copy(f"{modules}/{path}", f"{stage}/lib/modules/{release}/{path}")
    for name in ("modules.dep", "modules.builtin"):
        shutil.copy(f"{modules}/{name}", f"{stage}/lib/modules/{release}/{name}")
    with open(f"{stage}/init", "w", encoding="ascii") as file:
        file.write(FIRST.format(early=" ".join(EARLY_MODULES), release=release))
    os.chmod(f"{stage}/init", 0o755)
    output("sh", "-c", "find . | ../bin/busybox cpio -o -H newc >../initramfs", folder=stage)
    shutil.rmtree(stage)


def make(folder):
    release = fetch(folder)
    output("sh", "-c", "for each in *.deb; do dpkg-deb -x $each . || exit; done; rm *.deb", folder=folder)
    output(f"{folder}/bin/busybox", "depmod", "-b", folder, release)
    initramfs_make(folder, release)


def kernel_find(cache):
    """The kernel in that folder, which is made if it is not there. Raises Unavailable."""
    if platform.machine() != "x86_64":
        raise Unavailable(f"machine: the guest's programs are this machine's, and its kernel is for x86_64, not {platform.machine()}")
    if shutil.which("qemu-system-x86_64") is None:
        raise Unavailable("qemu-system-x86_64 is not there: ./setup develop")
    os.makedirs(cache, exist_ok=True)
    folder, fresh = f"{cache}/kernel", f"{cache}/fresh"
    with open(f"{cache}/lock", "w", encoding="ascii") as lock:  # tests run beside each other
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(folder):
            shutil.rmtree(fresh, ignore_errors=True)
            os.mkdir(fresh)
            try:
                make(fresh)
            except subprocess.CalledProcessError as error:
                raise Unavailable(f"machine: {CURRENT} and {BUSYBOX} are not to be had: {reason(error)}") from error
            except FileNotFoundError as error:
                raise Unavailable(f"machine: {CURRENT} and {BUSYBOX} are not to be had: this machine has no {error.filename}") from error
            os.rename(fresh, folder)
    release = os.listdir(f"{folder}/lib/modules")[0]
    return Kernel(release, f"{folder}/boot/vmlinuz-{release}", f"{folder}/lib/modules/{release}", f"{folder}/initramfs")
