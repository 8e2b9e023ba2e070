#!/usr/bin/env python3
"""emulate_usage.py CAUSEWAY PROGRAM: `causeway run --emulate` refuses what makes no sense, and leaves nothing behind."""
import os
import subprocess
import sys
import tempfile

causeway, program = sys.argv[1:]
failures = 0


def run(arguments, folder):
    command = [causeway, "run"] + arguments + [program, "S"]
    environment = dict(os.environ, TMPDIR=folder)
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)


def expect(condition, what):
    global failures
    if not condition:
        failures += 1
        print("expected:", what)


with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    for value in ["0,memif", "5,memif", "4", "4,", "4,token-ring", "x,memif", "-1,memif", "4,memif,", "",
                  "4,memif,rate=x", "4,memif,loss=200%", "4,memif,loss", "4,memif,speed=1", "4,memif,delay=", "4,veth,loss=1%"]:
        result = run(["-n", "4", "--emulate", value], folder)
        expect(result.returncode == 2, f"--emulate '{value}' ends with 2, not {result.returncode}")
        expect(result.stderr.count("\n") == 1 and "--emulate" in result.stderr, f"one line for '{value}', not: {result.stderr}")
    result = run(["-n", "64", "--emulate", "4,memif"], folder)
    expect(result.returncode == 2 and result.stderr.count("\n") == 1, f"64 ranks are too many: {result.stderr}")
    result = run(["-n", "3", "--emulate", "2,memif"], folder)
    expect(result.returncode == 0, f"3 ranks on 2 hosts work: {result.stderr}")
    expect(os.listdir(folder) == [], f"nothing is left: {os.listdir(folder)}")
    result = run(["-n", "2", "--emulate", "2,memif", "/bin/false", ":", "-n", "1"], folder)
    expect(result.returncode == 1, f"the exit code is that of the first rank that fails: {result.returncode}")
    expect(os.listdir(folder) == [], f"nothing is left after a failure: {os.listdir(folder)}")

sys.exit(1 if failures else 0)
