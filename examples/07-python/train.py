"""A small network on Fashion-MNIST, or on drawn bars where that is not installed. Runs alone, too: python3 train.py"""
import gzip
import os

import torch

import mayfly

FOLDER = "/usr/share/datasets/fashion-mnist"


def fashion(count):
    with gzip.open(f"{FOLDER}/train-images-idx3-ubyte.gz") as images, gzip.open(f"{FOLDER}/train-labels-idx1-ubyte.gz") as labels:
        pixels = torch.frombuffer(bytearray(images.read()[16:]), dtype=torch.uint8)[: count * 784]
        return pixels.view(-1, 784) / 255, torch.frombuffer(bytearray(labels.read()[8:]), dtype=torch.uint8)[:count].long()


def bars(count):
    """Class k is a bright bar in row 2k + 4, among noise."""
    labels = torch.arange(count) % 10
    pictures = torch.rand(count, 28, 28, generator=torch.Generator().manual_seed(1)) / 2
    pictures[torch.arange(count), 2 * labels + 4] += 0.5
    return pictures.view(-1, 784), labels


dataset = torch.utils.data.TensorDataset(*(fashion if os.path.isdir(FOLDER) else bars)(20000))
model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

for pictures, labels in mayfly.batches(dataset):
    loss = torch.nn.functional.cross_entropy(model(pictures), labels)
    mayfly.step(model, optimizer, loss)

right = (model(dataset.tensors[0]).argmax(1) == dataset.tensors[1]).float().mean()
print(f"accuracy {float(right):.3f} after {mayfly.position()[0]} samples")
