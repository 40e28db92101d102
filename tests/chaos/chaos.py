#!/usr/bin/env python3
"""chaos.py path/to/mayfly [--only CASE,...] [--jobs N] [--seed S] [--keep]: real processes are killed, frozen, cut off and
starved at each kind of moment, and every sample must be in the weights exactly once an epoch all the same."""
import argparse
import concurrent.futures
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

import data
import endings
import folders
import network
import notices
import sequels
import served
import signals
import strangers
from harness import DIGITS_JOB, HANG_S, TALLY, Failure, Run, Skipped, read_text

CASES = (served.CASES | signals.CASES | strangers.CASES | notices.CASES | data.CASES | folders.CASES | sequels.CASES |
         endings.CASES)

# Played by `make soak`; what they try others do in less time.
LONG = ("a_notice_to_who_then_freezes", "a_notice_and_the_end_before_its_time", "the_controller_frozen_while_workers_die",
        "a_worker_that_is_handed_the_state", "workers_while_it_stops", "everything_at_the_edge_of_an_epoch",
        "the_giver_of_a_state", "workers_at_the_edge_of_an_epoch", "workers_right_after_a_resume", "encrypted_servers",
        "the_loss_of_a_disturbed_training", "served_to_the_last_sample", "workers_with_a_notice_of_gcp",
        "served_with_a_notice_of_gcp", "served_with_a_notice_of_azure")


def case(function):
    CASES[function.__name__] = function
    return function


@case
def undisturbed(start):
    start(epochs=3).finish()


@case
def workers_before_the_first_step(start):
    run = start()
    run.hit(run.crowd(1)[0])
    run.wait("a worker", lambda: run.workers())
    run.kill_workers(1)
    run.progress()
    run.finish()


@case
def a_worker_mid_step(start):
    run = start(workers=3)
    for _ in run.rounds(5, workers=2):
        time.sleep(run.random.uniform(0, 0.2))
        run.kill_workers(1)
    run.finish()


@case
def a_worker_right_after_a_commit(start):
    run = start(workers=2)
    for _ in run.rounds(4, workers=2):
        before = run.committed()
        run.wait("a commit", lambda: run.committed() > before, pause_s=0)
        run.kill_workers(1)
    run.finish()


@case
def the_writer_of_a_checkpoint(start):
    run = start(workers=2, checkpoint="every: 1s")
    hits = 0
    while hits < 3 and (pid := run.glimpse(run.checkpoint_writer)):
        hits += run.hit(pid)
    if hits == 0:
        raise Failure("no writer was caught writing")
    run.finish()


@case
def everybody_during_a_checkpoint(start):
    run = start(workers=3, checkpoint="every: 1s")
    for _ in run.rounds(2, workers=2):
        if run.glimpse(run.checkpoint_writer):
            run.kill_workers(9)
    run.finish()


@case
def another_worker_while_the_rest_forms(start):
    run = start(workers=4)
    for _ in run.rounds(3, workers=3):
        lost = len(run.events("lost"))
        run.kill_workers(1)
        run.wait("the loss to be noticed", lambda: len(run.events("lost")) > lost, pause_s=0)
        time.sleep(run.random.uniform(0, 0.05))
        run.kill_workers(1)
    run.finish()


@case
def half_of_the_workers_at_once(start):
    run = start(workers=4)
    for _ in run.rounds(3, workers=3):
        run.kill_workers(2)
    run.finish()


@case
def all_of_the_workers_at_once(start):
    run = start(workers=3, checkpoint="every: 1s")
    for _ in run.rounds(2, workers=3):
        run.kill_workers(9)
    run.finish()


@case
def workers_that_freeze(start):
    run = start(workers=3)
    for _ in run.rounds(2, workers=3):
        lost = len(run.events("lost"))
        run.kill_workers(2, signal.SIGSTOP)
        run.wait("the frozen to be given up", lambda: len(run.events("lost")) >= lost + 2)
    run.finish()


