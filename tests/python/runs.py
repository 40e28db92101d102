#!/usr/bin/python3
"""runs.py path/to/mayfly [--only CASE,...] [--keep]: real runs of scripts, alone and beside mayfly's own workers, with
losses; every sample must be in the weights exactly once an epoch."""
import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "chaos"))
import network
import signals
from harness import COUNT_JOB, HANG_S, Failure, Run, Skipped, alive, read_bytes, read_text

PACKAGE = os.path.join(HERE, "..", "..", "python")
# By its shape the same job as mayfly's own `count`.
SCRIPT_JOB = """name: count
run: /usr/bin/python3 SCRIPT
envs: {{SAMPLES: {samples}, PAUSE_S: AWHILE}}
objective: {{epochs: {epochs}}}
train:
  model: {{name: script}}
  reduction: sum
  batch: {batch}
  checkpoint: {{{checkpoint}}}
OPTIMISER{servers}"""
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def job(pause_s=0.01, servers=False):
    optimiser = "  optimiser: {{kind: sgd, rate: 1}}\n" if servers else ""
    script = os.path.join(HERE, "count.py")
    return SCRIPT_JOB.replace("SCRIPT", script).replace("AWHILE", str(pause_s)).replace("OPTIMISER", optimiser)


class ScriptRun(Run):
    def owned(self):
        """Every living process that carries this run's token, whatever its name."""
        token = read_text(f"{self.out}/token").strip().encode()
        if not token:
            return super().owned()
        pids = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())
        found = [pid for pid in pids if pid != self.front.pid and alive(pid) and
                 b"MAYFLY_TOKEN=" + token in read_bytes(f"/proc/{pid}/environ")]
        return found + [pid for pid in super().owned() if pid not in found]


class Runs:
    def __init__(self, options, name):
        self.options, self.name, self.run, self.guests = options, name, None, []

    def start(self, pause_s=0.01, script=True, **settings):
        settings = dict({"samples": 6000, "epochs": 3, "batch": 60, "workers": 2}, **settings)
        if script:
            settings["job"] = job(pause_s, bool(settings.get("servers")))
        self.run = ScriptRun(self.options, self.name, **settings)
        self.run.counts = True
        return self.run

    def join(self, pause_s=0.0, prefix=(), host="127.0.0.1"):
        """A script that comes by itself."""
        run = self.run
        address = run.wait("an address", lambda: read_text(f"{run.out}/address").strip())
        environment = dict(os.environ, MAYFLY_JOIN=address, MAYFLY_HOST=host, MAYFLY_TOKEN_FILE=f"{run.out}/token", PYTHONPATH=PACKAGE,
                           SAMPLES=str(run.samples), PAUSE_S=str(pause_s), OMP_NUM_THREADS="1")
        log = open(f"{run.folder}/guest-{len(self.guests)}.log", "wb")
        self.guests.append(subprocess.Popen([*prefix, "/usr/bin/python3", os.path.join(HERE, "count.py")], env=environment,
                                            stdout=log, stderr=log))
        log.close()
        return self.guests[-1]

    def guest_log(self, number=0):
        return read_text(f"{self.run.folder}/guest-{number}.log")

    def clear(self):
        for guest in self.guests:
            if guest.poll() is None:
                guest.kill()
            guest.wait()
        if self.run:
            self.run.clear()


def lose(run, count, number=signal.SIGKILL):
    """Workers that train; returns when the controller knows."""
    run.training(2)
    lost = len(run.events("lost"))
    run.kill_workers(count, number)
    run.wait("the losses to be noticed", lambda: len(run.events("lost")) >= lost + count)


@case
def two_scripts(runs):
    runs.start().finish()


@case
def a_script_killed(runs):
    run = runs.start(epochs=None)
    lose(run, 1)
    lose(run, 1)
    summary = run.finish()
    if summary["preemptions"] < 2:
        raise Failure(f"{summary['preemptions']} losses, want 2")


@case
def all_scripts_killed_go_on_from_a_checkpoint(runs):
    run = runs.start(epochs=None, checkpoint="every: 1s")
    run.wait("a checkpoint", lambda: os.path.exists(f"{run.out}/checkpoints/latest"))
    lose(run, 2)
    run.finish()


@case
def a_frozen_script(runs):
    run = runs.start(epochs=None)
    lose(run, 1, signal.SIGSTOP)
    run.finish()


@case
def scripts_on_two_machines(runs):
    """Beyond loopback they are encrypted. One that is cut off is lost, and the other goes on."""
    with network.Namespaces() as net:
        run = runs.start(prefix=net.inside("a"), epochs=None,
                         flags=["--engine", "none", "--interface", net.link("a"), "--orphan-after", "8s"])
        runs.join(0.01, net.inside("a"), "10.77.0.1")
        runs.join(0.01, net.inside("b"), "10.77.0.2")
        run.training(2)
        run.progress()
        if len(read_text(f"{run.out}/token").strip()) != 129:
            raise Failure("the token has no fingerprint")
        lost = len(run.events("lost"))
        net.cut()
        run.wait("the loss", lambda: len(run.events("lost")) > lost)
        run.progress()
        net.mend()
        run.finish()


@case
def the_controller_killed(runs):
    run = runs.start(epochs=None)
    run.training(2)
    run.lose_controllers()
    run.finish()


