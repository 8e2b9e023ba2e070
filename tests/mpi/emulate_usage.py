#!/usr/bin/env python3
"""emulate_usage.py CAUSEWAY PROGRAM: `causeway run --emulate` refuses what makes no sense, and leaves nothing behind."""
import os
import subprocess
import sys
import tempfile

from expectation import HANG_S, exit_code, expect

causeway, program = map(os.path.abspath, sys.argv[1:])


def run(arguments, folder):
    command = [causeway, "run"] + arguments + [program, "S"]
    environment = dict(os.environ, TMPDIR=folder)
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)


def line_of(result, code, words, what):
    expect(result.returncode == code, f"{what} ends with {code}, not {result.returncode}")
    expect(result.stderr.count("\n") == 1 and all(word in result.stderr for word in words), f"{what}: one line with {words}, not: {result.stderr}")


def switch(arguments, folder):
    return subprocess.run([causeway, "switch"] + arguments, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)


def topologies():
    """`causeway switch --topology` and `causeway run --emulate topology=FILE,memif`."""
    host = '"hosts": 1, "rate": "1Gbps", "delay": "10us"'
    good = '{"clusters": [{"name": "a", "hosts": 2}, {"name": "b", %s}], "links": [{"between": ["a", "b"], "rate": "100Mbps", "delay": "2ms"}]}' % host
    bad = {
        "broken": ("{", ["line 1"]),
        "apart": ('{"clusters": [{"name": "a", %s}, {"name": "b", %s}]}' % (host, host), ["'a'", "'b'", "no wide-area link"]),
        "key": ('{"clusters": [{"name": "a", %s, "colour": 1}]}' % host, ["clusters[0]", "colour", "known are"]),
        "rate": ('{"clusters": [{"name": "a", "hosts": 2, "rate": "0"}]}', ["clusters[0].rate"]),
        "many": ('{"clusters": [{"name": "a", "hosts": 33}]}', ["33 hosts", "32 ports"]),
    }
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, tempfile.TemporaryDirectory(dir="/tmp") as files:
        def write(name, text):
            with open(os.path.join(files, name), "w") as file:
                file.write(text)
            return os.path.join(files, name)

        path = write("good.json", good)
        for name, (text, words) in bad.items():
            wrong = write(name, text)
            line_of(switch(["--memif", "s", "--topology", wrong], folder), 2, words, f"switch --topology {name}")
            line_of(run(["-n", "33", "--emulate", f"topology={wrong},memif"], folder), 2, words, f"run --emulate {name}")
        line_of(switch(["--memif", "s", "--topology", "/nowhere.json"], folder), 2, ["/nowhere.json"], "no file")
        line_of(switch(["--topology", path], folder), 2, ["--memif"], "no socket")
        line_of(switch(["--memif", "s", "--topology", path, "--rate", "1Gbps"], folder), 2, ["--rate"], "a rate beside the file")
        line_of(switch(["--memif", "s", "--topology", path, "--port", "0:loss=1%"], folder), 2, ["--port"], "a port beside the file")
        line_of(switch(["--memif", "s", "--topology", path, "--ports", "2"], folder), 2, ["3 hosts", "2 ports"], "too few ports")
        line_of(switch(["--memif", "s", "--topology", path, "--pcap", "x"], folder), 2, ["--pcap-at"], "a tap nowhere")
        line_of(switch(["--memif", os.path.join(folder, "s"), "--topology", path, "--pcap", "x", "--pcap-at", "sea"], folder), 2, ["sea", "a-b", "a0"], "a tap at no link")
        line_of(switch(["--memif", os.path.join(folder, "s"), "--topology", path, "--stats", "no/such/folder"], folder), 2, ["no/such/folder"], "statistics nowhere")
        line_of(switch(["--memif", "s", "--tell", "link a-b down"], folder), 3, ["s.ctl"], "nobody to be told")
        line_of(switch(["--tell", "link a-b down"], folder), 2, ["--memif"], "told to nobody")
        for value in ["topology=,memif", f"topology={path}", f"topology={path},veth", f"topology={path},memif,rate=1Gbps"]:
            line_of(run(["-n", "3", "--emulate", value], folder), 2, ["--emulate"], value)
        line_of(run(["-n", "3", "--emulate", "topology=/nowhere.json,memif"], folder), 2, ["/nowhere.json"], "no file")
        line_of(run(["-n", "2", "--emulate", f"topology={path},memif"], folder), 2, ["3 hosts", "2 ranks"], "fewer ranks than hosts")
        expect(os.listdir(folder) == [], f"nothing is left: {os.listdir(folder)}")
        for ranks in ["3", "5"]:
            result = run(["-n", ranks, "--emulate", f"topology={path},memif,multicast=flood"], folder)
            expect(result.returncode == 0, f"{ranks} ranks in two clusters work: {result.stderr}")
        result = subprocess.run([causeway, "run", "-n", "3", "--emulate", "topology=good.json,memif", "/usr/bin/printenv", "CAUSEWAY_TOPOLOGY"],
                                cwd=files, env=dict(os.environ, TMPDIR=folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S)
        expect(result.stdout.split() == 3 * [os.path.realpath(path)], f"ranks know the file: {result.stdout} {result.stderr}")
        expect(os.listdir(folder) == [], f"nothing is left: {os.listdir(folder)}")


with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    for value in ["0,memif", "5,memif", "4", "4,", "4,token-ring", "x,memif", "-1,memif", "4,memif,", "",
                  "4,memif,rate=x", "4,memif,loss=200%", "4,memif,loss", "4,memif,speed=1", "4,memif,delay=", "4,veth,loss=1%"]:
        result = run(["-n", "4", "--emulate", value], folder)
        expect(result.returncode == 2, f"--emulate '{value}' ends with 2, not {result.returncode}")
        expect(result.stderr.count("\n") == 1 and "--emulate" in result.stderr, f"one line for '{value}', not: {result.stderr}")
    result = run(["-n", "64", "--emulate", "4,memif"], folder)
    expect(result.returncode == 2 and result.stderr.count("\n") == 1, f"64 ranks are too many: {result.stderr}")
    for ranks, hosts in (("3", "2"), ("2", "1"), ("1", "1")):
        result = run(["-n", ranks, "--emulate", f"{hosts},memif"], folder)
        expect(result.returncode == 0, f"{ranks} ranks on {hosts} hosts work: {result.stderr}")
    expect(os.listdir(folder) == [], f"nothing is left: {os.listdir(folder)}")
    result = run(["-n", "2", "--emulate", "2,memif", "/bin/false", ":", "-n", "1"], folder)
    expect(result.returncode == 1, f"the exit code is that of the first rank that fails: {result.returncode}")
    expect(os.listdir(folder) == [], f"nothing is left after a failure: {os.listdir(folder)}")
    os.chdir(os.path.dirname(folder))
    result = run(["-n", "2", "--emulate", "2,memif"], os.path.basename(folder))
    expect(result.returncode == 0 and os.listdir(folder) == [], f"a relative TMPDIR works: {result.stderr}")
    limited = f"ulimit -f 8; exec {causeway} run -n 2 --emulate 2,memif true"
    result = subprocess.run(["sh", "-c", limited], env=dict(os.environ, TMPDIR=folder), stderr=subprocess.PIPE, text=True, timeout=HANG_S)
    expect(result.returncode == 3 and "it was ended by SIGXFSZ" in result.stderr, f"a switch that a signal ends: {result.stderr}")

topologies()
sys.exit(exit_code())
