"""A Slurm of several nodes on this computer, for as long as a test takes: its own keys, its own ports on loopback, nothing
outside one folder. Every daemon is a child of the test, and ends with it."""
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time

WAIT_S = 120  # only ends a hang
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
PR_SET_PDEATHSIG = 1

CONFIG = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters={parameters}
ReturnToService=2
KillWait=5
SlurmdTimeout=15
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0,bf_interval=2
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] Sockets=1 CoresPerSocket={cores} ThreadsPerCore=1 RealMemory=2000 State=UNKNOWN
PartitionName=spot Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=10
PartitionName=ondemand Nodes=n[1-{nodes}] MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
PartitionName=short Nodes=n[1-{nodes}] MaxTime=10 State=UP
PartitionName=down Nodes=n[1-{nodes}] State=DOWN
PartitionName=closed Nodes=n[1-{nodes}] State=UP DisableRootJobs=YES
"""


def missing():
    """The programs that are not on this computer."""
    return [program for program in PROGRAMS if not shutil.which(program, path=path())]


def path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def content(path):
    """Empty where it has gone."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def free_ports(count):
    """So many in a row that nobody listens on now."""
    for first in range(21000 + os.getpid() % 8000, 60000, count):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise RuntimeError("no free ports")


class Cluster:
    def __init__(self, folder, nodes=3, cores=2):
        self.folder, self.nodes, self.daemons = folder, nodes, {}
        for name in ("munge", "state", "log", *(f"spool/n{i + 1}" for i in range(nodes))):
            os.makedirs(f"{folder}/{name}", exist_ok=True)
        os.chmod(folder, 0o755)
        os.chmod(f"{folder}/munge", 0o755)
        with open(os.open(f"{folder}/munge.key", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as key:
            key.write(os.urandom(128))
        first = free_ports(nodes + 1)
        self.settings = {"folder": folder, "host": socket.gethostname().split(".")[0], "port": first, "first": first + 1,
                         "last": first + nodes, "nodes": nodes, "cores": cores,
                         "user": pwd.getpwuid(os.geteuid()).pw_name}
        self.environment = {**os.environ, "PATH": path(), "SLURM_CONF": f"{folder}/slurm.conf"}
        self.configure()

    def configure(self, parameters=""):
        """`parameters`: what some sites set of the controller."""
        text = CONFIG.format(parameters=parameters, **self.settings)
        if not parameters:
            text = text.replace("SlurmctldParameters=\n", "")
        with open(f"{self.folder}/slurm.conf", "w", encoding="utf-8") as file:
            file.write(text)
        if self.daemons:
            self.call("scontrol", "reconfigure")

    def start(self):
        folder = self.folder
        self.run("munged", "munged", "--foreground", f"--socket={folder}/munge/socket", f"--key-file={folder}/munge.key",
                 f"--pid-file={folder}/munge/pid", f"--log-file={folder}/log/munged.log", f"--seed-file={folder}/munge.seed")
        self.wait("munged", lambda: os.path.exists(f"{folder}/munge/socket"))
        self.run("slurmctld", "slurmctld", "-D", "-i", "-c")
        for number in range(self.nodes):
            self.start_node(f"n{number + 1}")
        self.ready()

    def run(self, name, *words):
        with open(f"{self.folder}/log/{name}.out", "ab") as out:
            self.daemons[name] = subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
                                                  stderr=out, preexec_fn=end_with_parent, start_new_session=True)

    def start_node(self, node):
        self.run(node, "slurmd", "-D", "-N", node)

    def ready(self):
        """Every node takes jobs."""
        at_work = {"idle", "mixed", "allocated", "completing"}  # others, and those with a star, are away
        self.wait("all nodes", lambda: self.states() and self.states() <= at_work)

    def states(self):
        return set(self.call("sinfo", "-h", "-N", "-p", "spot", "-o", "%T", check=False).split())

    def call(self, *words, check=True):
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=WAIT_S, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def queue(self, prefix, states="PD,R,CF,CG"):
        """(state, id, node) of each element of arrays whose names begin so."""
        lines = self.call("squeue", "-h", "-r", "-t", states, "-o", "%T|%F_%K|%N|%j", check=False).splitlines()
        rows = [line.split("|", 3) for line in lines]
        return [(row[0], row[1], row[2]) for row in rows if len(row) == 4 and row[3].startswith(prefix)]

    def kill_node(self, node):
        """As if its power had been cut: the daemon and all that it started."""
        kill([self.daemons[node].pid, *self.processes(f"SLURMD_NODENAME={node}")])
        self.daemons[node].wait(WAIT_S)

    def processes(self, *marks):
        """What has this cluster in its environment, and these words, but the test itself; and what Slurm starts it by,
        which overwrites its own environment."""
        marks = {mark.encode() for mark in (f"SLURM_CONF={self.folder}/slurm.conf", *marks)}
        found = set()
        for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
            if pid != os.getpid() and marks <= set(content(f"/proc/{pid}/environ").split(b"\0")):
                state = content(f"/proc/{pid}/stat").rpartition(b")")[2].split()
                parent = int(state[1]) if len(state) > 1 else 0
                found |= {pid} | ({parent} if content(f"/proc/{parent}/cmdline").startswith(b"slurmstepd") else set())
        return found

    def wait(self, what, predicate):
        end = time.monotonic() + WAIT_S
        while not predicate():
            for name, daemon in self.daemons.items():
                if daemon.poll() is not None:
                    raise RuntimeError(f"{name} has ended: see {self.folder}/log")
            if time.monotonic() > end:
                raise RuntimeError(f"waited {WAIT_S} s for {what}: see {self.folder}/log")
            time.sleep(0.1)

    def stop(self):
        if "slurmctld" in self.daemons:
            self.call("scancel", "--user", str(os.geteuid()), check=False)
            end = time.monotonic() + 15  # daemons that end before their jobs leave those behind
            while self.queue("") and time.monotonic() < end:
                time.sleep(0.2)
        for name in reversed(list(self.daemons)):
            if self.daemons[name].poll() is None:
                self.daemons[name].terminate()
        for name in reversed(list(self.daemons)):
            try:
                self.daemons[name].wait(20)
            except subprocess.TimeoutExpired:
                self.daemons[name].kill()
                self.daemons[name].wait(WAIT_S)
        kill(self.processes())
