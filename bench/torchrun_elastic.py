#!/usr/bin/python3
"""torchrun_elastic.py FOLDER BATCH CHECKPOINT_EVERY: ResNet-20 with DistributedDataParallel over gloo, as bench/recovery.py
starts it under torchrun. Every CHECKPOINT_EVERY steps rank 0 saves to FOLDER/checkpoint.pt, from where a restarted group goes
on. FOLDER/steps has a line "STEP TIME" for each step, FOLDER/pids one "RANK PROCESS RESTART" for each process that began."""
import os
import sys
import time

import torch
import torch.distributed
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    def __init__(self, inside, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.grows = out - inside

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        if self.grows:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 0, self.grows))
        return functional.relu(y + x)


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    inside = 16
    for out in (16, 32, 64):
        for _ in range(3):
            layers.append(Block(inside, out, 1 if inside == out else 2))
            inside = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def append(path, line):
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def save(path, step, model, optimiser):
    torch.save({"step": step, "model": model.state_dict(), "optimiser": optimiser.state_dict()}, path + ".partial")
    os.replace(path + ".partial", path)


def main(folder, batch, every):
    local = int(os.environ["LOCAL_RANK"])
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[local % len(cores)]})
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.manual_seed(1)
    model = resnet20()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    checkpoint, step = f"{folder}/checkpoint.pt", 0
    if os.path.exists(checkpoint):
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        step = state["step"]
    trained = DistributedDataParallel(model)
    append(f"{folder}/pids", f"{rank} {os.getpid()} {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}")
    inputs = torch.randn(batch // ranks, 3, 32, 32)
    labels = torch.randint(10, (batch // ranks,))
    while True:
        optimiser.zero_grad()
        functional.cross_entropy(trained(inputs), labels).backward()
        optimiser.step()
        step += 1
        if rank == 0 and step % every == 0:
            save(checkpoint, step, model, optimiser)
        if rank == 0:
            append(f"{folder}/steps", f"{step} {time.time():.4f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
