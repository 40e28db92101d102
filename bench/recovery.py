#!/usr/bin/python3
"""recovery.py [BUILD] [--times N] [--only killed,torchrun,silent,zero] [--folder F]: what losses cost a run of ResNet-20 on two
workers. All times come from the journal of a run (torchrun: from the log of its steps) and from when the signal was sent."""
import argparse
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import training

BATCH = 32
WARM_UP = 20
FOREVER = 10**7
CALM_S = 3  # undisturbed, before each loss, to know what a step takes


class Table:
    def __init__(self, title, columns):
        print(f"\n{title}:\n\n| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns), flush=True)

    def row(self, *values):
        print("| " + " | ".join(f"{v:.3f}" if isinstance(v, float) else str(v) for v in values) + " |", flush=True)


def normal_step(steps, before, batch):
    """Seconds a step over the last of an undisturbed time."""
    calm = [step for step in steps if before - CALM_S <= step[0] <= before]
    return training.step_seconds(calm, batch, 0)


def next_commit(run, when):
    """Time of the first step that was committed after this moment of the journal and that it could not have seen coming:
    the first of a new generation."""
    lines = run.journal()
    for i, line in enumerate(lines):
        if line.get("command") == "assign" and line["t_s"] >= when:
            later = [l["t_s"] for l in lines[i:] if l.get("event") == "committed" and l["generation"] == line["generation"]]
            if later:
                return later[0]
    return None


def seconds_behind(steps, when, until, rate):
    """How much later the run is at `until` than if it had gone on at this rate since `when`."""
    begin = max(step[1] for step in steps if step[0] <= when)
    time_of_begin = max(step[0] for step in steps if step[0] <= when)
    end, samples = next((step[0], step[1]) for step in steps if step[0] >= until)
    return (end - time_of_begin) - (samples - begin) / rate


def losses(run, times, hurt):
    """Hurts the run again and again, each time when both workers train. Yields (when, all that is known afterwards)."""
    for _ in range(times):
        run.wait_training(2)
        time.sleep(CALM_S)
        run.wait_training(2)
        run.journal()
        sent = time.time()
        pids = hurt(run)
        run.wait("the next step", lambda at=sent: next_commit(run, at - run.offset - 0.02))
        yield sent - run.offset, pids


def killed(build, folder, times):
    table = Table("One of two workers killed without notice, replaced after a second",
                  ["loss", "step s", "kill to next step s", "lost s", "lost when the new one joins s",
                   "behind in all s, one missing meanwhile"])
    run = training.Run(build, folder, training.write_job(folder, "resnet", BATCH, FOREVER), 2)
    lost = []

    def kill_one(of):
        pid = list(of.workers().values())[-1]
        os.kill(pid, signal.SIGKILL)
        return [pid]

    try:
        run.wait("a warm-up", lambda: run.committed() > WARM_UP * BATCH)
        for number, (when, _) in enumerate(losses(run, times, kill_one)):
            step = normal_step(run.steps(), when, BATCH)
            gap = next_commit(run, when - 0.02) - when
            run.wait_training(2)
            time.sleep(1)
            lost.append(gap - step)
            rejoin, until = rejoin_cost(run, when)
            behind = seconds_behind(run.steps(), when, until, BATCH / step)
            table.row(number + 1, step, gap, lost[-1], rejoin, behind)
    finally:
        run.end()
    return lost


def rejoin_cost(run, when):
    """Between the last step without the new worker and the first with it, less that step; and when that was."""
    lines = [line for line in run.journal() if line["t_s"] >= when]
    joined = next(i for i, line in enumerate(lines) if line.get("command") == "assign" and len(line["members"]) == 2)
    generation = lines[joined]["generation"]
    commits = [line for line in lines if line.get("event") == "committed"]
    first = next(line for line in commits if line["generation"] == generation)
    last = [line for line in commits if line["generation"] < generation][-1]
    after = [(line["t_s"], line["first_sample"] + line["samples"], 0) for line in commits if line["generation"] == generation]
    return first["t_s"] - last["t_s"] - training.step_seconds(after, BATCH, 0), first["t_s"]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Elastic:
    """The same training under torchrun."""

    def __init__(self, folder, every, flags):
        self.folder = folder
        os.makedirs(folder)
        command = ["/usr/bin/torchrun", "-r", "9:1", "-t", "9:1", "--nproc_per_node=2", "--max_restarts=1000", *flags,
                   "--rdzv_backend=c10d", f"--rdzv_endpoint=127.0.0.1:{free_port()}", "--rdzv_id=bench",
                   f"{training.SOURCE}/bench/torchrun_elastic.py", folder, str(BATCH), str(every)]
        with open(f"{folder}/log", "wb") as log:
            self.front = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          env=dict(training.worker_environment(), GLOO_SOCKET_IFNAME="lo"))

    def read(self, name):
        try:
            with open(f"{self.folder}/{name}", encoding="utf-8") as file:
                return [line.split() for line in file.read().split("\n")[:-1]]
        except OSError:
            return []

    def steps(self):
        """(time, step), as they were done: after a restart steps come again."""
        return [(float(when), int(step)) for step, when in self.read("steps")]

    def wait(self, what, predicate):
        end = time.monotonic() + training.HANG_S
        while not (value := predicate()):
            if self.front.poll() is not None or time.monotonic() > end:
                raise training.Failure(f"torchrun: waited for {what}; see {self.folder}/log")
            time.sleep(0.02)
        return value

    def newest(self, rank):
        rows = [row for row in self.read("pids") if int(row[0]) == rank]
        return int(rows[-1][1]) if rows else 0

    def end(self):
        self.front.terminate()
        try:
            self.front.wait(30)
        except subprocess.TimeoutExpired:
            for pid in (self.newest(0), self.newest(1)):
                if training.started_at(pid):
                    os.kill(pid, signal.SIGKILL)
            self.front.kill()
            self.front.wait(30)


