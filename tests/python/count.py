"""The counting job as a script: every sample adds 1 to a weight of its own, so the weights say how often each counted."""
import os
import time

import torch

import mayfly

SAMPLES = int(os.environ["SAMPLES"])


class Count(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(SAMPLES))

    def forward(self, samples):
        return -self.weight[samples].sum()


class Numbers:
    """0, 1, 2 ..., many at once."""

    def __len__(self):
        return SAMPLES

    def __getitem__(self, sample):
        return sample

    def __getitems__(self, samples):
        return torch.tensor(samples)


model = Count()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
counted = 0
for batch in mayfly.batches(Numbers(), collate=lambda samples: samples):
    time.sleep(float(os.environ.get("PAUSE_S", "0")))
    counted += mayfly.step(model, optimizer, model(torch.as_tensor(batch)))
    if mayfly.notice() is not None:
        print("notice: %.1f s" % mayfly.notice(), flush=True)
print("ends at", mayfly.position(), "after", counted, flush=True)
