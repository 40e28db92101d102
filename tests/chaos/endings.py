"""Cases of runs that are stopped while something else happens to them. chaos.py plays them."""
import signal
import subprocess
import time

from harness import HANG_S, Failure, read_text
from signals import tell_everybody, told_again_and_again, want_all_saved

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def stop(run):
    return subprocess.run([run.mayfly, "stop", run.out], capture_output=True, text=True, timeout=HANG_S, check=False)


def begin_saving(run):
    run.front.send_signal(signal.SIGINT)
    run.wait("the saving", lambda: "saving" in read_text(f"{run.folder}/err.{len(run.codes)}"), pause_s=0, may_end=True)


@case
def sigterm_to_everybody_with_a_standby_and_a_bound(start):
    told_again_and_again(start(workers=3, checkpoint="every: 1h", servers="count: 1, standby: 1, sync: ssp(2)"), rounds=1)


@case
def sigterm_to_everybody_while_workers_are_frozen(start):
    """They cannot save, and are not waited for; whoever is left does."""
    run = start(workers=3, checkpoint="every: 1s")
    run.training(3)
    run.wait("a checkpoint", lambda: run.events("checkpointed"))
    run.kill_workers(1, signal.SIGSTOP)
    tell_everybody(run)
    run.end()
    run.resume()
    run.finish()


@case
def sigterm_to_everybody_right_after_a_loss(start):
    run = start(workers=3, checkpoint="every: 1h")
    for pause_s in (0, 0.005, 0.3):
        run.training(3)
        run.kill_workers(1)
        time.sleep(pause_s)
        tell_everybody(run)
        want_all_saved(run)
        run.resume()
    run.finish()


@case
def the_front_while_it_stops(start):
    run = start(workers=2, checkpoint="every: 1s")
    run.training(2)
    begin_saving(run)
    run.hit(run.front.pid)
    run.front.wait(HANG_S)
    run.wait("its processes to end", lambda: not run.owned(), may_end=True)
    run.resume()
    run.finish()


@case
def the_controller_while_it_stops(start):
    """Its successor knows that it was told to stop, or is told again."""
    run = start(workers=2, checkpoint="every: 1s")
    run.training(2)
    begin_saving(run)
    run.hit(run.controller())
    if run.end()["end"] != "stopped":
        raise Failure(f"end {run.summary()['end']}, want stopped")
    run.resume()
    run.training(1)
    run.finish()


@case
def workers_while_it_stops(start):
    """Some of them leave it the others to save with."""
    run = start(workers=3, checkpoint="every: 1s")
    run.wait("a checkpoint", lambda: run.events("checkpointed"))
    run.training(3)
    begin_saving(run)
    run.kill_workers(2)
    run.end()
    run.resume()
    run.finish()


@case
def a_drill_while_it_stops(start):
    """Whoever rehearses a loss hears that the run is over."""
    run = start(workers=2, checkpoint="every: 1h")
    for notice in ("sigterm", "aws"):
        run.training(2)
        run.progress()
        words = [run.mayfly, "drill", run.out, "--lose", "1", "--notice", notice, "--json"]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as drill:
            time.sleep(run.random.uniform(0, 0.3))
            run.front.send_signal(signal.SIGTERM)
            want_all_saved(run)
            drill.wait(HANG_S)
        run.resume()
    run.finish()


@case
def stop_right_after_the_start(start):
    """`mayfly stop` as soon as there is something to stop: it ends, and can be gone on with."""
    for number, goes_on in enumerate((False, False, True)):
        run = start(name=str(number), workers=1, epochs=2 if goes_on else None)
        run.wait("the address", lambda it=run: read_text(f"{it.out}/address"), pause_s=0)
        time.sleep(0.2 * number)
        done = stop(run)
        if done.returncode != 0 or run.front.wait(HANG_S) != 0:
            raise Failure(f"stop: code {done.returncode}, the run's {run.front.returncode}: {done.stderr}{done.stdout}")
        if goes_on:
            run.resume()
            run.finish()
        else:
            run.check_nothing_left()
