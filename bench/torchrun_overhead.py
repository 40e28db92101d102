#!/usr/bin/python3
"""torchrun_overhead.py BUILD [--rounds N] [--steps N]: what `mayfly torchrun` costs against plain `torchrun`. The same script, a
small network that trains on one core and prints every step, runs under both in turns; what is compared is the time the
script itself needs from its first to its last step (the ratio of each round, so that a busy machine is busy for both), and
the whole time with start and end. CPU time of all processes together says the same on a machine that is busy with other
things."""
import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

SCRIPT = """
import os, sys, time
import torch
torch.set_num_threads(1)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(64, 256), torch.randint(0, 10, (64,))
steps = int(sys.argv[1])
for step in range(steps + 20):
    if step == 20:
        start = time.monotonic()
    optimiser.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimiser.step()
    print(f"step {step}/{steps} loss {loss.item():.4f}", flush=True)
print("seconds", time.monotonic() - start, flush=True)
"""
LIMIT_S = 600


def run(command, folder):
    start, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=LIMIT_S,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    whole, now = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    inside = [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("seconds ")]
    return inside[0], whole, cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=5000)
    options = parser.parse_args()
    mayfly = os.path.join(os.path.abspath(options.build), "mayfly")
    ratios, wholes, cpus = [], [], []
    with tempfile.TemporaryDirectory(prefix="mayfly-overhead-") as folder:
        script = os.path.join(folder, "train.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        common = ["--standalone", "--nproc_per_node=1", script, str(options.steps)]
        for number in range(options.rounds):
            plain = ["torchrun", "-r", "9:1", "-t", "9:1", *common]
            ours = [mayfly, "torchrun", "--mayfly-out", os.path.join(folder, f"out-{number}"), "--deadline", "1h", "--notices",
                    "none", *common]
            # Who goes first changes, so that neither always has the warmer machine.
            order = (plain, ours) if number % 2 == 0 else (ours, plain)
            seen = {command[0]: run(command, folder) for command in order}
            ratios.append(seen[mayfly][0] / seen["torchrun"][0])
            wholes.append(seen[mayfly][1] - seen["torchrun"][1])
            cpus.append(seen[mayfly][2] / seen["torchrun"][2])
            print(f"round {number + 1}: torchrun {seen['torchrun'][0]:.2f} s, mayfly torchrun {seen[mayfly][0]:.2f} s, "
                  f"ratio {ratios[-1]:.4f}; CPU time of all processes: ratio {cpus[-1]:.4f}; "
                  f"start to end {wholes[-1]:+.2f} s", flush=True)
    print(f"steps: median ratio {statistics.median(ratios):.4f} ({min(ratios):.4f} to {max(ratios):.4f}), target 1.01; "
          f"CPU time: median {statistics.median(cpus):.4f}; start to end: median {statistics.median(wholes):+.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
