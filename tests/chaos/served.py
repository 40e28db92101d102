"""Cases of jobs with parameter servers: workers, servers and the controller of both. chaos.py plays them."""
import signal
import time

from harness import Failure, read_text

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def workers_served(sync):
    """Workers of a job with servers are killed in every way that those of one without are."""
    def play_it(start):
        run = start(workers=3, servers=f"count: 2, sync: {sync}")
        for number in run.rounds(5, workers=2):
            time.sleep(run.random.uniform(0, 0.2))
            run.kill_workers((1, 2, 9)[number % 3])
        run.finish()
    return play_it


for sync_name, sync in (("asp", "asp"), ("bsp", "bsp"), ("ssp", "ssp(2)")):
    CASES[f"workers_served_{sync_name}"] = workers_served(sync)


@case
def served_to_the_last_sample(start):
    for sync in ("asp", "bsp", "ssp(1)"):
        run = start(name=sync[:3], workers=2, epochs=2, servers=f"count: 2, standby: 1, sync: {sync}")
        run.until(0.2)
        run.kill_workers(1)
        run.kill_servers(1)
        run.finish()


@case
def a_server_that_has_a_standby(start):
    run = start(workers=3, checkpoint="every: 1h", servers="count: 2, standby: 1, sync: asp")
    for _ in run.rounds(3, workers=2):
        run.wait("all servers", lambda: len(run.servers()) >= 4)
        run.settle()
        time.sleep(1)  # a new one takes its shard from the other
        before = run.committed()
        run.kill_servers(1)
        run.progress()
        if run.committed() <= before or run.events("rolled-back"):
            raise Failure(f"{before} samples were committed, then {run.committed()}")
    run.finish()
    if redone := run.summary()["samples_redone"]:
        raise Failure(f"{redone} samples were trained again")


@case
def a_server_without_a_standby(start):
    run = start(workers=2, checkpoint="every: 1s", servers="count: 2, sync: asp")
    for _ in run.rounds(3, workers=2):
        time.sleep(run.random.uniform(0, 1))
        run.kill_servers(1)
    run.finish()


@case
def a_server_that_goes_while_its_state_is_saved(start):
    """Nobody holds more than the checkpoint any more, so the run ends with that instead of waiting for a saver."""
    run = start(workers=2, checkpoint="every: 1s", servers="count: 1, sync: asp")
    run.progress()
    run.wait("a checkpoint", lambda: run.events("checkpointed"))
    server = run.servers()
    run.hit(server, signal.SIGSTOP)
    run.front.send_signal(signal.SIGINT)
    run.wait("the saving", lambda: "saving" in read_text(f"{run.folder}/err.0"))
    run.hit(server)
    run.end(settled=False)


@case
def all_servers_and_workers_at_once(start):
    run = start(workers=2, checkpoint="every: 1s", servers="count: 2, standby: 1, sync: bsp")
    for _ in run.rounds(2, workers=2):
        time.sleep(run.random.uniform(0, 1))
        run.hit([*run.servers(), *run.workers()])
    run.finish()


@case
def servers_that_freeze(start):
    run = start(workers=2, checkpoint="every: 1s", servers="count: 1, standby: 1, sync: asp")
    for _ in run.rounds(2, workers=2):
        before = run.servers()
        run.kill_servers(1, signal.SIGSTOP)
        run.wait("the frozen to be given up", lambda: set(run.servers()) != set(before))
        run.progress()
    run.finish()


@case
def the_controller_of_servers(start):
    run = start(workers=2, checkpoint="every: 1h", servers="count: 2, sync: asp")
    run.lose_controllers()
    run.finish()
    if run.summary()["samples_redone"]:
        raise Failure("servers that lived on lost what they held")


@case
def the_controller_and_a_server(start):
    run = start(workers=2, checkpoint="every: 1s", servers="count: 2, sync: bsp")
    for _ in run.rounds(2, workers=2):
        run.hit([run.controller(), *run.servers()[:1]])
        run.progress(run.samples // 10, may_end=True)
    run.finish()


@case
def servers_and_everything_then_resume(start):
    run = start(workers=2, checkpoint="every: 1s", servers="count: 2, standby: 1, sync: ssp(2)")
    run.lose_everything()
    run.finish()


@case
def the_server_that_writes_a_checkpoint(start):
    """Its standby takes over while nobody has written the rest."""
    run = start(workers=2, samples=1_000_000, checkpoint="every: 1s", servers="count: 1, standby: 1, sync: asp")
    hits = 0
    for _ in run.rounds(3, workers=2):
        run.wait("both servers", lambda: len(run.servers()) >= 2)
        if pid := run.glimpse(run.checkpoint_writer):
            hits += run.hit(pid)
    if hits == 0:
        raise Failure("no writer was caught writing")
    run.finish()


@case
def a_standby_and_the_controller(start):
    """Both copies of a shard go one after the other, the second before anybody has taken the first's place."""
    run = start(workers=2, checkpoint="every: 1s", servers="count: 1, standby: 1, sync: bsp")
    for _ in run.rounds(2, workers=2):
        run.wait("both servers", lambda: len(run.servers()) >= 2)
        first, second = run.servers()[:2]
        run.hit([run.controller(), first])
        time.sleep(run.random.uniform(0, 0.5))
        run.hit(second)
        run.progress()
    run.finish()


@case
def the_slow_and_the_fast_with_a_bound(start):
    """The slowest freezes, so the others wait for it, and of those one is killed; then it goes on where it was."""
    run = start(workers=3, checkpoint="every: 1s", servers="count: 2, sync: ssp(1)")
    for number in run.rounds(3, workers=3):
        slow, fast = run.workers()[:2]
        run.hit(slow, signal.SIGSTOP)
        run.hit(fast)
        time.sleep((0.2, 1, 4)[number])
        run.hit(slow, signal.SIGCONT)
        run.progress()
    run.finish()


@case
def a_server_with_a_notice_that_is_killed(start):
    run = start(workers=2, checkpoint="every: 1s", servers="count: 2, sync: asp")
    for pause_s in (0, 0.1, 0.5):
        run.settle()
        run.training(2)
        pid = run.wait("a server", run.servers)[0]
        run.hit(pid, signal.SIGTERM)
        time.sleep(pause_s)
        run.hit(pid)
        run.progress()
    run.finish()
