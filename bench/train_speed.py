#!/usr/bin/python3
"""train_speed.py [BUILD] [--models resnet,mlp,gpt] [--seconds S] [--workers 1,2] [--folder F]: what a step of `mayfly run`
costs beside the same step in a plain LibTorch loop (one worker) or over bare gloo (two). Each repetition is baseline, ours,
baseline; it counts as quiet where the baselines are within 5 %, and is repeated up to five times where they are not."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import training

BATCH = 32  # of each worker
WARM_UP = 10
QUIET = 0.05
MOST_REPETITIONS = 5
QUIET_WANTED = 3


def output_of(process):
    text, _ = process.communicate(timeout=training.HANG_S)
    if process.returncode != 0:
        raise training.Failure(f"{process.args} ended with code {process.returncode}")
    return text


def baseline(build, folder, job, steps, workers):
    """Seconds a step."""
    environment = training.worker_environment()
    numbers = dict(env=environment, stdout=subprocess.PIPE, text=True)
    if workers == 1:
        command = training.pinned(training.CORES[0]) + [f"{build}/bench/plain_loop", job, str(steps), str(WARM_UP)]
        return json.loads(output_of(subprocess.Popen(command, **numbers)))["step_s"]
    store = f"{folder}/store"
    shutil.rmtree(store, ignore_errors=True)
    os.makedirs(store)
    ranks = []
    for rank in range(workers):
        command = training.pinned(training.CORES[rank % len(training.CORES)])
        command += [f"{build}/bench/gloo_loop", job, str(steps), str(rank), str(workers), store, str(WARM_UP)]
        ranks.append(subprocess.Popen(command, **numbers))
    return json.loads([output_of(rank) for rank in ranks][0])["step_s"]


def ours(build, folder, job, workers, batch):
    """Seconds a step. One worker has one core, which it shares with the controller; of two each has its own."""
    run = training.Run(build, folder, job, workers, cores=training.CORES[:workers])
    try:
        run.finish()
        return training.step_seconds(run.steps(), batch, WARM_UP)
    finally:
        run.end()


def compare(build, folder, model, workers, seconds):
    batch = BATCH * workers
    rough = training.write_job(folder, model, batch, 1)
    steps = max(50, round(seconds / baseline(build, folder, rough, 20, workers)))
    job = training.write_job(folder, model, batch, steps + WARM_UP)
    ratios, quiet = [], []
    for repetition in range(MOST_REPETITIONS):
        before = baseline(build, folder, job, steps, workers)
        own = ours(build, folder, job, workers, batch)
        after = baseline(build, folder, job, steps, workers)
        ratio = own / ((before + after) / 2)
        ratios.append(ratio)
        apart = abs(before - after) / min(before, after)
        if apart <= QUIET:
            quiet.append(ratio)
        print(f"| {model} | {workers} | {repetition + 1} | {1e3 * before:.2f} | {1e3 * own:.2f} | {1e3 * after:.2f} | "
              f"{ratio:.3f} | {'yes' if apart <= QUIET else f'no, {100 * apart:.0f} %'} |", flush=True)
        if len(quiet) >= QUIET_WANTED:
            break
    return statistics.median(quiet or ratios), len(quiet), len(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", default=f"{training.SOURCE}/build")
    parser.add_argument("--models", default="resnet,mlp,gpt")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--seconds", type=float, default=20, help="of each run")
    parser.add_argument("--folder", help="where runs go (a temporary one)")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    with tempfile.TemporaryDirectory(prefix="train-speed-", dir=options.folder) as folder:
        print(f"Milliseconds a step, {BATCH} samples a worker, one thread each, {len(training.CORES)} cores:\n")
        print("| model | workers | repetition | baseline | mayfly run | baseline | ratio | quiet |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
        results = []
        for workers in (int(word) for word in options.workers.split(",")):
            for model in options.models.split(","):
                results.append((model, workers, *compare(build, folder, model, workers, options.seconds)))
    print("\n| model | workers | baseline | median ratio | quiet repetitions |\n| --- | --- | --- | --- | --- |")
    for model, workers, ratio, quiet, all_of in results:
        verdict = f"{quiet} of {all_of}" if quiet else f"none of {all_of}: too noisy to tell"
        print(f"| {model} | {workers} | {'plain_loop' if workers == 1 else 'gloo_loop'} | {ratio:.3f} | {verdict} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
