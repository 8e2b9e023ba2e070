#!/usr/bin/env python3
"""emulate_usage.py CAUSEWAY PROGRAM: `causeway run --emulate` refuses what makes no sense, and leaves nothing behind; a
switch started by hand serves a job, and captures the frames of a port."""
import os
import struct
import subprocess
import sys
import tempfile

from expectation import execute, expect, refused

causeway, program = map(os.path.abspath, sys.argv[1:])


def run(arguments, folder):
    return execute([causeway, "run", *arguments, program, "S"], TMPDIR=folder)


def switch(arguments, folder):
    return execute([causeway, "switch"] + arguments, cwd=folder)


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
            refused(switch(["--memif", "s", "--topology", wrong], folder), words, f"switch --topology {name}")
            refused(run(["-n", "33", "--emulate", f"topology={wrong},memif"], folder), words, f"run --emulate {name}")
        refused(switch(["--memif", "s", "--topology", "/nowhere.json"], folder), ["/nowhere.json"], "no file")
        refused(switch(["--topology", path], folder), ["--memif"], "no socket")
        refused(switch(["--memif", "s", "--topology", path, "--rate", "1Gbps"], folder), ["--rate"], "a rate beside the file")
        refused(switch(["--memif", "s", "--topology", path, "--port", "0:loss=1%"], folder), ["--port"], "a port beside the file")
        refused(switch(["--memif", "s", "--topology", path, "--ports", "2"], folder), ["3 hosts", "2 ports"], "too few ports")
        refused(switch(["--memif", "s", "--topology", path, "--pcap", "x"], folder), ["--pcap-at"], "a tap nowhere")
        refused(switch(["--memif", os.path.join(folder, "s"), "--topology", path, "--pcap", "x", "--pcap-at", "sea"], folder), ["sea", "a-b", "a0"], "a tap at no link")
        refused(switch(["--memif", os.path.join(folder, "s"), "--topology", path, "--stats", "no/such/folder"], folder), ["no/such/folder"], "statistics nowhere")
        refused(switch(["--memif", "s", "--command", "link a-b down"], folder), ["s.ctl"], "nobody to be told", 3)
        refused(switch(["--command", "link a-b down"], folder), ["--memif"], "told to nobody")
        for value in ["topology=,memif", f"topology={path}", f"topology={path},memif,rate=1Gbps"]:
            refused(run(["-n", "3", "--emulate", value], folder), ["--emulate"], value)
        refused(run(["-n", "3", "--emulate", "topology=/nowhere.json,memif"], folder), ["/nowhere.json"], "no file")
        refused(run(["-n", "2", "--emulate", f"topology={path},memif"], folder), ["3 hosts", "2 ranks"], "fewer ranks than hosts")
        expect(os.listdir(folder) == [], f"nothing is left: {os.listdir(folder)}")
        for ranks in ["3", "5"]:
            result = run(["-n", ranks, "--emulate", f"topology={path},memif,multicast=flood"], folder)
            expect(result.returncode == 0, f"{ranks} ranks in two clusters work: {result.stderr}")
        result = execute([causeway, "run", "-n", "3", "--emulate", "topology=good.json,memif", "/usr/bin/printenv", "CAUSEWAY_TOPOLOGY"], cwd=files, TMPDIR=folder)
        expect(result.stdout.split() == 3 * [os.path.realpath(path)], f"ranks know the file: {result.stdout} {result.stderr}")
        expect(os.listdir(folder) == [], f"nothing is left: {os.listdir(folder)}")


def captured():
    """Every frame of a job that reaches the first port, each whole: Ethernet, of one of the ranks."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        socket, file = os.path.join(folder, "s"), os.path.join(folder, "capture")
        with subprocess.Popen([causeway, "switch", "--memif", socket, "--ports", "2", "--pcap", file, "--pcap-at", "port0"], stdout=subprocess.PIPE, text=True) as by:
            expect(by.stdout.readline() != "", "the switch starts")
            done = execute([causeway, "run", "-n", "2", program, "S"], CAUSEWAY_EMULATE=f"2,memif,{socket}", CAUSEWAY_JOB_KEY="5a" * 16)
            expect(done.returncode == 0, f"a job on a switch started by hand: {done.stderr}")
            by.terminate()
            by.stdout.read()
        with open(file, "rb") as capture:
            content = capture.read()
        at, sources = 24, set()
        expect(content[:4] == struct.pack("<I", 0xA1B23C4D), "a capture in nanoseconds")
        while at + 16 <= len(content):
            length = struct.unpack_from("<I", content, at + 8)[0]
            sources.add(content[at + 22:at + 28])
            at += 16 + length
        expect(at == len(content), f"each frame is whole: {at} of {len(content)}")
        expect(len(sources) == 1, f"frames that arrive from one host: {sources}")


with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    for value in ["0,memif", "5,memif", "4", "4,", "4,token-ring", "x,memif", "-1,memif", "4,memif,", "",
                  "4,memif,rate=x", "4,memif,loss=200%", "4,memif,loss", "4,memif,speed=1", "4,memif,delay=", "4,memif,mtu=1500"]:
        result = run(["-n", "4", "--emulate", value], folder)
        refused(result, ["--emulate"], f"--emulate '{value}'")
    refused(run(["-n", "64", "--emulate", "4,memif"], folder), [], "64 ranks are too many")
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
    result = execute(["sh", "-c", limited], TMPDIR=folder)
    expect(result.returncode == 3 and "it was ended by SIGXFSZ" in result.stderr, f"a switch that a signal ends: {result.stderr}")

captured()
topologies()
