"""Cases of a run whose files are deleted under it. chaos.py plays them."""
import os
import shutil
import signal

from harness import HANG_S, Failure, alive, read_text

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def without_a_folder(start):
    """A run that trains on without it, and the processes that will have to end; the next checkpoint makes one anew."""
    run = start(workers=2, checkpoint="every: 1s", flags=("--orphan-after", "2s"))
    run.training(2)
    pids = [run.controller(), *run.workers()]
    shutil.rmtree(run.out, ignore_errors=True)
    run.wait("a checkpoint", lambda: os.path.exists(f"{run.out}/checkpoints/latest"))
    return run, pids


def want_end(run, pids, code):
    if (seen := run.front.wait(HANG_S)) != code:
        raise Failure(f"exit code {seen}, want {code}")
    run.wait("its processes to end", lambda: not any(alive(pid) for pid in pids), may_end=True)


@case
def the_folder_deleted(start):
    run, pids = without_a_folder(start)
    run.front.send_signal(signal.SIGTERM)
    want_end(run, pids, 0)
    if run.summary()["end"] != "stopped":
        raise Failure(f"end {run.summary()['end']}, want stopped")


@case
def the_folder_deleted_and_the_controller_killed(start):
    """Its successor knows nothing of the run, and does not begin it anew."""
    run, pids = without_a_folder(start)
    run.hit(pids[0])
    want_end(run, pids, 1)
    if "state.db: is missing" not in read_text(f"{run.folder}/err.0"):
        raise Failure("nobody says why")


@case
def the_token_deleted_and_the_controller_killed(start):
    """Workers of before cannot prove any more that they belong to the run: others take their place."""
    run = start(workers=2, checkpoint="every: 1s")
    run.training(2)
    run.wait("a checkpoint", lambda: run.events("checkpointed"))
    os.remove(f"{run.out}/token")
    first = run.controller()
    run.hit(first)
    run.wait("another controller", lambda: run.controller() not in (0, first))
    run.progress()
    run.finish()
