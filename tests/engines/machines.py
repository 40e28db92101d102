"""What a case may do to the machines of a run, whichever engine they are from."""
import glob
import json
import os
import shutil
import signal
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "chaos"))
import slurm
import sshd
from harness import Failure, Run, Skipped, alive, read_bytes, read_text

ENGINE_FILE = """format: mayfly-engine/1
kind: slurm
slurm:
  spot: {partition: spot}
  on-demand: {partition: ondemand}
  types:
    small: {cores: 1, usd_per_hour: {spot: 0.3, on-demand: 1.0}}
"""


HOSTS_FILE = """format: mayfly-engine/1
kind: ssh
ssh:
  options: [-F, {config}]
  hosts:
    - {{host: n1, machines: 2, market: spot, usd_per_hour: 0.3}}
    - {{host: n2, machines: 2, market: spot, usd_per_hour: 0.3}}
    - {{host: n3, machines: 2, usd_per_hour: 1}}
"""


class EngineRun(Run):
    """A run whose machines are known by their launches."""

    def launched(self, role="worker"):
        """launch -> process number, of machines whose program runs."""
        found = {}
        address = read_text(f"{self.out}/address").strip()
        if not address:
            return found
        for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
            words = read_bytes(f"/proc/{pid}/cmdline").split(b"\0")
            program = os.path.basename(words[0]) == b"mayfly-train" and len(words) > 2 and words[1] == role.encode()
            if program and address.encode() in words and b"--slot" in words and alive(pid):
                found[int(words[words.index(b"--slot") + 1])] = pid
        return found

    def workers(self):
        return list(self.launched().values())

    def servers(self):
        return list(self.launched("server").values())

    def controllers(self):
        """Of the front's children, from their first moment on."""
        front = self.front.pid
        call = read_bytes(f"/proc/{front}/cmdline")
        children = read_text(f"/proc/{front}/task/{front}/children").split()
        return [int(pid) for pid in children if read_bytes(f"/proc/{pid}/cmdline") == call]

    def remarks(self):
        return [line["remark"] for line in self.journal() if "remark" in line]

    def replaced(self, before):
        """As many as before train again, with a newcomer among them."""
        members = set(self.events_members())
        return len(members) >= len(before) and members - set(before) and self.trains(len(before))

    def events_members(self):
        """Who is assigned now."""
        assigned = [line for line in self.journal() if line.get("command") in ("assign", "pause")]
        return assigned[-1].get("members", []) if assigned else []

    def member_of(self, launch):
        """Its worker's name: that of the process."""
        for one in self.processes()["workers"]:
            if one["launch"] == launch:
                return f"w{one['worker']}"
        return None


class Local:
    name = "local"

    def __init__(self, options):
        self.options = options

    def start(self):
        pass

    def stop(self):
        pass

    def flags(self):
        return []

    def tell(self, run, launch):
        """The notice that it will be taken."""
        os.kill(run.launched()[launch], signal.SIGTERM)

    def lose(self, run, launches):
        """Without a word."""
        run.hit([pid for launch, pid in run.launched().items() if launch in launches])

    def heal(self):
        pass

    def held(self, run):
        """What is asked for or paid for now."""
        return run.workers()

    def ever(self, run):
        """How many machines were ever asked for."""
        return len(glob.glob(f"{glob.escape(run.out)}/logs/worker-*.log"))

    def log(self, run, launch):
        """Of a machine that is over; None where nobody keeps it."""
        return f"{run.out}/logs/worker-{launch}.log"

    def expect_empty(self, run):
        run.wait("no machine to be left", lambda: not self.held(run), may_end=True)


class Apart(Local):
    """Machines that fetch the run's files, and write nothing into its folder."""

    def ever(self, run):
        # Launches are numbered from 0, and no number is used again.
        status = json.loads(read_text(f"{run.out}/status.json") or "{}")
        return 1 + max((machine["launch"] for machine in status.get("machines", [])), default=-1)


