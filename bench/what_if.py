#!/usr/bin/python3
"""what_if.py [MAYFLY] [--for SECONDS] [--only SETTING]: a job with dials is profiled once (`profile --stalls`); what that says of other
caches, threads, storage, devices and machines is compared with runs in which they really are so. Every run is bracketed by runs of
the setting that was profiled, and repeated where those differ by more than 5 %."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import training

SAMPLES, BATCH = 750, 50
DATA_SET_MB = SAMPLES * 0.064
BASE = {"device": 2.0, "threads": 1, "cache": 0, "storage": 15, "machines": 1}
# Each is what differs from BASE: the device's milliseconds a sample, prep threads, % cached, MB/s of storage.
SETTINGS = (
    {"cache": 25}, {"cache": 50}, {"cache": 75}, {"cache": 100}, {"cache": 50, "threads": 2}, {"cache": 100, "threads": 2},
    {"storage": 7.5}, {"storage": 30}, {"storage": 30, "threads": 2}, {"storage": 30, "device": 1.0, "threads": 2},
    {"device": 6.0}, {"device": 1.0}, {"cache": 50, "storage": 7.5, "machines": 2}, {"cache": 25, "storage": 7.5, "machines": 2},
)
RETRIES = 3


def job(folder, setting):
    """A job file; its data set is made once and shared by all."""
    os.makedirs(folder, exist_ok=True)
    path = f"{folder}/job.yaml"
    cache = setting["cache"] / 100 * DATA_SET_MB * 1.001  # a sample more, for the rounding
    loader = f"prep_threads: {setting['threads']}, ahead: 4, storage_mb_per_s: {setting['storage']}"
    if cache:
        loader += f", cache_mb: {cache:.3f}"
    if setting["machines"] > 1:
        loader += ", partitioned: true"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"name: dials\nobjective: {{epochs: 3}}\ntrain:\n"
                   f"  model: {{name: dials, device_ms: {setting['device']}, parameters_mb: 0.1}}\n"
                   f"  data:\n    name: dials\n    samples: {SAMPLES}\n    sample_kb: 64\n    prep_ms: 3\n"
                   f"    files: [{os.path.dirname(folder)}/dials.bin]\n    loader: {{{loader}}}\n"
                   f"  batch: {BATCH * setting['machines']}\n")
    return path


def measured(mayfly, folder, setting):
    """Samples/s of one machine in the epochs after the first."""
    path = job(folder, setting)
    run = training.Run(os.path.dirname(mayfly), folder, path, setting["machines"])
    if run.front.wait(training.HANG_S) != 0:
        raise training.Failure(run.errors())
    commits = [(time, sample) for time, sample, _ in run.steps()]
    later = [commit for commit in commits if commit[1] >= SAMPLES + 4 * BATCH]
    (begin, first), (end, last) = later[0], later[-1]
    return (last - first) / (end - begin) / setting["machines"]


class Brackets:
    """Measurements while the machine is as it was when the job was profiled: the base before and after each."""

    def __init__(self, mayfly, folder):
        self.mayfly, self.folder = mayfly, folder
        self.bases = [self.base()]

    def base(self):
        return measured(self.mayfly, f"{self.folder}/base", BASE)

    def measured(self, setting):
        """(samples/s, whether the base was steady)."""
        for _ in range(RETRIES):
            value = measured(self.mayfly, f"{self.folder}/set", {**BASE, **setting})
            before, after = self.bases[-1], self.base()
            self.bases.append(after)
            if abs(before - after) <= 0.05 * min(before, after):
                return value, True
        return value, False


def question(setting):
    words = []
    for key, value in setting.items():
        words.append({"device": lambda v: f"device={BASE['device'] / v:g}x", "threads": lambda v: f"threads={v}",
                      "cache": lambda v: f"cache={v}%", "storage": lambda v: f"storage={v}",
                      "machines": lambda v: f"machines={v}"}[key](value))
    return ",".join(words)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mayfly", nargs="?", default=os.path.join(training.SOURCE, "build", "mayfly"))
    parser.add_argument("--for", dest="seconds", type=int, default=30)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    settings = [setting for setting in SETTINGS if options.only in question(setting)]
    with tempfile.TemporaryDirectory(prefix="mayfly-what-if-") as folder:
        asked = [word for setting in settings for word in ("--what-if", question(setting))]
        profiled = subprocess.run([options.mayfly, "profile", job(f"{folder}/base", BASE), "--stalls", "--for",
                                   f"{options.seconds}s", "--json", *asked], check=True, capture_output=True, text=True)
        answer = json.loads(profiled.stdout)
        predicted = {one["what_if"]: one for one in answer["what_if"]}
        print("| what if | limited by | predicted | measured | error |\n| --- | --- | ---: | ---: | ---: |")
        errors, brackets = [], Brackets(options.mayfly, folder)
        for setting in settings:
            value, steady = brackets.measured(setting)
            told = predicted[question(setting)]
            error = told["samples_per_s"] / value - 1
            errors.append(abs(error))
            print(f"| {question(setting)} | {told['bottleneck']} | {told['samples_per_s']:.1f} | {value:.1f} | {100 * error:+.1f} % |"
                  f"{'' if steady else ' (the machine was not steady)'}", flush=True)
        print(f"\nmean error {100 * statistics.mean(errors):.1f} %, worst {100 * max(errors):.1f} %; as it is: predicted "
              f"{answer['advice']['samples_per_s']:.1f} samples/s, measured {statistics.mean(brackets.bases):.1f}")


if __name__ == "__main__":
    sys.exit(main())
