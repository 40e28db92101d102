#!/usr/bin/env python3
"""s3.py path/to/mayfly [--only CASE,...] [--keep]: runs whose checkpoints are in an object store, which is a real radosgw. The
store is looked into by a client of the test's own. Every sample must be in the weights exactly once an epoch, and nothing but
whole checkpoints may be left in the store. Exit code 77 where its packages are not installed."""
import argparse
import glob
import json
import os
import shutil
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "chaos"))
import radosgw
from harness import HANG_S, Failure, Run, read_text

BUCKET = "checkpoints"
FILES = {"model.safetensors", "optimizer.safetensors", "trainer_state.json"}
LARGE = 10_000_000  # counters: three parts
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class StoredRun(Run):
    """A run whose checkpoints are in the store; a copy is fetched to look at its weights."""

    def __init__(self, options, name, store, every="1s", more="", place="", environment=(), **choices):
        self.store, self.place = store, place or name
        checkpoint = f'every: {every}, to: "s3://{BUCKET}/{self.place}"{more}'
        super().__init__(options, name, checkpoint=checkpoint, prefix=["env", *environment] if environment else (), **choices)

    def check_weights(self, checkpoint, trained, settled=True):
        before = f"s3://{BUCKET}/"
        if not checkpoint.startswith(f"{before}{self.place}/checkpoint-"):
            raise Failure(f"the checkpoint is {checkpoint}")
        copy = os.path.join(self.folder, f"copy-{len(self.codes)}")
        self.store.download(BUCKET, checkpoint[len(before):] + "/", copy)
        super().check_weights(copy, trained, settled)

    def stored(self):
        """name -> its files, of checkpoints that are committed; what is not is a Failure, as is an unfinished upload."""
        found = self.raw()
        if half := {name: files for name, files in found.items() if files != FILES}:
            raise Failure(f"half of a checkpoint: {half}")
        if uploads := self.uploads():
            raise Failure(f"unfinished: {uploads}")
        return sorted(found, key=lambda name: int(name.split("-")[1]))

    def raw(self):
        found = {}
        for key in self.store.listing(BUCKET, self.place + "/checkpoint-"):
            _, name, file = key.rsplit("/", 2)
            found.setdefault(name, set()).add(file)
        return found

    def committed_checkpoints(self):
        return [name for name, files in self.raw().items() if "trainer_state.json" in files]

    def uploads(self):
        return [key for key in self.store.unfinished(BUCKET) if key.startswith(self.place + "/")]

    def saved(self, count=1):
        """Waits until so many are there and known to be."""
        self.wait(f"{count} checkpoints", lambda: len(self.events("checkpointed")) >= count and self.committed_checkpoints())

    def latest(self):
        return self.store.good("GET", f"/{BUCKET}/{self.place}/latest").decode().strip()

    def remarks(self):
        return [line["remark"] for line in self.journal() if "remark" in line]

    def workers_said(self):
        return "\n".join(map(read_text, glob.glob(f"{self.out}/logs/*")))

    def refused(self, words):
        """It ends before anything is started: exit code 2, one line, no folder."""
        code = self.front.wait(HANG_S)
        lines = [line for line in read_text(f"{self.folder}/err.0").splitlines() if not line.startswith("note:")]
        if code != 2 or len(lines) != 1:
            raise Failure(f"exit code {code} and {lines}, want 2 and one line")
        if missing := [word for word in words if word not in lines[0]]:
            raise Failure(f"{lines[0]!r} does not say {missing}")
        if os.path.exists(self.out):
            raise Failure("its folder is there")


@case
def a_run_to_its_end(start, store):
    run = start(epochs=4, more=", keep: 2")
    run.saved()
    run.end()
    names = run.stored()
    if not 1 <= len(names) <= 2:
        raise Failure(f"{names} are kept, want at most 2")
    if run.latest() != names[-1] or not run.summary()["checkpoint"].endswith(names[-1]):
        raise Failure(f"the latest is {run.latest()} and the summary's {run.summary()['checkpoint']}, want {names[-1]}")


@case
def all_workers_killed(start, store):
    run = start(workers=2)
    for _ in range(2):
        run.training(2)
        count = len(run.events("checkpointed"))
        run.wait("another checkpoint", lambda: len(run.events("checkpointed")) > count)
        run.kill_workers(2)
        run.wait("the way back", lambda: run.trains(2) and not run.over() or run.over())
    back = [int(line["sample"]) for line in run.events("rolled-back")]
    if not back or max(back) == 0:
        raise Failure(f"rolled back to {back}: nothing came from the store")
    run.finish()
    run.stored()


