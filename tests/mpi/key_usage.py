#!/usr/bin/env python3
"""key_usage.py CAUSEWAY CHILDREN TOPOLOGY: the job's key comes through scripts to MPI_Init, and no further: no child of a rank has it. Sockets are for their user."""
import os
import re
import subprocess
import sys
import tempfile

from expectation import HANG_S, JOB_HANG, execute, expect

causeway, children, topology = map(os.path.abspath, sys.argv[1:4])


def run(arguments, **variables):
    return execute([causeway, "run", "--timeout", JOB_HANG, "-n", "2", "--emulate", "2,memif"] + arguments, **variables)


key = "5a" * 16
with tempfile.TemporaryDirectory() as folder:
    script = os.path.join(folder, "rank")
    for before in ("true", f"export CAUSEWAY_JOB_KEY={key}"):
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{before}\nexec sh -c 'true; exec {children}'\n")
        os.chmod(script, 0o755)
        result = run([script])
        expect(result.returncode == 0 and "CAUSEWAY_EMULATE=2,memif" in result.stdout, f"ranks reach each other: {before}: {result.stderr}")
        for word in (key, "JOB_KEY(_FD)?=[0-9a-f]", "causeway-key"): # of a variable its name may be left in /proc/PID/environ
            expect(re.search(word, result.stdout) is None, f"children do not get {word}: {before}")
    # a key of the launcher's environment is not the job's
    result = run([script], CAUSEWAY_JOB_KEY="nonsense")
    expect(result.returncode == 0, f"a job has a key of its own: {result.stderr}")
    for wrong in ("x", key + "00"):
        result = run(["env", f"CAUSEWAY_JOB_KEY={wrong}", children])
        expect(result.returncode != 0 and "32 hexadecimal digits" in result.stderr, f"{wrong} is refused: {result.stderr}")
    result = run(["env", "-u", "CAUSEWAY_JOB_KEY_FD", children])
    expect(result.returncode != 0 and "no key" in result.stderr, f"without a key: {result.stderr}")


def modes_while(arguments, folder):
    """The files that a command has in its folder once it is ready, each with its mode; the umask lets everybody in."""
    process = subprocess.Popen([causeway] + arguments, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.umask(0))
    for line in process.stdout:
        if line.startswith("ready"):
            break
    modes = {name: oct(os.lstat(os.path.join(folder, name)).st_mode & 0o777) for name in os.listdir(folder)}
    process.terminate()
    process.communicate(timeout=HANG_S)
    return modes


with tempfile.TemporaryDirectory() as folder:
    modes = modes_while(["switch", "--memif", f"{folder}/s", "--topology", topology], folder)
    expect(sorted(modes) == ["s", "s.bell", "s.ctl"] and set(modes.values()) == {"0o600"}, f"a switch is its user's: {modes}")
    subprocess.run([causeway, "gateway", "--make-key", f"{folder}/key"], check=True, stdout=subprocess.DEVNULL)
    modes = modes_while(["gateway", "--inner", f"memif:{folder}/a,role=server", "--outer", f"memif:{folder}/w,role=server", "--address", "10.9.0.1",
                         "--peer", "10.9.0.2", "--key", f"{folder}/key", "--rate", "1Gbps"], folder)
    expect({"a", "w", "key"} <= set(modes) and set(modes.values()) == {"0o600"}, f"a gateway is its user's: {modes}")
