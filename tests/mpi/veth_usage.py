#!/usr/bin/env python3
"""veth_usage.py CAUSEWAY PROGRAM: `causeway run --emulate HOSTS,veth` refuses what makes no sense, tells what it lacks, carries the programs' own TCP, and
leaves nothing behind, however it ends."""
import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile

import veth
from expectation import execute, exit_code, expect, refused

causeway, program = sys.argv[1:]
PR_SET_CHILD_SUBREAPER = 36

# rank 0 accepts a connection over the kernel's TCP, rank 1 makes one
tcp = """
import os, socket
if os.environ["PMI_RANK"] == "0":
    listener = socket.create_server(("10.0.0.1", 5000))
    connection = listener.accept()[0]
    connection.sendall(connection.recv(100))
else:
    while True:
        try:
            connection = socket.create_connection(("10.0.0.1", 5000))
            break
        except ConnectionRefusedError:
            pass
    connection.sendall(b"hello")
    print(connection.recv(100), connection.getsockname()[0])
"""


def run(arguments, prefix=()):
    return execute([*prefix, causeway, "run", *arguments])


def usage():
    for value in ["0,veth", "5,veth", "4,veth,", "4,veth,,mtu=1500", "4,veth,af_packet", "4,veth,mtu=", "4,veth,mtu=100", "4,veth,mtu=9601", "4,veth,mtu=1500x",
                  "4,memif,mtu=1500", "4,vethx", "+4,veth", "4,veth" + ",mtu=1500" * 200]:
        result = run(["-n", "4", "--emulate", value, program, "S"])
        refused(result, ["--emulate"], f"--emulate '{value}'")
    refused(run(["-n", "64", "--emulate", "4,veth", program, "S"]), [], "64 ranks are too many")
    # without the privileges, root or not
    prefix = ["setpriv", "--bounding-set", "-sys_admin,-net_admin"] if os.geteuid() == 0 else []
    result = run(["-n", "2", "--emulate", "2,veth", "true"], prefix)
    refused(result, ["root", "memif"], "without privileges", 3)


def networks():
    """The network namespaces that processes are in, or hold."""
    found = set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.add(os.readlink(f"/proc/{process}/ns/net"))
            for number in os.listdir(f"/proc/{process}/fd"):
                link = os.readlink(f"/proc/{process}/fd/{number}")
                if link.startswith("net:"):
                    found.add(link)
        except OSError:
            pass  # it has ended
    return found


def interfaces():
    """Those of jobs. Other tests may have some here for a moment."""
    return sorted(name for _, name in socket.if_nameindex() if name.startswith(("cw", "port", "bridge")))


def works():
    result = run(["-n", "2", "--emulate", "2,veth", sys.executable, "-c", tcp])
    expect(result.returncode == 0 and result.stdout == "b'hello' 10.0.0.2\n", f"TCP between hosts: {result.stdout}{result.stderr}")
    result = run(["-n", "3", "--emulate", "2,veth,mtu=9000", "readlink", "/proc/self/ns/net"])
    expect(result.returncode == 0 and len(set(result.stdout.split())) == 2, f"3 ranks on 2 hosts: {result.stdout}{result.stderr}")
    result = run(["-n", "3", "--emulate", "2,veth,mtu=9000", "--explain", program, "S"])
    expect(result.returncode == 0 and "packets, since it is on another host" in result.stderr, f"3 ranks on 2 hosts: {result.stdout}{result.stderr}")
    result = run(["-n", "2", "--emulate", "2,veth", "/bin/false", ":", "-n", "1", program, "S"])
    expect(result.returncode == 1, f"the exit code is that of the first rank that fails: {result.returncode}")


def killed(who, wanted):
    """A job that would not end by itself, and does when `who` of the launcher gets the signal."""
    before = networks()  # also those of other tests, which come and go
    command = [causeway, "run", "-n", "3", "--emulate", "2,veth", "sh", "-c", "echo $PPID $(readlink /proc/self/ns/net); exec sleep 1000"]
    supervisor = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = [supervisor.stdout.readline().split() for _ in range(3)]
    made = {line[1] for line in lines}
    expect(len(made) == 2 and not made & before, f"two new namespaces: {lines}")
    for process in {"supervisor": [supervisor.pid], "launcher": [int(lines[0][0])], "both": [supervisor.pid, int(lines[0][0])]}[who]:
        os.kill(process, wanted)
    supervisor.communicate()
    while True:  # whoever has lost its parent is ours: all of them end
        try:
            os.wait()
        except ChildProcessError:
            break
    expect(not made & networks(), f"{who} killed by {wanted}: no namespace of the job is left: {made & networks()}")


usage()
if exit_code() == 0:
    veth.skip_unless_possible()
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    os.environ["TMPDIR"] = folder
    seen = interfaces()
    names = os.listdir("/run/netns") if os.path.isdir("/run/netns") else []
    works()
    for who in ["supervisor", "launcher", "both"]:
        killed(who, signal.SIGKILL)
    killed("supervisor", signal.SIGINT)
    expect(os.listdir(folder) == [], f"no file is left: {os.listdir(folder)}")
    expect(interfaces() == seen, f"no interface appears: {interfaces()}, not {seen}")
    expect((os.listdir("/run/netns") if os.path.isdir("/run/netns") else []) == names, "no namespace has a name")
