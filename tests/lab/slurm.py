"""A Slurm cluster of Debian's packages on the hosts of a laboratory (hosts.py): munged and slurmd on each, slurmctld on
the first; configuration and state in a folder of its own. Needs root.

    with Lab(2, keep=[folder]) as lab, Slurm(lab, folder) as slurm: slurm.run(["srun", "-N2", "hostname"])
"""
import os
import subprocess

from expectation import HANG_S, wait_until
from hosts import Closed

SERVERS = ("munged", "slurmctld", "slurmd", "srun")
SLOTS = 8  # of a host: whatever it has


def configuration(folder, hosts, tasks):
    return f"""ClusterName=lab
SlurmctldHost={hosts[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/tmp/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir=/tmp/slurmd
SlurmctldPidFile=/tmp/slurmctld.pid
SlurmdPidFile=/tmp/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdDebug=info
ProctrackType=proctrack/pgid
TaskPlugin=task/{tasks}
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
KillWait=2
SlurmdParameters=config_overrides
NodeName={",".join(hosts)} CPUs={SLOTS} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm(Closed):
    """`folder` is kept by the laboratory, so that all hosts see it; `tasks`: what is done to tasks, "affinity" binds them."""

    def __init__(self, lab, folder, tasks="none"):
        self.lab, self.folder, self.servers = lab, folder, []
        self.environment = {"SLURM_CONF": f"{folder}/slurm.conf"}
        os.mkdir(f"{folder}/state")
        with open(f"{folder}/slurm.conf", "w", encoding="ascii") as file:
            file.write(configuration(folder, lab.names, tasks))
        with open(f"{folder}/munge.key", "wb") as file:
            os.fchmod(file.fileno(), 0o400)
            file.write(os.urandom(1024))
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _server(self, name, command):
        with open(f"{self.folder}/{command[0]}.{name}.out", "wb") as out:
            environment = dict(self.environment, PATH="/usr/sbin:/sbin:" + os.environ["PATH"])
            self.servers.append(self.lab.start(name, command, environment=environment, stdout=out, stderr=out))

    def _start(self):
        for name in self.lab.names:
            self._server(name, ["munged", "--foreground", "--force", f"--key-file={self.folder}/munge.key",
                                "--socket=/tmp/munge.socket", "--pid-file=/tmp/munged.pid", "--log-file=/tmp/munged.log",
                                "--seed-file=/tmp/munged.seed"])
        for name in self.lab.names:
            self._await(f"munged on {name}", name, ["test", "-S", "/tmp/munge.socket"])
        self._server(self.lab.names[0], ["slurmctld", "-D", "-c", "-f", f"{self.folder}/slurm.conf"])
        for name in self.lab.names:
            self._server(name, ["slurmd", "-D", "-f", f"{self.folder}/slurm.conf"])
        nodes = str(len(self.lab.names))
        self._await("the cluster", self.lab.names[0],
                    ["sh", "-c", f"test $(sinfo -h -o '%T %n' | grep -c ^idle) = {nodes}"])

    def _await(self, what, name, command):
        """Until the command on a host succeeds."""
        ended = lambda: [each.args for each in self.servers if each.poll() is not None]  # noqa: E731
        if not wait_until(lambda: self.run(command, name=name)[0] == 0 or ended()) or ended():
            raise RuntimeError(f"{what} does not start: {ended()} {self.logs()}")

    def logs(self):
        """The last lines of all servers."""
        texts = []
        for entry in sorted(os.listdir(self.folder)):
            if entry.endswith((".log", ".out")):
                with open(f"{self.folder}/{entry}", encoding="utf-8", errors="replace") as file:
                    texts.append(f"{entry}: " + "".join(file.readlines()[-5:]))
        return "\n".join(texts)

    def run(self, command, name=None, timeout=HANG_S, environment=None):
        """Exit code, output, errors of a command on a host, the first one if nothing is said."""
        return self.lab.run(name or self.lab.names[0], command, timeout=timeout, environment={**self.environment, **(environment or {})})

    def close(self):
        for server in reversed(self.servers):
            server.terminate()
        for server in reversed(self.servers):
            try:
                server.wait(timeout=HANG_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
