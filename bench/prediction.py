#!/usr/bin/python3
"""prediction.py [BUILD] [--quick] [--only PATTERN] [--results FILE] [--seconds S] [--folder F]: predicted against measured step
times of clusters that are made on this host (machines.py): each worker and server a namespace with a link and a part of a core
of its own. Profiles come from runs of one worker alone and of one worker with one server, never from the cluster that is
predicted; predictions are what `mayfly predict` prints. Each cluster is measured between two one-worker runs, and again, up to
three times, where those differ by more than 5 %. A finished cluster is a line of FILE (prediction.jsonl); they are not run
again. The table is that of all lines."""
import argparse
import fnmatch
import json
import math
import os
import signal
import statistics
import sys
import tempfile
import time

import machines
import training
from clusters import BASE, Cluster, measured, measured_links, predicted, write_catalog, write_profile

QUIET = 0.05
MOST_TRIES = 3
REUSED_S = 5  # a one-worker run is that after one cluster and that before the next
PREDICTORS = ("queue", "spotdnn", "cynthia", "additive")
CLUSTERS = [Cluster(text) for text in (
    "mlp asp cpu15-10=2 / cpu30-20=1",
    "mlp asp cpu15-10=4 / cpu30-20=1",
    "mlp asp cpu15-10=6 / cpu30-20=1",
    "mlp asp cpu15-10=8 / cpu30-20=1",
    "mlp asp cpu15-10=3 / cpu30-10=1",
    "mlp asp cpu15-10=6 / cpu30-10=1",
    "mlp asp cpu15-10=4 / cpu20-10=2",
    "mlp asp cpu15-10=8 / cpu20-10=2",
    "mlp asp cpu15-10=2,cpu30-10=2 / cpu30-20=1",
    "mlp asp cpu15-10=2,cpu15-5=3 / cpu30-20=1",
    "mlp bsp cpu15-10=2 / cpu30-20=1",
    "mlp bsp cpu15-10=4 / cpu30-20=1",
    "mlp bsp cpu15-10=8 / cpu30-20=1",
    "mlp bsp cpu15-10=4 / cpu20-10=2",
    "mlp bsp cpu15-10=2,cpu30-10=1 / cpu30-20=1",
    "mlp ring cpu15-10=2",
    "mlp ring cpu15-10=4",
    "mlp ring cpu15-10=8",
    "mlp ring cpu15-10=2,cpu30-10=2",
    "mlp ring cpu15-10=3,cpu15-5=1",
    "resnet asp cpu15-10=2 / cpu30-20=1",
    "resnet asp cpu15-10=4 / cpu30-20=1",
    "resnet asp cpu15-10=8 / cpu30-20=1",
    "resnet asp cpu15-10=3,cpu30-10=2 / cpu30-20=1",
    "resnet bsp cpu15-10=3 / cpu30-20=1",
    "resnet bsp cpu15-10=6 / cpu30-20=1",
    "resnet bsp cpu15-10=2,cpu30-10=2 / cpu30-20=1",
    "resnet ring cpu15-10=2",
    "resnet ring cpu15-10=5",
    "resnet ring cpu15-10=2,cpu30-10=2",
)]
QUICK = {"mlp asp cpu15-10=4 / cpu30-20=1", "mlp bsp cpu15-10=4 / cpu30-20=1", "mlp ring cpu15-10=4",
         "resnet asp cpu15-10=3,cpu30-10=2 / cpu30-20=1"}


