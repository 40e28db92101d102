#!/usr/bin/python3
"""time_to_loss.py [BUILD] [--loss L] [--profile-for S] [--only PATTERN]: predicted against measured time to a loss, of clusters that are
made on this host (machines.py). How the loss falls is what `mayfly profile` learns of the job on this machine in S seconds;
how long an update takes comes from shaped runs of one worker, as in prediction.py; the rest is `mayfly predict --loss`. Measured:
the updates of the cluster until the loss that the run itself reports is L, times its seconds an update."""
import argparse
import fnmatch
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile

import machines
import training
from clusters import BASE, SERVER, Cluster, ShapedRun, flag, measured, measured_links, write_catalog, write_job, write_profile

CLUSTERS = [Cluster(text) for text in (
    f"mlp asp {BASE}=2 / {SERVER}=1",
    f"mlp asp {BASE}=4 / {SERVER}=1",
    f"mlp asp {BASE}=8 / {SERVER}=1",
    f"mlp bsp {BASE}=2 / {SERVER}=1",
    f"mlp bsp {BASE}=4 / {SERVER}=1",
    f"mlp ring {BASE}=2",
    f"mlp ring {BASE}=4",
    f"mlp ring {BASE}=8",
)]
ALONE_S = 10  # of each run of one worker
PATIENCE_S = 240


def learned(build, folder, cluster, seconds):
    """The loss curve of `mayfly profile`, of this job on this machine as it is."""
    job, out = write_job(f"{folder}/profiled", cluster), f"{folder}/learned.json"
    done = subprocess.run([f"{build}/mayfly", "profile", job, "--workers", "2", "--for", f"{seconds}s", "-o", out, "--json"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise training.Failure(f"{cluster.name}: profile: {done.stderr.strip()}")
    with open(out, encoding="utf-8") as file:
        loss = json.load(file).get("loss")
    if not loss:
        raise training.Failure(f"{cluster.name}: no loss curve in {seconds} s: {done.stderr.strip()}")
    return loss


def reached(build, folder, cluster, loss):
    """(updates, seconds an update) until the run says that its loss is this."""
    with tempfile.TemporaryDirectory(dir=folder) as own, machines.Star() as star:
        run = ShapedRun(build, own, star, cluster)
        begin = run.steps()[-1]
        low_enough = lambda: next((line["sample"] for line in run.journal() if line.get("reading") == "training" and
                                   line["loss"] <= loss), None)
        samples = run.wait(f"a loss of {loss}", low_enough, limit_s=PATIENCE_S, pause_s=0.2)
        last = run.steps()[-1]
        return samples / cluster.batch, (last[0] - begin[0]) / ((last[1] - begin[1]) / cluster.batch)


def promised(build, folder, cluster, profile, loss):
    command = [f"{build}/mayfly", "predict", "--profile", profile, "--catalog", f"{folder}/catalog.yaml", "--cluster",
               flag(cluster.workers), "--market", "on-demand", "--loss", str(loss), "--json"]
    command += ["--server", flag(cluster.servers)] if cluster.servers else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise training.Failure(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", default=f"{training.SOURCE}/build")
    parser.add_argument("--loss", type=float, default=1.0)
    parser.add_argument("--profile-for", type=int, default=20)
    parser.add_argument("--only", default="*")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    build, errors, alone = os.path.abspath(options.build), [], {}
    print("| cluster | updates: predicted | measured | s an update: predicted | measured | time s: predicted | measured | error |\n|" + " --- |" * 8)
    with tempfile.TemporaryDirectory(prefix="time-to-loss-") as folder:
        try:
            links = measured_links()
        except machines.Skipped as why:
            print(f"skipped: {why}")
            return 0
        write_catalog(folder, links)

        def single(cluster):
            if cluster.name not in alone:
                alone[cluster.name] = dict(measured(build, folder, cluster, ALONE_S), relative_sd=0)
            return alone[cluster.name]

        for cluster in CLUSTERS:
            if not fnmatch.fnmatchcase(cluster.name, options.only):
                continue
            own, without = single(cluster.alone()), single(Cluster(f"{cluster.model} ring {BASE}=1"))
            path = write_profile(folder, links, cluster, own, without)
            with open(path, encoding="utf-8") as file:
                profile = json.load(file)
            profile["loss"] = learned(build, folder, cluster, options.profile_for)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(profile, file)
            answer = promised(build, folder, cluster, path, options.loss)
            updates, step_s = reached(build, folder, cluster, options.loss)
            errors.append(answer["time_s"] / (updates * step_s) - 1)
            print(f"| {cluster.name} | {answer['iterations']:.0f} | {updates:.0f} | {answer['step_s']:.4f} | {step_s:.4f} | {answer['time_s']:.1f} | "
                  f"{updates * step_s:.1f} | {100 * errors[-1]:+.1f} % |", flush=True)
    if errors:
        print(f"\nmean error {100 * statistics.mean(map(abs, errors)):.1f} %, worst {100 * max(map(abs, errors)):.1f} %, of {len(errors)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