@case
def everything_killed_then_resume(start, store):
    run = start(workers=2)
    for _ in range(2):
        run.training(2)
        run.saved(1 + len(run.events("checkpointed")))
        run.hit([*run.drivers(), *run.workers()])
        run.resume()
        run.progress()
    run.finish()
    run.stored()


@case
def a_controller_gone_for_good(start, store):
    """Its workers save by themselves, and end."""
    run = start(workers=2, every="1h", flags=["--orphan-after", "3s"])
    run.training(2)
    run.hit(run.drivers())
    run.front.wait(HANG_S)
    run.wait("its workers to end", lambda: not run.owned(), may_end=True)
    if not run.committed_checkpoints():
        raise Failure("nothing was saved")
    run.resume()
    run.progress()
    run.finish()
    run.stored()


@case
def parameter_servers(start, store):
    run = start(workers=2, servers="count: 2, sync: asp")
    run.training(2)
    run.saved()
    run.hit([*run.workers(), *run.servers()])
    run.training(2)
    run.finish()
    run.stored()


@case
def a_store_that_goes_in_the_middle_of_an_upload(start, store):
    run = start(workers=1, samples=LARGE, batch=100_000, every="2s")
    run.wait("an upload", run.uploads, pause_s=0)
    store.kill_gateway()
    run.wait("another try", lambda: "tried again" in run.workers_said())
    store.start_gateway()
    run.saved()
    run.finish()
    run.stored()


@case
def a_writer_killed_in_the_middle_of_an_upload(start, store):
    run = start(workers=2, samples=LARGE, batch=100_000, every="2s")
    run.wait("an upload", run.uploads, pause_s=0)
    run.kill_workers(2)
    run.training(2)
    run.saved()
    run.finish()
    run.stored()


@case
def a_store_that_is_away_for_longer(start, store):
    """Training goes on, and says that it saves nothing. A controller that is started meanwhile is not stopped by it."""
    run = start(workers=2)
    run.saved()
    store.kill_gateway()
    try:
        run.wait("a word about it", lambda: any("no checkpoint: " in text for text in run.remarks()))
        run.progress()
        first = run.controller()
        run.hit(first)
        run.wait("another controller", lambda: run.controller() not in (0, first))
        run.progress()
    finally:
        store.start_gateway()
    count = len(run.events("checkpointed"))
    run.wait("another checkpoint", lambda: len(run.events("checkpointed")) > count)
    run.finish()
    run.stored()


@case
def all_workers_killed_while_the_store_is_away(start, store):
    """What was saved is waited for: to begin anew would throw it away."""
    run = start(workers=2)
    run.saved()
    store.kill_gateway()
    try:
        run.kill_workers(2)
        run.wait("a word about it", lambda: any("no checkpoint can be sought" in text for text in run.remarks()))
    finally:
        store.start_gateway()
    run.wait("the way back", lambda: run.events("rolled-back"))
    if int(run.events("rolled-back")[-1]["sample"]) == 0:
        raise Failure("it began anew")
    run.training(2)
    run.finish()
    run.stored()


@case
def what_broken_writes_left_behind(start, store):
    """Unfinished uploads and halves of checkpoints go; what is not mayfly's stays."""
    place = "what_broken_writes_left_behind"
    half = f"{place}/checkpoint-0-00000001"
    store.begin_upload(BUCKET, f"{half}/model.safetensors")
    store.good("PUT", f"/{BUCKET}/{half}/optimizer.safetensors", body=b"half")
    store.begin_upload(BUCKET, f"{place}/mine")
    store.good("PUT", f"/{BUCKET}/{place}/checkpoint-0-00000001-notes", body=b"mine")
    run = start(epochs=2)
    run.end()
    names = {key.split("/")[1] for key in store.listing(BUCKET, place + "/checkpoint-")}
    if "checkpoint-0-00000001" in names or "checkpoint-0-00000001-notes" not in names:
        raise Failure(f"left: {names}")
    if run.uploads() != [f"{place}/mine"]:
        raise Failure(f"unfinished: {run.uploads()}, want only another's")


@case
def checkpoints_that_are_not_whole(start, store):
    """One whose object was cut, and one without its commit record: an earlier one is taken, and the first is named."""
    run = start(workers=1)
    run.saved(3)
    run.front.send_signal(signal.SIGINT)
    run.codes.append(run.front.wait(HANG_S))
    names = run.stored()
    if len(names) < 3:
        raise Failure(f"only {names} are kept")
    store.good("DELETE", f"/{BUCKET}/{run.place}/{names[-1]}/trainer_state.json")
    store.good("PUT", f"/{BUCKET}/{run.place}/{names[-2]}/model.safetensors", body=b"cut")
    state = json.loads(store.good("GET", f"/{BUCKET}/{run.place}/{names[-3]}/trainer_state.json"))
    run.codes.pop()  # resume() notes it itself
    run.resume()
    run.wait("the way back", lambda: run.events("rolled-back"))
    back = [int(line["sample"]) for line in run.events("rolled-back")]
    if back != [state["sample"]]:
        raise Failure(f"rolled back to {back}, want {state['sample']}")
    if not any("passed over" in text and names[-2] in text for text in run.remarks()):
        raise Failure("nobody said that one was passed over")
    run.finish()


