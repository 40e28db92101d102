"""Checkpoints of a machine that does not see the controller's files: mayfly-train carries them over the run's connection.
docs/protocol.md#files"""
import os
import shutil
import subprocess

from . import checkpoint


def _folder():
    """Of this machine's own files; None: it sees the controller's."""
    folder = os.environ.get("MAYFLY_FILES")
    return os.path.join(folder, "checkpoints") if folder else None


def _carried(verb, *words):
    call = [os.environ.get("MAYFLY_TRAIN", "mayfly-train"), verb, "--join", os.environ["MAYFLY_JOIN"], "--token-file",
            os.environ["MAYFLY_TOKEN_FILE"], *words]
    done = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(done.stderr.strip().rpartition("\n")[2] or "mayfly-train %s ended with %d" % (verb, done.returncode))
    return done.stdout.strip()


def write(directory, state, fields):
    """As checkpoint.write; its path on the controller's computer."""
    own = _folder()
    if own is None:
        return checkpoint.write(directory, state, fields)
    path = checkpoint.write(os.path.join(own, "out"), state, fields)
    try:
        return _carried("bring", path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def read(path):
    """As checkpoint.read."""
    own = _folder()
    if own is None:
        return checkpoint.read(path)
    here = _carried("take", path, "--files", os.path.join(own, "in"))
    try:
        return checkpoint.read(here)
    finally:
        shutil.rmtree(here, ignore_errors=True)
