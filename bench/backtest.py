#!/usr/bin/env python3
"""Promised against kept with `mayfly backtest` on recorded series: docs/benchmarks.md#backtest.

backtest.py MAYFLY TRACES [--only NAME,...] [--starts N]: TRACES is the folder with bamboo/ and skynomad/."""
import argparse
import collections
import json
import math
import pathlib
import subprocess

CHANCES = [0.5, 0.8, 0.9, 0.95]
SHARES = [0.25, 0.5, 0.75, 0.9]  # of the deadline that a job takes with every machine of its plan there
BINS = [0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.01]


def series(folder):
    """name -> (file, flags, machines): every recorded series by itself."""
    found = {}
    for zone in ["us-east-1a", "us-east-1d", "us-east-2a", "us-west-2b", "us-west-2c"]:
        found["v100 " + zone] = (folder / f"skynomad/v100-1-{zone}.json", [], 1)
    for zone in ["asia-south2-b", "us-central1-a", "us-west1-b"]:
        found["h100 " + zone] = (folder / "skynomad/h100-16.csv", ["--zone", zone], 16)
    found["gcloud v100"] = (folder / "bamboo/gcloud-v100x1-east1c.txt", [], 80)
    found["bamboo p3"] = (folder / "bamboo/p3-trace.csv", [], 32)
    found["bamboo g4dn"] = (folder / "bamboo/g4dn-trace.csv", [], 24)
    # parcae/p3.csv is Bamboo's p3 trace in counts.
    return found


def run(mayfly, arguments):
    done = subprocess.run([mayfly, *arguments, "--json"], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode in (0, 3) else {"error": done.stderr.strip()}


def job(mayfly, machines, deadline, share):
    """A job that takes `share` of the deadline: on its one machine, or on half of the most there were."""
    if machines == 1:
        profile, cluster = ["--profile", "spotdnn-resnet110"], "p3.2xlarge=1"
    else:
        profile, cluster = ["--profile", "parcae-bert"], f"p3.2xlarge={min(16, machines // 2)}"
    probe = run(mayfly, ["predict", *profile, "--cluster", cluster, "--steps", "100000"])
    steps = max(1, round(100000 * share * deadline / probe["time_s"]))
    return [*profile, "--steps", str(steps), "--quota", f"p3.2xlarge={min(32, machines)},*=0"]


class Count:
    """Promises by day."""

    def __init__(self):
        self.days = collections.defaultdict(lambda: [0, 0, 0.0])
        self.starts = 0

    def add(self, day, promised, kept):
        of = self.days[day]
        of[0] += 1
        of[1] += kept
        of[2] += promised

    def row(self):
        n, kept, promised = (sum(day[i] for day in self.days.values()) for i in range(3))
        if n == 0:
            return None
        share, groups = kept / n, len(self.days)
        scatter = sum((day[1] - share * day[0]) ** 2 for day in self.days.values())
        # Wilson's interval for as many promises as the scatter between days leaves.
        free = groups
        if 0 < share < 1 and groups > 1 and scatter > 0:
            free = min(n, max(1, share * (1 - share) / (scatter / n**2 * groups / (groups - 1))))
        z = 1.96
        centre = (share + z * z / (2 * free)) / (1 + z * z / free)
        half = z / (1 + z * z / free) * math.sqrt(share * (1 - share) / free + z * z / (4 * free * free))
        return n, groups, 100 * promised / n, 100 * share, 100 * min(share, centre - half), 100 * max(share, centre + half)


def table_row(name, count):
    row = count.row()
    if row is None:
        return f"| {name} | {count.starts} | 0 | - | - | - | - | - |"
    n, days, promised, kept, low, high = row
    return (f"| {name} | {count.starts} | {n} | {days} | {promised:.1f} % | {kept:.1f} % | {low:.1f} .. {high:.1f} % | "
            f"{kept - promised:+.1f} |")


HEAD = "| starts | with a plan | days | promised | kept | 95 % | off by |\n| --- | --- | --- | --- | --- | --- | --- | --- |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mayfly")
    parser.add_argument("traces", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--starts", type=int, default=100, help="of each trace, deadline, job and chance")
    options = parser.parse_args()
    by_chance = {chance: Count() for chance in CHANCES}
    by_series = collections.defaultdict(lambda: {chance: Count() for chance in CHANCES})
    bins = [Count() for _ in BINS[1:]]
    skipped = set()
    for name, (file, flags, machines) in series(options.traces).items():
        if options.only and name not in options.only.split(","):
            continue
        for hours in (1, 4, 12, 24):
            for share in SHARES:
                wanted = job(options.mayfly, machines, 3600 * hours, share)
                for chance in CHANCES:
                    answer = run(options.mayfly, ["backtest", *wanted, "--deadline", f"{hours}h", "--confidence", str(chance),
                                                  "--market", "spot", "--type", "p3.2xlarge", "--trace", str(file), *flags,
                                                  "--starts", str(options.starts)])
                    if "error" in answer:
                        skipped.add(f"{name} {hours} h: {answer['error']}")
                        continue
                    for start in answer["runs"]:
                        for count in (by_chance[chance], by_series[name][chance]):
                            count.starts += 1
                            if start["plan"] is not None:
                                count.add((name, int(start["t_s"] // 86400)), start["promised"], start["kept"])
                        if chance == CHANCES[0] and start["plan"] is not None:
                            at = next(i for i in range(len(bins)) if start["promised"] < BINS[i + 1])
                            bins[at].add((name, int(start["t_s"] // 86400)), start["promised"], start["kept"])
    print("| wanted " + HEAD)
    for chance in CHANCES:
        print(table_row(f"{100 * chance:g} %", by_chance[chance]))
    print("\n| stated " + HEAD)
    for i, count in enumerate(bins):
        count.starts = sum(day[0] for day in count.days.values())
        print(table_row(f"{100 * BINS[i]:.0f} .. {min(100, 100 * BINS[i + 1]):.0f} %", count))
    print("\n| series, wanted " + HEAD)
    for name, counts in by_series.items():
        for chance in CHANCES:
            print(table_row(f"{name}, {100 * chance:g} %", counts[chance]))
    for line in sorted(skipped):
        print("skipped:", line)


if __name__ == "__main__":
    main()