class Program(Apart):
    """A program of one's own that gets machines: that of examples/engines."""
    name = "exec"

    def __init__(self, options):
        super().__init__(options)
        self.program = os.path.realpath(f"{HERE}/../../examples/engines/processes.py")
        self.root = tempfile.mkdtemp(prefix="mayfly-processes-")
        os.environ["MAYFLY_PROCESSES"] = self.root

    def stop(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def flags(self):
        return ["--engine", f"exec:{self.program}"]

    def setting(self, name, text):
        with open(f"{self.root}/{name}", "w", encoding="utf-8") as file:
            file.write(text)

    def heal(self):
        for name in ("refuse", "most"):
            self.setting(name, "")

    def held(self, run):
        """Those that have ended are remembered, and are nothing that is held."""
        return [folder for folder in glob.glob(f"{self.root}/{glob.escape(os.path.basename(run.out))}-*") if not over(folder)]

    def lose(self, run, launches):
        hit_groups(run, launches)

    def log(self, run, launch):
        return None  # it went with the machine


def over(folder):
    """A machine that was started and does not run: its folder is what its host, or processes.py, remembers of it."""
    first = read_text(f"{folder}/pid").split()
    return bool(first) and not alive(int(first[0]))


class Ssh(Apart):
    name = "ssh"

    def __init__(self, options):
        super().__init__(options)
        if absent := sshd.missing():
            raise Skipped(f"not on this computer: {', '.join(absent)} (packages openssh-server, openssh-client)")
        self.folder = tempfile.mkdtemp(prefix="mayfly-ssh-")
        self.hosts = sshd.Hosts(self.folder, 3)
        self.file = f"{self.folder}/engine.yaml"
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(HOSTS_FILE.format(config=self.hosts.config))

    def start(self):
        self.hosts.start()

    def stop(self):
        self.hosts.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def flags(self):
        return ["--engine-file", self.file]

    def heal(self):
        for name in self.hosts.ports:
            self.hosts.start_host(name)

    def held(self, run):
        return [folder for folder in glob.glob(f"/tmp/mayfly-{os.getuid()}/*/{glob.escape(os.path.basename(run.out))}-*")
                if not over(folder)]

    def lose(self, run, launches):
        hit_groups(run, launches)

    def log(self, run, launch):
        found = glob.glob(f"/tmp/mayfly-{os.getuid()}/*/.logs/{glob.escape(os.path.basename(run.out))}-*-{launch}")
        return found[0] if found else "nowhere"


def hit_groups(run, launches):
    """Machines whose power fails: nobody writes down how their programs ended."""
    for launch, pid in run.launched().items():
        if launch in launches:
            os.killpg(os.getpgid(pid), signal.SIGKILL)


class Slurm:
    name = "slurm"

    def __init__(self, options):
        if absent := slurm.missing():
            raise Skipped(f"not on this computer: {', '.join(absent)} (packages slurm-wlm, munge)")
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="mayfly-slurm-")
        self.cluster = slurm.Cluster(self.folder)
        self.file = f"{self.folder}/engine.yaml"
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(ENGINE_FILE)

    def start(self):
        os.environ["SLURM_CONF"] = self.cluster.environment["SLURM_CONF"]
        os.environ["PATH"] = self.cluster.environment["PATH"]
        self.cluster.start()

    def stop(self):
        self.cluster.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def flags(self):
        return ["--engine-file", self.file]

    def elements(self, run, states="PD,R,CF"):
        return self.cluster.queue(os.path.basename(run.out) + "-", states)

    def element(self, run, launch):
        """(id, node) of a machine, which is known by the first launch in its array's name and its index."""
        lines = self.cluster.call("squeue", "-h", "-r", "-t", "R", "-o", "%F_%K|%N|%j").splitlines()
        for ident, node, name in (line.split("|", 2) for line in lines):
            first = name.rpartition("-")[2]
            if name.startswith(os.path.basename(run.out) + "-") and int(first) + int(ident.split("_")[1]) == launch:
                return ident, node
        raise Failure(f"machine {launch} is not in the queue")

    def tell(self, run, launch):
        self.cluster.call("scancel", "--signal=TERM", self.element(run, launch)[0])

    def lose(self, run, launches):
        """The nodes on which they are lose their power; what else is on them is lost, too."""
        for node in {self.element(run, launch)[1] for launch in launches}:
            self.cluster.kill_node(node)
            self.cluster.start_node(node)

    def heal(self):
        self.cluster.ready()

    def held(self, run):
        return self.elements(run)

    def log(self, run, launch):
        return f"{run.out}/logs/worker-{launch}.log"

    def ever(self, run):
        return len(self.elements(run, "all"))

    def expect_empty(self, run):
        # What was ended a moment ago may take Slurm's KillWait.
        run.wait("nothing of the run to be in the queue", lambda: not self.elements(run, "PD,R,CF,CG"), may_end=True)


ENGINES = {engine.name: engine for engine in (Local, Slurm, Ssh, Program)}
