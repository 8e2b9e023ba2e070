#!/usr/bin/env python3
"""gateway.py [--build DIR] [--seconds S]: two ranks on one switch, and on two that are joined by gateways: latency and bandwidth, side by side.

Each row is a pair of ranks on emulated hosts: without gateways on one `causeway switch`; with them on two, the gateways joined by a memif at 10 Gb/s, sealed and not; and
across an emulated link of 250 Mb/s and 10 ms with 0.1 % loss, directly and by gateways. All of it shares the machine's cores: five processes where there were three."""
import argparse
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
WAN = """{"clusters": [{"name": "a", "hosts": 1, "rate": "1Gbps", "delay": "10us"}, {"name": "b", "hosts": 1, "rate": "1Gbps", "delay": "10us"}],
"links": [{"name": "sea", "between": ["a", "b"], "rate": "250Mbps", "delay": "10ms", "queue": "1MB", "loss": "0.1%"}]}"""


class Setting:
    """Processes of `causeway` that are ended together; each is waited for until it says that it is ready."""

    def __init__(self, causeway, folder):
        self.causeway, self.folder, self.list = causeway, folder, []

    def start(self, *arguments, line="ready"):
        process = subprocess.Popen([self.causeway] + list(arguments), stdout=subprocess.PIPE, text=True)
        self.list.append(process)
        self.await_line(process, line)
        return process

    @staticmethod
    def await_line(process, beginning):
        for line in process.stdout:
            if line.startswith(beginning):
                return
        sys.exit(f"no line `{beginning}` of {process.args}")

    def switch(self, name, *more):
        self.start("switch", "--memif", f"{self.folder}/{name}", *more)

    def gateways(self, outer, rate, encrypt):
        key = os.path.join(self.folder, "key")
        if not os.path.exists(key):
            subprocess.run([self.causeway, "gateway", "--make-key", key], check=True, stdout=subprocess.DEVNULL)
        pair = []
        for i, site in enumerate("ab"):
            pair.append(self.start("gateway", "--inner", f"memif:{self.folder}/{site},port=2", "--outer", outer[i], "--address", f"10.9.0.{1 + i}", "--peer",
                                   f"10.9.0.{2 - i}", "--key", key, "--rate", rate, "--encrypt", encrypt))
        for process in pair:
            self.await_line(process, "up")

    def end(self):
        for process in self.list:
            process.send_signal(signal.SIGTERM)
        for process in self.list:
            process.communicate(timeout=30)
        self.list = []


def measure(setting, program, sites, seconds):
    """{("latency", 8): ..., ("stream", 1048576): ...} of ranks 0 and 1 on the switches `sites`."""
    script = os.path.join(setting.folder, "rank")
    with open(script, "w") as file:
        file.write(f'#!/bin/sh\nsite={sites[0]}\n[ "$PMI_RANK" = 1 ] && site={sites[1]}\nexport CAUSEWAY_EMULATE=2,memif,{setting.folder}/$site\n'
                   f"export CAUSEWAY_JOB_KEY={'5a' * 16}\nexec {program} {seconds} 8 1048576\n")
    os.chmod(script, 0o700)
    result = subprocess.run([setting.causeway, "run", "-n", "2", "--timeout", "120", script], stdout=subprocess.PIPE, text=True, timeout=150)
    if result.returncode != 0:
        sys.exit(f"the program failed: {result.stdout}")
    return {(words[0], int(words[1])): float(words[2]) for words in map(str.split, result.stdout.splitlines()) if len(words) == 3}


def print_row(name, found):
    print(f"{name:52} {found['latency', 8]:10.1f} us {found['stream', 1 << 20] * 8 * 1.048576:9.1f} Mb/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--seconds", default="2")
    options = parser.parse_args()
    causeway = os.path.abspath(os.path.join(options.build, "causeway"))
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        program = os.path.join(folder, "pingpong")
        subprocess.run([os.path.join(options.build, "mpi", "mpicc"), "-O2", os.path.join(HERE, "pingpong.c"), "-o", program], check=True)
        with open(os.path.join(folder, "wan.json"), "w") as file:
            file.write(WAN)
        print(f"{'':52} {'half round trip, 8 bytes':>13} {'1 MiB':>12}")
        setting = Setting(causeway, folder)
        setting.switch("a", "--ports", "2")
        print_row("one switch", measure(setting, program, "aa", options.seconds))
        setting.end()
        for encrypt in ["no", "yes"]:
            setting.switch("a", "--ports", "3")
            setting.switch("b", "--ports", "3")
            setting.gateways([f"memif:{folder}/w,role=server", f"memif:{folder}/w,role=client"], "10Gbps", encrypt)
            print_row(f"two, joined by gateways, sealed: {encrypt}", measure(setting, program, "ab", options.seconds))
            setting.end()
        setting.switch("w", "--topology", f"{folder}/wan.json")
        print_row("250 Mb/s, 10 ms, 0.1 % loss: directly", measure(setting, program, "ww", options.seconds))
        setting.end()
        for name in "ab":
            setting.switch(name, "--ports", "3")
        setting.switch("w", "--topology", f"{folder}/wan.json")
        setting.gateways([f"memif:{folder}/w,port=0", f"memif:{folder}/w,port=1"], "245Mbps", "yes")
        print_row("... by gateways at 245 Mb/s, sealed", measure(setting, program, "ab", options.seconds))
        setting.end()


if __name__ == "__main__":
    main()
