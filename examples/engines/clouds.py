"""What programs that get machines by a cloud's own tool have in common: names, calls of the tool, the script that a machine starts with,
and the last words of those that are deleted."""
import concurrent.futures
import hashlib
import os
import re
import shlex
import subprocess
import time

from lines import Trouble

LONGEST_REASON = 300  # characters: mayfly tells no more
CALLS_AT_ONCE = 8
TAIL_LINES = 50
KEPT_S = 86400


def cloud_run(run, most):
    """The run's name as clouds take names: at most so many lower case letters, digits and dashes, a letter first. A name that cannot be
    had as it is keeps its end, which tells runs apart, and gets a mark that no other run has."""
    name = f"m-{run}"
    if len(name) <= most and re.fullmatch("[a-z0-9-]*[a-z0-9]", name):
        return name
    tame = re.sub("[^a-z0-9]+", "-", run.lower())[-(most - 11) :].strip("-")
    return f"m-{tame}-{hashlib.sha256(run.encode()).hexdigest()[:8]}"


def cloud_name(run, launch, most=63):
    return f"{cloud_run(run, most - 8)}-{launch}"


def launch_of(name, run, most=63):
    """None where the machine is of another run."""
    head, _, launch = name.rpartition("-")
    return int(launch) if head == cloud_run(run, most - 8) and re.fullmatch("[0-9]+", launch) else None


def setting(name, wanted=None):
    """Of the environment; `wanted` says what it is, where there must be one."""
    value = os.environ.get(name, "")
    if wanted and not value:
        raise Trouble(f"{name} is not set: want {wanted}")
    return value


def gigabytes(name):
    """Of the environment; None where it is not set."""
    text = setting(name)
    if text and not re.fullmatch("[1-9][0-9]*", text):
        raise Trouble(f"{name} is '{text}', want a number of GB")
    return int(text) if text else None


def called(*words):
    """What a tool prints; its own words are the reason where it fails."""
    done = ended(words)
    if done.returncode != 0:
        tool = " ".join(word for word in words[:3] if not word.startswith("-"))
        raise Trouble(f"{tool}: {reason(done.stderr) or reason(done.stdout) or f'exit code {done.returncode}'}")
    return done.stdout


def ended(words):
    try:
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError:
        raise Trouble(f"no {words[0]} on this computer") from None


def reason(text):
    """The last error of what a tool said, with all that follows it, in one line; its last line where none calls itself an error."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).splitlines() if line.strip()]
    errors = [number for number, line in enumerate(lines) if re.match(r"ERROR\b|[\w.]*(Error|Exception): ", line)]
    told = " ".join(lines[errors[-1] if errors else -1 :])
    return re.sub(r"^ERROR: *(\([a-z.-]+\) *)?", "", told)[:LONGEST_REASON]


def at_once(function, things):
    """What it gives for each of them, as it comes."""
    with concurrent.futures.ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
        for future in concurrent.futures.as_completed([pool.submit(function, thing) for thing in things]):
            yield future.result()


def placed(machines, known, place):
    """The answers to an order. `known` are the ids of the machines that are there, by launch; `place` gets one, gives its id, and is in
    Trouble where it is refused."""
    def answer(machine):
        launch = machine["launch"]
        try:
            for key in ("type", "market", "command"):
                if not isinstance(machine.get(key), str) or not machine[key]:
                    raise Trouble(f"the order names no {key}")
            return {"launch": launch, "id": known.get(launch) or place(machine)}
        except Trouble as refusal:
            return {"launch": launch, "refused": str(refusal)}
    return at_once(answer, machines)


def boot_script(command, before=""):
    """What a machine does from its start to its end: `before` is shell text, and the machine goes when the command is over."""
    lines = ["#!/bin/sh", 'export HOME="${HOME:-/root}"', *before.splitlines(), f"/bin/sh -c {shlex.quote(command)}",
             'echo "mayfly: its command ended with code $?"', "poweroff"]
    return "\n".join(lines) + "\n"


def code_in(words):
    """What its command ended with, by what the machine said; None where that does not stand there."""
    found = re.findall(r"mayfly: its command ended with code (\d+)", words)
    return int(found[-1]) if found else None


def ending_of(code):
    return {"stage": "gone", "ending": "failed" if code else "finished", "why": f"its command ended with code {code}"}


def content(path):
    """Of a file that a setting names; empty where none is named."""
    if not path:
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def keep(name, words):
    """The last words of a machine that is about to be deleted, for a day."""
    folder = os.path.dirname(kept_path(name))
    os.makedirs(folder, exist_ok=True)
    for entry in os.scandir(folder):
        if entry.stat().st_mtime < time.time() - KEPT_S:
            os.unlink(entry.path)
    with open(kept_path(name), "w", encoding="utf-8") as file:
        file.write(words)


def kept(name):
    """None where nothing was kept."""
    return content(kept_path(name)) if os.path.exists(kept_path(name)) else None


def kept_path(name):
    return os.path.join(os.path.expanduser("~/.cache/mayfly-last-words"), name)


def last_lines(text):
    return "\n".join(text.splitlines()[-TAIL_LINES:])
