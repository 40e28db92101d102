"""Machines of any size on one host: a network namespace whose link is as fast as told (tbf, both directions) and a control
group that has as much of a core as told. Needs root, Linux, `ip` and `tc`, and the cpu controller of cgroup v1; where one is
missing, Skipped says which. Standard library only."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

GROUPS = "/sys/fs/cgroup/cpu"
PERIOD_US = 10000  # short against a step; at 5000 and below a tenth of a small quota is lost to the scheduler's slices
BURST_KB = 64      # what a link may send at once after a pause: one packet of the sender's offload
MTU = 9000
SHARES = 10240     # ten times anybody else's: a machine has its part of a core whatever else this host does


class Skipped(Exception):
    pass


def command(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skipped(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")


class Machine:
    """One port of a star. `cores` None: as much as there is; `mb_per_s` None: as fast as it goes."""

    def __init__(self, star, number, cores, mb_per_s):
        self.star, self.number, self.cores = star, number, cores
        self.name = f"{star.name}-{number}"
        self.address = f"10.78.{star.subnet}.{number + 1}"
        self.group = f"{GROUPS}/{self.name}"
        self.port = f"{star.link}{number}o"
        self.mb_per_s = mb_per_s
        self.processes = []

    def open(self):
        self.lay_cable()
        try:
            os.mkdir(self.group)
        except OSError as error:
            raise Skipped(f"control group: {error}") from error
        self.set("cpu.shares", SHARES)

    def set(self, key, value):
        try:
            with open(f"{self.group}/{key}", "w", encoding="utf-8") as file:
                file.write(str(value))
        except OSError as error:
            raise Skipped(f"control group: {error}") from error

    def lay_cable(self):
        inside, port = f"{self.star.link}{self.number}i", self.port
        command("ip", "netns", "add", self.name)
        command("ip", "link", "add", inside, "mtu", str(MTU), "type", "veth", "peer", "name", port, "mtu", str(MTU))
        command("ip", "link", "set", inside, "netns", self.name)
        command("ip", "link", "set", port, "netns", self.star.name)
        command("ip", "-n", self.star.name, "link", "set", port, "master", "bridge0", "up")
        command("ip", "-n", self.name, "link", "set", inside, "name", "eth0")
        command("ip", "-n", self.name, "address", "add", f"{self.address}/24", "dev", "eth0")
        command("ip", "-n", self.name, "link", "set", "eth0", "up")
        command("ip", "-n", self.name, "link", "set", "lo", "up")

    def shape(self):
        """The rate counts headers: 66 bytes of a packet of 9014."""
        limit = ("root", "tbf", "rate", f"{round(self.mb_per_s * 8e6 * 9014 / 8948)}bit", "burst", f"{BURST_KB}kb", "latency", "40ms")
        command("tc", "-n", self.name, "qdisc", "add", "dev", "eth0", *limit)
        command("tc", "-n", self.star.name, "qdisc", "add", "dev", self.port, *limit)

    def start(self, words, log, environment=None):
        with open(log, "ab") as out:
            self.processes.append(subprocess.Popen(
                ["ip", "netns", "exec", self.name, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment,
                preexec_fn=lambda: self.set("cgroup.procs", os.getpid())))
        return self.processes[-1]

    def limit(self):
        """From now on it is as slow as told. Programs start before that, so that nobody waits for them."""
        if self.mb_per_s:
            self.shape()
        if self.cores:
            self.set("cpu.cfs_period_us", PERIOD_US)
            self.set("cpu.cfs_quota_us", round(self.cores * PERIOD_US))

    def cpu_s(self):
        """Core-seconds of its processes so far, all threads."""
        ticks = 0
        for process in self.processes:
            try:
                with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
                    fields = file.read().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
            except OSError:
                pass
        return ticks / os.sysconf("SC_CLK_TCK")

    def throttled(self):
        """(periods with work, those of them in which the quota was used up) so far."""
        with open(f"{self.group}/cpu.stat", encoding="utf-8") as file:
            stat = dict(line.split() for line in file)
        return int(stat["nr_periods"]), int(stat["nr_throttled"])

    def members(self):
        """Process numbers of everything that was started on it, whoever started it."""
        try:
            with open(f"{self.group}/cgroup.procs", encoding="utf-8") as file:
                return [int(line) for line in file]
        except OSError:
            return []

    def close(self):
        for pid in self.members():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in self.processes:
            process.wait(10)
        subprocess.run(["ip", "netns", "delete", self.name], capture_output=True, check=False)
        for _ in range(100):  # the kernel takes its time to see that the last process is gone
            try:
                os.rmdir(self.group)
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.05)


class Star:
    """A bridge that all machines hang from. Gone at the end with everything on it."""

    def __init__(self):
        self.number = os.getpid() % 50000
        self.subnet = os.getpid() % 250
        self.name = f"mayfly-star-{self.number}"
        self.link = f"ms{self.number}x"
        self.machines = []
        self.wakers = []

    def __enter__(self):
        if os.geteuid() != 0:
            raise Skipped("needs root to make network namespaces")
        for program in ("ip", "tc"):
            if not shutil.which(program):
                raise Skipped(f"needs the program {program} (Debian: iproute2)")
        if not os.path.exists(f"{GROUPS}/cgroup.procs"):
            raise Skipped(f"needs the cpu controller of cgroup v1 at {GROUPS}")
        try:
            command("ip", "netns", "add", self.name)
            command("ip", "-n", self.name, "link", "add", "bridge0", "type", "bridge")
            command("ip", "-n", self.name, "link", "set", "bridge0", "mtu", str(MTU), "up")
        except Skipped:
            self.__exit__()
            raise
        self.wakers = [subprocess.Popen([sys.executable, __file__, "wake"]) for _ in os.sched_getaffinity(0)]
        return self

    def machine(self, cores=None, mb_per_s=None):
        self.machines.append(Machine(self, len(self.machines) + 1, cores, mb_per_s))
        self.machines[-1].open()
        return self.machines[-1]

    def __exit__(self, *_):
        for machine in self.machines:
            machine.close()
        for waker in self.wakers:
            waker.kill()
            waker.wait(10)
        subprocess.run(["ip", "netns", "delete", self.name], capture_output=True, check=False)


def wake():
    """Keeps a core awake that nobody else wants: one that sleeps comes back late and with cold caches, so that a machine
    alone on this host would be slower than the same machine beside others."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while os.getppid() != 1:
        for _ in range(10**6):
            pass


PORT = 7979


def receive(address):
    """Says so when all of what was announced has come, again and again."""
    with socket.create_server((address, PORT)) as door:
        with door.accept()[0] as peer:
            while size := int.from_bytes(peer.recv(8, socket.MSG_WAITALL), "big"):
                while size:
                    size -= len(peer.recv(min(size, 1 << 20)))
                peer.sendall(b"!")


def send(address, size):
    """Prints the MB/s of the middle one of nine."""
    for _ in range(100):
        try:
            peer = socket.create_connection((address, PORT))
            break
        except OSError:
            time.sleep(0.05)
    seconds = []
    with peer:
        for _ in range(9):
            time.sleep(0.1)
            begin = time.monotonic()
            peer.sendall(size.to_bytes(8, "big") + bytes(size))
            peer.recv(1)
            seconds.append(time.monotonic() - begin)
    print(size / 1e6 / sorted(seconds)[4])


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(sys.argv[2])
    elif sys.argv[1] == "wake":
        wake()
    else:
        send(sys.argv[2], int(sys.argv[3]))
