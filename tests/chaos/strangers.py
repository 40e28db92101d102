"""Those that do not belong to the run: scanners, nonsense, another run's secret. chaos.py plays them."""
import contextlib
import os
import socket
import subprocess

import network
from harness import HANG_S, Failure, read_text

CASES = {}
FRAMES, CONNECTIONS = 10_000, 100  # at each door; half of the connections carry the frames


def case(function):
    CASES[function.__name__] = function
    return function


def call(address, words):
    """Says these words to whoever listens there; whatever becomes of it."""
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), HANG_S) as line:
            for word in words:
                line.sendall(word)
    except ConnectionError:
        pass


def ports(pids):
    """Where these processes listen."""
    inodes = set()
    for pid in pids:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                link = os.readlink(entry.path)
                if link.startswith("socket:["):
                    inodes.add(link[8:-1])
    lines = [line.split() for line in read_text("/proc/net/tcp").splitlines()[1:]]
    return [int(line[1].split(":")[1], 16) for line in lines if line[3] == "0A" and line[9] in inodes]


def attack(run, doors):
    """Connections that say nothing or nonsense, a worker with another secret; the run goes on."""
    before = run.committed()
    for door in doors:
        for number in range(CONNECTIONS):
            call(door, [])
            garbage = run.random.randbytes(64)
            frame = len(garbage).to_bytes(4, "little") + garbage
            call(door, [frame] * (2 * FRAMES // CONNECTIONS) if number % 2 else [garbage])
    program = os.path.join(os.path.dirname(run.mayfly), "mayfly-train")
    thief = subprocess.run([program, "worker", "--join", read_text(f"{run.out}/address").strip()], capture_output=True,
                           env={**os.environ, "MAYFLY_TOKEN": "00" * 32}, timeout=HANG_S, text=True, check=False)
    if thief.returncode != 1 or "does not know the run's secret" not in thief.stderr:
        raise Failure(f"a worker with another secret: {thief.returncode}, {thief.stderr!r}")
    run.wait("progress", lambda: run.committed() > before)


@case
def strangers(start):
    run = start(workers=2, servers="count: 2, sync: asp")
    run.training(2)
    doors = [f"127.0.0.1:{port}" for port in ports([run.controller(), *run.servers()])]
    if len(doors) != 3:
        raise Failure(f"a controller and two servers listen at {doors}")
    # A machine so busy that a worker gets no processor for two seconds loses one as well, but not every time.
    for _ in range(3):
        lost = len(run.events("lost"))
        attack(run, doors)
        if len(run.events("lost")) == lost:
            break
    else:
        raise Failure("somebody of the run was lost to them, three times: " +
                      str([line["remark"] for line in run.journal() if " lost: " in line.get("remark", "")]))
    run.finish()
    if run.summary()["strangers"] < 2 * CONNECTIONS:
        raise Failure(f"strangers counted: {run.summary()['strangers']}")


@case
def encrypted_servers(start):
    """Beyond loopback everything is TLS."""
    with network.Namespaces() as net:
        run = start(workers=2, prefix=net.inside("a"), flags=["--interface", net.link("a"), "--orphan-after", "8s"],
                    servers="count: 2, standby: 1, sync: asp")
        net.start_worker(run)
        if len(read_text(f"{run.out}/token").strip()) != 129:
            raise Failure("the token has no fingerprint")
        for _ in run.rounds(2, workers=2):
            run.kill_servers(1)
            run.progress()
        run.finish()
        net.join_worker()
