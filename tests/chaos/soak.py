#!/usr/bin/env python3
"""soak.py path/to/mayfly --minutes M --seed S: counting jobs one after another in random weather, until the time is up or a
sample is lost. Prints each run's weather; the same seed makes the same choices (not the same moments)."""
import argparse
import os
import random
import signal
import sys
import tempfile
import time

from harness import TALLY, Failure, Run


def one(run, rng):
    run.kill_workers(1)


def half(run, rng):
    run.kill_workers(max(1, len(run.workers()) // 2))


def everybody(run, rng):
    run.kill_workers(99)


def freeze(run, rng):
    run.kill_workers(1, signal.SIGSTOP)


def notice(run, rng):
    run.kill_workers(1, signal.SIGTERM)


def twice(run, rng):
    run.kill_workers(1)
    time.sleep(rng.uniform(0, 0.3))
    run.kill_workers(1)


def controller(run, rng):
    run.hit(run.controller())


def controller_and_half(run, rng):
    run.hit([run.controller(), *run.workers()[::2]])


def resume(run, rng):
    run.hit([run.front.pid, run.controller(), *rng.choice([[], run.workers()[:1], run.workers()])])
    run.resume()


WEATHER = [one] * 5 + [half] * 3 + [twice] * 3 + [everybody, freeze, notice, controller, controller_and_half, resume]
# Deaths of a controller that follow each other closely end the run by design.
HEAVY = (controller, controller_and_half)
MOST_HEAVY = 3


def disturb(run, rng):
    """Until the run ends; what was done to it."""
    done = []
    while run.front.poll() is None:
        kind = rng.choice(WEATHER)
        if kind in HEAVY and sum(before in HEAVY for before in done) >= MOST_HEAVY:
            continue
        try:
            run.progress(rng.randint(1, run.target() // 8))
        except Failure:
            break  # it ended; finish() says how
        time.sleep(rng.uniform(0, 0.3))
        if run.front.poll() is None and run.committed() < run.target():
            kind(run, rng)
            done.append(kind)
    return [kind.__name__ for kind in done]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mayfly")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.mayfly = os.path.realpath(options.mayfly)
    options.folder = tempfile.mkdtemp(prefix="mayfly-soak-")
    end = time.monotonic() + 60 * options.minutes
    rng = random.Random(options.seed)
    number = 0
    while time.monotonic() < end:
        number += 1
        workers, batch = rng.randint(1, 5), rng.choice([999, 1000, 2048])
        run = Run(options, f"{number}", workers=workers, batch=batch, samples=rng.choice([100_000, 200_003]), epochs=rng.choice([5, 20, 50]),
                  checkpoint=rng.choice(["every: 1s", "every: 3s", "every: 1h", "every: 1s, keep: 1"]))
        try:
            weather = disturb(run, rng)
            run.finish()
        except Exception as error:  # noqa: BLE001
            print(f"run {number} FAILED: {type(error).__name__}: {error}\n{run.story()}")
            run.clear()
            return 1
        print(f"run {number}: {workers} workers, batch {batch}: {' '.join(weather) or 'calm'}", flush=True)
        run.remove()
    os.rmdir(options.folder)
    print(f"{number} runs, {TALLY.losses} losses, no sample lost or doubled")
    return 0


if __name__ == "__main__":
    sys.exit(main())
