"""Cases that only Slurm can play: its own preemption, its errors, its queue."""
import json
import os
import signal
import subprocess

from machines import ENGINE_FILE, Failure
from harness import HANG_S, read_text

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def busy(engine, partition, nodes):
    """A job that takes whole nodes; its number."""
    return engine.cluster.call("sbatch", "--parsable", "-p", partition, f"--nodes={nodes}", "--exclusive", "--time=60",
                               "--output=/dev/null", "--wrap", "sleep 3600").strip()


def taken(engine, partition, nodes):
    """Likewise, once it has them."""
    job = busy(engine, partition, nodes)
    engine.cluster.wait("the job to run", lambda: engine.cluster.call("squeue", "-h", "-j", job, "-o", "%T").strip() == "RUNNING")
    return job


def free(engine, job):
    engine.cluster.call("scancel", job)
    engine.cluster.wait("the job to end", lambda: not engine.cluster.call("squeue", "-h", "-j", job, check=False).strip())


def waiting(run):
    """Where status says that machines are which are not there yet."""
    status = json.loads(subprocess.run([run.mayfly, "status", run.out, "--json"], capture_output=True, text=True,
                                       timeout=HANG_S, check=True).stdout)
    return [machine["where"] for machine in status["machines"] if machine["stage"] == "ordered"]


def preempt(start, engine):
    """An on-demand job takes the machines of a node: they hand over, the others train on, and replacements come."""
    run = start(workers=6, checkpoint="every: 1h")
    run.training(6)
    before = run.events_members()
    job = busy(engine, "ondemand", 1)
    try:
        run.wait("two that go", lambda: len(run.events("lost")) >= 2)
        told = [remark for remark in run.remarks() if "will be taken in" in remark]
        if len(told) < 2:
            raise Failure(f"two machines went, and notices were {told}")
        run.wait("the others to train", lambda: len(run.events_members()) == 4)
        run.progress()
        run.wait("Slurm's reason", lambda: any(remark.startswith("2 machines wait in partition spot") for remark in
                                               run.remarks()))
        run.wait("status to say so", lambda: len(waiting(run)) == 2 and all("waits in spot: " in w for w in waiting(run)))
    finally:
        free(engine, job)
    run.wait("replacements", lambda: run.replaced(before))
    summary = run.finish()
    if summary["samples_redone"] or summary["preemptions"] != 2:
        raise Failure(f"{summary['samples_redone']} samples trained again, {summary['preemptions']} preemptions: want 0, 2")
    if not summary["cost_usd"] > 0:
        raise Failure("the partition's price was not counted")
    engine.expect_empty(run)


@case
def an_on_demand_job_preempts(start, engine):
    preempt(start, engine)


@case
def an_on_demand_job_preempts_where_slurm_sends_the_users_signal(start, engine):
    engine.cluster.configure("preempt_send_user_signal")
    try:
        preempt(start, engine)
    finally:
        engine.cluster.configure()


@case
def no_capacity(start, engine):
    """Nothing is free: it waits, says why, and an interrupt leaves nothing in the queue. Fifty machines at once."""
    job = taken(engine, "ondemand", 3)
    try:
        run = start(workers=50)
        run.wait("fifty in the queue", lambda: len(engine.held(run)) == 50)
        run.wait("Slurm's reason", lambda: any(remark.startswith("50 machines wait in partition spot: ") for remark in
                                               run.remarks()))
        run.front.send_signal(signal.SIGINT)
        if code := run.front.wait(HANG_S):
            raise Failure(f"exit code {code}, want 0")
        engine.expect_empty(run)
    finally:
        free(engine, job)


@case
def capacity_that_comes(start, engine):
    """It trains with what it has, and with more as soon as there is more."""
    job = taken(engine, "ondemand", 2)
    try:
        run = start(workers=4)
        run.training(2)
    finally:
        free(engine, job)
    run.training(4)
    run.finish()
    engine.expect_empty(run)


@case
def the_end_of_a_machines_time(start, engine):
    """A minute before its time is over a machine is told, and replaced."""
    engine_file = f"{engine.folder}/brief.yaml"
    with open(engine_file, "w", encoding="utf-8") as file:
        file.write(ENGINE_FILE.replace("slurm:\n", "slurm:\n  time: 1m\n  hand_over: 30s\n", 1))
    run = start(workers=2, checkpoint="every: 1h", flags=["--engine-file", engine_file])
    run.training(2)
    before = run.events_members()
    run.wait("two others", lambda: not set(run.events_members()) & set(before) and run.trains(2))
    if run.finish()["samples_redone"]:
        raise Failure("samples were trained again")
    engine.expect_empty(run)


