#!/usr/bin/python3
"""stalls.py path/to/mayfly: a job with dials is turned so that each stage in its turn is the slowest, and `profile --stalls` must name it."""
import json
import os
import subprocess
import sys
import tempfile

JOB = """name: dials
objective: {{steps: 1000}}
train:
  model: {{name: dials, device_ms: {device}, parameters_mb: {parameters}}}
  data:
    name: dials
    samples: 2000
    sample_kb: 16
    prep_ms: {prep}
    files: [dials.bin]
    loader: {{prep_threads: 1, ahead: 2, storage_mb_per_s: {storage}}}
  batch: 16
"""
# Milliseconds of a sample on the device and in prep, MB/s of storage, MB of parameters.
CASES = {
    "compute": {"device": 4, "prep": 0.5, "storage": 500, "parameters": 0.1},
    "prep": {"device": 1, "prep": 4, "storage": 500, "parameters": 0.1},
    "fetch": {"device": 1, "prep": 0.5, "storage": 4, "parameters": 0.1},
    "interconnect": {"device": 1, "prep": 0.1, "storage": 500, "parameters": 32},
}


def profiled(mayfly, folder, dials, workers):
    path = os.path.join(folder, "job.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(JOB.format(**dials))
    done = subprocess.run([mayfly, "profile", path, "--stalls", "--for", "8s", "--workers", str(workers), "--json", "-o",
                           os.path.join(folder, "profile.json")], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"profile: exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def check(name, answer):
    stalls = answer["stalls"]
    shares = {kind: stalls[kind]["share"] for kind in ("interconnect", "prep", "fetch")}
    if name == "compute":
        right = answer["advice"]["bottleneck"] == "compute" and max(shares["prep"], shares["fetch"]) < 0.3
    elif name == "interconnect":
        right = stalls[name]["seconds_low"] > 0 and max(shares, key=shares.get) == name
    else:
        right = (answer["advice"]["bottleneck"] == name and stalls[name]["seconds_low"] > 0
                 and max(shares, key=shares.get) == name)
    print(f"{'ok     ' if right else 'FAILED '} {name}: {answer['advice']['text']} {shares}", flush=True)
    return right


def named(mayfly, folder, name):
    """Whether the stage is named. What else the machine does can spoil one measurement; three in a row it does not."""
    return any(check(name, profiled(mayfly, folder, CASES[name], 2 if name == "interconnect" else 1)) for _ in range(3))


def main():
    mayfly = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="mayfly-stalls-") as folder:
        right = [named(mayfly, folder, name) for name in CASES]
        read = subprocess.run([mayfly, "predict", "--profile", os.path.join(folder, "profile.json"), "--cluster", "g4dn.xlarge=1",
                               "--steps", "10"], capture_output=True, text=True, check=False)
        if read.returncode:
            sys.exit(f"predict does not read a profile with stalls: {read.stderr}")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
