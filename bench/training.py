"""What train_speed.py and recovery.py share: job files, runs of `mayfly run`, their journals. Standard library only."""
import json
import os
import shutil
import signal
import statistics
import subprocess
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORES = sorted(os.sched_getaffinity(0))
HANG_S = 300  # no wait is meant to take this long; it only ends a hang

MODELS = {
    "resnet": ("{name: resnet, depth: 20}", "{name: synthetic, samples: 50000, shape: [3, 32, 32]}"),
    "mlp": ("{name: mlp, hidden: [512, 512]}", "{name: synthetic, samples: 60000, shape: [1, 28, 28]}"),
    "gpt": ("{name: gpt, layers: 4, heads: 4, embedding: 128, context: 64}", "{name: text, files: [text]}"),
}


class Failure(Exception):
    pass


def write_job(folder, model, batch, steps, checkpoint=""):
    """Returns the path; text that a gpt learns from lies beside it."""
    os.makedirs(folder, exist_ok=True)
    network, data = MODELS[model]
    if model == "gpt":
        with open(f"{folder}/text", "wb") as file:
            file.write(b"".join(b"%d is not %d, " % (i, i * i) for i in range(200000)))
    path = f"{folder}/job.yaml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"name: bench\nobjective: {{steps: {steps}}}\ntrain:\n  model: {network}\n  data: {data}\n"
                   f"  optimiser: {{kind: sgd, rate: 0.01, momentum: 0.9}}\n  batch: {batch}\n")
        if checkpoint:
            file.write(f"  checkpoint: {{{checkpoint}}}\n")
    return path


def blas_core():
    """As src/base/cpu.cpp chooses."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = set(next((line for line in file if line.startswith("flags")), "").split())
    if {"avx512f", "avx512dq", "avx512vl"} <= flags:
        return "SkylakeX"
    return "Haswell" if "avx2" in flags else None


# glibc gives memory back and asks for it again at every step, or does not, as chance has it: 7,000 page faults and 20 % of
# a step of ResNet-20. Baselines and runs alike are told to keep it.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}


def worker_environment():
    """What the launcher gives a worker that has one core."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", **KEEP_MEMORY)
    environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if core := blas_core():
        environment.setdefault("OPENBLAS_CORETYPE", core)
    return environment


def pinned(core):
    return ["taskset", "-c", str(core)]


def started_at(pid):
    """Unix time at which a process began, to 10 ms; None where there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")


class Run:
    """One `mayfly run` in a folder of its own."""

    def __init__(self, build, folder, job, workers, cores=None):
        self.out = f"{folder}/run"
        self.offset = None  # unix time of the journal's zero
        shutil.rmtree(self.out, ignore_errors=True)
        command = [f"{build}/mayfly", "run", job, "--workers", str(workers), "--out", self.out, "-y", "--json"]
        if cores:
            command = ["taskset", "-c", ",".join(str(core) for core in cores)] + command
        with open(f"{folder}/run.err", "wb") as err:
            self.front = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err,
                                          env=dict(os.environ, **KEEP_MEMORY))
        self.error_file = f"{folder}/run.err"

    def journal(self):
        """The lines there are, without the first, which says what they are. Also watches how the journal's clock and this machine's go together: a line is written
        right after its time was taken, so the smallest difference seen is the one between the clocks."""
        path = f"{self.out}/journal.jsonl"
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
                written = os.fstat(file.fileno()).st_mtime
        except OSError:
            return []
        lines = [json.loads(line) for line in text.split("\n")[1:-1]]
        if lines:
            apart = written - lines[-1]["t_s"]
            self.offset = apart if self.offset is None else min(self.offset, apart)
        return lines

    def steps(self):
        """(time, samples committed by then, samples of this line) of each line that says so."""
        return [(line["t_s"], line["first_sample"] + line["samples"], line["samples"]) for line in self.journal()
                if line.get("event") == "committed" and "ignored" not in line]

    def committed(self):
        steps = self.steps()
        return steps[-1][1] if steps else 0

    def processes(self):
        try:
            with open(f"{self.out}/processes.json", encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return {"controller": 0, "front": 0, "workers": []}

    def workers(self):
        """{worker: process number} of those that said hello and are not known to be gone."""
        return {entry["worker"]: entry["pid"] for entry in self.processes()["workers"] if entry["pid"] > 0}

    def members(self):
        """How many train together now, and whether anything was committed since they began."""
        lines = self.journal()
        assigned = [i for i, line in enumerate(lines) if line.get("command") in ("assign", "pause")]
        if not assigned:
            return 0, False
        now = lines[assigned[-1]:]
        return len(now[0].get("members", [])), any(line.get("event") == "committed" for line in now)

    def wait(self, what, predicate, limit_s=HANG_S, pause_s=0.02):
        end = time.monotonic() + limit_s
        while not (value := predicate()):
            if self.front.poll() is not None:
                raise Failure(f"the run ended with code {self.front.returncode} while waiting for {what}: {self.errors()}")
            if time.monotonic() > end:
                raise Failure(f"waited {limit_s} s for {what}: {self.errors()}")
            time.sleep(pause_s)
        return value

    def wait_training(self, count):
        self.wait(f"{count} workers that train", lambda: self.members() == (count, True))

    def errors(self):
        with open(self.error_file, encoding="utf-8", errors="replace") as file:
            return " / ".join(file.read().splitlines()[-5:])

    def finish(self):
        if self.front.wait(HANG_S) != 0:
            raise Failure(f"the run ended with code {self.front.returncode}: {self.errors()}")

    def end(self):
        """Ends what this one started, whatever state it is in."""
        for _ in range(2):  # once saves, twice ends at once
            if self.front.poll() is None:
                self.front.send_signal(signal.SIGINT)
                time.sleep(0.2)
        try:
            self.front.wait(20)
        except subprocess.TimeoutExpired:
            for pid in [*self.workers().values(), self.processes()["controller"], self.front.pid]:
                if pid > 0:
                    os.kill(pid, signal.SIGKILL)
            self.front.wait(20)


def step_seconds(steps, batch, warm_up):
    """Of the lines of a journal, without those that end within the first `warm_up` steps."""
    late = [step for step in steps if step[1] >= warm_up * batch]
    if len(late) < 2:
        raise Failure(f"{len(late)} lines of steps after the warm-up, want two and more")
    (begin, first, _), (end, last, _) = late[0], late[-1]
    return (end - begin) / ((last - first) / batch)


def summary(values, unit="s", digits=3):
    return f"median {statistics.median(values):.{digits}f} {unit}, worst {max(values):.{digits}f} {unit}"
