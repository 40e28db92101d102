#!/usr/bin/python3
"""notices.py [MAYFLY] [--times N] [--only MODE,...] [--folder F]: what is lost when machines are taken with a notice, by mode of training
and by who says so. Each figure is the worst of N drills (`mayfly drill --json`) against runs of the counting job; no checkpoint is
written but those that a notice asks for."""
import argparse
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "chaos"))

import harness  # noqa: E402
import notices  # noqa: E402

BATCH = 1000
NOTICES = ("aws", "gcp", "azure", "sigterm", "none")
# mode -> (servers block, who is lost)
MODES = {
    "all-reduce, one of 2": ("", 1),
    "all-reduce, all of 2": ("", "all"),
    "asp, a worker": ("count: 2, sync: asp", 1),
    "bsp, a worker": ("count: 2, sync: bsp", 1),
    "ssp(2), a worker": ("count: 2, sync: ssp(2)", 1),
    "asp, a server": ("count: 2, sync: asp", "server"),
    "bsp, a server": ("count: 2, sync: bsp", "server"),
    "asp, a server with a standby": ("count: 1, standby: 1, sync: asp", "server"),
}


class Options:
    def __init__(self, mayfly, folder):
        self.mayfly, self.folder, self.seed = mayfly, folder, 1


def drills(options, name, servers, lose, notice, times):
    """Reports of so many drills against one run."""
    run = harness.Run(options, name, workers=2, batch=BATCH, checkpoint="every: 1h", servers=servers)
    reports = []
    try:
        wanted = 0 if not servers else 2
        for _ in range(times):
            run.settle()
            run.training(2)
            run.wait("servers", lambda: len(run.servers()) >= wanted)
            run.progress(20 * BATCH)
            reports.append(notices.rehearse(run, lose, notice))
        run.finish()
    finally:
        run.clear()
    return reports


def worst(reports, key):
    values = [report[key] for report in reports if report[key] is not None]
    return max(values) if values else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mayfly", nargs="?", default=str(ROOT / "build" / "mayfly"))
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder")
    given = parser.parse_args()
    folder = given.folder or tempfile.mkdtemp(prefix="mayfly-notices-")
    os.makedirs(folder, exist_ok=True)
    options = Options(os.path.abspath(given.mayfly), folder)
    print("| mode | notice | steps lost | samples redone | notice to departure, s | longest time without a commit, s | killed |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for number, (mode, (servers, lose)) in enumerate(MODES.items()):
        if given.only and not any(word in mode for word in given.only.split(",")):
            continue
        for notice in NOTICES:
            reports = drills(options, f"{number}-{notice}", servers, lose, notice, given.times)
            redone = worst(reports, "samples_redone")
            left = [loss["left_after_s"] for report in reports for loss in report["losses"]]
            killed = sum(loss["killed"] for report in reports for loss in report["losses"])
            seconds = [value for value in left if value is not None]
            departure = f"{max(seconds):.2f}" if seconds and notice != "none" else "-"
            print(f"| {mode} | {notice} | {redone / BATCH:.0f} | {redone:.0f} | {departure} | "
                  f"{worst(reports, 'longest_pause_s'):.2f} | {killed} |",
                  flush=True)


if __name__ == "__main__":
    main()
