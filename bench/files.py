#!/usr/bin/env python3
"""files.py [BUILD] [--mb 100,1000] [--rounds N]: files of a job fetched, and checkpoints brought, over a run's own connection on loopback, beside
cp of the same bytes to the same disk and a sync of them. The two alternate in one run. Ratios are of rates: above 1 mayfly is faster."""
import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = """name: files
run: "true"
workdir: work
objective: {steps: 1}
train:
  model: {name: script}
  batch: 1
"""


def seconds(words, **settings):
    start = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **settings)
    return time.monotonic() - start


def bytes_of(path, megabytes):
    with open(path, "wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(1_000_000))


def plain(source, target):
    shutil.rmtree(target, ignore_errors=True)
    return seconds(["sh", "-c", 'cp -r "$1" "$2" && find "$2" -type f -exec sync {} +', "sh", source, target])


def measure(build, folder, megabytes, rounds):
    """(rates of fetching, of its cp, of bringing, of its cp) in MB/s."""
    os.makedirs(f"{folder}/work")
    bytes_of(f"{folder}/work/data.bin", megabytes)
    checkpoint = f"{folder}/here/checkpoint-1"
    os.makedirs(checkpoint)
    os.link(f"{folder}/work/data.bin", f"{checkpoint}/model.safetensors")
    for name in ("optimizer.safetensors", "trainer_state.json"):
        bytes_of(f"{checkpoint}/{name}", 0)
    with open(f"{folder}/job.yaml", "w", encoding="utf-8") as file:
        file.write(JOB)
    run = subprocess.Popen([f"{build}/mayfly", "run", f"{folder}/job.yaml", "--engine", "none", "--workers", "1", "--out", f"{folder}/run", "-y"],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not os.path.exists(f"{folder}/run/address"):
            time.sleep(0.05)
        with open(f"{folder}/run/address", encoding="utf-8") as file:
            join = ["--join", file.read().strip(), "--token-file", f"{folder}/run/token"]
        rates = []
        for _ in range(rounds):
            shutil.rmtree(f"{folder}/cache", ignore_errors=True)
            environment = dict(os.environ, XDG_CACHE_HOME=f"{folder}/cache")
            fetched = seconds([f"{build}/mayfly-train", "fetch", *join, "--files", f"{folder}/there"], env=environment)
            copied = plain(f"{folder}/work", f"{folder}/copy")
            brought = seconds([f"{build}/mayfly-train", "bring", *join, checkpoint])
            kept = plain(checkpoint, f"{folder}/copy")
            rates.append([megabytes / took for took in (fetched, copied, brought, kept)])
        return [statistics.median(column) for column in zip(*rates)]
    finally:
        run.send_signal(signal.SIGTERM)
        run.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--mb", default="100,1000", help="sizes, separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| MB | fetched MB/s | cp and sync | ratio | brought MB/s | cp and sync | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for megabytes in (int(text) for text in options.mb.split(",")):
        with tempfile.TemporaryDirectory(prefix="mayfly-bench-files-") as folder:
            fetched, copied, brought, kept = measure(os.path.abspath(options.build), folder, megabytes, options.rounds)
        print(f"| {megabytes} | {fetched:.0f} | {copied:.0f} | {fetched / copied:.2f} | {brought:.0f} | {kept:.0f} | {brought / kept:.2f} |")


if __name__ == "__main__":
    sys.exit(main())
