"""Computers that are reached over ssh, for as long as a test takes: a real sshd for each on a port of loopback, with keys of their own and
nothing outside one folder. Every daemon is a child of the test, and ends with it."""
import os
import shutil
import socket
import subprocess
import time

from slurm import end_with_parent, free_ports, path

WAIT_S = 120  # only ends a hang
PROGRAMS = ("sshd", "ssh", "ssh-keygen")

DAEMON = """ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
"""
CLIENT = """Host {name}
  HostName 127.0.0.1
  Port {port}
  HostKeyAlias mayfly-test
  UserKnownHostsFile {folder}/known
  IdentityFile {folder}/user
  IdentitiesOnly yes
"""


def missing():
    """The programs that are not on this computer."""
    return [program for program in PROGRAMS if not shutil.which(program, path=path())]


class Hosts:
    def __init__(self, folder, count):
        self.folder, self.daemons = folder, {}
        self.config = f"{folder}/config"
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{key}"], check=True)
        with open(f"{folder}/host.pub", encoding="utf-8") as key, open(f"{folder}/known", "w", encoding="utf-8") as known:
            known.write(f"mayfly-test {key.read()}")
        first = free_ports(count)
        self.ports = {f"n{i + 1}": first + i for i in range(count)}
        with open(self.config, "w", encoding="utf-8") as config:
            for name, port in self.ports.items():
                config.write(CLIENT.format(name=name, port=port, folder=folder))
                with open(f"{folder}/{name}.conf", "w", encoding="utf-8") as file:
                    file.write(DAEMON.format(port=port, folder=folder))

    def start(self):
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)  # without it sshd does not start as root
        for name in self.ports:
            self.start_host(name)

    def start_host(self, name):
        if name in self.daemons:
            return
        program = shutil.which("sshd", path=path())
        with open(f"{self.folder}/{name}.log", "ab") as log:
            self.daemons[name] = subprocess.Popen([program, "-D", "-e", "-f", f"{self.folder}/{name}.conf"],
                                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=end_with_parent)
        end = time.monotonic() + WAIT_S
        while not self.listens(name):
            if self.daemons[name].poll() is not None or time.monotonic() > end:
                with open(f"{self.folder}/{name}.log", encoding="utf-8", errors="replace") as log:
                    raise RuntimeError(f"sshd of {name} does not start: {log.read()[-500:]}")
            time.sleep(0.02)

    def listens(self, name):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.ports[name])) == 0

    def stop_host(self, name):
        """Nobody can log in any more; what runs there runs on."""
        daemon = self.daemons.pop(name, None)
        if daemon is not None:
            daemon.terminate()
            daemon.wait(WAIT_S)

    def stop(self):
        for name in list(self.daemons):
            self.stop_host(name)