def torchrun(folder, times, every, flags, title):
    table = Table(title, ["loss", "step s", "steps done again", "kill to next new step s", "lost s"])
    group = Elastic(folder, every, flags)
    lost = []
    try:
        for number in range(times):
            begun = len(group.steps())
            group.wait("steps", lambda n=begun: len(group.steps()) > n + WARM_UP)
            time.sleep(CALM_S)
            calm = [step for step in group.steps() if step[0] >= time.time() - CALM_S]
            step = (calm[-1][0] - calm[0][0]) / (calm[-1][1] - calm[0][1])
            victim = group.newest(1)
            sent = time.time()
            os.kill(victim, signal.SIGKILL)
            done = max(s[1] for s in group.steps() if s[0] <= sent)
            new = group.wait("a new step", lambda at=sent, n=done: [s for s in group.steps() if s[0] > at + 0.5 and s[1] > n])
            again = len({s[1] for s in group.steps() if s[0] > sent + 0.5 and s[1] <= done})
            lost.append(new[0][0] - sent - step)
            table.row(number + 1, step, again, new[0][0] - sent, lost[-1])
    finally:
        group.end()
    return lost


def silent(build, folder, times):
    table = Table("One of two workers frozen (SIGSTOP)", ["loss", "freeze to next step s"])
    run = training.Run(build, folder, training.write_job(folder, "resnet", BATCH, FOREVER), 2)
    waits = []

    def freeze_one(of):
        pid = list(of.workers().values())[-1]
        os.kill(pid, signal.SIGSTOP)
        return [pid]

    try:
        run.wait("a warm-up", lambda: run.committed() > WARM_UP * BATCH)
        for number, (when, _) in enumerate(losses(run, times, freeze_one)):
            waits.append(next_commit(run, when - 0.02) - when)
            table.row(number + 1, waits[-1])
    finally:
        run.end()
    return waits


