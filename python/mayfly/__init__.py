"""mayfly for PyTorch scripts: training that survives the loss of machines. docs/python.md

    for batch in mayfly.batches(dataset):
        loss = loss_of(model, batch)
        mayfly.step(model, optimizer, loss)

Started by `mayfly run` (or with MAYFLY_JOIN and MAYFLY_TOKEN) the script is one worker of many; otherwise it trains alone."""
from .script import batches, notice, position, step
from .version import __version__

__all__ = ["__version__", "batches", "notice", "position", "step"]
