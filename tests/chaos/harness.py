"""Real runs of real processes, found by their folder and killed by hand. Standard library only.

A Run is one `mayfly run` in a folder of its own. What it trains is the counting job (weights that say how often each
sample was applied) or a small network on drawn digits. After the weather a case makes for it, check() looks at what is
left with nothing of mayfly's own: the weights, the summary, processes, ports and files."""
import array
import collections
import glob
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import threading
import time

HANG_S = 300  # no wait is meant to take long; this only ends a hang

COUNT_JOB = """name: count
objective: {{epochs: {epochs}}}
train:
  model: {{name: count}}
  data: {{name: count, samples: {samples}{loader}}}
  optimiser: {{kind: sgd, rate: 1}}
  reduction: sum
  batch: {batch}
  checkpoint: {{{checkpoint}}}
{servers}"""
DIGITS_JOB = """name: digits
objective: {{epochs: {epochs}}}
train:
  model: {{name: mlp, hidden: [64]}}
  data: {{name: digits, samples: {samples}}}
  optimiser: {{kind: sgd, rate: 0.05, momentum: 0.9}}
  batch: {batch}
  checkpoint: {{{checkpoint}}}
{servers}"""


class Failure(Exception):
    pass


class Skipped(Exception):
    pass


class Tally:
    """Losses over all cases, which run in threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.losses = 0

    def add(self, count):
        with self.lock:
            self.losses += count


TALLY = Tally()


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def read_bytes(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def tensors(path):
    """Name -> (dtype, bytes) of a safetensors file; everything that does not fit is a Failure."""
    data = read_bytes(path)
    if len(data) < 8:
        raise Failure(f"{path}: {len(data)} bytes")
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    found = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            if not 0 <= begin <= end <= len(body):
                raise Failure(f"{path}: {name} lies outside the file")
            found[name] = (tensor["dtype"], body[begin:end])
    return found


def alive(pid):
    """Zombies are not: they wait for their parent, and hold nothing."""
    state = read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(state) and state[0] not in "ZX"


class Run:
    def __init__(self, options, name, workers=3, job=COUNT_JOB, samples=200_000, epochs=None, batch=1000,
                 checkpoint="every: 2s", servers="", loader="", flags=(), prefix=(), prepare=None, out="run"):
        self.mayfly = options.mayfly
        self.folder = os.path.join(options.folder, name)
        self.out = os.path.join(self.folder, out)
        self.samples, self.epochs, self.counts = samples, epochs, job is COUNT_JOB
        self.prefix = list(prefix)
        self.random = random.Random(f"{options.seed} {name}")
        self.codes, self.told = [], set()
        os.makedirs(self.folder)
        job_file = os.path.join(self.folder, "job.yaml")
        with open(job_file, "w", encoding="utf-8") as file:
            file.write(job.format(samples=samples, epochs=epochs or 1_000_000, batch=batch, checkpoint=checkpoint,
                                  loader=f", loader: {{{loader}}}" if loader else "",
                                  servers=f"  servers: {{{servers}}}\n" if servers else ""))
        if prepare:
            prepare(self.folder)
        self.front = None
        self.start(["run", job_file, "--workers", str(workers), "--out", self.out, "-y", "--json", *flags])

    # Starting, watching.

    def start(self, arguments):
        number = len(self.codes)
        with open(f"{self.folder}/out.{number}", "wb") as out, open(f"{self.folder}/err.{number}", "wb") as err:
            self.front = subprocess.Popen(self.prefix + [self.mayfly, *arguments], stdin=subprocess.DEVNULL, stdout=out,
                                          stderr=err, start_new_session=True)

    def resume(self):
        """After the front has ended, one way or the other."""
        self.codes.append(self.front.wait(HANG_S))
        self.start(["resume", self.out, "--json"])

    def wait(self, what, predicate, limit_s=HANG_S, pause_s=0.02, may_end=False):
        end = time.monotonic() + limit_s
        while True:
            value = predicate()
            if value:
                return value
            if not may_end and self.front.poll() is not None:
                if value := predicate():
                    return value
                raise Failure(f"the run ended with code {self.front.returncode} while waiting for {what}")
            if time.monotonic() > end:
                raise Failure(f"waited {limit_s} s for {what}")
            if pause_s:
                time.sleep(pause_s)

    def glimpse(self, predicate):
        """The first moment at which it holds; None if the run ended without one being seen."""
        while self.front.poll() is None:
            if value := predicate():
                return value
        return None

    def processes(self):
        try:
            return json.loads(read_text(f"{self.out}/processes.json"))
        except ValueError:
            return {"controller": 0, "front": 0, "workers": [], "servers": []}

    def workers(self):
        """Process numbers of those that said hello and live."""
        return [w["pid"] for w in self.processes()["workers"] if w["pid"] > 0 and alive(w["pid"])]

    def servers(self):
        return [s["pid"] for s in self.processes()["servers"] if s["pid"] > 0 and alive(s["pid"])]

    def controller(self):
        pid = self.processes()["controller"]
        return pid if pid and alive(pid) else 0

    def drivers(self):
        """The front, stopped so that it starts nobody else, and its controllers: one that it has just started is not
        in processes.json yet, has its front's command line, and would drive the run against the next front."""
        front = self.front.pid
        if self.front.poll() is None:
            os.kill(front, signal.SIGSTOP)
            self.wait("the front to stand still", lambda: " T " in read_text(f"/proc/{front}/stat"), pause_s=0, may_end=True)
        call = read_bytes(f"/proc/{front}/cmdline")
        young = [int(pid) for pid in read_text(f"/proc/{front}/task/{front}/children").split()]
        return [front] + sorted({self.controller(), *(pid for pid in young if read_bytes(f"/proc/{pid}/cmdline") == call)})

    def journal(self):
        lines = []
        for line in read_text(f"{self.out}/journal.jsonl").split("\n")[:-1]:
            lines.append(json.loads(line))
        return lines

    def events(self, kind):
        return [line for line in self.journal() if line.get("event") == kind and "ignored" not in line]

    def committed(self):
        steps = self.events("committed")
        return int(steps[-1]["first_sample"] + steps[-1]["samples"]) if steps else 0

    def target(self):
        """Samples to train; without an end, so much that it is never reached."""
        return self.samples * (self.epochs or 1_000_000)

    def progress(self, samples=1, may_end=False):
        """Waits until so many more are committed, or all are."""
        goal = min(self.target(), self.committed() + samples)
        self.wait(f"{goal} samples", lambda: self.committed() >= goal, may_end=may_end)

    def until(self, epochs):
        goal = int(self.samples * epochs)
        self.wait(f"{goal} samples", lambda: self.committed() >= goal)

    def crowd(self, count):
        """Waits until so many workers are connected; gives their process numbers."""
        return self.wait(f"{count} workers", lambda: len(self.workers()) >= count and self.workers())

    def trains(self, count):
        """So many train together, and something was committed with them."""
        lines = self.journal()
        at = [i for i, line in enumerate(lines) if line.get("command") in ("assign", "pause")]
        lines = lines[at[-1] :] if at else []
        events = {line.get("event") for line in lines}  # who is lost is so before anything new is assigned
        return bool(lines) and len(lines[0].get("members", [])) >= count and "committed" in events and "lost" not in events

    def training(self, count):
        self.wait(f"{count} workers that train", lambda: self.trains(count))

    def settle(self):
        """Waits until whoever was killed is known to be gone, or the run has ended."""
        self.wait("the dead to be noticed", lambda: self.front.poll() is not None or self.controller() and all(
            alive(w["pid"]) for kind in ("workers", "servers") for w in self.processes()[kind] if w["pid"] > 0),
                  may_end=True)

    def rounds(self, most, workers):
        """Goes on whenever so many train. A run with an end may reach it first."""
        for number in range(most):
            self.settle()
            self.wait(f"{workers} workers that train", lambda: self.trains(workers) or self.over(), may_end=True)
            if self.over():
                return
            yield number

    def over(self):
        return self.front.poll() is not None or self.committed() >= self.target()

    def partial(self):
        """The folder of a checkpoint that is being written."""
        found = glob.glob(f"{glob.escape(self.out)}/checkpoints/.checkpoint-*.partial")
        return found[0] if found else None

    def checkpoint_writer(self):
        """The process that has it open; 0 where the moment has passed."""
        for pid in self.workers() + self.servers():
            for link in glob.glob(f"/proc/{pid}/fd/*"):
                try:
                    if ".partial" in os.readlink(link):
                        return pid
                except OSError:
                    pass
        return 0

    # Weather.

    def hit(self, pids, number=signal.SIGKILL):
        """Counts those that were there to be hit. Who is killed is gone when this returns: on a busy machine a process
        lives on for a moment, and would be hit again."""
        hit = []
        for pid in pids if isinstance(pids, (list, tuple)) else [pids]:
            if not pid or not alive(pid):
                continue
            try:
                os.kill(pid, number)
                hit.append(pid)
            except ProcessLookupError:
                pass
        if number == signal.SIGKILL:
            self.wait("the killed to be gone", lambda: not any(map(alive, hit)), pause_s=0, may_end=True)
        count = len(hit) if number != signal.SIGCONT else 0
        TALLY.add(count)
        return count

    def kill_workers(self, count=1, number=signal.SIGKILL):
        pids = self.workers()
        return self.hit(self.random.sample(pids, min(count, len(pids))), number)

    def kill_servers(self, count=1, number=signal.SIGKILL):
        pids = self.servers()
        return self.hit(self.random.sample(pids, min(count, len(pids))), number)

    def lose_controllers(self):
        for share in (0.05, 0.3, 0.6):
            self.until(share)
            first = self.controller()
            self.hit(first)
            self.wait("another controller", lambda: self.controller() not in (0, first))
            self.progress()

    def lose_everything(self):
        for share in (0.1, 0.5):
            self.until(share)
            self.hit([*self.drivers(), *self.workers(), *self.servers()])
            self.resume()
            self.progress()

    # The end.

    def finish(self):
        """Lets it train to its end, or stops it where it has none; then looks at what it left."""
        if not self.epochs:
            self.settle()
            self.progress()
            self.training(1)
            self.front.send_signal(signal.SIGINT)
        return self.end()

    def end(self, settled=True):
        """Waits until it is over, and looks at what it left. Not settled: it may end with a checkpoint from between the steps of
        workers that do not wait for each other."""
        try:
            code = self.front.wait(HANG_S)
        except subprocess.TimeoutExpired:
            raise Failure(f"not finished after {HANG_S} s: {self.committed()} of {self.target()} samples") from None
        if code != 0:
            raise Failure(f"exit code {code}, want 0")
        self.check(settled)
        return self.summary()

    def summary(self):
        return json.loads(read_text(f"{self.out}/summary.json"))

    def check(self, settled=True):
        summary = self.summary()
        wanted = {"samples_repeated": 0, "samples_skipped": 0, "end": "trained" if self.epochs else "stopped"}
        if self.epochs:
            wanted["samples"] = self.target()
        for key, want in wanted.items():
            if summary[key] != want:
                raise Failure(f"summary: {key} is {summary[key]}, want {want}")
        if summary["samples"] == 0:
            raise Failure("nothing was trained")
        printed = json.loads(read_text(f"{self.folder}/out.{len(self.codes)}"))
        if printed != summary:
            raise Failure("what was printed is not what summary.json holds")
        self.check_weights(summary["checkpoint"], summary["samples"], settled)
        self.check_nothing_left()

    def check_weights(self, checkpoint, trained, settled=True):
        state = json.loads(read_text(f"{checkpoint}/trainer_state.json"))
        ledger = [(span["first"], span["first"] + span["count"]) for span in state["ledger"]]
        whole = ledger == [(0, trained)]
        apart = all(before[1] < after[0] for before, after in zip(ledger, ledger[1:]))
        total = sum(end - first for first, end in ledger)
        if state["sample"] != trained or total != trained or not (whole or apart and not settled):
            raise Failure(f"{checkpoint} is not the last: sample {state['sample']}, ledger {state['ledger']}")
        model = tensors(f"{checkpoint}/model.safetensors")
        if not self.counts:
            return
        weights = array.array("f", b"".join(data for dtype, data in model.values() if dtype == "F32"))
        seen = {value: weights.count(value) for value in sorted(set(weights))}
        covered = self.covered(ledger)
        if sum(0 < count < self.samples for count in covered.values()) > 1:
            # Which sample is at a place differs from epoch to epoch: of two that are there in part only bounds are known.
            full = sum(count == self.samples for count in covered.values())
            if sum(value * count for value, count in seen.items()) != total or min(seen) < full or max(seen) > len(covered):
                raise Failure(f"weights (value: how many) are {seen}, want {total} in all, {full} to {len(covered)} each")
            return
        # Every sample of the ledger once, by its place in the epoch: the values change where a span begins or ends.
        changes = collections.Counter({0: 0})
        for first, end in ledger:
            changes[0] += end // self.samples - first // self.samples
            changes[first % self.samples] += 1
            changes[end % self.samples] -= 1
        places = sorted(changes)
        want, times = collections.Counter(), 0
        for place, after in zip(places, places[1:] + [self.samples]):
            times += changes[place]
            if after > place:
                want[times] += after - place
        if seen != want:
            raise Failure(f"weights (value: how many) are {seen}, want {want}")

    def covered(self, ledger):
        """epoch -> how many of its places the ledger has."""
        counts = collections.Counter()
        for first, end in ledger:
            for epoch in range(first // self.samples, -(-end // self.samples)):
                counts[epoch] += min(end, (epoch + 1) * self.samples) - max(first, epoch * self.samples)
        return counts

    def owned(self):
        """Every living process that carries this run's token or folder, but the front."""
        token = read_text(f"{self.out}/token").strip().encode()
        marks = [mark for mark in (token and b"MAYFLY_TOKEN=" + token, self.out.encode()) if mark]
        found = []
        for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
            if pid == os.getpid() or pid == self.front.pid or not alive(pid):
                continue
            text = read_bytes(f"/proc/{pid}/environ") + b"\0" + read_bytes(f"/proc/{pid}/cmdline")
            if any(mark in text for mark in marks) and b"mayfly" in read_bytes(f"/proc/{pid}/cmdline"):
                found.append(pid)
        return found

    def listening(self):
        port = read_text(f"{self.out}/address").strip().rpartition(":")[2]
        if not port:
            return False
        table = subprocess.run(self.prefix + ["cat", "/proc/net/tcp", "/proc/net/tcp6"], capture_output=True, text=True,
                               check=False).stdout
        rows = [line.split() for line in table.splitlines()]
        return any(len(row) > 3 and row[1].endswith(f":{int(port):04X}") and row[3] == "0A" for row in rows)

    def check_nothing_left(self):
        # A worker that was cut off gives up after 30 s without a word (docs/protocol.md).
        self.wait("its processes to end", lambda: not self.owned(), limit_s=45, may_end=True)
        if self.listening():
            raise Failure("its port is still open")
        left = [os.path.join(folder, name) for folder, folders, files in os.walk(self.out) for name in folders + files
                if "partial" in name or name.endswith((".tmp", "~"))]
        if left:
            raise Failure(f"left behind: {left}")

    def clear(self):
        """Ends whatever is left of it; only what it started."""
        for pid in [self.front.pid] * (self.front.poll() is None) + self.owned():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.front.wait(HANG_S)

    def story(self):
        """For a person who has to find out what went wrong."""
        parts = [f"folder: {self.folder}"]
        for path in sorted(glob.glob(f"{self.folder}/err.*")) + [f"{self.out}/journal.jsonl"]:
            parts.append(f"--- {path}\n" + "\n".join(read_text(path).splitlines()[-25:]))
        for path in sorted(glob.glob(f"{self.out}/logs/*"), key=os.path.getmtime)[-4:]:
            parts.append(f"--- {path}\n" + "\n".join(read_text(path).splitlines()[-8:]))
        return "\n".join(parts)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
