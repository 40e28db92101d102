"""Cases of misfortunes that follow each other, or come while a run still gets over the one before. chaos.py plays them."""
import json
import signal
import subprocess
import time

from harness import HANG_S, Failure, read_text

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def another_controller(run, than):
    return run.wait("another controller", lambda: run.controller() not in (0, than) and run.controller(), pause_s=0)


def kill_all(run):
    run.hit([*run.drivers(), *run.workers(), *run.servers()])


@case
def the_controller_and_its_successors(start):
    """The second goes before any worker has found it, the third with one of them."""
    run = start(workers=3)
    for _ in run.rounds(1, workers=2):
        first = run.controller()
        run.hit(first)
        second = another_controller(run, first)
        run.hit(second)
        third = another_controller(run, second)
        time.sleep(0.3)
        run.hit([third, *run.workers()[:1]])
        another_controller(run, third)
    run.progress(run.samples // 10)
    run.finish()


@case
def the_controller_of_a_resume(start):
    run = start(workers=2, checkpoint="every: 1s")
    for pause_s in (0, 0.1, 0.4):
        run.training(2)
        kill_all(run)
        run.resume()
        run.hit(run.wait("a controller", run.controller, pause_s=0))
        time.sleep(pause_s)
        kill_all(run)
        run.resume()
    run.finish()


@case
def workers_right_after_a_resume(start):
    run = start(workers=2, checkpoint="every: 1s")
    for pause_s in (0, 0.2, 0.5):
        run.training(1)
        kill_all(run)
        run.resume()
        run.crowd(1)
        time.sleep(pause_s)
        run.kill_workers(9)
    run.finish()


@case
def two_resumes_at_once(start):
    """One of them drives the run, the other says who does."""
    run = start(workers=2, checkpoint="every: 1s")
    run.training(2)
    kill_all(run)
    run.resume()
    run.wait("the lock", lambda: "count" in read_text(f"{run.out}/journal.jsonl") and run.controller())
    other = subprocess.run([run.mayfly, "resume", run.out, "--json"], capture_output=True, text=True, timeout=HANG_S,
                           check=False)
    if other.returncode == 0 or not other.stderr:
        raise Failure(f"a second resume: code {other.returncode}: {other.stderr}{other.stdout}")
    run.kill_workers(1)
    run.progress()
    run.finish()


def youngest(run):
    """The worker that came last."""
    workers = [w for w in run.processes()["workers"] if w["pid"] in run.workers()]
    return max(workers, key=lambda w: w["worker"])["pid"] if workers else 0


@case
def a_worker_that_is_handed_the_state(start):
    """It has joined, and goes before or while the others give it what they hold."""
    run = start(workers=3, samples=1_000_000, checkpoint="every: 1h")
    for number in run.rounds(3, workers=3):
        joined = len(run.events("joined"))
        run.kill_workers(1)
        run.wait("a new one", lambda: len(run.events("joined")) > joined, pause_s=0)
        time.sleep((0, 0.03, 0.2)[number])
        run.hit(youngest(run))
    run.finish()


@case
def the_giver_of_a_state(start):
    """Whoever holds it goes while the new one is given it: all but the one that has just joined."""
    run = start(workers=3, checkpoint="every: 1s")
    for _ in run.rounds(2, workers=2):
        joined = len(run.events("joined"))
        run.kill_workers(1)
        run.wait("a new one", lambda: len(run.events("joined")) > joined, pause_s=0)
        new = youngest(run)
        run.hit([pid for pid in run.workers() if pid != new])
    run.finish()


@case
def the_controller_frozen_while_workers_die(start):
    run = start(workers=3)
    for _ in run.rounds(1, workers=3):
        pid = run.controller()
        run.hit(pid, signal.SIGSTOP)
        run.kill_workers(2)
        time.sleep(4)  # longer than the lease of a worker
        run.hit(pid, signal.SIGCONT)
        run.progress()
    run.finish()


@case
def a_notice_and_the_end_before_its_time(start):
    run = start(workers=3, checkpoint="every: 1s")
    for number in run.rounds(3, workers=2):
        pids = run.workers()[: 1 + number % 2]
        run.hit(pids, signal.SIGTERM)
        time.sleep(run.random.uniform(0, 0.2))
        run.hit(pids)
    run.finish()


@case
def a_notice_to_who_then_freezes(start):
    """It takes its leave and never goes."""
    run = start(workers=2, flags=("--notice", "3s"))
    for _ in run.rounds(1, workers=2):
        pid = run.workers()[0]
        run.hit(pid, signal.SIGTERM)
        run.hit(pid, signal.SIGSTOP)
        run.wait("it to be given up", lambda gone=pid: gone not in run.workers())
    run.finish()


@case
def workers_at_the_edge_of_an_epoch(start):
    """A batch that holds the end of one epoch and the beginning of the next is the last before each loss."""
    run = start(workers=2, samples=20_011, batch=999)
    for _ in run.rounds(3, workers=2):
        edge = (run.committed() // run.samples + 1) * run.samples
        run.wait("the edge", lambda: run.committed() >= edge, pause_s=0)
        run.kill_workers(1 + run.random.randint(0, 1))
    run.finish()


@case
def everything_at_the_edge_of_an_epoch(start):
    run = start(workers=2, samples=20_011, batch=999, checkpoint="every: 1s", servers="count: 2, sync: bsp")
    run.training(2)
    edge = (run.committed() // run.samples + 1) * run.samples
    run.wait("the edge", lambda: run.committed() >= edge, pause_s=0)
    kill_all(run)
    run.resume()
    run.finish()


@case
def all_workers_of_one_type(start):
    """What one market takes back at once; the others carry on."""
    run = start(workers=4, flags=("--as", "g4dn.xlarge=2,g3.8xlarge=2"), samples=20_000)
    for number in run.rounds(2, workers=4):
        taken = ("g4dn.xlarge", "g3.8xlarge")[number]

        def both(of=taken):
            """Once the file says so, which is written after what it tells of, and once a second at most."""
            machines = json.loads(read_text(f"{run.out}/status.json"))["machines"]
            pids = [one["pid"] for one in machines if one["type"] == of and one["pid"]]
            return pids if len(pids) == 2 else None

        if run.hit(run.wait(f"two {taken} in the status", both)) == 0:
            raise Failure(f"no {taken} was there to be hit")
        run.progress()
    run.finish()