def process_start(build):
    """Seconds until main() of a worker's program: five tries, the median."""
    tries = []
    for _ in range(5):
        begin = time.monotonic()
        subprocess.run(training.pinned(training.CORES[0]) + [f"{build}/mayfly-train", "--version"], check=True,
                       env=training.worker_environment(), stdout=subprocess.DEVNULL)
        tries.append(time.monotonic() - begin)
    return statistics.median(tries)


def load_seconds(run):
    """What the worker that was ready first, of the newest two, says about its loading."""
    logs = sorted(os.listdir(f"{run.out}/logs"), key=lambda name: int(re.findall(r"\d+", name)[0]))[-2:]
    found = []
    for name in logs:
        with open(f"{run.out}/logs/{name}", encoding="utf-8") as file:
            found += [float(number) for number in re.findall(r"loaded in ([\d.]+) s", file.read())]
    return min(found)


def zero(build, folder, times):
    table = Table("All workers killed at once and replaced",
                  ["loss", "start to first step s", "process start s", "load s", "one step of one worker s", "their sum s",
                   "over the sum s", "kill to first step s", "samples trained again"])
    start = process_start(build)
    run = training.Run(build, folder, training.write_job(folder, "resnet", BATCH, FOREVER, "every: 2s"), 2)
    over = []
    first = {}

    def kill_all(of):
        pids = list(of.workers().values())
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        children = f"/proc/{of.processes()['controller']}/task/{of.processes()['controller']}/children"

        def replacements():
            with open(children, encoding="utf-8") as file:
                return [pid for pid in map(int, file.read().split()) if pid not in pids]

        first["start"] = training.started_at(of.wait("a replacement", replacements, pause_s=0.002)[0])
        return pids

    try:
        run.wait("a warm-up", lambda: run.committed() > WARM_UP * BATCH)
        for number, (when, _) in enumerate(losses(run, times, kill_all)):
            begin = first["start"] - run.offset
            lines = [line for line in run.journal() if line["t_s"] >= begin]
            commit = next(line for line in lines if line.get("event") == "committed")
            took = commit["t_s"] - begin
            step = 2 * normal_step(run.steps(), when, BATCH)
            done = max(s[1] for s in run.steps() if s[0] <= when)
            load = load_seconds(run)
            over.append(took - start - load - step)
            table.row(number + 1, took, start, load, step, start + load + step, over[-1], commit["t_s"] - when,
                      int(done - commit["first_sample"]))
    finally:
        run.end()
    return over


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", default=f"{training.SOURCE}/build")
    parser.add_argument("--times", type=int, default=5, help="losses of each kind")
    parser.add_argument("--only", default="killed,torchrun,silent,zero")
    parser.add_argument("--folder", help="where runs go (a temporary one)")
    options = parser.parse_args()
    build, wanted, times = os.path.abspath(options.build), options.only.split(","), options.times
    results = {}
    with tempfile.TemporaryDirectory(prefix="recovery-", dir=options.folder) as folder:
        if "killed" in wanted:
            results["killed: lost"] = killed(build, f"{folder}/killed", times)
        if "torchrun" in wanted:
            results["torchrun, as it comes: lost"] = torchrun(
                f"{folder}/torchrun", times, 10, [], "torchrun, one of two killed, a checkpoint every 10 steps, its own settings")
            results["torchrun, quickest: lost"] = torchrun(
                f"{folder}/quick", times, 1, ["--monitor_interval=0.1"],
                "torchrun, one of two killed, a checkpoint every step, looks after its workers every 0.1 s")
        if "silent" in wanted:
            results["silent: freeze to next step"] = silent(build, f"{folder}/silent", times)
        if "zero" in wanted:
            results["2 -> 0 -> 2: over process start, load and a step"] = zero(build, f"{folder}/zero", times)
    print()
    for name, values in results.items():
        print(f"* {name}: {training.summary(values)}, of {len(values)}")
    if "killed: lost" in results:
        own = statistics.median(results["killed: lost"])
        for name in (name for name in results if name.startswith("torchrun")):
            print(f"* {name} over mayfly's: {statistics.median(results[name]) / own:.0f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
