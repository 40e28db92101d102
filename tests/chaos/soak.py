#!/usr/bin/env python3
"""soak.py path/to/mayfly [--minutes M] [--runs N] [--seed S] [--modes MODE,...] [--jobs N] [--record FILE] [--sum]: runs in
random weather, one after another in every mode, dense with losses; each must end without a sample repeated or skipped.

It may be stopped at any time (Ctrl-C) and goes on with the same command: the record, one line of JSON for each run, says what
was done, and seeds go on behind the last. The same seed makes the same choices (not the same moments). A run that fails tells
its story and keeps its folder; the others go on, and the exit code is 1 at the end. --sum only prints what the record holds."""
import argparse
import collections
import concurrent.futures
import contextlib
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

import network
import weather
from harness import COUNT_JOB, Failure, Skipped

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "..", "python"), os.path.join(HERE, "..", "support")]
import runs as scripts
from record import Record, commit, print_table

MODES = {"mesh": "", "bsp": "bsp", "asp": "asp", "ssp": "ssp(2)", "script": "", "script-bsp": "bsp", "script-asp": "asp"}
LOSSES = ("worker", "server", "controller", "front", "frozen", "noticed", "told", "cut")
KINDS = LOSSES + ("refused",)  # what never came was not lost
STOP = threading.Event()


class Stopped(Exception):
    pass


class SoakRun(scripts.ScriptRun):
    """Counts its losses by kind, and can be stopped."""

    def __init__(self, options, name, served=False, **settings):
        self.losses, self.served, self.deaths = collections.Counter(), served, []
        super().__init__(options, name, **settings)
        self.counts = True

    def wait(self, what, predicate, **limits):
        def watched():
            if STOP.is_set():
                raise Stopped
            return predicate()
        return super().wait(what, watched, **limits)

    def lose(self, kind, pids, number=signal.SIGKILL):
        count = self.hit(pids, number)
        self.losses[kind] += count
        if kind == "controller" and count:
            self.deaths.append(time.monotonic())

    def controller_may_die(self):
        recent = [at for at in self.deaths if time.monotonic() - at < weather.HEALTHY_S * weather.MOST_DEATHS]
        return len(recent) < weather.MOST_DEATHS


