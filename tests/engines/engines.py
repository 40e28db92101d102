#!/usr/bin/env python3
"""engines.py path/to/mayfly --engine local|slurm|ssh|exec [--only CASE,...] [--keep]: the same list of cases on machines of each
engine, with its real daemons. Every sample must be in the weights exactly once an epoch, and nothing of a run may be left
on the engine."""
import argparse
import os
import signal
import sys
import tempfile
import time

import apart_cases
import slurm_cases
from machines import ENGINES, EngineRun  # before the harness, to which it knows the way
from harness import HANG_S, Failure, Skipped

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


@case
def three_machines_to_the_end(start, engine):
    run = start(workers=3, samples=1_000_000, epochs=1)
    run.training(3)
    summary = run.end()
    engine.expect_empty(run)
    if summary["samples_redone"]:
        raise Failure(f"{summary['samples_redone']} samples were trained again")


@case
def a_noticed_loss(start, engine):
    run = start(workers=3, checkpoint="every: 1h")
    run.training(3)
    launch = min(run.launched())
    before, told = run.events_members(), run.member_of(launch)
    engine.tell(run, launch)
    run.wait("its replacement", lambda: run.replaced(before))
    if not any(remark.startswith(f"{told} will be taken") for remark in run.remarks()):
        raise Failure(f"nobody said that {told} goes: {run.remarks()}")
    after = run.events_members()
    if not set(before) - {told} <= set(after) or told in after:
        raise Failure(f"{before} trained, {told} was told, and now there are {after}")
    if run.finish()["samples_redone"]:
        raise Failure("samples were trained again")
    engine.expect_empty(run)


@case
def an_unnoticed_loss(start, engine):
    run = start(workers=3)
    run.training(3)
    before = run.events_members()
    engine.lose(run, [max(run.launched())])
    run.wait("its replacement", lambda: run.replaced(before))
    run.finish()
    engine.expect_empty(run)


@case
def half_then_all_and_back(start, engine):
    run = start(workers=4, checkpoint="every: 1s")
    for count in (2, 4):
        run.training(4)
        before = run.events_members()
        engine.lose(run, sorted(run.launched())[:count])
        run.wait("four that train again", lambda: run.replaced(before))
        engine.heal()
    run.finish()
    engine.expect_empty(run)


@case
def the_controller_killed(start, engine):
    run = start(workers=3)
    run.training(3)
    members = run.events_members()
    for _ in range(2):
        first = run.controller()
        run.hit(first)
        run.wait("another controller", lambda: run.controller() not in (0, first))
        run.progress()
    run.training(3)
    if run.events_members() != members or engine.ever(run) != 3:
        raise Failure(f"{members} became {run.events_members()}; {engine.ever(run)} machines were asked for, want 3")
    run.finish()
    engine.expect_empty(run)


@case
def the_controller_killed_as_soon_as_it_has_asked(start, engine):
    run = start(workers=3)
    run.wait("a machine", lambda: engine.held(run), pause_s=0)
    run.hit(run.controllers())
    run.training(3)
    if engine.ever(run) != 3:
        raise Failure(f"{engine.ever(run)} machines were asked for, want 3")
    run.finish()
    engine.expect_empty(run)


@case
def everything_of_the_run_killed_then_resume(start, engine):
    run = start(workers=3)
    run.training(3)
    run.hit([*run.drivers(), *run.workers()])
    run.resume()
    run.progress()
    run.training(3)
    run.finish()
    engine.expect_empty(run)


@case
def a_controller_gone_for_good(start, engine):
    """Machines end by themselves, and cost nothing more."""
    run = start(workers=3, flags=["--orphan-after", "3s"])
    run.training(3)
    run.hit(run.drivers())
    run.front.wait(HANG_S)
    engine.expect_empty(run)
    run.resume()
    run.progress()
    run.finish()
    engine.expect_empty(run)


@case
def an_end_at_once(start, engine):
    """Ctrl-C twice."""
    run = start(workers=3)
    run.training(3)
    run.front.send_signal(signal.SIGINT)
    time.sleep(1.2)  # sooner it would be an echo of the first
    if run.front.poll() is None:
        run.front.send_signal(signal.SIGINT)
    run.codes.append(run.front.wait(HANG_S))
    engine.expect_empty(run)
    if (log := engine.log(run, 0)) and not os.path.exists(log):
        raise Failure(f"the log of a machine is gone: {log}")


@case
def parameter_servers(start, engine):
    run = start(workers=2, samples=1_000_000, epochs=1, servers="count: 1, sync: bsp")
    run.training(2)
    run.end()
    engine.expect_empty(run)


def play(name, cases, engine, options):
    """(outcome, what to say) of one case."""
    runs = []

    def start(**choices):
        flags = choices.pop("flags", [])
        own = choices.pop("own", False) or "--engine-file" in flags  # the case says itself where machines are from
        flags = [*([] if own else engine.flags()), *flags]
        suffix = choices.pop("name", "")
        label = name + ("-" + suffix if suffix else "")
        run = EngineRun(options, label, flags=flags, out=label.replace("_", "-"), **choices)
        runs.append(run)
        return run

    begin = time.monotonic()
    try:
        engine.heal()
        cases[name](start, engine)
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
    parser.add_argument("--engine", choices=sorted(ENGINES), default="local")
    parser.add_argument("--only", default="", help="cases, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the folders of runs that went well, too")
    options = parser.parse_args()
    options.mayfly = os.path.realpath(options.mayfly)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # daemons are stopped on the way out
    cases = CASES | (slurm_cases.CASES if options.engine == "slurm" else apart_cases.cases_of(options.engine))
    names = [name for name in options.only.split(",") if name] or list(cases)
    try:
        engine = ENGINES[options.engine](options)
    except Skipped as reason:
        print(f"skipped: {options.engine}: {reason}")
        return 77
    options.folder = tempfile.mkdtemp(prefix=f"mayfly-engines-{options.engine}-")
    outcomes = []
    try:
        try:
            engine.start()
        except RuntimeError as reason:
            print(f"skipped: {options.engine} cannot be started on this computer: {reason}")
            return 77
        for name in names:
            outcome, text = play(name, cases, engine, options)
            outcomes.append(outcome)
            print(text, flush=True)
    finally:
        engine.stop()
    counts = ", ".join(f"{outcomes.count(kind)} {kind}" for kind in ("ok", "skipped", "FAILED"))
    print(f"{len(outcomes)} cases on {options.engine}: {counts}")
    if "FAILED" not in outcomes and not options.keep:
        os.rmdir(options.folder)
    return 1 if "FAILED" in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
