"""Cases of engines whose machines fetch the run's files: ssh, and a program of one's own."""
import json
import os
import shutil
import signal
import subprocess
import sys

from machines import HERE, Failure
from harness import HANG_S, read_text

sys.path.insert(0, os.path.join(HERE, "..", "python"))
import runs as scripts
from slurm_cases import refused

CASES = {}


def case(*engines):
    def add(function):
        CASES[function.__name__] = (engines, function)
        return function
    return add


def cases_of(engine):
    return {name: function for name, (engines, function) in CASES.items() if engine in engines}


GPT_JOB = """name: words
objective: {{epochs: {epochs}}}
train:
  model: {{name: gpt, layers: 1, heads: 1, embedding: 8, context: 8}}
  data: {{name: text, files: [data/words.txt]}}
  optimiser: {{kind: sgd, rate: 0.1}}
  batch: {batch}
  checkpoint: {{{checkpoint}}}
{servers}"""


@case("ssh", "exec")
def a_script_that_comes_along(start, engine):
    """The script, its folder and the package are fetched; checkpoints go and come."""
    job = scripts.job(0.01).replace(os.path.join(scripts.HERE, "count.py"), "count.py")
    run = start(workers=2, samples=6000, batch=60, job=job, checkpoint="every: 1s",
                prepare=lambda folder: shutil.copy(os.path.join(scripts.HERE, "count.py"), folder))
    run.counts = True
    run.training(2)
    run.wait("a checkpoint", lambda: os.path.exists(f"{run.out}/checkpoints/latest"))
    before = run.events_members()
    run.hit(scripts_of(run))
    run.wait("two that train again", lambda: run.replaced(before))
    run.progress()
    run.finish()
    engine.expect_empty(run)


def scripts_of(run):
    """Their processes, known by the address that they were given."""
    address = read_text(f"{run.out}/address").strip()
    found = []
    for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                mine = f"MAYFLY_JOIN={address}".encode() in file.read().split(b"\0")
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if mine and b"count.py" in file.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            continue
    return found


@case("ssh", "exec")
def data_that_comes_along(start, engine):
    def prepare(folder):
        os.makedirs(f"{folder}/data")
        with open(f"{folder}/data/words.txt", "w", encoding="utf-8") as file:
            file.write("it was a bright cold day in april and the clocks were striking thirteen\n" * 200)

    run = start(workers=2, samples=1799, epochs=1, batch=200, job=GPT_JOB, prepare=prepare)  # 14,400 characters, 8 each
    summary = run.end()
    if not summary["epochs"] >= 1 or not summary["loss"] > 0:
        raise Failure(f"trained: {summary}")
    engine.expect_empty(run)


@case("exec")
def no_room_for_a_while(start, engine):
    """Trains with what it has, says why, and takes the others when they come."""
    engine.setting("most", "1")
    run = start(workers=3)
    run.wait("one that trains", lambda: len(run.events_members()) == 1)
    run.progress()
    run.wait("the reason", lambda: any("2 machines wait for 1 of 1 machines are in use" in remark for remark in run.remarks()))
    engine.setting("most", "")
    run.training(3)
    run.finish()
    engine.expect_empty(run)


@case("exec")
def refusals_are_told_and_tried_again(start, engine):
    engine.setting("refuse", "QuotaExceeded: 0 of these left")
    run = start(workers=2)
    run.wait("the reason", lambda: any("QuotaExceeded: 0 of these left; tried again in" in remark for remark in run.remarks()))
    engine.setting("refuse", "")
    run.training(2)
    run.finish()
    engine.expect_empty(run)


@case("ssh")
def a_host_that_cannot_be_reached_for_a_while(start, engine):
    """What it holds trains on; what is lost meanwhile comes back elsewhere."""
    run = start(workers=3)
    run.training(3)
    engine.hosts.stop_host("n1")
    before = run.events_members()
    run.progress()
    if run.events_members() != before:
        raise Failure(f"{before} became {run.events_members()}")
    engine.lose(run, [0])
    run.wait("its replacement", lambda: run.replaced(before))
    engine.hosts.start_host("n1")
    run.finish()
    engine.expect_empty(run)


@case("ssh")
def hosts_that_refuse(start, engine):
    """A key that they do not know: one line, before anything is written."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{engine.folder}/other"], check=True)
    config = read_text(engine.hosts.config).replace(f"{engine.folder}/user", f"{engine.folder}/other")
    with open(f"{engine.folder}/other.config", "w", encoding="utf-8") as file:
        file.write(config)
    with open(f"{engine.folder}/other.yaml", "w", encoding="utf-8") as file:
        file.write(read_text(engine.file).replace(engine.hosts.config, f"{engine.folder}/other.config"))
    refused(start(workers=2, flags=["--engine-file", f"{engine.folder}/other.yaml"]), "Permission denied")


@case("ssh", "exec")
def errors_in_one_line(start, engine):
    refused(start(name="as", workers=2, flags=["--as", "g3.8xlarge=2"]), "--as: is for machines that this computer plays")
    if engine.name == "ssh":
        refused(start(name="none", workers=2, own=True, flags=["--engine", "ssh"]), "which hosts? want engine.ssh.hosts")
        return
    refused(start(name="no-such", workers=2, own=True, flags=["--engine", "exec:/no/such"]), "/no/such: no program")
    refused(start(name="no-name", workers=2, own=True, flags=["--engine", "exec:"]), "which program? want --engine exec:PROGRAM")
    refused(start(name="dumb", workers=2, own=True, flags=["--engine", "exec:/bin/false"]), "/bin/false: list: exit code 1")
    refused(start(name="chatty", workers=2, own=True, flags=["--engine", "exec:/bin/echo"]), "'list': want a JSON object")


@case("ssh", "exec")
def a_sweep(start, engine):
    """The run is given up; nobody is left to take its machines back."""
    run = start(workers=3, flags=["--orphan-after", "5m"])
    run.training(3)
    refuse = subprocess.run([run.mayfly, "sweep", run.out], capture_output=True, text=True, timeout=HANG_S, check=False)
    if refuse.returncode != 2 or "is driven" not in refuse.stderr:
        raise Failure(f"a run that is driven was swept: {refuse}")
    run.hit(run.drivers(), signal.SIGKILL)
    run.front.wait(HANG_S)
    swept = subprocess.run([run.mayfly, "sweep", run.out, "--json"], capture_output=True, text=True, timeout=HANG_S, check=True)
    if len(json.loads(swept.stdout)["ended"]) != 3:
        raise Failure(f"swept: {swept.stdout}")
    engine.expect_empty(run)
