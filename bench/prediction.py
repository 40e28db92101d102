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
import subprocess
import sys
import tempfile
import time

import machines
import training

BATCHES = {"mlp": 128, "resnet": 32}  # of each worker
WARM_UP, WARM_UP_MIXED = 8, 25  # steps of a worker; with a barrier, work is dealt out by speed after 20
QUIET = 0.05
MOST_TRIES = 3
FOREVER = 10**7
MODELS = {
    "mlp": ("{name: mlp, hidden: [512, 512]}", "{name: digits, samples: 60000}", 4 * (784 * 512 + 512 * 512 + 512 * 10 + 1034)),
    "resnet": ("{name: resnet, depth: 8}", "{name: digits, samples: 60000}", 4 * 75002),
}
BASE = "cpu15-10"    # 0.15 core, 10 MB/s
SERVER = "cpu30-20"
PREDICTORS = ("queue", "spotdnn", "cynthia", "additive")
USD_PER_CORE_HOUR, USD_PER_MB_HOUR = 0.04, 0.0005  # made up; the shape of a price list


class Cluster:
    """"mlp asp cpu15-10=4 / cpu30-20=1"; without servers: "mlp ring cpu15-10=4"."""

    def __init__(self, text):
        self.name = text
        self.model, self.sync, rest = text.split(" ", 2)
        workers, _, servers = rest.partition(" / ")
        self.workers, self.servers = counts(workers), counts(servers)
        self.count = sum(self.workers.values())

    @property
    def batch(self):
        """Of an update, as the job file says it."""
        return BATCHES[self.model] * (1 if self.sync == "asp" else self.count)

    def alone(self):
        """One worker, and one server where there are any: what profiles come from and what it is measured between."""
        return Cluster(f"{self.model} {self.sync} {BASE}=1" + (f" / {SERVER}=1" if self.servers else ""))


def counts(text):
    return {name: int(number) for name, number in (entry.split("=") for entry in text.split(",") if entry)}


def flag(machine_counts):
    return ",".join(f"{name}={number}" for name, number in machine_counts.items())


def figures(name):
    """(cores, MB/s) of a type."""
    cores, mb_per_s = name[3:].split("-")
    return int(cores) / 100, float(mb_per_s)


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
LOSS_CLUSTERS = {"mlp asp cpu15-10=4 / cpu30-20=1", "mlp bsp cpu15-10=2 / cpu30-20=1", "mlp ring cpu15-10=4"}
MOST_CORES = 1.6


def write_job(folder, cluster, objective, checkpoint=""):
    network, data, _ = MODELS[cluster.model]
    text = (f"name: bench\nobjective: {{{objective}}}\ntrain:\n  model: {network}\n  data: {data}\n"
            f"  optimiser: {{kind: sgd, rate: 0.02}}\n  batch: {cluster.batch}\n")
    if cluster.servers:
        text += f"  servers: {{count: {sum(cluster.servers.values())}, sync: {cluster.sync}}}\n"
    text += f"  checkpoint: {{{checkpoint or 'every: 1h'}}}\n"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/job.yaml", "w", encoding="utf-8") as file:
        file.write(text)
    return f"{folder}/job.yaml"