def refused(run, want):
    """Exit code 2, one line that says so, nothing written and nothing asked for."""
    code = run.front.wait(HANG_S)
    lines = read_text(f"{run.folder}/err.0").splitlines()
    if code != 2 or len(lines) != 1 or not lines[0].startswith("mayfly: ") or want not in lines[0]:
        raise Failure(f"code {code}, said {lines}: want 2 and one line with '{want}'")
    if os.path.exists(run.out):
        raise Failure("left a folder")


ERRORS = {
    "no-such-partition": ("spot: {partition: spott}", "no partition 'spott' (did you mean 'spot'?); want one of"),
    "partition-down": ("spot: {partition: down}", "partition down is DOWN, want one that is UP"),
    "no-permission": ("spot: {partition: closed}", "Slurm would not start a slurm in partition closed: "),
    "too-long": ("spot: {partition: short}\n  time: 1h", "engine.slurm.time 1h: partition short gives at most 10m"),
    "too-large": ("spot: {partition: spot}\n  types: {big: {cores: 64}}",
                  "Slurm would not start a big in partition spot: sbatch: allocation failure: Requested node configuration"),
    "no-such-gpu": ("spot: {partition: spot}\n  types: {gpu: {gres: 'gpu:1'}}", "Invalid generic resource"),
    "one-market": ("on-demand: {partition: ondemand}", "no partition for the spot market"),
}


@case
def errors_in_one_line(start, engine):
    for name, (text, want) in ERRORS.items():
        if name == "no-permission" and os.geteuid() != 0:
            print("left out: no-permission: Slurm's own user may use every partition but one that is closed to root")
            continue
        file_name = f"{engine.folder}/{name}.yaml"
        with open(file_name, "w", encoding="utf-8") as file:
            file.write(f"format: mayfly-engine/1\nkind: slurm\nslurm:\n  {text}\n")
        flags = ["--engine-file", file_name] + (["--market", "spot"] if name == "one-market" else [])
        run = start(name=name, workers=2, flags=flags)
        refused(run, want)
        if engine.held(run):
            raise Failure(f"{name}: something is in the queue")
    refused(start(name="as", workers=2, flags=["--as", "g3.8xlarge=2"]), "--as: is for machines that this computer plays")


def appended(text):
    """To the job file."""
    def prepare(folder):
        with open(f"{folder}/job.yaml", "a", encoding="utf-8") as file:
            file.write(text)
    return prepare


@case
def a_job_that_says_where(start, engine):
    """No flag names the engine; a partition alone is one of both markets, and workers read the same file."""
    for name, text in (("infra", "resources: {infra: slurm/spot}\n"),
                       ("block", "engine: {kind: slurm, slurm: {spot: {partition: spot}, time: 5m}}\n")):
        run = start(name=name, workers=2, samples=1_000_000, epochs=1, own=True, prepare=appended(text))
        run.training(2)
        run.end()
        engine.expect_empty(run)


@case
def no_slurm_here(start, engine):
    run = start(workers=2, prefix=["env", "PATH=/nowhere"])
    refused(run, "no sbatch on this machine")


@case
def a_sweep(start, engine):
    """The run is given up while its machines wait; nobody is left to take them back."""
    job = taken(engine, "ondemand", 3)
    try:
        run = start(workers=3)
        run.wait("three in the queue", lambda: len(engine.held(run)) == 3)
        refuse = subprocess.run([run.mayfly, "sweep", run.out], capture_output=True, text=True, timeout=HANG_S, check=False)
        if refuse.returncode != 2 or "is driven" not in refuse.stderr:
            raise Failure(f"a run that is driven was swept: {refuse}")
        run.hit(run.drivers())
        run.front.wait(HANG_S)
        swept = subprocess.run([run.mayfly, "sweep", run.out, "--json"], capture_output=True, text=True, timeout=HANG_S,
                               check=True)
        if len(json.loads(swept.stdout)["ended"]) != 3:
            raise Failure(f"swept: {swept.stdout}")
        engine.expect_empty(run)
    finally:
        free(engine, job)


@case
def a_queue_that_does_not_answer_for_a_while(start, engine):
    """Slurm's controller is being started anew: training goes on, and a loss is made up for when it is back."""
    run = start(workers=3)
    run.training(3)
    before = run.events_members()
    daemon = engine.cluster.daemons["slurmctld"]
    daemon.terminate()
    daemon.wait(HANG_S)
    run.kill_workers(1)
    run.wait("the loss", lambda: run.events("lost"))
    run.progress()
    engine.cluster.run("slurmctld", "slurmctld", "-D", "-i")
    run.wait("its replacement", lambda: run.replaced(before))
    run.finish()
    engine.expect_empty(run)
