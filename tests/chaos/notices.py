"""Cases of machines that are told before they are taken: each cloud's notice and SIGTERM, to workers and to servers, with
and without others that hold the same. With a notice nothing that was committed is lost. chaos.py plays them."""
import json
import os
import signal
import subprocess

from harness import HANG_S, TALLY, Failure, read_text

CASES = {}
NOTICES = ("aws", "gcp", "azure", "sigterm")
SYNCS = dict(zip(NOTICES, ("asp", "bsp", "ssp(2)", "asp")))


def case(function):
    CASES[function.__name__] = function
    return function


def rehearse(run, lose, notice, window=None):
    """One `mayfly drill`; its report."""
    words = [run.mayfly, "drill", run.out, "--lose", str(lose), "--notice", notice, "--json"]
    words += ["--window", window] if window else []
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANG_S, check=False)
    if done.returncode != 0:
        raise Failure(f"drill --lose {lose} --notice {notice}: code {done.returncode}: {done.stderr}{done.stdout}")
    report = json.loads(done.stdout)
    TALLY.add(len(report["losses"]))
    return report


def want_nothing_lost(report):
    if report["samples_redone"] != 0 or report["samples_after"] < report["samples_before"]:
        raise Failure(f"samples were lost: {report}")
    if any(loss["killed"] for loss in report["losses"]):
        raise Failure(f"somebody was still there when its time was over: {report}")


def want_none_redone(run):
    if redone := run.finish()["samples_redone"]:
        raise Failure(f"{redone} samples were trained again")


def workers_with(notice):
    """Half of the workers, then all of them, without a checkpoint but the one that the notice leaves time for."""
    def play_it(start):
        run = start(workers=3, checkpoint="every: 1h")
        for lose in ("half", "all"):
            run.settle()
            run.training(3)
            want_nothing_lost(rehearse(run, lose, notice))
        want_none_redone(run)
    return play_it


def served_with(notice):
    """A worker of servers, then a server whose shard nobody else holds."""
    def play_it(start):
        run = start(workers=2, checkpoint="every: 1h", servers=f"count: 2, sync: {SYNCS[notice]}")
        for lose in (1, "server", "all"):
            run.settle()
            run.training(2)
            run.wait("all servers", lambda: len(run.servers()) >= 2)
            want_nothing_lost(rehearse(run, lose, notice))
        want_none_redone(run)
    return play_it


for each in NOTICES:
    CASES[f"workers_with_a_notice_of_{each}"] = workers_with(each)
    CASES[f"served_with_a_notice_of_{each}"] = served_with(each)


@case
def a_server_with_a_standby_and_a_notice(start):
    run = start(workers=2, checkpoint="every: 1h", servers="count: 1, standby: 1, sync: bsp")
    for _ in range(2):
        run.settle()
        run.training(2)
        run.wait("both servers", lambda: len(run.servers()) >= 2)
        want_nothing_lost(rehearse(run, "server", "sigterm"))
    want_none_redone(run)


@case
def a_notice_that_is_too_short(start):
    """Nobody hears of it in time: what is lost is trained again, and no sample is counted twice."""
    run = start(workers=2, checkpoint="every: 1s")
    run.training(2)
    rehearse(run, "all", "gcp", window="0.05s")
    run.finish()


@case
def drills_without_a_notice(start):
    run = start(workers=2, checkpoint="every: 1s", servers="count: 1, sync: asp")
    for lose in ("half", "server", "controller", "all"):
        run.settle()
        run.training(2)
        rehearse(run, lose, "none")
    run.finish()


def by_hand(run, role):
    """A machine that came by itself: what an engine starts there."""
    run.wait("the address", lambda: read_text(f"{run.out}/address") and read_text(f"{run.out}/token"))
    return subprocess.Popen([run.mayfly, "worker", "--join", read_text(f"{run.out}/address").strip(), "--token-file",
                             f"{run.out}/token", "--role", role, "--notices", "none"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            env={**os.environ, "MAYFLY_NOTICE_S": "5"})


@case
def a_server_that_nobody_replaces_in_time(start):
    """Training ends before it does, and what it holds goes into a checkpoint, from which the next one starts."""
    run = start(workers=1, checkpoint="every: 1h", servers="count: 1, sync: asp", flags=("--engine", "none"))
    server, worker = by_hand(run, "server"), by_hand(run, "worker")
    try:
        run.training(1)
        TALLY.add(1)
        server.send_signal(signal.SIGTERM)
        if code := server.wait(HANG_S):
            raise Failure(f"the server ended with code {code}")
        before = run.committed()
        server = by_hand(run, "server")
        run.wait("training to go on", lambda: run.committed() > before)
        want_none_redone(run)
    finally:
        for process in (server, worker):
            process.kill()
            process.wait(HANG_S)