class ShapedRun(training.Run):
    """A run whose processes are all started here, each on its own machine."""

    def __init__(self, build, folder, star, cluster, objective, checkpoint=""):
        job = write_job(folder, cluster, objective, checkpoint)
        self.out, self.offset, self.error_file = f"{folder}/run", None, f"{folder}/run.err"
        controller = star.machine()
        self.front = controller.start(
            [f"{build}/mayfly", "run", job, "--engine", "none", "--workers", str(cluster.count), "--interface", "eth0", "--out",
             self.out, "-y", "--json"], self.error_file)
        address = self.wait("an address", lambda: self.read("address"))
        self.server_machines = self.start_all(build, folder, star, "server", cluster.servers, address)
        self.worker_machines = self.start_all(build, folder, star, "worker", cluster.workers, address)
        self.wait_training(cluster.count)
        for machine in self.server_machines + self.worker_machines:
            machine.limit()

    def read(self, name):
        try:
            with open(f"{self.out}/{name}", encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return ""

    def start_all(self, build, folder, star, role, machine_counts, address):
        started = []
        for name, number in machine_counts.items():
            for _ in range(number):
                machine = star.machine(*figures(name))
                machine.start([f"{build}/mayfly-train", role, "--join", address, "--interface", "eth0", "--token-file",
                               f"{self.out}/token"], f"{folder}/{role}-{machine.number}.log", training.worker_environment())
                started.append(machine)
        return started


def measured(build, folder, cluster, seconds):
    """Seconds an update, and core-seconds of all servers an update, in the long run."""
    with tempfile.TemporaryDirectory(dir=folder) as own, machines.Star() as star:
        run = ShapedRun(build, own, star, cluster, f"steps: {FOREVER}")
        updates = lambda: run.committed() / cluster.batch
        warm_up = WARM_UP * cluster.count if cluster.sync == "asp" else WARM_UP_MIXED if len(cluster.workers) > 1 else WARM_UP
        at_start = updates()
        run.wait("a warm-up", lambda: updates() >= at_start + warm_up, pause_s=0.1)
        begin, spent = run.steps()[-1], sum(machine.cpu_s() for machine in run.server_machines)
        end = time.monotonic() + seconds
        run.wait("steps", lambda: time.monotonic() > end and updates() > begin[1] / cluster.batch + 10, pause_s=0.1)
        if any(line.get("event") in ("lost", "notice") for line in run.journal()):
            raise training.Failure(f"{cluster.name}: a worker was lost: {run.errors()}")
        last, spent = run.steps()[-1], sum(machine.cpu_s() for machine in run.server_machines) - spent
        steps = (last[1] - begin[1]) / cluster.batch
        return {"step_s": (last[0] - begin[0]) / steps, "server_cpu_s": spent / steps, "steps": steps}


def link_rate(star, mb_per_s):
    """What TCP gets through such a link, MB/s: parameters of the mlp, again and again, with pauses."""
    with tempfile.NamedTemporaryFile() as log:
        sender, receiver = star.machine(None, mb_per_s), star.machine(None, mb_per_s)
        sender.limit()
        receiver.limit()
        receiver.start([sys.executable, machines.__file__, "receive", receiver.address], os.devnull)
        sender.start([sys.executable, machines.__file__, "send", receiver.address, str(MODELS["mlp"][2])], log.name).wait(60)
        return float(log.read())


def measured_links():
    """{MB/s told: MB/s got}."""
    rates = {figures(name)[1] for cluster in CLUSTERS for name in {**cluster.workers, **cluster.servers}}
    with machines.Star() as star:
        return {f"{rate:g}": link_rate(star, rate) for rate in sorted(rates)}


def write_catalog(folder, links):
    """Of every type there is, for `mayfly predict`."""
    names = sorted({name for cluster in CLUSTERS for name in {**cluster.workers, **cluster.servers}} | {BASE, SERVER})
    with open(f"{folder}/catalog.yaml", "w", encoding="utf-8") as file:
        file.write("format: mayfly-catalog/1\nname: bench\nsources:\n  bench: {title: made by bench/prediction.py, date: "
                   f"{time.strftime('%Y-%m-%d')}}}\ngpus:\n")
        for cores in sorted({figures(name)[0] for name in names}):
            # What computes is a part of a core; only its ratio to others counts.
            file.write(f"  part-{cores:g}: {{memory_gib: 1, tflops_fp32: {cores:g}, source: bench}}\n")
        file.write("types:\n")
        for name in names:
            cores, mb_per_s = figures(name)
            price = USD_PER_CORE_HOUR * cores + USD_PER_MB_HOUR * mb_per_s
            file.write(f"  {name}: {{cloud: bench, gpu: part-{cores:g}, gpu_count: 1, vcpus: {cores:g}, memory_gib: 1, network_gbps: "
                       f"{links[f'{mb_per_s:g}'] * 8e-3:.5g}, source: bench, on_demand: {{usd_per_hour: {price:g}, source: bench}}}}\n")


def write_profile(folder, links, cluster, single, alone, cynthia=False):
    """What one worker says: `single` in this way of training, `alone` without servers and others."""
    size = MODELS[cluster.model][2]
    cores, mb_per_s = figures(BASE)
    profile = {
        "format": "mayfly-profile/1", "name": f"bench-{cluster.model}",
        "origin": {"basis": "measured", "source": "bench/prediction.py, one worker"},
        "job": {"model": cluster.model, "samples": 60000, "parameters_mb": size / 1e6,
                "sync": "asp" if cluster.sync == "asp" else "bsp", "exchange": "server" if cluster.servers else "all-reduce"},
        "types": {BASE: {"batch": BATCHES[cluster.model], "compute_s": alone["step_s"], "relative_sd": single["relative_sd"]}},
    }
    if cluster.servers:
        # What is over, or what was hidden behind the backward pass; one worker shows only the balance of the two.
        over = single["step_s"] - alone["step_s"] - 2 * size / (links[f"{mb_per_s:g}"] * 1e6)
        profile["link"] = {"latency_s": max(0.0, over), "overlap": min(1.0, max(0.0, -over / (2 / 3 * alone["step_s"])))}
        profile["server"] = {"type": SERVER, "cpu_s_per_update": single["server_cpu_s"]}
        profile["contention"] = {"slope": 0.8, "offset": -1.92}  # as published for the authors' cloud: one worker tells none
    if cynthia:
        work = alone["step_s"] * cores  # in core-seconds, as if a core had 1 GFLOPS
        for name in {**cluster.workers, **cluster.servers, BASE: 1, SERVER: 1}:
            profile["types"].setdefault(name, {})["gflops"] = figures(name)[0]
        del profile["types"][BASE]["compute_s"], profile["types"][BASE]["relative_sd"]
        profile["cynthia"] = {"work_gflop": work * (1 if cluster.sync == "asp" else cluster.count), "base_gflops": cores,
                              "server_gflops_used": single["server_cpu_s"] / single["step_s"]}
    path = f"{folder}/profile{'-cynthia' if cynthia else ''}.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(profile, file, indent=2)
    return path


def predicted(build, folder, cluster, predictor, profile, extra=()):
    """What `mayfly predict` says; None where the model has no answer for this way of training."""
    command = [f"{build}/mayfly", "predict", "--profile", profile, "--catalog", f"{folder}/catalog.yaml", "--cluster",
               flag(cluster.workers), "--predictor", predictor, "--market", "on-demand", "--json", *extra]
    if cluster.servers:
        command += ["--server", flag(cluster.servers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 2 and "cannot be used with predictor" in done.stderr:
        return None
    if done.returncode != 0:
        raise training.Failure(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


class Bench:
    def __init__(self, build, folder, results, seconds):
        self.build, self.folder, self.results, self.seconds = build, folder, results, seconds
        self.singles = {}  # (model, sync): one-worker runs so far
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

    def single(self, cluster):
        """A new run of one worker."""
        value = measured(self.build, self.folder, cluster.alone(), self.seconds / 2)
        self.singles.setdefault((cluster.model, cluster.sync), []).append(value)
        return value

    def without_servers(self, model):
        if (model, "ring") not in self.singles:
            self.single(Cluster(f"{model} ring {BASE}=1"))
        return mean(self.singles[model, "ring"][-2:])

    def compare(self, cluster):
        """Measures between two runs of one worker, until those agree."""
        tries = []
        before = self.single(cluster)
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