class Bench:
    def __init__(self, build, folder, results, seconds):
        self.build, self.folder, self.results, self.seconds = build, folder, results, seconds
        self.singles = {}  # one-worker runs so far, by their cluster's name
        self.newest = None  # of them: name and when it ended
        self.lines = []
        if os.path.exists(results):
            with open(results, encoding="utf-8") as file:
                self.lines = [json.loads(line) for line in file]
        links = [line["links"] for line in self.lines if "links" in line]
        if not links:
            links = [measured_links()]
            self.keep({"links": links[0]})
        self.links = links[0]
        self.lines = [line for line in self.lines if "cluster" in line]
        write_catalog(folder, self.links)

    def single(self, cluster, may_reuse=False):
        """A run of one worker: a new one, or that which has just ended."""
        alone = cluster.alone()
        if not (may_reuse and self.newest and self.newest[0] == alone.name and time.monotonic() - self.newest[1] < REUSED_S):
            value = measured(self.build, self.folder, alone, self.seconds / 2)
            self.singles.setdefault(alone.name, []).append(value)
            self.newest = alone.name, time.monotonic()
        return self.singles[alone.name][-1]

    def without_servers(self, model):
        alone = Cluster(f"{model} ring {BASE}=1")
        if alone.name not in self.singles:
            self.single(alone)
        return mean(self.singles[alone.name][-2:])

    def compare(self, cluster):
        """Measures between two runs of one worker, until those agree."""
        tries = []
        before = self.single(cluster, may_reuse=True)
        for _ in range(MOST_TRIES):
            value = measured(self.build, self.folder, cluster, self.seconds)
            after = self.single(cluster)
            apart = abs(math.log(before["step_s"] / after["step_s"]))
            tries.append((apart, value, mean([before, after])))
            print(f"{cluster.name}: {value['step_s']:.4f} s, one worker before and after {before['step_s']:.4f} "
                  f"{after['step_s']:.4f} s", file=sys.stderr, flush=True)
            if apart <= QUIET:
                break
            before = after
        apart, value, single = min(tries, key=lambda one: one[0])
        alone = single if not cluster.servers else self.without_servers(cluster.model)
        line = {"cluster": cluster.name, "measured": value, "single": single, "alone": alone, "apart": apart, "tries": len(tries)}
        self.lines.append(line)
        self.keep(line)

    def keep(self, line):
        with open(self.results, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def predictions(self, line):
        cluster = Cluster(line["cluster"])
        values = [math.log(other["single"]["step_s"]) for other in self.lines
                  if Cluster(other["cluster"]).alone().name == cluster.alone().name]
        single = dict(line["single"], relative_sd=statistics.stdev(values) if len(values) > 2 else 0)
        answers = {}
        for predictor in PREDICTORS:
            if predictor in ("spotdnn", "additive") and cluster.sync != "asp" or predictor == "cynthia" and not cluster.servers:
                continue  # the published model has no word for it
            profile = write_profile(self.folder, self.links, cluster, single, line["alone"], predictor == "cynthia")
            answers[predictor] = predicted(self.build, self.folder, cluster, predictor, profile)
        return answers


def mean(runs):
    return {key: statistics.mean(run[key] for run in runs) for key in runs[0]}


def table(bench):
    heading = ["cluster", "measured s", *PREDICTORS, "8 of 10", "USD per 1000 updates, predicted", "measured"]
    print("| " + " | ".join(heading) + " |\n|" + " --- |" * len(heading))
    errors, inside = {predictor: [] for predictor in PREDICTORS}, []
    for line in bench.lines:
        step = line["measured"]["step_s"]
        answers = bench.predictions(line)
        cells = [line["cluster"] + (" (*)" if line["apart"] > QUIET else ""), f"{step:.4f}"]
        for predictor in PREDICTORS:
            answer = answers.get(predictor)
            if not answer:
                cells.append("-")
                continue
            errors[predictor].append(answer["step_s"] / step - 1)
            cells.append(f"{answer['step_s']:.4f} ({100 * errors[predictor][-1]:+.1f} %)")
        queue = answers["queue"]
        inside.append(queue["step_s_p10"] <= step <= queue["step_s_p90"])
        dollars = queue["usd_per_hour"] / 3.6
        cells += ["in" if inside[-1] else "out", f"{queue['step_s'] * dollars:.5f}", f"{step * dollars:.5f}"]
        print("| " + " | ".join(cells) + " |")
    print()
    for predictor, values in errors.items():
        if values:
            print(f"* {predictor}: mean error {100 * statistics.mean(map(abs, values)):.1f} %, worst "
                  f"{100 * max(map(abs, values)):.1f} %, of {len(values)}")
    print(f"* bands of 8 in 10 of queue: {sum(inside)} of {len(inside)}")
    again = sum(line["tries"] - 1 for line in bench.lines)
    print(f"* {again} measurements thrown away because one-worker runs around them differed by more than 5 %; marked (*): "
          "those where none of three was quiet")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", default=f"{training.SOURCE}/build")
    parser.add_argument("--quick", action="store_true", help="four clusters")
    parser.add_argument("--only", default="*", help="clusters whose name matches, such as 'mlp asp *'")
    parser.add_argument("--results", default="prediction.jsonl")
    parser.add_argument("--seconds", type=float, default=15, help="of each measurement")
    parser.add_argument("--folder", help="where runs go (a temporary one)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no machine is left behind
    with tempfile.TemporaryDirectory(prefix="prediction-", dir=options.folder) as folder:
        try:
            bench = Bench(os.path.abspath(options.build), folder, options.results, options.seconds)
        except machines.Skipped as why:
            print(f"skipped: {why}")
            return 0
        done = {line["cluster"] for line in bench.lines}
        wanted = [cluster for cluster in CLUSTERS if fnmatch.fnmatchcase(cluster.name, options.only) and
                  (cluster.name in QUICK or not options.quick) and cluster.name not in done]
        for cluster in wanted:
            bench.compare(cluster)
        if bench.lines:
            table(bench)
    return 0


if __name__ == "__main__":
    sys.exit(main())
