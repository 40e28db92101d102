#!/usr/bin/env python3
"""fuzz.py BUILD [--cpu-minutes M] [--only TARGET,...] [--jobs N] [--record FILE] [--sum]: runs every fuzz target of a build with
clang until each has spent so many minutes of processor time, as the kernel counts them, in slices and in turn.

It may be stopped at any time (Ctrl-C) and goes on with the same command: the record, one line of JSON for each slice, says what
was done, and what was found worth keeping stays in BUILD/fuzz/grown. A crash is named with the file that makes it, and counted;
the others go on, and the exit code is 1 at the end. --sum only prints what the record holds."""
import argparse
import collections
import concurrent.futures
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from record import Record, commit, print_table

FLAGS = ["-rss_limit_mb=3000", "-timeout=300", "-report_slow_units=300", "-print_final_stats=1", f"-dict={HERE}/yaml.dict"]
INTERRUPTED = 72  # libFuzzer's exit code then
KEPT = 200  # lines of what a target said last
STOP = threading.Event()


def targets(build, only):
    found = sorted(name[5:] for name in os.listdir(f"{build}/fuzz") if name.startswith("fuzz_"))
    names = [name for name in only.split(",") if name]
    if missing := [name for name in names if name not in found]:
        raise SystemExit(f"no target {missing[0]}: there are {', '.join(found)}")
    return names or found


def spent(record, name):
    """Seconds of processor time."""
    return sum(line["cpu_s"] for line in record.lines if line["target"] == name)


def figure(lines, key):
    """The last `stat::KEY: N` of what libFuzzer says at the end, or what it said under way."""
    for line in reversed(lines):
        if found := re.search(rf"stat::{key}:\s+(\d+)", line) or re.match(r"#(\d+)\s", line):
            return int(found.group(1))
    return 0


def limit_processor_time(seconds):
    """A target that does not end by itself is told so by the kernel, which counts as no crash."""
    def apply():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 60))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return apply


def outcome(status, lines, crashes, name):
    """(result, the file that makes it crash) of a slice."""
    for line in lines:
        if found := re.search(r"Test unit written to (\S+)", line):
            return "crash", os.path.normpath(os.path.join(crashes, found.group(1)))
    code = os.waitstatus_to_exitcode(status)
    if code in (INTERRUPTED, -signal.SIGXCPU, -signal.SIGINT, -signal.SIGTERM):
        return "stopped", None
    if code == 0:
        return "ok", None
    path = f"{crashes}/{name}-{int(time.time())}.log"
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)
    return "crash", path


def run_slice(build, name, seconds):
    """One slice of a target; its line for the record."""
    grown, crashes = f"{build}/fuzz/grown/{name}", f"{build}/fuzz/crashes"
    for folder in (grown, crashes):
        os.makedirs(folder, exist_ok=True)
    words = [f"{build}/fuzz/fuzz_{name}", *FLAGS, f"-max_total_time={seconds}", f"-artifact_prefix={crashes}/{name}-",
             grown, f"{HERE}/corpus/{name}"]
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             cwd=f"{build}/fuzz", text=True, errors="replace", preexec_fn=limit_processor_time(seconds * 4))
    lines = collections.deque(child.stdout, KEPT)  # to its end
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    result, path = outcome(status, lines, crashes, name)
    if result == "crash":
        with open(f"{crashes}/{name}.log", "w", encoding="utf-8") as file:
            file.writelines(lines)
    return {"target": name, "commit": commit("src", "tests/fuzz"), "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
            "executions": figure(lines, "number_of_executed_units"), "corpus": len(os.listdir(grown)), "result": result,
            "reproducer": path}


def work_off(options, record, names):
    """In turn, the one that has had least first, so that a run that is stopped has covered all evenly."""
    wanted, busy, lock = 60 * options.cpu_minutes, set(), threading.Lock()

    def take():
        with lock:
            rest = [name for name in names if name not in busy and spent(record, name) < wanted]
            if not rest or STOP.is_set():
                return None
            name = min(rest, key=lambda one: spent(record, one))
            busy.add(name)
            return name

    def work():
        while name := take():
            left = wanted - spent(record, name)
            line = run_slice(options.build, name, max(1, min(options.slice, round(left))))
            record.add(line)
            busy.discard(name)
            if line["result"] == "crash":
                print(f"{name} CRASHED: {line['reproducer']}", flush=True)
                time.sleep(1)  # one that crashes at once has its turn again and again

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in [pool.submit(work) for _ in range(options.jobs)]:
            future.result()


def table(record, names):
    """What was spent on each target, and at which commits."""
    rows = [("target", "CPU min", "executions", "corpus", "crashes", "commits")]
    for name in names:
        mine = [line for line in record.lines if line["target"] == name]
        commits = list(dict.fromkeys(line["commit"] for line in mine))
        rows.append((name, f"{spent(record, name) / 60:.1f}", sum(line["executions"] for line in mine),
                     mine[-1]["corpus"] if mine else 0, sum(line["result"] == "crash" for line in mine), " ".join(commits)))
    print_table(rows)
    everything = [line for line in record.lines if line["target"] in names]
    print(f"{len(names)} targets, {sum(line['cpu_s'] for line in everything) / 60:.1f} minutes of processor time, "
          f"{sum(line['executions'] for line in everything)} executions, "
          f"{sum(line['result'] == 'crash' for line in everything)} crashes")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="of the preset clang")
    parser.add_argument("--cpu-minutes", type=float, default=10, help="of each target, with what the record holds")
    parser.add_argument("--only", default="", help="targets, separated by commas")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--slice", type=int, default=60, help="seconds of a target's turn")
    parser.add_argument("--record", help="BUILD/fuzz/record.jsonl unless told")
    parser.add_argument("--sum", action="store_true", help="print what the record holds, and run nothing")
    options = parser.parse_args()
    options.build = os.path.realpath(options.build)
    record = Record(options.record or f"{options.build}/fuzz/record.jsonl")
    names = targets(options.build, options.only)
    if not options.sum:
        signal.signal(signal.SIGINT, lambda *_: STOP.set())  # the targets hear it too, and end
        signal.signal(signal.SIGTERM, lambda *_: STOP.set())
        before = len(record.lines)
        work_off(options, record, names)
    table(record, names)
    if options.sum:
        return 0
    return 1 if any(line["result"] == "crash" for line in record.lines[before:]) else 0


if __name__ == "__main__":
    sys.exit(main())