@case
def workers_with_a_notice(start):
    run = start(workers=3)
    for _ in run.rounds(3, workers=2):
        run.kill_workers(1, signal.SIGTERM)
        run.progress(run.samples // 10, may_end=True)
    run.finish()


@case
def the_controller(start):
    run = start(workers=2)
    run.lose_controllers()
    run.finish()


@case
def the_controller_before_the_first_step(start):
    run = start(workers=2)
    run.hit(run.wait("a controller", run.controller, pause_s=0))
    run.progress()
    run.finish()


@case
def the_controller_frozen_for_a_while(start):
    run = start(workers=2)
    run.until(0.2)
    pid = run.controller()
    run.hit(pid, signal.SIGSTOP)
    time.sleep(4)  # longer than the lease of a worker
    run.hit(pid, signal.SIGCONT)
    run.finish()


@case
def the_controller_and_a_worker(start):
    run = start(workers=3)
    for _ in run.rounds(2, workers=2):
        run.hit([run.controller(), *run.workers()[:1]])
        run.progress(run.samples // 10, may_end=True)
    run.finish()


@case
def everything_then_resume(start):
    run = start(workers=2)
    run.lose_everything()
    run.finish()


@case
def front_and_controller_then_resume_to_living_workers(start):
    run = start(workers=2)
    run.until(0.2)
    run.training(2)
    workers = run.workers()
    run.hit(run.drivers())
    run.resume()
    run.progress()
    if not set(workers) & set(run.workers()):
        raise Failure("workers that lived on were not found again")
    run.finish()


@case
def front_and_controller_for_good_so_workers_end(start):
    run = start(workers=2, flags=["--orphan-after", "2s"])
    run.until(0.2)
    run.hit(run.drivers())
    run.front.wait(HANG_S)
    run.wait("the orphans to end", lambda: not run.owned(), may_end=True)
    run.resume()
    run.finish()


@case
def the_front(start):
    run = start(workers=2)
    run.until(0.2)
    run.hit(run.front.pid)
    run.front.wait(HANG_S)
    run.wait("its processes to end", lambda: not run.owned(), may_end=True)
    run.resume()
    run.finish()


@case
def a_journal_replayed_to_the_same_decisions(start):
    """A controller that starts anew makes its journal from the events alone."""
    run = start(workers=3, epochs=3)
    run.until(0.1)
    run.kill_workers(1)
    run.finish()
    # Steps that follow each other are one line or several, as the clock would have it.
    decisions = [line for line in run.journal() if line.get("event") != "committed"]
    run.resume()
    run.finish()
    again = [line for line in run.journal() if line.get("event") != "committed"]
    if again != decisions:
        raise Failure(f"{len(decisions)} lines were decided, {len(again)} when replayed; the first that differs: "
                      f"{next(pair for pair in zip(decisions + [None], again + [None]) if pair[0] != pair[1])}")


@case
def a_worker_at_the_very_end(start):
    run = start(workers=3, epochs=2, checkpoint="every: 1h")
    run.glimpse(lambda: run.partial() or run.committed() >= run.target())
    run.kill_workers(9)
    run.finish()


@case
def the_controller_at_the_very_end(start):
    run = start(workers=2, epochs=2, checkpoint="every: 1h")
    run.glimpse(lambda: run.partial() or run.committed() >= run.target())
    run.hit(run.controller())
    run.finish()


@case
def a_stranger_that_joins_and_goes(start):
    run = start(workers=2)
    guest = network.enter(run, "lo")
    lost = len(run.events("lost"))
    run.hit(guest.pid)
    # Before that it may be the only one who holds anything, and stopping then saves nothing.
    run.wait("its loss", lambda: len(run.events("lost")) > lost)
    run.finish()
    guest.wait(HANG_S)


def mount_small_disk(folder):
    os.makedirs(f"{folder}/disk")
    if os.geteuid() != 0:
        raise Skipped("needs root to mount a small file system")
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", f"{folder}/disk"]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        raise Skipped("mounting is not allowed here")


@case
def a_full_disk(start):
    run = start(workers=2, checkpoint="every: 1s, directory: disk", prepare=mount_small_disk)
    disk = f"{run.folder}/disk"
    try:
        run.progress()
        with contextlib.suppress(OSError), open(f"{disk}/hog", "wb", buffering=0) as hog:
            while hog.write(bytes(4096)):
                pass
        run.wait("a checkpoint that does not fit", lambda: "MB are free" in read_text(f"{run.out}/journal.jsonl"))
        run.progress(run.samples // 10)
        os.remove(f"{disk}/hog")
        run.finish()
        if left := [name for name in os.listdir(disk) if "partial" in name]:
            raise Failure(f"left behind: {left}")
    finally:
        run.clear()
        subprocess.run(["umount", disk], check=False)


@case
def a_cut_network(start):
    with network.Namespaces() as net:
        run = start(workers=2, prefix=net.inside("a"), flags=["--interface", net.link("a"), "--orphan-after", "8s"])
        net.start_worker(run)
        lost = len(run.events("lost"))
        net.cut()
        TALLY.add(1)
        run.wait("the loss", lambda: len(run.events("lost")) > lost)
        run.progress()
        net.mend()
        run.finish()
        net.join_worker()


def digits(start, disturb):
    run = start(job=DIGITS_JOB, samples=30_000, epochs=3, batch=32, workers=3)
    hits = 0
    for number in run.rounds(3 if disturb else 0, workers=2):
        hits += run.hit([run.controller(), *run.workers()]) if number == 1 else run.kill_workers(2)
    if disturb and not hits:
        raise Failure("it was over before anybody was hit")
    return run.finish()["loss"]


@case
def the_loss_of_a_disturbed_training(start):
    """The same samples in the same batches: only the order of additions differs, and what an optimiser makes of that."""
    calm = digits(lambda **options: start(name="calm", **options), False)
    rough = digits(lambda **options: start(name="rough", **options), True)
    if not abs(rough - calm) <= 0.02 + 0.1 * calm:
        raise Failure(f"loss {rough}, undisturbed {calm}: want within 0.02 + 10 %")


def play(name, options):
    """(outcome, what to say) of one case."""
    runs = []

    def start(**choices):
        suffix = choices.pop("name", "")
        run = Run(options, name + ("-" + suffix if suffix else ""), **choices)
        runs.append(run)
        return run

    begin = time.monotonic()
    try:
        CASES[name](start)
        outcome, text = "ok", ""
    except Skipped as reason:
        outcome, text = "skipped", str(reason)
    except Exception as error:  # noqa: BLE001: whatever it is, the others go on
        story = "\n".join(run.story() for run in runs)
        outcome, text = "FAILED", f"{type(error).__name__}: {error}\n{story}"
    for run in runs:
        run.clear()
        if outcome != "FAILED" and not options.keep:
            run.remove()
    return outcome, f"{outcome:8}{name.replace('_', ' ')} ({time.monotonic() - begin:.0f} s){': ' + text if text else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mayfly")
    parser.add_argument("--only", default="", help="cases, separated by commas")
    parser.add_argument("--brief", action="store_true", help="without cases that take long: " + ", ".join(LONG))
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least-losses", type=int, default=0, help="fewer than these are a failure")
    parser.add_argument("--keep", action="store_true", help="leave the folders of runs that went well, too")
    options = parser.parse_args()
    options.mayfly = os.path.realpath(options.mayfly)
    options.folder = tempfile.mkdtemp(prefix="mayfly-chaos-")
    names = [name for name in options.only.split(",") if name] or list(CASES)
    if options.brief:
        names = [name for name in names if name not in LONG]
        print(f"left out, as they take long: {', '.join(LONG)}", flush=True)
    begin = time.monotonic()
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(play, name, options) for name in names]):
            outcome, text = future.result()
            outcomes.append(outcome)
            print(text, flush=True)
    counts = ", ".join(f"{outcomes.count(kind)} {kind}" for kind in ("ok", "skipped", "FAILED"))
    print(f"{TALLY.losses} losses in {len(outcomes)} cases: {counts}; {time.monotonic() - begin:.0f} s")
    if "FAILED" not in outcomes and not options.keep:
        os.rmdir(options.folder)
    too_few = TALLY.losses < options.least_losses
    if too_few:
        print(f"want at least {options.least_losses} losses")
    return 1 if "FAILED" in outcomes or too_few else 0


if __name__ == "__main__":
    sys.exit(main())
