#!/usr/bin/env python3
"""conform.py PROGRAM [ARGUMENTS...] [--type T] [--market M] [--patience 300]: does a program that gets machines keep to the protocol of
docs/engines.md? It orders four machines, the first two of which run until they are ended, watches them come and go, and ends whatever it
has ordered, also when it is interrupted. Where machines cost something, this does."""
import argparse
import contextlib
import json
import math
import os
import secrets
import signal
import subprocess
import sys
import time

FORMAT = "mayfly-exec/1"
NO_SUCH_VERB = 64
STAGES = ("ordered", "starting", "running", "gone")
ENDINGS = ("preempted", "finished", "failed", "refused")
PAUSE_S = 1
SETTLED_S = 2  # from the first sight of a running machine until its command has come to its trap

STAYS = "echo hello from mayfly; sleep 3600"
LEAVES_WHEN_TOLD = "trap 'exit 0' TERM; while :; do sleep 0.2; done"
FAILS = """echo 'last words: $HOME "  "'; exit 3"""
LAST_WORDS = """last words: $HOME "  \""""

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


class Failure(Exception):
    pass


class Skipped(Exception):
    pass


class Program:
    """Calls it about one run, and knows what was ordered of it."""

    def __init__(self, options):
        self.words = [options.program, *options.arguments]
        self.type, self.market, self.patience = options.type, options.market, options.patience
        self.run = f"conform-{secrets.token_hex(4)}"
        self.ids, self.ages = {}, {}  # by launch

    def call(self, verb, *lines, run=None):
        """(code, output, last line of what it says besides) of any call."""
        head = {"format": FORMAT, "run": run or self.run, "unknown": "keys are ignored"}
        return self.call_with(verb, "".join(json.dumps(line) + "\n" for line in (head, *lines)))

    def call_with(self, verb, text):
        try:
            done = subprocess.run([*self.words, verb], input=text.encode(), capture_output=True, timeout=self.patience, check=False)
        except subprocess.TimeoutExpired:
            raise Failure(f"{verb} has not ended after {self.patience:g} s") from None
        said = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        return done.returncode, done.stdout.decode(errors="replace"), said[-1] if said else ""

    def answer(self, verb, *lines, run=None):
        """The lines of a call that must go well."""
        code, output, said = self.call(verb, *lines, run=run)
        if code != 0:
            raise Failure(f"{verb} ended with code {code} and '{said}', want 0")
        return output

    def optional(self, verb, launch):
        code, output, said = self.call(verb, self.naming(launch))
        if code == NO_SUCH_VERB:
            raise Skipped(f"there is no {verb}")
        if code != 0:
            raise Failure(f"{verb} ended with code {code} and '{said}', want 0")
        return output

    def naming(self, launch):
        return {"launch": launch, "id": self.ids.get(launch, "")}

    def order(self, commands):
        """launch -> id, of commands by launch."""
        for launch in commands:
            self.ids.setdefault(launch, "")  # from now on there may be one
        lines = [{"launch": launch, "name": f"{self.run}-{launch}", "role": "worker", "type": self.type, "zone": "", "market": self.market,
                  "command": command, "unknown": "keys are ignored"} for launch, command in commands.items()]
        found = {}
        for line in objects("order", self.answer("order", *lines)):
            launch = line.get("launch")
            if type(launch) is not int or launch not in commands or launch in found:
                raise Failure(f"order answered {line}, want each of {sorted(commands)} once")
            if "refused" in line:
                raise Failure(f"machine {launch} was refused: {line['refused']}")
            wanted(line, "id", str)
            found[launch] = line["id"]
        if set(found) != set(commands):
            raise Failure(f"order answered for {sorted(found)}, want {sorted(commands)}")
        return found

    def sights(self, run=None):
        """launch -> line, of what is listed; every line is looked at."""
        found = {}
        for line in objects("list", self.answer("list", run=run)):
            wanted(line, "launch", int)
            wanted(line, "id", str)
            for name in ("where", "why"):
                if not isinstance(line.get(name, ""), str):
                    raise Failure(f"{name} of {line}: want a text")
            one_of(line, "stage", STAGES)
            if line["stage"] == "gone":
                one_of(line, "ending", ENDINGS)
            launch, age = line["launch"], line.get("age_s", 0)
            if launch in found:
                raise Failure(f"machine {launch} is listed twice: {found[launch]} and {line}")
            if type(age) not in (int, float) or not 0 <= age < math.inf:
                raise Failure(f"age_s of {line}: want a number of seconds")
            if run is None:
                self.watch(line, launch, age)
            found[launch] = line
        return found

    def watch(self, line, launch, age):
        """What must hold between one list and the next."""
        if launch not in self.ids:
            raise Failure(f"{line} was never ordered")
        self.ids[launch] = self.ids[launch] or line["id"]  # where the order gave no answer
        if line["id"] != self.ids[launch]:
            raise Failure(f"machine {launch} is now {line['id']}, and was {self.ids[launch]}")
        if line["stage"] in ("starting", "running"):
            if "age_s" not in line:
                raise Failure(f"{line} is paid for and has no age_s")
            if age < self.ages.get(launch, 0):
                raise Failure(f"age_s of machine {launch} fell from {self.ages[launch]} to {age}")
            self.ages[launch] = age

    def wait(self, what, predicate):
        end = time.monotonic() + self.patience
        while True:
            sights = self.sights()
            if value := predicate(sights):
                return value
            if time.monotonic() > end:
                raise Failure(f"waited {self.patience:g} s for {what}; listed are {list(sights.values())}")
            time.sleep(PAUSE_S)

    def running(self, launches):
        def all_run(sights):
            for launch in launches:
                if sights.get(launch, {}).get("stage") == "gone":
                    raise Failure(f"machine {launch} is gone already: {sights[launch]}")
            return all(sights.get(launch, {}).get("stage") == "running" for launch in launches)
        self.wait(f"machines {launches} to run", all_run)

    def gone(self, launch, ending):
        """Skipped where it is not listed any more."""
        line = self.wait(f"machine {launch} to be gone", lambda sights: gone_line(sights, launch))
        if "ending" not in line:
            raise Skipped("gone, but it is not listed any more, so nobody knows how it ended")
        if line["ending"] != ending:
            raise Failure(f"{line} says that it {line['ending']}, want {ending}")

    def clear(self):
        """What is still there of all that was ordered."""
        if self.ids:
            with contextlib.suppress(Failure):
                self.sights()  # ids of those that are not known yet
            self.answer("end", *map(self.naming, self.ids))
            self.wait("nothing to be left", lambda sights: all(line["stage"] == "gone" for line in sights.values()))


