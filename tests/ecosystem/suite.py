"""What the suites share: packages, sources, a run with its verdict, and the list in the end."""
import collections
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys

SOURCES = """Types: deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
MISSING = re.compile(r"(MPI_\w+) is not implemented yet")


class Workshop:
    def __init__(self, options):
        self.options = options
        self.build = os.path.abspath(options.build)
        self.folder = os.path.join(self.build, "ecosystem")
        self.causeway = os.path.join(self.build, "causeway")
        self.networks = options.networks.split(",")
        self.ranks = [int(ranks) for ranks in options.ranks.split(",")]
        self.log = os.path.join(self.folder, "log")
        self.results = []
        self.preload = None
        os.makedirs(self.folder, exist_ok=True)
        self.lock = open(os.path.join(self.folder, "lock"), "w", encoding="utf-8")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # two runs would link the same programs
        except BlockingIOError:
            sys.exit(f"run.py: another run works in {self.folder}; wait for it, or give another --build")
        open(self.log, "w", encoding="utf-8").close()
        if not os.access(self.causeway, os.X_OK):
            sys.exit(f"run.py: no {self.causeway}; build first, or give --build")

    def wrapper(self, name):
        return os.path.join(self.build, "mpi", name)

    def call(self, *command, cwd=None, **environment):
        """Runs a command that has to succeed; what it prints goes to the log."""
        with open(self.log, "a", encoding="utf-8") as log:
            print("+", *command, file=log, flush=True)
            subprocess.run(command, cwd=cwd or self.folder, env=dict(os.environ, **environment), stdout=log, stderr=log,
                           stdin=subprocess.DEVNULL, check=True)

    def packages(self, wanted):
        """Installs Debian packages that are missing; `wanted`: name -> what it is needed for."""
        query = ["dpkg-query", "--show", "--showformat", "${db:Status-Status}"]
        missing = [name for name in wanted
                   if subprocess.run(query + [name], capture_output=True, text=True, check=False).stdout != "installed"]
        if missing and os.geteuid() != 0:
            raise LookupError("apt-get install " + " ".join(missing) + " (" + "; ".join(wanted[name] for name in missing) + ")")
        if missing:
            self.call("apt-get", "install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", *missing,
                      DEBIAN_FRONTEND="noninteractive")

    def source(self, package, *only):
        """The unpacked upstream source of a Debian package, with Debian's patches where the whole is unpacked; `only`: parts of it, as tar takes them."""
        folder = os.path.join(self.folder, package)
        if os.path.isdir(folder):
            return folder
        apt = self.apt_options()
        fetched = os.path.join(self.folder, "sources", package)
        os.makedirs(fetched, exist_ok=True)
        try:
            self.call("apt-get", *apt, "source", "--download-only", package, cwd=fetched)
        except subprocess.CalledProcessError as error:
            raise LookupError(f"Debian's mirror does not give the source of {package}; see {self.log}") from error
        files = os.listdir(fetched)
        unpacked = folder + ".new"
        shutil.rmtree(unpacked, ignore_errors=True)
        if only:
            archive = next(name for name in files if ".orig.tar." in name and not name.endswith(".asc"))
            os.makedirs(unpacked)
            self.call("tar", "xf", os.path.join(fetched, archive), "--strip-components=1", "--wildcards", *only, cwd=unpacked)
        else:
            description = next(name for name in files if name.endswith(".dsc"))
            self.call("dpkg-source", "--no-check", "-x", os.path.join(fetched, description), unpacked)
        os.rename(unpacked, folder)
        return folder

    def apt_options(self):
        """apt with lists of its own, so that those of the system stay as they are."""
        apt = os.path.join(self.folder, "apt")
        for name in ("parts", "lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(apt, name), exist_ok=True)
        with open(os.path.join(apt, "parts", "debian.sources"), "w", encoding="utf-8") as file:
            file.write(SOURCES)
        options = []
        for name, value in {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": apt + "/parts", "Dir::State::lists": apt + "/lists",
                            "Dir::Cache": apt + "/cache", "Acquire::Languages": "none"}.items():
            options += ["-o", f"{name}={value}"]
        if not any(name.endswith("Sources") or name.endswith("Sources.lz4") for name in os.listdir(apt + "/lists")):
            self.call("apt-get", *options, "update")
        return options

    def teller(self):
        """A library to preload, which names calls that are not there: suites with MPI_ERRORS_RETURN would not say which. It then goes on to the call itself."""
        path = os.path.join(self.folder, "teller")
        lines = subprocess.run([self.causeway, "doctor", "--mpi", "--json"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
        names = [json.loads(line)["what"] for line in lines]
        with open(path + ".c", "w", encoding="utf-8") as file:
            file.write("#include <stdio.h>\n")
            for name in names:
                file.write(f'int P{name}();\nint {name}() {{ void *given = __builtin_apply_args(); '
                           f'fprintf(stderr, "{name} is not implemented yet\\n"); '
                           f'__builtin_return(__builtin_apply((void (*)())P{name}, given, 256)); }}\n')
        self.call("gcc", "-w", "-O1", "-shared", "-fPIC", path + ".c", "-o", path + ".so")
        return path + ".so"

    def places(self, ranks, most=4):
        """How a job of `ranks` is started, for each network: (network, options of causeway run). Emulated hosts up to `most`; simulated ones lose packets."""
        for network in self.networks:
            if network == "shm":
                yield network, []
            elif network == "sim":
                yield network, ["--simulate", f"hosts={max(1, ranks - 1)},cpu=0,loss=0.5%,reorder=0.5%"]
            elif 1 < ranks <= most:
                yield network, ["--emulate", f"{ranks},{network}"]

    def launcher(self, ranks, emulate):
        self.preload = self.preload or self.teller()
        run = [self.causeway, "run", "-n", str(ranks), "--timeout", str(self.options.seconds), *emulate]
        preload = ["env", "LD_PRELOAD=" + self.preload]
        return preload + run if "--simulate" in emulate else run + preload  # the launcher adds the simulated clock to what it finds

    def test(self, suite, name, network, ranks, command, cases=None, cwd=None, environment=None):
        """Runs a test. `cases`: finds (passed, failed) numbers in what it prints, where a test has many."""
        if self.options.only not in name:
            return
        try:
            done = subprocess.run(command, cwd=cwd or self.folder, env=dict(os.environ, **(environment or {})), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=self.options.seconds + 30, check=False)
            output, code = done.stdout.decode(errors="replace"), done.returncode
        except subprocess.TimeoutExpired as error:
            output, code = (error.stdout or b"").decode(errors="replace") + f"\nno end after {self.options.seconds + 30} s", 124
        absent = sorted(set(MISSING.findall(output)))
        passed, failed = cases(output) if cases else (code == 0, code != 0)
        output = re.sub(r"\x1b\[[0-9;]*m", "", output)  # colours
        verdict = "passes" if code == 0 and not failed else "not there" if absent else "fails"
        self.note(suite, name, network, ranks, verdict, passed, absent, output)

    def note(self, suite, name, network, ranks, verdict, passed, absent, output):
        lines = [line for line in output.splitlines() if line.strip()]
        causes = [line for line in lines if re.search(r"error|fail|not |terminate", line, re.I)]
        why = ", ".join(absent) if absent else (causes or lines or [""])[-1].strip()[:200] if verdict == "fails" else ""
        self.results.append({"suite": suite, "name": name, "network": network, "ranks": ranks, "verdict": verdict, "cases": int(passed), "why": why})
        print(f"{verdict:10} {suite} {name} {network} {ranks}  {why}", flush=True)
        if verdict != "passes":
            with open(os.path.join(self.folder, f"{suite}-{name}-{network}-{ranks}.txt"), "w", encoding="utf-8") as file:
                file.write(output)

    def lost(self, suite, why):
        """A suite that cannot be built or run at all."""
        self.results.append({"suite": suite, "name": "(all)", "network": "-", "ranks": 0, "verdict": "not run", "cases": 0, "why": why})
        print(f"not run    {suite}: {why}", flush=True)

    def report(self):
        counts = collections.Counter((result["suite"], result["verdict"]) for result in self.results)
        cases = collections.Counter()
        missing = collections.defaultdict(set)
        for result in self.results:
            cases[result["suite"]] += result["cases"]
            for name in result["why"].split(", ") if result["verdict"] == "not there" else []:
                missing[name].add(f"{result['suite']} {result['name']}")
        print()
        for suite in dict.fromkeys(result["suite"] for result in self.results):
            verdicts = ", ".join(f"{counts[suite, verdict]} {verdict}" for verdict in ("passes", "not there", "fails", "not run")
                                 if counts[suite, verdict])
            print(f"{suite}: {verdicts}; {cases[suite]} cases passed")
        for name in sorted(missing):
            print(f"not there yet: {name} ({', '.join(sorted(missing[name]))})")
        for result in self.results:
            if result["verdict"] in ("fails", "not run"):
                print(f"{result['verdict']}: {result['suite']} {result['name']} {result['network']} {result['ranks']}: {result['why']}")
