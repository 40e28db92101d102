"""Cases of what brings samples to the trainers: caches that are one over all workers, and samples that are prepared by one
job for all. Whoever is killed, every sample is trained once an epoch. chaos.py plays them."""
import glob
import os

from harness import Failure

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def caches_that_are_one(start, servers=""):
    return start(workers=3, samples=4_000, batch=400, servers=servers,
                 loader="cache_mb: 10, partitioned: true, prep_threads: 2")


def check_peers(summary):
    if not summary["loader"]["from_peers"]:
        raise Failure(f"nobody took anything from a peer: {summary['loader']}")


@case
def workers_whose_caches_are_one(start):
    run = caches_that_are_one(start)
    for _ in run.rounds(2, workers=2):
        run.progress(run.samples * 5)
        run.kill_workers(1)
    run.training(2)
    run.hit(run.controller())  # the next one must know where the caches are
    run.progress(run.samples * 10)
    check_peers(run.finish())


@case
def workers_served_whose_caches_are_one(start):
    run = caches_that_are_one(start, servers="count: 1, sync: asp")
    for _ in run.rounds(1, workers=2):
        run.progress(run.samples * 10)
        run.kill_workers(1)
    run.progress(run.samples * 10)
    check_peers(run.finish())


@case
def runs_that_prepare_together_and_one_is_killed(start):
    """Three runs meet to share; one of them is killed with everything, and comes back. All end with every sample counted.
    Counting is faster than any preparing, so whether they keep in step and take anything from each other is chance here:
    shared_prep_test kills members that do."""
    share = f"chaos-{os.getpid()}"
    place = f"/dev/shm/mayfly-{os.geteuid()}-{share}"
    runs = [start(name=name, workers=1, samples=20_000, batch=500, loader=f"share: {share}, prep_threads: 2")
            for name in ("one", "two", "three")]
    for run in runs:
        run.until(0.5)
    if not glob.glob(place):
        raise Failure(f"they do not meet in {place}")
    lost = runs[0]
    lost.hit([*lost.drivers(), *lost.workers()])
    for run in runs[1:]:
        run.progress(run.samples)
    lost.resume()
    lost.progress(lost.samples // 10)
    runs[1].kill_workers(1)
    runs[1].progress(runs[1].samples // 10)
    for run in runs:
        run.finish()
    if left := glob.glob(place):
        raise Failure(f"left behind: {left}")