def objects(verb, output):
    found = []
    for text in output.splitlines():
        try:
            found.append(json.loads(text))
        except ValueError:
            found.append(None)
        if not isinstance(found[-1], dict):
            raise Failure(f"{verb} wrote '{text}', want a JSON object on each line")
    return found


def wanted(line, name, kind):
    value = line.get(name)
    if type(value) is not kind or value == "" or kind is int and value < 0:
        raise Failure(f"{name} of {line}: want {'a text that is not empty' if kind is str else 'a number'}")


def one_of(line, name, choices):
    if line.get(name) not in choices:
        raise Failure(f"{name} of {line}: want one of {', '.join(choices)}")


def gone_line(sights, launch):
    """Its last line, also an empty one; None while it is there."""
    line = sights.get(launch, {"stage": "gone"})
    return line if line["stage"] == "gone" else None


@check
def nothing_is_listed_of_a_run_that_has_nothing(program):
    if sights := program.sights():
        raise Failure(f"{sights} are listed")


@check
def a_run_may_be_called_as_a_folder_may(program):
    for name in (f".Läufe & more's-{program.run}", f"{program.run}{'x' * 150}"):
        if sights := program.sights(run=name):
            raise Failure(f"of run {name}, which has nothing, {sights} are listed")


@check
def a_verb_that_there_is_not_ends_with_64(program):
    code, _, said = program.call("surprise")
    if code != NO_SUCH_VERB:
        raise Failure(f"code {code} and '{said}', want {NO_SUCH_VERB}")


@check
def input_that_is_not_the_protocols_is_refused_with_a_reason(program):
    head = json.dumps({"format": FORMAT, "run": program.run})
    nameless, other = json.dumps({"format": FORMAT}), json.dumps({"format": "mayfly-exec/0", "run": program.run})
    for verb, text in (("list", "no JSON\n"), ("list", "[1, 2]\n"), ("list", f"{nameless}\n"), ("list", f"{other}\n"),
                       ("order", f"{head}\nno JSON\n"), ("end", f"{head}\n17\n")):
        code, _, said = program.call_with(verb, text)
        if code == 0 or not said:
            raise Failure(f"{verb} of {text!r} ended with code {code} and '{said}', want another code than 0 and a reason")


