#!/usr/bin/python3
"""Files that others have put there: pipes, links, planted tokens, names that lead away, terminal codes, programs.
Usage: hostile.py path/to/mayfly [case]"""
import json
import os
import pty
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import expect, play, read  # noqa: E402
from living import LIMIT_S, Place  # noqa: E402

OTHER_USER = 12345
FILES = ["run.lock", "journal.jsonl", "token", "status.json", "summary.json", "job.yaml", "request.json", "plan.json",
         "address", "processes.json", "state.db", "state.db.lock", "run.log"]


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def prepared(place):
    """The folder of a run that was stopped, without training one."""
    os.makedirs(place.out)
    write(f"{place.out}/request.json", "{}")
    return place.out


def run(place, *flags, code=2):
    return place.call("run", place.job, "--workers", "1", "--out", place.out, "-y", *flags, code=code)


def pipes_in_a_run_folder_hold_nobody_up(place):
    out = prepared(place)
    for name in FILES:
        path = f"{out}/{name}"
        if os.path.exists(path):
            os.remove(path)
        os.mkfifo(path)
        for command in (["status", out], ["status", out, "--json"], ["logs", out], ["status"], ["stop", out],
                        ["drill", out, "--lose", "worker"]):
            place.call(*command, code=None)
        refused = place.call("resume", out, code=2).stderr
        expect(path in refused, f"resume with a pipe for {name}: {refused}")
        refused = run(place).stderr
        expect(path in refused, f"run with a pipe for {name}: {refused}")
        os.remove(path)
        write(f"{out}/request.json", "{}")


def links_in_a_run_folder_are_not_followed(place):
    out = prepared(place)
    target = f"{place.folder}/precious"
    write(target, "precious")
    for name in FILES:
        path = f"{out}/{name}"
        if os.path.exists(path):
            os.remove(path)
        os.symlink(target, path)
        expect(path in place.call("resume", out, code=2).stderr, f"resume with a link for {name}")
        expect(path in run(place).stderr, f"run with a link for {name}")
        expect(read(target) == "precious", f"{name} was written through")
        os.remove(path)
        write(f"{out}/request.json", "{}")


def a_token_that_others_read_is_no_secret(place):
    out = prepared(place)
    write(f"{out}/token", "1f0e2d3c" * 8 + "\n")
    os.chmod(f"{out}/token", 0o644)
    refused = run(place, code=None)
    expect(refused.returncode != 0 and "token: mode 644, want 600" in refused.stderr, f"{refused.stderr}")


def a_run_folder_of_another_user_is_refused(place):
    if os.geteuid() != 0:
        return  # only root gives files away
    out = prepared(place)
    os.chown(out, OTHER_USER, OTHER_USER)
    for refused in (run(place), place.call("resume", out, code=2)):
        expect(f"{out}: belongs to user {OTHER_USER}" in refused.stderr, refused.stderr)
    expect(os.listdir(out) == ["request.json"], f"something was made there: {os.listdir(out)}")
    os.chown(out, 0, 0)
    os.chown(f"{out}/request.json", OTHER_USER, OTHER_USER)
    expect("request.json: belongs to user" in run(place).stderr, "a file of another user in it")


def a_name_stays_in_the_folder_of_runs(place):
    job = read(place.job)
    inside = f"{place.folder}/a/b"
    os.makedirs(inside)
    for name in ("../../x", "/abs", ".", "..", "''"):
        write(place.job, job.replace("name: count", f"name: {name}", 1))
        refused = subprocess.run([place.mayfly, "run", place.job, "-y"], cwd=inside, capture_output=True, text=True,
                                 timeout=LIMIT_S, check=False)
        expect(refused.returncode == 2 and f"{place.job}:1: name: " in refused.stderr, f"{name}: {refused.stderr}")
        expect(os.listdir(inside) == [], f"{name}: made {os.listdir(inside)}")


def on_a_terminal(place, *arguments):
    """What a command writes there."""
    here, there = pty.openpty()
    with subprocess.Popen([place.mayfly, *arguments], stdin=there, stdout=there, stderr=there, cwd=place.folder):
        os.close(there)
        text = b""
        try:
            while chunk := os.read(here, 65536):
                text += chunk
        except OSError:  # the last writer is gone
            pass
    os.close(here)
    return text


def terminal_codes_are_shown_and_not_obeyed(place):
    out = prepared(place)
    code = "\x1b]0;title\x07\x1b[2J\u009b2J\x7f"
    write(f"{out}/status.json", json.dumps({"format": "mayfly-status/1", "job": code, "phase": "ended", "end": code,
                                            "checkpoint": code, "failure": code,
                                            "remarks": [{"t_s": 1, "remark": code}]}))
    write(f"{out}/journal.jsonl", json.dumps({"t_s": 1, "remark": code}) + "\n")
    write(f"{out}/run.log", code + "\n")
    for command in (["status", out], ["status"], ["logs", out], ["logs", out, "--controller"]):
        shown = on_a_terminal(place, *command)
        expect(not any(bad in shown for bad in (b"\x1b", b"\x07", b"\x7f", b"\xc2\x9b")), f"{command}: {shown}")
        expect(command == ["status"] or b"\\x1b[2J" in shown, f"{command}: {shown}")
    expect(code in place.call("logs", out, "--controller").stdout, "a file gets what was written")


def torchscript_of_a_stranger_wants_a_word(place):
    if os.geteuid() != 0:
        return
    model = f"{place.folder}/net.pt"
    write(model, "no network")
    os.chown(model, OTHER_USER, OTHER_USER)
    write(place.job, "name: strange\nobjective: {epochs: 1}\ntrain:\n  model: {name: torchscript, file: net.pt}\n"
                     "  data: {name: digits, samples: 100}\n  batch: 8\n")
    refused = run(place, code=None)
    expect(refused.returncode != 0 and "net.pt: a program that belongs to user 12345" in refused.stderr, refused.stderr)
    loaded = run(place, "--trust", code=None)
    expect("net.pt: not a TorchScript file" in loaded.stderr, f"the word did not reach the worker: {loaded.stderr}")


CASES = [pipes_in_a_run_folder_hold_nobody_up, links_in_a_run_folder_are_not_followed,
         a_token_that_others_read_is_no_secret, a_run_folder_of_another_user_is_refused,
         a_name_stays_in_the_folder_of_runs, terminal_codes_are_shown_and_not_obeyed,
         torchscript_of_a_stranger_wants_a_word]

if __name__ == "__main__":
    sys.exit(play(CASES, sys.argv[2] if len(sys.argv) > 2 else "",
                  lambda case, folder: Place(os.path.abspath(sys.argv[1]), folder), Place.kill_all))
