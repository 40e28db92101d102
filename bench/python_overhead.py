#!/usr/bin/python3
"""python_overhead.py [BUILD] [--steps N]: what a step costs in a run of one Python worker, against the same network in a
plain loop, as ratios in one go: stretches of both take turns, so that whatever else the machine does hits both."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SCRIPT = """
import json, os, sys, time
import torch, mayfly
sizes = json.loads(os.environ["SIZES"])
torch.manual_seed(1)
def made():
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
data = torch.utils.data.TensorDataset(torch.randn(20000, sizes[0]), torch.randint(0, sizes[-1], (20000,)))
loss_of = lambda model, batch: torch.nn.functional.cross_entropy(model(batch[0]), batch[1])
model, optimizer = made()
plain_model, plain_optimizer = made()
def forever():
    while True:
        yield from torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)
plain_batches = forever()
STRETCH = 50
def plain():
    start = time.perf_counter()
    for _ in range(STRETCH):
        batch = next(plain_batches)
        plain_optimizer.zero_grad()
        loss_of(plain_model, batch).backward()
        plain_optimizer.step()
    return (time.perf_counter() - start) / STRETCH
steps, times, start = 0, [], None
for batch in mayfly.batches(data, model, optimizer):
    if start is None:
        start = time.perf_counter()
    mayfly.step(model, optimizer, loss_of(model, batch))
    steps += 1
    if steps % STRETCH == 0:
        times.append(((time.perf_counter() - start) / STRETCH, plain()))
        with open(os.environ["RESULT"], "w") as file:
            json.dump(times[1:], file)
        start = time.perf_counter()
"""


def measured(mayfly, folder, name, sizes, steps):
    os.makedirs(folder)
    with open(f"{folder}/train.py", "w", encoding="utf-8") as file:
        file.write(SCRIPT)
    with open(f"{folder}/job.yaml", "w", encoding="utf-8") as file:
        file.write(f"name: {name}\nrun: /usr/bin/python3 train.py\n"
                   f"envs: {{SIZES: '{json.dumps(sizes)}', RESULT: {folder}/times}}\n"
                   f"objective: {{steps: {steps}}}\ntrain:\n  model: {{name: script}}\n  batch: 64\n"
                   "  checkpoint: {every: 1h}\n")
    subprocess.run([mayfly, "run", f"{folder}/job.yaml", "--workers", "1", "--out", f"{folder}/run", "-y"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(f"{folder}/times", encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default=os.path.join(ROOT, "build"))
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    print("| network | parameters | plain step ms | in a run ms | ratio | least | most |\n" + "| --- " * 7 + "|")
    with tempfile.TemporaryDirectory() as folder:
        for name, sizes in (("784-128-10", [784, 128, 10]), ("784-1024-1024-10", [784, 1024, 1024, 10])):
            times = measured(os.path.abspath(f"{options.build}/mayfly"), f"{folder}/{len(sizes)}", "overhead", sizes,
                             options.steps)
            ratios = [own / plain for own, plain in times]
            parameters = sum(a * b + b for a, b in zip(sizes, sizes[1:]))
            own, plain = (1e3 * statistics.median(column) for column in zip(*times))
            print(f"| {name} | {parameters} | {plain:.2f} | {own:.2f} | {statistics.median(ratios):.2f} | "
                  f"{min(ratios):.2f} | {max(ratios):.2f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