def disturb(run, rng, seconds):
    """For so long, or until it ends; what was done to it."""
    done, end = [], time.monotonic() + seconds
    while run.front.poll() is None and time.monotonic() < end:
        kind = rng.choice(weather.kinds(run))
        try:
            run.progress(rng.choice([1, 1, run.samples // 20]))
        except Failure:
            if run.front.poll() is None:
                raise
            break  # it ended; finish() says how
        time.sleep(rng.uniform(0, 0.8))
        if not run.over():
            kind(run, rng)
            done.append(kind.__name__)
    return done


def settings(rng, mode):
    """A run of this mode, with and without an end."""
    script, sync = mode.startswith("script"), MODES[mode]
    servers = f"count: {rng.randint(1, 2)}, standby: {rng.randint(0, 1)}, sync: {sync}" if sync else ""
    shape = {"workers": rng.randint(2, 3), "servers": servers, "served": bool(sync),
             "checkpoint": rng.choice(["every: 1s", "every: 3s", "every: 1h", "every: 1s, keep: 1"])}
    if script:
        return dict(shape, job=scripts.job(0.01, bool(sync)), samples=6000, batch=60, epochs=rng.choice([None, 20]))
    return dict(shape, job=COUNT_JOB, workers=rng.randint(1, 5), batch=rng.choice([999, 1000, 2048]),
                samples=rng.choice([100_000, 200_003]), epochs=rng.choice([None, None, None, 20, 50]))


@contextlib.contextmanager
def own_network(options):
    """Words that put a run on a network of its own, whose line can be cut; none where that is not allowed."""
    with contextlib.ExitStack() as stack:
        try:
            yield stack.enter_context(network.Namespaces()).inside("a")
        except Skipped as reason:
            if not options.told_of_network:
                print(f"lines are not cut: {reason}", flush=True)
            options.told_of_network = True
            yield []


def play(options, seed):
    """One run; its line for the record, or none where it was stopped."""
    modes = options.modes.split(",")
    mode, rng, begin = modes[seed % len(modes)], random.Random(seed), time.monotonic()
    line = {"commit": commit("src", "python"), "seed": seed, "mode": mode}
    with own_network(options) as prefix:
        environment = ["env", f"REFUSALS={options.folder}/{seed}", f"PYTHONPATH={scripts.PACKAGE}"]
        run = SoakRun(options, str(seed), prefix=[*prefix, *environment], **settings(rng, mode))
        done, summary, problem = [], {}, ""
        try:
            done = disturb(run, rng, options.run_seconds)
            summary = run.finish()
            run.remove()
        except Stopped:
            run.clear()
            run.remove()
            return None
        except Exception as error:  # noqa: BLE001: whatever it is, the others go on
            problem = f"{type(error).__name__}: {error}"
            print(f"seed {seed} ({mode}) FAILED: {problem}\n{run.story()}", flush=True)
            run.clear()
            with contextlib.suppress(ValueError):
                summary = run.summary()
    return line | {"seconds": round(time.monotonic() - begin, 1), "events": done, "losses": dict(run.losses),
                   "repeated": summary.get("samples_repeated"), "skipped": summary.get("samples_skipped"),
                   "hang": "waited" in problem or "not finished" in problem or "Timeout" in problem,
                   "result": problem or "ok"}


def total(losses):
    return sum(losses.get(kind, 0) for kind in LOSSES)


def work_off(options, record):
    end = time.monotonic() + 60 * options.minutes
    first = options.seed if options.seed is not None else 1 + max((line["seed"] for line in record.lines), default=0)
    seeds, failed = itertools.count(first), []

    def work():
        while time.monotonic() < end and not STOP.is_set():
            seed = next(seeds)
            if options.runs and seed >= first + options.runs or not (line := play(options, seed)):
                return
            record.add(line)
            failed.append(line["result"] != "ok")
            print(f"seed {seed} ({line['mode']}): {total(line['losses'])} losses in {line['seconds']:.0f} s: "
                  f"{' '.join(line['events']) or 'calm'}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in [pool.submit(work) for _ in range(options.jobs)]:
            future.result()
    return any(failed)


def row(name, lines):
    losses = collections.Counter()
    for line in lines:
        losses.update(line["losses"])
    return (name, len(lines), f"{sum(line['seconds'] for line in lines) / 60:.1f}", total(losses),
            *(losses[kind] for kind in KINDS), sum(line["repeated"] or 0 for line in lines),
            sum(line["skipped"] or 0 for line in lines), sum(line["hang"] for line in lines),
            sum(line["result"] != "ok" for line in lines),
            " ".join(str(line["seed"]) for line in lines if line["result"] != "ok"))


def print_sum(lines):
    """By mode, by commit, and all together; seeds of runs that failed at the end of a row."""
    rows = [("", "runs", "min", "losses", *KINDS, "repeated", "skipped", "hangs", "failed", "")]
    for key, names in (("mode", MODES), ("commit", dict.fromkeys(line["commit"] for line in lines))):
        rows += [row(name, [line for line in lines if line[key] == name]) for name in names]
    print_table([*rows, row("together", lines)])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mayfly")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--runs", type=int, default=0, help="no more than these")
    parser.add_argument("--seed", type=int, help="of the first run (default: the next one of the record)")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--run-seconds", type=float, default=45, help="of weather for each run")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--record", help="soak.jsonl beside mayfly unless told")
    parser.add_argument("--sum", action="store_true", help="print what the record holds, and run nothing")
    options = parser.parse_args()
    options.mayfly = os.path.realpath(options.mayfly)
    record, failed = Record(options.record or f"{os.path.dirname(options.mayfly)}/soak.jsonl"), False
    if unknown := set(options.modes.split(",")) - set(MODES):
        parser.error(f"--modes: {unknown.pop()}, want some of {','.join(MODES)}")
    if not options.sum:
        options.folder, options.told_of_network = tempfile.mkdtemp(prefix="mayfly-soak-"), False
        options.mayfly = weather.refusing_programs(options.mayfly, f"{options.folder}/bin")
        signal.signal(signal.SIGINT, lambda *_: STOP.set())
        signal.signal(signal.SIGTERM, lambda *_: STOP.set())
        failed = work_off(options, record)
        if not failed:
            shutil.rmtree(options.folder)
    print_sum(record.lines)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
