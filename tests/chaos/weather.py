"""Kinds of weather for soak.py: what can happen to a run at any moment. Each takes the run and a source of chance, and
counts whom it hit in run.losses, by kind."""
import json
import os
import signal
import subprocess
import time

import signals
from harness import HANG_S, Failure

NOTICES = ("aws", "gcp", "azure", "sigterm")
# A front starts its controller again; five that died within ten seconds each end the run by design.
MOST_DEATHS, HEALTHY_S = 3, 11


def one(run, rng):
    run.lose("worker", rng.sample(run.workers(), min(1, len(run.workers()))))


def half(run, rng):
    run.lose("worker", run.workers()[::2])


def everybody(run, rng):
    run.lose("worker", run.workers())


def twice(run, rng):
    one(run, rng)
    time.sleep(rng.uniform(0, 0.3))
    one(run, rng)


def server(run, rng):
    run.lose("server", rng.sample(run.servers(), min(1, len(run.servers()))))


def servers_and_half(run, rng):
    run.lose("server", run.servers())
    half(run, rng)


def freeze(run, rng):
    """For good: it is given up."""
    run.lose("frozen", rng.sample(run.workers(), min(1, len(run.workers()))), signal.SIGSTOP)


def thaw_after(run, pids, seconds):
    run.lose("frozen", pids, signal.SIGSTOP)
    time.sleep(seconds)
    run.hit(pids, signal.SIGCONT)


def freeze_for_a_while(run, rng):
    everyone = run.workers() + run.servers()
    thaw_after(run, rng.sample(everyone, min(rng.randint(1, 2), len(everyone))), rng.uniform(0.2, 5))


def freeze_the_controller(run, rng):
    thaw_after(run, [run.controller()], rng.uniform(0.2, 4))


def notice(run, rng):
    everyone = run.workers() + run.servers()
    run.lose("noticed", rng.sample(everyone, min(1, len(everyone))), signal.SIGTERM)


def notice_then_kill(run, rng):
    """Whoever was told is gone before its time is over."""
    pids = rng.sample(run.workers(), min(1, len(run.workers())))
    run.lose("noticed", pids, signal.SIGTERM)
    time.sleep(rng.uniform(0, 0.2))
    run.hit(pids)


def drill(run, rng):
    """A cloud's notice through its metadata service; no drill where there is nobody to take just now."""
    lose = rng.choice(["1", "half", "all"] + ["server"] * bool(run.servers()))
    words = [*run.prefix, run.mayfly, "drill", run.out, "--lose", lose, "--notice", rng.choice(NOTICES), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANG_S, check=False)
    if done.returncode < 0:
        raise Failure(f"{' '.join(words)}: code {done.returncode}")
    if done.returncode == 0:
        run.losses["noticed"] += len(json.loads(done.stdout)["losses"])


def controller(run, rng):
    if run.controller_may_die():
        run.lose("controller", [run.controller()])


def controller_and_half(run, rng):
    controller(run, rng)
    half(run, rng)


def controller_and_server(run, rng):
    controller(run, rng)
    server(run, rng)


def resume(run, rng):
    """Front and controller, perhaps with some or all of the others."""
    most = rng.choice([0, 1, 99])
    front, *controllers = run.drivers()
    run.lose("front", [front])
    run.lose("controller", controllers)
    run.lose("worker", run.workers()[:most])
    run.lose("server", run.servers()[:most])
    run.resume()


def tell_everybody(run, rng):
    """SIGTERM to every process at once: it saves, ends well, and goes on."""
    run.losses["told"] += signals.tell_everybody(run)
    if code := run.front.wait(HANG_S):
        raise Failure(f"exit code {code} after SIGTERM to all, want 0")
    summary = run.summary()
    if summary["samples_repeated"] or summary["samples_skipped"]:
        raise Failure(f"after SIGTERM to all: {summary}")
    run.resume()


def refuse(run, rng):
    """The next machines do not start."""
    for number in range(rng.randint(1, 3)):
        with open(f"{run.folder}/refuse.{number}", "w", encoding="utf-8"):
            run.losses["refused"] += 1
    one(run, rng)


def cut(run, rng):
    """Nobody hears anybody for a while; longer than a worker's lease, perhaps."""
    loopback = [*run.prefix, "ip", "link", "set", "lo"]
    subprocess.run([*loopback, "down"], check=True)
    run.losses["cut"] += 1
    try:
        time.sleep(rng.uniform(0.2, 5))
    finally:
        subprocess.run([*loopback, "up"], check=True)


USUAL = [one] * 4 + [half] * 4 + [twice] * 3 + [everybody] * 2 + [freeze, freeze_for_a_while, freeze_the_controller, notice,
                                                                   notice_then_kill, drill, controller,
                                                                   controller_and_half, resume, tell_everybody, refuse]
SERVED = [server] * 3 + [servers_and_half, controller_and_server]


def kinds(run):
    """What can happen to this one."""
    return USUAL + (SERVED if run.served else []) + ([cut] if "netns" in run.prefix else [])


def refusing_programs(mayfly, folder):
    """A mayfly whose mayfly-train does not start for as long as REFUSALS has a file refuse.N; each stops one start."""
    os.makedirs(folder)
    above = os.path.dirname(os.path.dirname(mayfly))
    for name in ("data", "python", "share"):  # what they look for beside them
        os.symlink(f"{above}/{name}", os.path.join(os.path.dirname(folder), name))
    program = os.path.join(os.path.dirname(mayfly), "mayfly-train")
    with open(f"{folder}/mayfly-train", "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nfor file in \"$REFUSALS\"/refuse.*; do\n  rm \"$file\" 2> /dev/null && exit 1\ndone\n"
                   f"exec '{program}' \"$@\"\n")
    os.chmod(f"{folder}/mayfly-train", 0o755)
    with open(mayfly, "rb") as source, open(f"{folder}/mayfly", "wb") as copy:
        copy.write(source.read())
    os.chmod(f"{folder}/mayfly", 0o755)
    return f"{folder}/mayfly"
