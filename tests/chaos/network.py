"""Workers started by hand, and two network namespaces with a cable between them that can be cut."""
import itertools
import os
import subprocess

from harness import HANG_S, Failure, Skipped, read_text

NUMBERS = itertools.count(os.getpid() % 200 * 100)


def worker(run, interface, prefix=()):
    """mayfly-train beside the run's mayfly, joining it."""
    program = os.path.join(os.path.dirname(run.mayfly), "mayfly-train")
    address = run.wait("an address", lambda: read_text(f"{run.out}/address").strip())
    environment = {**os.environ, "MAYFLY_TOKEN": read_text(f"{run.out}/token").strip(), "OMP_NUM_THREADS": "1"}
    with open(f"{run.folder}/guest.log", "wb") as log:
        return subprocess.Popen([*prefix, program, "worker", "--join", address, "--interface", interface],
                                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def enter(run, interface, prefix=()):
    """A worker by hand that has got a place. A run holds as many as --workers says and sends others away, so one of its
    own is killed and this one is there before the replacement."""
    for _ in range(16):
        run.training(1)
        run.kill_workers(1)
        guest = worker(run, interface, prefix)
        run.wait("an answer to the guest", lambda: guest.poll() is not None or
                 "formation" in read_text(f"{run.folder}/guest.log"))
        if guest.poll() is None:
            return guest
        run.settle()
    raise Failure("a worker by hand never got a place")


def command(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False)


class Namespaces:
    """a: the run; b: a worker. Gone at the end with everything in them."""

    def __init__(self):
        self.number = next(NUMBERS)
        self.guest = None

    def name(self, side):
        return f"mayfly-chaos-{self.number}-{side}"

    def link(self, side):
        return f"mf{self.number}{side}"

    def inside(self, side):
        return ["ip", "netns", "exec", self.name(side)]

    def __enter__(self):
        if os.geteuid() != 0:
            raise Skipped("needs root to make network namespaces")
        made = command("ip", "netns", "add", self.name("a"))
        if made.returncode:
            raise Skipped(f"no network namespaces here: {made.stderr.strip()}")
        try:
            self.lay_cable()
        except Skipped:
            self.__exit__()
            raise
        return self

    def lay_cable(self):
        steps = [("ip", "netns", "add", self.name("b")),
                 ("ip", "link", "add", self.link("a"), "type", "veth", "peer", "name", self.link("b"))]
        for side, address in (("a", "10.77.0.1/24"), ("b", "10.77.0.2/24")):
            steps += [("ip", "link", "set", self.link(side), "netns", self.name(side)),
                      (*self.inside(side), "ip", "address", "add", address, "dev", self.link(side)),
                      (*self.inside(side), "ip", "link", "set", self.link(side), "up"),
                      (*self.inside(side), "ip", "link", "set", "lo", "up")]
        for step in steps:
            done = command(*step)
            if done.returncode:
                raise Skipped(f"{' '.join(step)}: {done.stderr.strip()}")

    def start_worker(self, run):
        self.guest = enter(run, self.link("b"), self.inside("b"))

    def join_worker(self):
        return self.guest.wait(HANG_S)

    def cut(self):
        command(*self.inside("b"), "ip", "link", "set", self.link("b"), "down")

    def mend(self):
        command(*self.inside("b"), "ip", "link", "set", self.link("b"), "up")

    def __exit__(self, *_):
        if self.guest and self.guest.poll() is None:
            self.guest.kill()
            self.guest.wait(HANG_S)
        command("ip", "link", "delete", self.link("a"))
        for side in "ab":
            command("ip", "netns", "delete", self.name(side))