@case
def everything_killed_and_resumed(runs):
    run = runs.start(epochs=None, checkpoint="every: 1s")
    run.lose_everything()
    run.finish()


@case
def orphans_save_and_end(runs):
    run = runs.start(epochs=None, flags=("--orphan-after", "2s"), checkpoint="every: 1h")
    run.training(2)
    run.progress(600)
    workers, trained = run.workers(), run.committed()
    run.hit([run.front.pid, run.controller()])
    run.wait("the orphans to end", lambda: not any(alive(pid) for pid in workers), may_end=True)
    kept = [name for name in os.listdir(f"{run.out}/checkpoints") if name.startswith("checkpoint-")]
    if not kept:
        raise Failure("the orphans wrote no checkpoint")
    run.resume()
    run.progress()
    if run.finish()["samples"] <= trained - 60:
        raise Failure("the run went back behind what the orphans saved")


@case
def a_notice(runs):
    run = runs.start(epochs=None)
    run.training(2)
    pid = run.workers()[0]
    run.hit(pid, signal.SIGTERM)
    run.wait("the notice to be heard", lambda: run.events("notice"))
    run.wait("the worker to be let go", lambda: not alive(pid))
    run.finish()
    logs = "".join(read_text(f"{run.out}/logs/{name}") for name in os.listdir(f"{run.out}/logs"))
    if "notice: " not in logs:
        raise Failure("mayfly.notice() said nothing")


@case
def sigterm_to_everybody(runs):
    signals.told_again_and_again(runs.start(epochs=None, checkpoint="every: 1h"))


@case
def sigterm_to_everybody_with_servers(runs):
    run = runs.start(epochs=None, checkpoint="every: 1h", servers="count: 2, sync: asp")
    signals.told_again_and_again(run, rounds=2)


@case
def notices_of_every_cloud(runs):
    run = runs.start(epochs=None)
    for number, cloud in enumerate(("aws", "gcp", "azure")):
        run.training(2)
        done = subprocess.run([runs.options.mayfly, "drill", run.out, "--lose", "1", "--notice", cloud, "--json"],
                              capture_output=True, text=True, timeout=HANG_S, check=False)
        if done.returncode != 0:
            raise Failure(f"drill of {cloud}: exit code {done.returncode}: {done.stderr}{done.stdout}")
        if len(run.events("notice")) <= number:
            raise Failure(f"no notice of {cloud} was heard")
    if run.finish()["samples_redone"] != 0:
        raise Failure("samples were trained again, though there were notices")


@case
def servers_of_a_script(runs):
    runs.start(servers="count: 2, sync: bsp").finish()


@case
def servers_of_a_script_nobody_waits(runs):
    run = runs.start(servers="count: 1, standby: 1, sync: asp", epochs=None)
    lose(run, 1)
    run.training(2)
    run.kill_servers(1)
    run.settle()
    run.progress(600)
    run.finish()


def mixed(runs, sync):
    # A run sends away whoever comes beyond its machines, so there is a place for the script, and time for it to come.
    roomy = COUNT_JOB.replace("train:", "elastic: {{max: 2}}\ntrain:")
    run = runs.start(script=False, job=roomy, servers=f"count: 2, sync: {sync}", workers=1, samples=200_000, epochs=None,
                     batch=1000)
    guest = runs.join()
    run.training(2)
    run.progress()
    run.finish()
    if guest.wait(30) != 0:
        raise Failure(f"the script ended with code {guest.returncode}")
    if "ends at" not in runs.guest_log():
        raise Failure("the script did not come to its end")
    if "after 0" in runs.guest_log():
        raise Failure("nothing that the script computed counted")


@case
def beside_mayflys_own_workers_bsp(runs):
    mixed(runs, "bsp")


@case
def beside_mayflys_own_workers_asp(runs):
    mixed(runs, "asp")


@case
def a_script_with_an_error(runs):
    run = runs.start()
    run.clear()
    folder = os.path.join(runs.options.folder, runs.name)
    path = os.path.join(folder, "broken.yaml")
    text = read_text(f"{folder}/job.yaml").replace("PAUSE_S: 0.01", "PAUSE_S: oops")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run([runs.options.mayfly, "run", path, "--workers", "1", "--out", f"{folder}/broken", "-y"],
                          capture_output=True, text=True, timeout=HANG_S, check=False)
    if done.returncode != 2 or "the script ended: ValueError" not in done.stderr:
        raise Failure(f"exit code {done.returncode}: {done.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mayfly")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    options.mayfly, options.seed = os.path.abspath(options.mayfly), 1
    names = options.only.split(",") if options.only else list(CASES)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="mayfly-python-") as folder:
        options.folder = folder
        for name in names:
            runs, start = Runs(options, name), time.monotonic()
            try:
                CASES[name](runs)
                print(f"{name}: passed in {time.monotonic() - start:.1f} s", flush=True)
            except Skipped as why:
                print(f"{name}: skipped: {why}", flush=True)
            except Failure as why:
                failed += 1
                print(f"{name}: FAILED: {why}\n{runs.run.story() if runs.run else ''}", flush=True)
                for number in range(len(runs.guests)):
                    print("--- guest\n" + "\n".join(runs.guest_log(number).splitlines()[-20:]))
            finally:
                runs.clear()
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
