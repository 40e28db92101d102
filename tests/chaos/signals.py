"""Cases of signals to a run's own processes: to all of them at once, as init systems, schedulers and reboots send them, and
at the moments at which one could get lost. chaos.py plays them."""
import os
import signal
import subprocess
import time

from harness import HANG_S, TALLY, Failure, read_text

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def tell_everybody(run, number=signal.SIGTERM):
    """Front, controller, workers, servers and the shells around them, in any order. Each counts once: how many did."""
    pids = [run.front.pid, *run.owned()]
    run.random.shuffle(pids)
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
    new = set(pids) - run.told
    run.told |= new
    TALLY.add(len(new))
    return len(new)


def want_all_saved(run):
    """It has ended by itself, and its last checkpoint holds every step that was committed."""
    summary, committed = run.end(), run.committed()
    if summary["samples"] != committed or summary["samples_redone"] != 0:
        raise Failure(f"{committed} samples were committed, {summary['samples']} are saved, "
                      f"{summary['samples_redone']} were trained again")


def told_again_and_again(run, rounds=3):
    """Saves and ends each time, and goes on exactly from there."""
    for number in range(rounds):
        run.training(2)
        run.progress()
        tell_everybody(run)
        while number and run.front.poll() is None:  # the first time once, then without patience
            time.sleep(0.05)
            tell_everybody(run)
        want_all_saved(run)
        run.resume()
    run.finish()
    if redone := run.summary()["samples_redone"]:
        raise Failure(f"{redone} samples were trained again")


@case
def sigterm_to_everybody(start):
    told_again_and_again(start(workers=3, checkpoint="every: 1h"))


@case
def sigterm_to_everybody_with_servers(start):
    told_again_and_again(start(workers=2, checkpoint="every: 1h", servers="count: 2, sync: bsp"))


@case
def sigterm_to_everybody_with_a_short_notice(start):
    run = start(workers=2, checkpoint="every: 1h", servers="count: 1, sync: asp", flags=("--notice", "4s"))
    run.training(2)
    run.progress()
    tell_everybody(run)
    want_all_saved(run)


@case
def sigterm_right_after_the_controllers_death(start):
    """The front has no child to pass it on to, or one that is dead and not yet missed."""
    run = start(workers=2, checkpoint="every: 1h")
    for pause_s in (0, 0.02, 0.06, 0.1, 0.15):
        run.training(2)
        run.progress()
        run.hit(run.controller())
        time.sleep(pause_s)
        run.front.send_signal(signal.SIGTERM)
        want_all_saved(run)
        run.resume()
    run.finish()


@case
def sigterm_at_the_start(start):
    """From the first moment of a controller on, before it can hear."""
    for number in range(8):
        run = start(name=str(number), workers=1)
        run.wait("a controller", lambda: os.path.exists(f"{run.out}/state.db.lock"), pause_s=0)
        time.sleep(0.005 * number)
        (tell_everybody if number % 2 else lambda it: it.front.send_signal(signal.SIGTERM))(run)
        if code := run.front.wait(HANG_S):
            raise Failure(f"exit code {code}, want 0")
        if run.summary()["end"] != "stopped":
            raise Failure(f"end {run.summary()['end']}, want stopped")
        run.check_nothing_left()


def stop_in_vain(run, pid):
    """`mayfly stop` while this process is frozen."""
    run.hit(pid, signal.SIGSTOP)
    try:
        done = subprocess.run([run.mayfly, "stop", run.out], capture_output=True, text=True, timeout=HANG_S, check=False)
    finally:
        run.hit(pid, signal.SIGCONT)
    if done.returncode != 1 or f"process {pid}," not in done.stderr or "frozen" not in done.stderr:
        raise Failure(f"stop: code {done.returncode}: {done.stderr}{done.stdout}")


@case
def stop_with_a_frozen_controller(start):
    run = start(workers=2, checkpoint="every: 1h")
    run.training(2)
    stop_in_vain(run, run.controller())
    run.end()  # it has been told, after all


@case
def stop_with_a_frozen_front(start):
    run = start(workers=2, checkpoint="every: 1h")
    run.training(2)
    stop_in_vain(run, run.front.pid)
    want_all_saved(run)


@case
def ctrl_c_twice(start):
    """The first saves, and so does its echo; one that comes later ends at once."""
    run = start(workers=2, checkpoint="every: 1h", servers="count: 1, sync: asp")
    run.training(2)
    run.progress()
    run.hit(run.servers(), signal.SIGSTOP)  # so that nobody can save
    for _ in range(3):
        run.front.send_signal(signal.SIGINT)
    run.wait("the saving", lambda: "saving; once more" in read_text(f"{run.folder}/err.0"))
    time.sleep(1.1)
    run.front.send_signal(signal.SIGTERM)
    if run.front.poll() is not None:
        raise Failure("ended without its checkpoint")
    run.front.send_signal(signal.SIGINT)
    if code := run.front.wait(HANG_S):
        raise Failure(f"exit code {code}, want 0")
