#!/usr/bin/env python3
"""data_sharing.py build/mayfly [--rounds N] [--only prep|cache]: what it saves that jobs prepare samples together, and that
workers' caches are one. Jobs whose costs are set by hand (`dials`), real processes, ratios within each round."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

PREP_JOB = """name: search
objective: {{epochs: 2}}
train:
  model: {{name: dials, device_ms: 1, parameters_mb: 0.1}}
  data:
    name: dials
    files: samples.bin
    samples: 960
    sample_kb: 4
    prep_ms: 4
    loader: {{prep_threads: 1, ahead: 4{share}}}
  optimiser: {{kind: sgd, rate: {rate}}}
  batch: 32
"""
CACHE_JOB = """name: cached
objective: {{epochs: 4}}
train:
  model: {{name: dials, device_ms: 0.1, parameters_mb: 0.1}}
  data:
    name: dials
    files: samples.bin
    samples: 2000
    sample_kb: 50
    loader: {{prep_threads: 1, ahead: 4, cache_mb: 60, storage_mb_per_s: 10, partitioned: {partitioned}}}
  batch: 64
"""


def start(mayfly, folder, name, job, workers=1):
    path = f"{folder}/{name}.yaml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(job)
    words = [mayfly, "run", path, "--workers", str(workers), "--out", f"{folder}/{name}", "-y", "--json"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process):
    out, err = process.communicate(timeout=600)
    if process.returncode:
        raise SystemExit(f"{' '.join(process.args)}: exit code {process.returncode}\n{err}")
    return json.loads(out)


def four_jobs(mayfly, folder, share):
    """Seconds until the last has ended, and what their loaders say."""
    begin = time.monotonic()
    text = f", share: bench-{os.getpid()}" if share else ""
    runs = [start(mayfly, folder, f"{'shared' if share else 'alone'}{i}", PREP_JOB.format(share=text, rate=0.01 * (i + 1)))
            for i in range(4)]
    loaders = [ended(run)["loader"] for run in runs]
    return time.monotonic() - begin, loaders


def two_workers(mayfly, folder, partitioned):
    word = str(partitioned).lower()
    summary = ended(start(mayfly, folder, f"partitioned-{word}", CACHE_JOB.format(partitioned=word), workers=2))
    return summary["time_s"], summary["loader"]


def bench_prep(mayfly, rounds):
    ratios = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="mayfly-bench-") as folder:
            ended(start(mayfly, folder, "warm", PREP_JOB.format(share="", rate=0.01)))  # makes the file
            alone_s, alone = four_jobs(mayfly, folder, False)
            shared_s, shared = four_jobs(mayfly, folder, True)
        ratios.append(alone_s / shared_s)
        cpu = [sum(loader["prep_s"] for loader in loaders) for loaders in (alone, shared)]
        print(f"four jobs: {alone_s:.1f} s each for itself, {shared_s:.1f} s together: {ratios[-1]:.2f} times; "
              f"preparing took {cpu[0]:.1f} and {cpu[1]:.1f} s; samples prepared together, by job: "
              f"{[loader['prepared'] for loader in shared]}, received: {[loader['received'] for loader in shared]}", flush=True)
    return ratios


def bench_cache(mayfly, rounds):
    ratios = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="mayfly-bench-") as folder:
            alone_s, alone = two_workers(mayfly, folder, False)
            one_s, one = two_workers(mayfly, folder, True)
        ratios.append(alone_s / one_s)
        print(f"two workers: {alone_s:.1f} s with caches of their own, {one_s:.1f} s with one: {ratios[-1]:.2f} times", flush=True)
        for name, loader in (("own", alone), ("one", one)):
            print(f"  {name}: " + ", ".join(f"{key} {loader[key]}" for key in ("hits", "from_peers", "from_storage", "peers_failed")),
                  flush=True)
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mayfly")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["prep", "cache"])
    options = parser.parse_args()
    options.mayfly = os.path.realpath(options.mayfly)
    for name, bench in (("prep", bench_prep), ("cache", bench_cache)):
        if options.only in (None, name):
            ratios = bench(options.mayfly, options.rounds)
            print(f"{name}: median {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
