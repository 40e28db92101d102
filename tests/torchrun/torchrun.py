#!/usr/bin/python3
"""mayfly torchrun with the real torchrun and a script that knows nothing of it.
Usage: torchrun.py path/to/mayfly [case]"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import expect, play, read  # noqa: E402

LIMIT_S = 240
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.py")


class Place:
    def __init__(self, mayfly, folder):
        self.mayfly, self.folder, self.out = mayfly, folder, os.path.join(folder, "out")

    def command(self, own, torchrun, script):
        return [self.mayfly, "torchrun", "--mayfly-out", self.out, "--notices", "none", *own, "--standalone", *torchrun, SCRIPT, self.folder,
                *script]

    def call(self, own, torchrun, script, **more):
        return subprocess.run(self.command(own, torchrun, script), cwd=self.folder, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL, **more)

    def summary(self):
        return json.loads(read(f"{self.out}/summary.json"))

    def journal(self):
        return [json.loads(line) for line in read(f"{self.out}/journal.jsonl").splitlines()]

    def wait(self, what, predicate):
        end = time.monotonic() + LIMIT_S
        while not predicate():
            expect(time.monotonic() < end, f"waited {LIMIT_S} s for {what}")
            time.sleep(0.05)


def script_runs_unchanged_and_is_accounted_for(place):
    done = place.call(["--price", "3600"], ["--nproc_per_node=2"], ["5", "0.05"])
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-800:]}")
    for line in ("step 5/5 loss 0.4000", "rank 0 of 2", "rank 1 of 2"):
        expect(line in done.stdout, f"no '{line}' in {done.stdout}")
    expect("exit code" in done.stderr and "restarts" in done.stderr, f"no scorecard: {done.stderr}")
    summary = place.summary()
    expect((summary["exit_code"], summary["restarts"], summary["preemptions"]) == (0, 0, 0), f"{summary}")
    expect((summary["step"], summary["loss"]) == (5, 0.4), f"{summary}")
    expect(abs(summary["cost_usd"] - summary["time_s"]) < 1e-6, f"a dollar a second: {summary}")  # 3600 USD/h
    lines = place.journal()
    expect(lines[0]["format"] == "mayfly-journal/1" and lines[1]["event"] == "joined", f"{lines[:2]}")


def variables_of_torchrun_count(place):
    done = place.call([], [], ["2", "0.01"], env={**os.environ, "PET_NPROC_PER_NODE": "2"})
    expect(done.returncode == 0 and "rank 1 of 2" in done.stdout, f"{done.stdout} {done.stderr[-500:]}")


def exit_code_is_torchruns(place):
    own = place.call([], ["--nproc_per_node=1"], ["5", "0.01", "crash-at", "3"])
    plain = subprocess.run([shutil.which("torchrun"), "-r", "9:1", "-t", "9:1", "--standalone", "--nproc_per_node=1", SCRIPT,
                            place.folder, "5", "0.01", "crash-at", "4"], capture_output=True, check=False, timeout=LIMIT_S)
    expect(own.returncode == plain.returncode != 0, f"{own.returncode}, torchrun alone {plain.returncode}")


def crash_is_restarted_by_torchrun_and_counted(place):
    done = place.call([], ["--nproc_per_node=2", "--max_restarts=2", "--monitor_interval=1"],
                      ["40", "0.1", "crash-at", "20"])
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-800:]}")
    expect("step 40/40" in done.stdout, done.stdout[-300:])
    expect(place.summary()["restarts"] == 1, f"{place.summary()}")
    expect("started the script's processes again" in done.stderr, done.stderr[-800:])


def notice_reaches_the_script_and_not_torchrun(place):
    with subprocess.Popen(place.command(["--grace", "60s"], ["--nproc_per_node=2"], ["100000", "0.05"]), cwd=place.folder,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        place.wait("both ranks", lambda: all(os.path.exists(f"{place.folder}/saved-{rank}") for rank in (0, 1)))
        run.send_signal(signal.SIGTERM)
        err = run.communicate(timeout=LIMIT_S)[1]
    expect(run.returncode == 0, f"exit code {run.returncode}: {err[-800:]}")  # both ended in peace
    for rank in (0, 1):
        told = json.loads(read(f"{place.folder}/told-{rank}"))
        expect(told["left_s"] == 60 and told["source"] == "SIGTERM", f"{told}")
    expect(place.summary()["preemptions"] == 1, f"{place.summary()}")
    expect(any(line.get("event") == "notice" and line["left_s"] == 60 for line in place.journal()), "no notice")


def deadline_at_risk_is_said(place):
    done = place.call(["--deadline", "3s"], ["--nproc_per_node=1"], ["60", "0.1"])
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-800:]}")
    expect("the deadline is at risk: step " in done.stderr, done.stderr[-800:])
    expect(place.summary()["deadline_met"] is False, f"{place.summary()}")


def spent_budget_ends_the_script(place):
    done = place.call(["--price", "3600", "--budget", "3"], ["--nproc_per_node=1"], ["100000", "0.05"])
    expect(done.returncode == 4, f"exit code {done.returncode}: {done.stderr[-800:]}")
    expect("the budget of 3.0000 USD is spent" in done.stderr, done.stderr[-800:])
    expect(os.path.exists(f"{place.folder}/told-0"), "the script was not told")


CASES = [script_runs_unchanged_and_is_accounted_for, variables_of_torchrun_count, exit_code_is_torchruns,
         crash_is_restarted_by_torchrun_and_counted, notice_reaches_the_script_and_not_torchrun, deadline_at_risk_is_said,
         spent_budget_ends_the_script]


def main():
    mayfly, only = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    if not shutil.which("torchrun"):
        print("skipped: no torchrun in PATH (Debian: python3-torch)")
        return 77
    return play(CASES, only, lambda case, folder: Place(mayfly, folder))


if __name__ == "__main__":
    sys.exit(main())
