#!/usr/bin/env python3
"""doctor_usage.py CAUSEWAY FUNCTIONS: `causeway doctor --mpi` counts every function of the ABI, in the chapter it is of; what needs other hosts says so without them;
devices are opened, or refused with a remedy."""
import json
import re
import sys
import tempfile

from expectation import execute, expect

causeway, functions_path = sys.argv[1:]


def lines(*options):
    done = execute([causeway, "doctor", "--mpi", *options])
    expect(done.returncode == 0, f"{options}: {done}")
    return done.stdout.splitlines()


functions = open(functions_path).read().split()
text = lines()
chapters = [re.fullmatch(r" *(\d+)  (.+): (\d+) of (\d+) missing", line) for line in text]
chapters = {int(m[1]): (m[2], int(m[3]), int(m[4])) for m in chapters if m}
named = [line.strip() for line in text if line.startswith("      ")]
as_json = [json.loads(line) for line in lines("--json")]
expect(sum(chapter[2] for chapter in chapters.values()) == len(functions), "every function in one chapter")
expect(sum(chapter[1] for chapter in chapters.values()) == len(named), "as many names as are counted")
expect(set(named) <= set(functions) and len(set(named)) == len(named), "names of the ABI, each once")
expect([line["what"] for line in as_json] == named, "the same names in JSON")
expect(text[-1].startswith(f"{len(named)} of {len(functions)} "), "the sum at the end")
for number, title in ((3, "Point-to-point"), (6, "Collective"), (12, "One-sided"), (14, "I/O")):
    expect(chapters.get(number, ("",))[0].startswith(title), f"chapter {number} is {title}")
for line in as_json:
    wanted = 14 if re.match(r"MPI_File_(i?read|i?write|seek|open)", line["what"]) else \
        12 if re.match(r"MPI_(R?put|R?get|Win_lock)", line["what"]) else line["chapter"]
    expect(line["chapter"] == wanted, f"{line['what']} in chapter {wanted}")
alone = execute([causeway, "doctor", "--rank"])
expect(alone.returncode == 2 and "`causeway doctor --transport HOST...` starts one" in alone.stderr, f"a rank of no job: {alone}")
alone = execute([causeway, "doctor", "--transport", "localhost"])
expect(alone.returncode == 0 and "localhost              this machine: shared memory" in alone.stdout, f"this host: {alone}")


def net(*names):
    """The exit code, and what is told, in order: (name, verdict, value)."""
    done = execute([causeway, "doctor", "--transport", "--json", *names])
    return done.returncode, [(each["what"], each["verdict"], each["value"]) for each in map(json.loads, done.stdout.splitlines())]


nowhere = "ffff:ff:1f.7"
code, told = net(nowhere, "net_null0,mtu=99")
expect(code == 3 and [each[:2] for each in told] == [(nowhere, "missing"), ("net_null0,mtu=99", "missing")], f"devices that cannot be had: {told}")
expect("no such PCI device; `dpdk-devbind.py" in told[0][2] and "576 to 9600" in told[1][2], f"... each with what to do: {told}")
code, told = net("net_null0,mtu=9000,ip=10.9.0.5/24", "net_frobnicate0", "localhost")
if any("built without DPDK" in value for _, _, value in told):
    expect(code == 3, f"no DPDK, no device: {told}")
else:
    found = {what: (verdict, value) for what, verdict, value in told}
    expect(code == 3 and found["net_frobnicate0"][0] == "missing" and "is there such a driver" in found["net_frobnicate0"][1], f"a driver that is none: {told}")
    expect(found["net_null0,mtu=9000,ip=10.9.0.5/24"][0] == "good" and "address 10.9.0.5, packets up to 9000 bytes" in found["net_null0,mtu=9000,ip=10.9.0.5/24"][1],
           f"a device: {told}")
    expect(found["localhost"][0] == "note", f"hosts beside devices: {told}")
    expect(net("net_null0")[0] == 0, "a device that a rank can have")

# Settings: of the environment, of a file, and by default, each with its origin; misspelt ones with the nearest name.
with tempfile.NamedTemporaryFile("w", suffix="settings") as file:
    file.write("# ours\nRDMA=off\nWATCHDGO=3\n")
    file.flush()
    variables = {"CAUSEWAY_SETTINGS": file.name, "CAUSEWAY_PACING": "off", "CAUSEWAY_PACINGS": "on"}
    doctor = execute([causeway, "doctor", "--json"], **variables)
    told = [json.loads(line) for line in doctor.stdout.splitlines()]
    settings = {each["what"]: (each["value"], each["origin"]) for each in told if each["topic"] == "setting"}
    expect(settings.get("CAUSEWAY_RDMA") == ("off", file.name), f"a setting of a file: {settings}")
    expect(settings.get("CAUSEWAY_PACING") == ("off", "environment"), f"... of the environment: {settings}")
    expect(settings.get("CAUSEWAY_WATCHDOG") == ("60 s", "default"), f"... by default: {settings}")
    wrong = [each["value"] for each in told if each["what"] == "settings"]
    expect(len(wrong) == 2 and "CAUSEWAY_PACING is meant" in wrong[0] and "WATCHDOG is meant" in wrong[1], f"names that are no settings: {wrong}")
    job = execute([causeway, "run", "-n", "2", "sh", "-c", "echo $CAUSEWAY_RDMA"], **variables)
    expect(job.returncode == 0 and job.stdout.split() == ["off", "off"], f"ranks have the settings of the file: {job}")
    expect("CAUSEWAY_PACING is meant" in job.stderr and "WATCHDOG is meant" in job.stderr, f"... and the launcher reports names: {job.stderr}")
job = execute([causeway, "run", "-n", "1", "true"], CAUSEWAY_SETTINGS="/no/file")
expect(job.returncode == 0 and "CAUSEWAY_SETTINGS: /no/file cannot be read: No such file" in job.stderr, f"a file of settings that is not there: {job}")
