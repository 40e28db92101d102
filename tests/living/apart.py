#!/usr/bin/python3
"""Members of a run that reach the controller but not each other: a controller and four machines, each a network namespace on
one switch, and frames that go to nobody. Usage: apart.py path/to/mayfly [case]"""
import itertools
import os
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import expect, play, read  # noqa: E402
from living import Place  # noqa: E402

SIDES = "abcde"  # the controller's, and four others'
NUMBERS = itertools.count(os.getpid() % 100 * 100)
NOBODY = "02:00:00:00:00:99"
SCRIPT = """import time
import torch, mayfly
torch.manual_seed(1)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
for batch in mayfly.batches([torch.tensor([float(i)]) for i in range(20000)]):
    time.sleep(0.02)
    mayfly.step(model, optimizer, model(batch).square().mean())
"""


def command(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"{' '.join(words)}: {done.stderr.strip()}"


class Network:
    """Gone at the end with everything in it."""

    def __init__(self):
        self.number = next(NUMBERS)
        self.guests = []

    def name(self, side):
        return f"mayfly-apart-{self.number}-{side}"

    def inside(self, side):
        return ["ip", "netns", "exec", self.name(side)]

    def address(self, side):
        return f"10.78.0.{SIDES.index(side) + 1}"

    def lay(self):
        """What is missing here; empty: it is there."""
        steps = [("ip", "netns", "add", self.name(side)) for side in SIDES]
        steps += [(*self.inside(side), "ip", "link", "set", "lo", "up") for side in SIDES]
        switch = self.inside("a")
        steps += [(*switch, "ip", "link", "add", "switch", "type", "bridge"), (*switch, "ip", "link", "set", "switch", "up"),
                  (*switch, "ip", "address", "add", self.address("a") + "/24", "dev", "switch")]
        for side in SIDES[1:]:
            steps += [(*switch, "ip", "link", "add", f"to-{side}", "type", "veth", "peer", "name", "net", "netns", self.name(side)),
                      (*switch, "ip", "link", "set", f"to-{side}", "master", "switch", "up"),
                      (*self.inside(side), "ip", "address", "add", self.address(side) + "/24", "dev", "net"),
                      (*self.inside(side), "ip", "link", "set", "net", "up")]
        return next((failure for step in steps if (failure := command(*step))), "")

    def start(self, place, side, role="worker", program=()):
        address = place.wait("an address", lambda: read(f"{place.out}/address").strip())
        words = [*self.inside(side), place.mayfly, "worker", "--join", address, "--token-file", f"{place.out}/token",
                 "--interface", "net", "--role", role, "--notices", "none"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MAYFLY_HOST": self.address(side),
                       "PYTHONPATH": os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")}
        with open(f"{place.folder}/{role}-{side}.log", "wb") as log:
            self.guests.append(subprocess.Popen([*words, *(["--", *program] if program else [])], env=environment,
                                                cwd=place.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def cut(self, one, other):
        """What `one` sends to the other gets lost; what comes the other way does not."""
        failure = command(*self.inside(one), "ip", "neighbour", "replace", self.address(other), "lladdr", NOBODY, "dev", "net",
                          "nud", "permanent")
        expect(not failure, failure)

    def mend(self, one, other):
        command(*self.inside(one), "ip", "neighbour", "delete", self.address(other), "dev", "net")

    def clear(self):
        for guest in self.guests:
            guest.kill()
            guest.wait()
        for side in SIDES:
            command("ip", "netns", "delete", self.name(side))


class Apart(Place):
    def __init__(self, mayfly, folder):
        super().__init__(mayfly, folder)
        self.network = Network()
        missing = "needs root" if os.geteuid() != 0 else self.network.lay()
        self.front = None
        self.skipped = missing

    def run(self, workers):
        words = [*self.network.inside("a"), self.mayfly, "run", self.job, "--engine", "none", "--workers", str(workers),
                 "--out", self.out, "-y", "--interface", "switch", "--private-network"]
        with open(f"{self.folder}/run.log", "wb") as log:
            self.front = subprocess.Popen(words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def trains_with(self, workers):
        self.wait(f"{workers} workers that train", lambda: self.training() == workers and self.advances())

    def training(self):
        return sum(m["state"] == "training" for m in self.status()["machines"])

    def advances(self):
        before = self.status()["samples"]
        time.sleep(0.5)
        return self.status()["samples"] > before

    def goes_on_after(self, act, workers):
        """Training stops, and goes on with so many; the time in between is told, not judged."""
        act()
        start = time.monotonic()
        self.wait("somebody left out", lambda: "left out for" in read(f"{self.out}/journal.jsonl"))
        self.trains_with(workers)
        print(f"        goes on with {workers} after {time.monotonic() - start:.1f} s", flush=True)

    def stops_exactly(self):
        self.front.terminate()
        expect(self.front.wait(60) == 0, f"{read(self.folder + '/run.log')[-800:]}")
        summary = read(f"{self.out}/summary.json")
        expect('"samples_repeated": 0' in summary and '"samples_skipped": 0' in summary, summary)

    def clear(self):
        if self.front is not None:
            self.front.kill()
            self.front.wait()
        self.network.clear()


def a_cable_between_two_workers_is_cut_one_way(place):
    place.run(3)
    for side in "bcd":
        place.network.start(place, side)
    place.trains_with(3)
    place.goes_on_after(lambda: place.network.cut("b", "d"), 2)
    place.network.mend("b", "d")
    place.trains_with(3)  # tried again
    place.stops_exactly()


def a_newcomer_that_reaches_nobody_stops_nobody(place):
    place.run(3)
    for side in "bc":
        place.network.start(place, side)
    place.trains_with(2)
    for other in "bc":
        place.network.cut("d", other)
        place.network.cut(other, "d")
    place.goes_on_after(lambda: place.network.start(place, "d"), 2)
    place.stops_exactly()


def a_worker_that_does_not_reach_a_server_is_left_out(place):
    with open(place.job, "a", encoding="utf-8") as file:
        file.write("  servers: {count: 1, sync: bsp}\n")
    place.run(2)
    place.network.start(place, "b", role="server")
    for side in "cd":
        place.network.start(place, side)
    place.trains_with(2)
    place.goes_on_after(lambda: place.network.cut("d", "b"), 1)
    place.network.mend("d", "b")
    place.trains_with(2)
    place.stops_exactly()


def scripts_do_the_same(place):
    with open(f"{place.folder}/train.py", "w", encoding="utf-8") as file:
        file.write(SCRIPT)
    with open(place.job, "w", encoding="utf-8") as file:
        file.write(f"name: script\nrun: /usr/bin/python3 {place.folder}/train.py\nobjective: {{epochs: 100000}}\n"
                   "train: {model: {name: script}, batch: 12, checkpoint: {every: 1s}}\n")
    place.run(3)
    for side in "bcd":
        place.network.start(place, side, program=["/usr/bin/python3", f"{place.folder}/train.py"])
    place.trains_with(3)
    place.goes_on_after(lambda: place.network.cut("c", "d"), 2)
    place.stops_exactly()


CASES = [a_cable_between_two_workers_is_cut_one_way, a_newcomer_that_reaches_nobody_stops_nobody,
         a_worker_that_does_not_reach_a_server_is_left_out, scripts_do_the_same]


def main():
    mayfly = os.path.abspath(sys.argv[1])
    only = sys.argv[2] if len(sys.argv) > 2 else ""

    def unless_skipped(case):
        def played(place):
            if place.skipped:
                print(f"SKIPPED {case.__name__}: no network namespaces here: {place.skipped}", flush=True)
            else:
                case(place)

        played.__name__ = case.__name__
        return played

    return play([unless_skipped(case) for case in CASES], only, lambda case, folder: Apart(mayfly, folder),
                clear=lambda place: place.clear(), story=lambda place: f"\n{read(place.folder + '/run.log')[-1500:]}")


if __name__ == "__main__":
    sys.exit(main())
