"""Clusters of shaped machines (machines.py), runs on them, and what `mayfly predict` wants to know of them: a catalogue, and a profile
from runs of one worker. Standard library only."""
import json
import os
import subprocess
import sys
import tempfile
import time

import machines
import training

BATCHES = {"mlp": 128, "resnet": 32}  # of each worker
WARM_UP, WARM_UP_MIXED = 8, 25  # steps of a worker; with a barrier, work is dealt out by speed after 20
FOREVER = 10**7
MODELS = {
    "mlp": ("{name: mlp, hidden: [512, 512]}", "{name: digits, samples: 60000}", 4 * (784 * 512 + 512 * 512 + 512 * 10 + 1034)),
    "resnet": ("{name: resnet, depth: 8}", "{name: digits, samples: 60000}", 4 * 75002),
}
BASE = "cpu15-10"    # 0.15 core, 10 MB/s
SERVER = "cpu30-20"
TYPES = ("cpu15-5", "cpu15-10", "cpu20-10", "cpu30-10", "cpu30-20")
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
        return Cluster(f"{self.model} asp {BASE}=1 / {SERVER}=1" if self.servers else f"{self.model} ring {BASE}=1")


def counts(text):
    return {name: int(number) for name, number in (entry.split("=") for entry in text.split(",") if entry)}


def flag(machine_counts):
    return ",".join(f"{name}={number}" for name, number in machine_counts.items())


def figures(name):
    """(cores, MB/s) of a type."""
    cores, mb_per_s = name[3:].split("-")
    return int(cores) / 100, float(mb_per_s)


def write_job(folder, cluster):
    network, data, _ = MODELS[cluster.model]
    text = (f"name: bench\nobjective: {{steps: {FOREVER}}}\ntrain:\n  model: {network}\n  data: {data}\n"
            f"  optimiser: {{kind: sgd, rate: 0.02}}\n  batch: {cluster.batch}\n")
    if cluster.servers:
        text += f"  servers: {{count: {sum(cluster.servers.values())}, sync: {cluster.sync}}}\n"
    text += "  checkpoint: {every: 1h}\n"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/job.yaml", "w", encoding="utf-8") as file:
        file.write(text)
    return f"{folder}/job.yaml"


class ShapedRun(training.Run):
    """A run whose processes are all started here, each on its own machine."""

    def __init__(self, build, folder, star, cluster):
        job = write_job(folder, cluster)
        self.out, self.offset, self.error_file = f"{folder}/run", None, f"{folder}/run.err"
        controller = star.machine()
        self.front = controller.start(
            [f"{build}/mayfly", "run", job, "--engine", "none", "--workers", str(cluster.count), "--interface", "eth0", "--private-network", "--out",
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
        run = ShapedRun(build, own, star, cluster)
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
    rates = {figures(name)[1] for name in TYPES}
    with machines.Star() as star:
        return {f"{rate:g}": link_rate(star, rate) for rate in sorted(rates)}


def write_catalog(folder, links):
    """Of every type there is, for `mayfly predict`."""
    with open(f"{folder}/catalog.yaml", "w", encoding="utf-8") as file:
        file.write("format: mayfly-catalog/1\nname: bench\nsources:\n  bench: {title: made by bench/prediction.py, date: "
                   f"{time.strftime('%Y-%m-%d')}}}\ngpus:\n")
        for cores in sorted({figures(name)[0] for name in TYPES}):
            # What computes is a part of a core; only its ratio to others counts.
            file.write(f"  part-{cores:g}: {{memory_gib: 1, tflops_fp32: {cores:g}, source: bench}}\n")
        file.write("types:\n")
        for name in TYPES:
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
        # Links here have no latency: what is over is work of the worker's own CPU, and what is missing was hidden behind
        # the backward pass; one worker shows only the balance of the two.
        over = single["step_s"] - alone["step_s"] - 2 * size / (links[f"{mb_per_s:g}"] * 1e6)
        profile["types"][BASE]["compute_s"] += max(0.0, over)
        profile["link"] = {"overlap": min(1.0, max(0.0, -over / (2 / 3 * alone["step_s"])))}
        profile["server"] = {"type": SERVER, "cpu_s_per_update": single["server_cpu_s"], "in_turn": True}
        profile["contention"] = {"slope": 0.8, "offset": -1.92}  # as published for the authors' cloud: one worker tells none
    if cynthia:
        work = profile["types"][BASE]["compute_s"] * cores  # in core-seconds, as if a core had 1 GFLOPS
        for name in {**cluster.workers, **cluster.servers, BASE: 1, SERVER: 1}:
            profile["types"].setdefault(name, {})["gflops"] = figures(name)[0]
        del profile["types"][BASE]["compute_s"], profile["types"][BASE]["relative_sd"]
        profile["cynthia"] = {"work_gflop": work * (1 if cluster.sync == "asp" else cluster.count), "base_gflops": cores,
                              "server_gflops_used": single["server_cpu_s"] / single["step_s"]}
    path = f"{folder}/profile{'-cynthia' if cynthia else ''}.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(profile, file, indent=2)
    return path


def predicted(build, folder, cluster, predictor, profile):
    """What `mayfly predict` says; None where the model has no answer for this way of training."""
    command = [f"{build}/mayfly", "predict", "--profile", profile, "--catalog", f"{folder}/catalog.yaml", "--cluster",
               flag(cluster.workers), "--predictor", predictor, "--market", "on-demand", "--json"]
    if cluster.servers:
        command += ["--server", flag(cluster.servers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 2 and "cannot be used with predictor" in done.stderr:
        return None
    if done.returncode != 0:
        raise training.Failure(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)
