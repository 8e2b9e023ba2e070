#!/usr/bin/env python3
"""Commands in a guest, asked for from outside of it: its door listens to a TCP port of the guest's management NIC.

    door.py serve PORT [--keep FILE]... [--bind PCI-ADDRESS]... [--name PCI-ADDRESS]...
                                     in the guest: prepares it, then serves until the guest ends
    door.py call ADDRESS:PORT COMMAND [ARGUMENT...]                  here or in another guest: as ssh, with standard files and exit code
    door.py bind PCI-ADDRESS [DRIVER]                                in the guest: gives a device to a driver, else to the kernel's own

A call is two connections: the first has the command's standard input and output, the second what it writes to stderr, and its exit code, in
records of a letter (e, x), four bytes of length, and the data. `Call` is the same for programs.
"""
import argparse
import glob
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import uuid

CHUNK = 65536
LOST = 255  # exit code of a call whose guest ends
DEVICES = "/sys/bus/pci/devices"


# ---- the calling end ----

def connect(address, header, patience_s):
    host, port = address.rsplit(":", 1)
    line = socket.create_connection((host, int(port)), timeout=patience_s)
    line.sendall(json.dumps(header).encode() + b"\n")
    answer = line.recv(1)  # whoever forwards the port may take a connection for a guest that does not listen yet
    if answer != b"+":
        line.close()
        raise ConnectionError("the guest does not listen")
    line.settimeout(None)
    return line


class Call:
    """A command under way: `files` is its standard input and output."""

    def __init__(self, address, command, environment=None, directory=None, has_input=True, patience_s=20):
        name = str(uuid.uuid4())
        self.errors = connect(address, {"name": name, "part": "errors"}, patience_s)
        self.files = connect(address, {"name": name, "part": "files", "command": command, "environment": environment or {},
                                       "directory": directory or os.getcwd(), "has_input": has_input}, patience_s)

    def fileno(self):
        return self.errors.fileno()

    def record(self):
        """("e", bytes), or ("x", exit code); LOST if the guest is gone."""
        try:
            head = self.errors.recv(5, socket.MSG_WAITALL)
            if len(head) == 5:
                data = self.errors.recv(struct.unpack("!I", head[1:])[0], socket.MSG_WAITALL)
                return ("e", data) if head[:1] == b"e" else ("x", int(data))
        except OSError:
            pass
        return "x", LOST

    def close(self):
        self.files.close()
        self.errors.close()


def call(address, command):
    """Standard files of this process are the command's. Its exit code."""
    try:
        under_way = Call(address, command)
    except OSError as error:
        print(f"door: {address}: {error}", file=sys.stderr)
        return LOST
    wanted, code, files = {0, under_way.files, under_way}, None, under_way.files
    while code is None or files in wanted:
        for ready in select.select(list(wanted), [], [])[0]:
            if ready is under_way:
                kind, data = under_way.record()
                if kind == "e":
                    os.write(2, data)
                else:
                    code = data
                    wanted -= {under_way, 0}
                continue
            try:
                data = os.read(0, CHUNK) if ready == 0 else files.recv(CHUNK)
            except OSError:
                data = b""
            if ready == 0 and data:
                files.sendall(data)
            elif ready == 0:
                files.shutdown(socket.SHUT_WR)
                wanted.discard(0)
            elif data:
                while data:
                    data = data[os.write(1, data):]
            else:
                wanted.discard(files)
    return code


# ---- the guest's end ----

def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def bind(device, driver):
    """driver: "" for the kernel's own."""
    folder = f"{DEVICES}/{device}"
    write(f"{folder}/driver_override", (driver or "") + "\n")
    if os.path.exists(f"{folder}/driver"):
        write(f"{folder}/driver/unbind", device)
    if driver:
        subprocess.run(["/run/guest/modprobe", driver], check=False, stdin=subprocess.DEVNULL)
    write("/sys/bus/pci/drivers_probe", device)


def name(device, interface):
    """Gives the interface of a device a name that does not depend on the order in which drivers find theirs."""
    found = glob.glob(f"{DEVICES}/{device}/net/*") + glob.glob(f"{DEVICES}/{device}/virtio*/net/*")
    subprocess.run(["/run/guest/busybox", "ip", "link", "set", os.path.basename(found[0]), "down"], check=True)
    subprocess.run(["/run/guest/busybox", "ip", "link", "set", os.path.basename(found[0]), "name", interface], check=True)
    subprocess.run(["/run/guest/busybox", "ip", "link", "set", interface, "up"], check=True)


def prepare(options):
    for device in options.bind:
        bind(device, "vfio-pci")
    subprocess.run(["/run/guest/modprobe", "virtio_net"], check=True)
    name(options.door, "door")
    for words in (["addr", "add", "10.0.2.15/24", "dev", "door"], ["route", "add", "default", "via", "10.0.2.2"]):
        subprocess.run(["/run/guest/busybox", "ip", *words], check=True)
    for index, device in enumerate(options.name):
        name(device, f"nic{index}")
    for path in options.keep:  # a layer in memory gets a copy of what is opened for writing
        with open(path, "ab"):
            pass


class Server:
    def __init__(self):
        self.waiting, self.lock = {}, threading.Lock()

    def take(self, line):
        """A connection; the second of two starts the command."""
        header = b""
        while not header.endswith(b"\n"):
            byte = line.recv(1)
            if not byte:
                return
            header += byte
        header = json.loads(header)
        if header["part"] == "errors":
            with self.lock:
                self.waiting[header["name"]] = line
            line.sendall(b"+")  # the other one is not made before
            return
        line.sendall(b"+")
        with self.lock:
            errors = self.waiting.pop(header["name"])
        code = self.serve(header, line, errors)
        errors.sendall(b"x" + struct.pack("!I", len(str(code))) + str(code).encode())
        errors.close()

    @staticmethod
    def serve(header, files, errors):
        try:
            process = subprocess.Popen(header["command"], stdin=files.fileno() if header["has_input"] else subprocess.DEVNULL, stdout=files.fileno(), stderr=subprocess.PIPE, cwd=header["directory"],
                                       env={**os.environ, **header["environment"]}, start_new_session=True)
        except OSError as error:
            files.close()
            text = f"door: {error}\n".encode()
            errors.sendall(b"e" + struct.pack("!I", len(text)) + text)
            return 127
        files.close()
        while data := os.read(process.stderr.fileno(), CHUNK):
            errors.sendall(b"e" + struct.pack("!I", len(data)) + data)
        code = process.wait()
        return code if code >= 0 else 128 - code


def serve(options):
    prepare(options)
    server = Server()
    with socket.create_server(("", options.port)) as door:
        while True:
            line = door.accept()[0]
            threading.Thread(target=server.take, args=(line,), daemon=True).start()


def main():
    if sys.argv[1] == "call":
        command = sys.argv[3:]
        return call(sys.argv[2], command if len(command) > 1 else ["sh", "-c", *command])
    if sys.argv[1] == "bind":
        return bind(sys.argv[2], "".join(sys.argv[3:4]))
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="append", default=[])
    parser.add_argument("--bind", action="append", default=[])
    parser.add_argument("--name", action="append", default=[])
    parser.add_argument("--door", default="0000:00:08.0", help="the management NIC")
    parser.add_argument("port", type=int)
    return serve(parser.parse_args(sys.argv[2:]))


if __name__ == "__main__":
    sys.exit(main())
