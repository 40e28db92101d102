#!/usr/bin/python3
"""Runs that live on their own: detached, looked at, stopped, killed and resumed, with real processes.
Usage: living.py path/to/mayfly [case]"""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import expect, play, read  # noqa: E402

LIMIT_S = 120  # no wait is meant to take long; this only ends a hang

JOB = """name: count
objective: {{epochs: {epochs}}}
train:
  model: {{name: count}}
  data: {{name: count, samples: 20000}}
  optimiser: {{kind: sgd, rate: 1}}
  reduction: sum
  batch: 100
  checkpoint: {{every: 1s}}
"""


class Place:
    """A folder with a job and its run."""

    def __init__(self, mayfly, folder, epochs=1_000_000):
        self.mayfly, self.folder, self.out = mayfly, folder, os.path.join(folder, "mayfly-runs", "one")
        self.job = os.path.join(folder, "job.yaml")
        with open(self.job, "w", encoding="utf-8") as file:
            file.write(JOB.format(epochs=epochs))

    def call(self, *arguments, code=0):
        done = subprocess.run([self.mayfly, *arguments], cwd=self.folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
        expect(code is None or done.returncode == code,
               f"mayfly {' '.join(arguments)}: exit code {done.returncode}, want {code}: {done.stderr[-500:]}")
        return done

    def detached(self, *flags):
        return self.call("run", self.job, "--workers", "2", "--out", self.out, "-y", "-d", *flags)

    def status(self):
        return json.loads(self.call("status", self.out, "--json").stdout)

    def wait(self, what, predicate):
        end = time.monotonic() + LIMIT_S
        while not (value := predicate()):
            expect(time.monotonic() < end, f"waited {LIMIT_S} s for {what}")
            time.sleep(0.05)
        return value

    def processes(self):
        return json.loads(read(f"{self.out}/processes.json"))

    def committed(self, samples):
        return self.wait(f"{samples} samples", lambda: self.status()["samples"] >= samples)

    def kill_all(self):
        """Whoever is left of the run, by the numbers it wrote down itself and its folder."""
        try:
            listed = self.processes()
        except ValueError:
            return
        pids = [listed["front"], listed["controller"], *(w["pid"] for w in listed["workers"])]
        for pid in pids:
            text = read(f"/proc/{pid}/cmdline").replace("\0", " ")
            if "mayfly" in text:
                try:
                    os.kill(pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    pass


def gone(pid):
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] in ([], ["Z"], ["X"])


def detached_run_is_seen_stopped_and_resumed(place):
    said = place.detached()
    expect(f"mayfly stop {place.out}" in said.stdout, f"the commands are not named: {said.stdout}")
    seen = place.status()
    expect(seen["state"] == "running" and seen["phase"] == "training", f"{seen['state']}, {seen['phase']}")
    expect(any(m["state"] == "training" for m in seen["machines"]), f"nobody trains: {seen['machines']}")
    expect(all(m["type"] == "local" and m["pid"] > 0 for m in seen["machines"]), f"{seen['machines']}")
    place.committed(2000)
    words = place.call("status", place.out).stdout
    expect("running: training" in words and "samples/s" in words, words)
    line = place.call("status").stdout
    expect("one" in line and "running" in line, f"the list of runs: {line}")
    stopped = json.loads(place.call("stop", place.out, "--json").stdout)
    expect(stopped["state"] == "stopped" and stopped["was_running"], f"{stopped}")
    expect(stopped["summary"] == json.loads(read(f"{place.out}/summary.json")), "not the run's summary")
    expect(stopped["summary"]["samples_repeated"] == stopped["summary"]["samples_skipped"] == 0, "samples not exact")
    trained = stopped["summary"]["samples"]
    expect(gone(seen["front"]["pid"]), "the front still lives")
    again = place.call("stop", place.out)
    expect("is not running: stopped" in again.stdout, f"a second stop: {again.stdout}")
    place.call("resume", "-d", place.out)
    place.committed(trained + 100)
    twice = place.call("resume", place.out, code=2)
    expect("is driven already" in twice.stderr, f"a second resume: {twice.stderr}")
    place.call("resume", "-d", place.out, code=2)
    expect(place.status()["state"] == "running", "the second resume has disturbed the first")
    place.call("run", place.job, "--out", place.out, "-y", code=2)
    place.call("stop", place.out)


def run_that_ends_is_followed_to_its_end(place):
    place.detached()
    followed = place.call("logs", "-f", place.out)
    expect("the target is reached and saved" in followed.stdout, f"followed: {followed.stdout}")
    expect("finished" in followed.stderr, f"followed to: {followed.stderr}")
    seen = place.status()
    expect(seen["state"] == "finished" and seen["end"] == "trained", f"{seen['state']}, {seen['end']}")
    expect(seen["samples"] == seen["target_samples"], f"{seen['samples']} of {seen['target_samples']}")
    once = place.call("logs", place.out)
    expect(once.stdout == followed.stdout, "followed and read at once differ")
    expect("weights: " in place.call("logs", "--controller", place.out).stdout, "run.log lacks the summary")
    expect(read(f"{place.out}/logs/worker-0.log") == place.call("logs", "--worker", "0", place.out).stdout,
           "not the worker's log")
    place.call("logs", "--worker", "99", place.out, code=2)
    expect("is not running: finished" in place.call("stop", place.out).stdout, "a finished run was stopped")


def follower_survives_the_controller(place):
    place.detached()
    place.committed(2000)
    with subprocess.Popen([place.mayfly, "logs", "-f", place.out], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) as follower:
        first = place.processes()["controller"]
        os.kill(first, signal.SIGKILL)
        place.wait("another controller", lambda: place.status()["controller"]["pid"] != first)
        place.committed(place.status()["samples"] + 2000)
        place.call("stop", place.out)
        told = follower.communicate(timeout=LIMIT_S)[0]
    expect(told == place.call("logs", place.out).stdout, f"lines are missing or doubled:\n{told}")
    expect(told.count("joins") >= 2, told)


def killed_run_says_so_and_goes_on(place):
    place.detached()
    place.committed(2000)
    seen = place.status()
    os.kill(seen["front"]["pid"], signal.SIGKILL)
    place.wait("the front to be gone", lambda: gone(seen["front"]["pid"]))
    # The controller would save and end in peace: it gets none.
    try:
        os.kill(seen["controller"]["pid"], signal.SIGKILL)
    except ProcessLookupError:
        pass
    place.wait("nobody to drive it", lambda: place.status()["state"] in ("lost", "stopped"))
    if place.status()["state"] == "lost":
        words = place.call("status", place.out).stdout
        expect("lost its controller" in words and f"mayfly resume {place.out}" in words, words)
        expect("is not running: lost" in place.call("stop", place.out).stdout, "a lost run was stopped")
    place.call("resume", "-d", place.out)
    place.committed(seen["samples"] + 1000)
    summary = json.loads(place.call("stop", place.out, "--json").stdout)["summary"]
    expect(summary["samples_repeated"] == summary["samples_skipped"] == 0, f"{summary}")


def resume_without_its_store_is_refused(place):
    place.detached()
    place.wait("a checkpoint", lambda: place.status()["checkpoint"])
    place.call("stop", place.out)
    for name in os.listdir(place.out):
        if name.startswith("state.db"):
            os.remove(f"{place.out}/{name}")
    kept = sorted(os.listdir(f"{place.out}/checkpoints"))
    newest = os.path.realpath(f"{place.out}/checkpoints/latest")
    refused = place.call("resume", place.out, code=2)
    expect(newest in refused.stderr and "state.db: is missing" in refused.stderr, refused.stderr)
    expect(sorted(os.listdir(f"{place.out}/checkpoints")) == kept, "checkpoints were touched")
    expect(not os.path.exists(f"{place.out}/state.db"), "a store was made")


def reused_number_is_not_signalled(place):
    place.detached()
    place.committed(1000)
    with subprocess.Popen(["sleep", str(LIMIT_S)]) as stranger:
        try:
            path = f"{place.out}/status.json"
            seen = place.status()
            os.kill(seen["front"]["pid"], signal.SIGSTOP)  # so that nobody writes the file anew
            os.kill(seen["controller"]["pid"], signal.SIGSTOP)
            status = json.loads(read(path))
            for role in ("front", "controller"):
                status[role]["pid"] = stranger.pid
            with open(path, "w", encoding="utf-8") as file:
                json.dump(status, file)
            refused = place.call("stop", place.out, code=1)
            expect("not by the processes" in refused.stderr, refused.stderr)
            expect(stranger.poll() is None, "a stranger was signalled")
        finally:
            stranger.kill()
            for role in ("controller", "front"):
                os.kill(seen[role]["pid"], signal.SIGCONT)
    place.wait("its own words", lambda: place.status()["front"]["pid"] == seen["front"]["pid"])
    place.call("stop", "--now", place.out)
    expect(place.status()["state"] == "stopped", f"{place.status()['state']}")


def what_fails_at_once_is_told_by_the_parent(place):
    with open(place.job, "w", encoding="utf-8") as file:
        file.write(JOB.format(epochs=1).replace("name: count}\n  data", "name: mlp, hidden: [4]}\n  data"))
    failed = place.call("run", place.job, "--workers", "1", "--out", place.out, "-y", "-d", code=2)
    expect("mayfly: " in failed.stderr and not failed.stdout, f"{failed.stdout} {failed.stderr}")
    expect(not os.path.exists(place.out), "a folder is left")


CASES = {
    detached_run_is_seen_stopped_and_resumed: 1_000_000,
    run_that_ends_is_followed_to_its_end: 4,
    follower_survives_the_controller: 1_000_000,
    killed_run_says_so_and_goes_on: 1_000_000,
    resume_without_its_store_is_refused: 1_000_000,
    reused_number_is_not_signalled: 1_000_000,
    what_fails_at_once_is_told_by_the_parent: 1,
}


def clear(place):
    place.kill_all()
    time.sleep(0.2)


def main():
    mayfly, only = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    return play(CASES, only, lambda case, folder: Place(mayfly, folder, CASES[case]), clear,
                lambda place: "\n" + read(place.out + "/run.log")[-1500:])


if __name__ == "__main__":
    sys.exit(main())