@case
def a_place_of_another_run(start, store):
    first = start(name="first", epochs=1)
    first.end()
    second = start(name="second", place=first.place, epochs=1)
    second.refused(["holds the checkpoints of another run"])
    # Its mark taken away, the checkpoints say it.
    store.good("DELETE", f"/{BUCKET}/{first.place}/.run")
    third = start(name="third", place=first.place, epochs=1)
    third.refused(["holds the checkpoints of another run"])


@case
def what_cannot_be_written(start, store):
    """Each with one line that says what to do, before anything is started."""
    store.add_user("reader", "READER", "READERSECRET")
    store.good("PUT", f"/{BUCKET}", query={"policy": ""}, body=json.dumps({
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"AWS": ["arn:aws:iam:::user/reader"]},
                       "Action": ["s3:ListBucket", "s3:GetObject"],
                       "Resource": [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"]}]}).encode())
    reader = ["AWS_ACCESS_KEY_ID=READER", "AWS_SECRET_ACCESS_KEY=READERSECRET"]
    elsewhere = ["--checkpoints", "s3://nobody-has-this/x"]
    for name, environment, flags, words in (
            ("secret", ["AWS_SECRET_ACCESS_KEY=WRONG"], [], ["the secret of the key AKID", "SignatureDoesNotMatch"]),
            ("key", ["AWS_ACCESS_KEY_ID=NOBODY"], [], ["knows no key NOBODY"]),
            ("keyless", ["AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY="], [], ["no credentials", "AWS_PROFILE"]),
            ("bucket", [], elsewhere, ["no bucket 'nobody-has-this'", "create it"]),
            ("reader", reader, [], ["cannot write", "READER needs s3:PutObject", BUCKET]),
            ("endpoint", ["AWS_ENDPOINT_URL=http://127.0.0.1:1"], [], ["http://127.0.0.1:1", "no connection"]),
            ("scheme", [], ["--checkpoints", "gs://bucket/x"], ["want s3://BUCKET/PREFIX"])):
        run = start(name=name, epochs=1, flags=flags, environment=environment)
        run.refused(words)
        if run.raw():
            raise Failure(f"{name}: something was written")


def play(name, store, options):
    """(outcome, what to say) of one case."""
    runs = []

    def start(**choices):
        suffix = choices.pop("name", "")
        run = StoredRun(options, name + ("-" + suffix if suffix else ""), store, **choices)
        runs.append(run)
        return run

    begin = time.monotonic()
    try:
        CASES[name](start, store)
        if left := os.listdir(f"{options.folder}/temporary"):
            raise Failure(f"left behind: {left}")
        outcome, text = "ok", ""
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
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the folders of runs that went well, too")
    options = parser.parse_args()
    options.mayfly = os.path.realpath(options.mayfly)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # daemons are stopped on the way out
    if programs := radosgw.missing():
        print(f"skipped: not installed: {', '.join(programs)} (tools/install_packages test)")
        return 77
    options.folder = tempfile.mkdtemp(prefix="mayfly-s3-")
    os.makedirs(f"{options.folder}/temporary")
    store = radosgw.Radosgw(f"{options.folder}/store")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(AWS_ENDPOINT_URL=store.endpoint, AWS_ACCESS_KEY_ID=radosgw.KEY, AWS_SECRET_ACCESS_KEY=radosgw.SECRET,
                      AWS_EC2_METADATA_DISABLED="true", AWS_CONFIG_FILE="/dev/null", AWS_SHARED_CREDENTIALS_FILE="/dev/null",
                      TMPDIR=f"{options.folder}/temporary")
    outcomes = []
    try:
        try:
            store.start()
            store.make_bucket(BUCKET)
        except RuntimeError as reason:
            print(f"skipped: radosgw cannot be started on this computer: {reason}")
            return 77
        for name in [name for name in options.only.split(",") if name] or list(CASES):
            outcome, text = play(name, store, options)
            outcomes.append(outcome)
            print(text, flush=True)
    finally:
        store.stop()
    counts = ", ".join(f"{outcomes.count(kind)} {kind}" for kind in ("ok", "FAILED"))
    print(f"{len(outcomes)} cases: {counts}")
    if "FAILED" not in outcomes and not options.keep:
        shutil.rmtree(options.folder, ignore_errors=True)
    return 1 if "FAILED" in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