@check
def two_machines_are_ordered(program):
    program.ids.update(program.order({0: STAYS, 1: STAYS}))
    if program.ids[0] == program.ids[1]:
        raise Failure(f"both are {program.ids[0]}")


@check
def what_was_ordered_is_listed(program):
    if missing := {0, 1} - set(program.sights()):
        raise Failure(f"machines {missing} are not listed")


@check
def they_run(program):
    program.running([0, 1])


@check
def they_grow_older(program):
    first = program.sights()
    time.sleep(SETTLED_S)
    second = program.sights()
    for launch in (0, 1):
        if not second[launch]["age_s"] > first[launch]["age_s"]:
            raise Failure(f"age_s of machine {launch} was {first[launch]['age_s']}, and {SETTLED_S} s later {second[launch]['age_s']}")


@check
def ordered_again_it_is_the_same_machine(program):
    before = program.sights()
    again = program.order({1: STAYS})[1]
    after = program.sights()
    if again != program.ids[1] or set(after) != set(before) or after[1]["age_s"] < before[1]["age_s"]:
        raise Failure(f"{before} and, ordered again as {again}, {after}")


@check
def other_runs_have_none_of_them(program):
    for run in (f"conform-{secrets.token_hex(4)}", program.run[:-1], f"{program.run}-0", f"{program.run}0"):
        if sights := program.sights(run=run):
            raise Failure(f"of run {run}, which has nothing, {sights} are listed")


@check
def a_command_that_is_told_leaves_and_has_finished(program):
    program.ids.update(program.order({2: LEAVES_WHEN_TOLD}))
    program.running([2])
    time.sleep(SETTLED_S)
    program.optional("tell", 2)
    program.gone(2, "finished")


@check
def a_command_that_fails_has_failed(program):
    program.ids.update(program.order({3: FAILS}))
    program.gone(3, "failed")


@check
def its_last_words_are_told(program):
    output = program.optional("tail", 3)
    if LAST_WORDS not in output:
        raise Failure(f"tail wrote {output!r}, want {LAST_WORDS!r} in it")


@check
def the_others_run_on(program):
    program.running([0, 1])


@check
def one_that_is_ended_goes_alone(program):
    program.answer("end", program.naming(0))
    program.wait("machine 0 to be gone", lambda sights: gone_line(sights, 0))
    program.running([1])


@check
def ended_twice_nothing_is_left(program):
    program.clear()
    program.clear()


def play(function, program):
    try:
        function(program)
        outcome, text = "ok", ""
    except Skipped as reason:
        outcome, text = "skipped", f": {reason}"
    except Exception as error:  # noqa: BLE001: whatever it is, what was ordered is ended
        outcome, text = "FAILED", f": {error if isinstance(error, Failure) else repr(error)}"
    print(f"{outcome:8}{function.__name__.replace('_', ' ')}{text}", flush=True)
    return outcome


def clear(program):
    """Whatever happened; another interrupt does not keep it from that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        program.clear()
    except Exception as error:  # noqa: BLE001
        print(f"look after the machines of run {program.run}, ids {sorted(program.ids.values())}: {error}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs="*", help="its own; behind -- where they begin with a dash")
    parser.add_argument("--type", default="small", help="of the machines")
    parser.add_argument("--market", choices=("spot", "on-demand"), default="spot")
    parser.add_argument("--patience", type=float, default=300, help="seconds for each call, and for each thing that is waited for")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    if not os.access(options.program, os.X_OK) or os.path.isdir(options.program):
        parser.error(f"{options.program} is not a program")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    program = Program(options)
    outcomes = []
    try:
        for function in CHECKS:
            outcomes.append(play(function, program))
            if outcomes[-1] == "FAILED" and function in (two_machines_are_ordered, they_run):
                print("without machines that run there is no more to see")
                break
    except KeyboardInterrupt:
        print("interrupted")
        outcomes.append("FAILED")
    finally:
        clear(program)
    print(f"{options.program}: " + ", ".join(f"{outcomes.count(kind)} {kind}" for kind in ("ok", "skipped", "FAILED")))
    return 1 if "FAILED" in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
