"""Checkpoints in mayfly's format: docs/formats.md#checkpoint. The optimiser's tensors have numbers for names; the note
`state_dict` of their file tells how its state_dict is made of them."""
import ctypes
import fcntl
import json
import math
import os

from . import safetensors
from .xxh3 import xxh3

_MODEL, _OPTIMISER, _STATE = "model.safetensors", "optimizer.safetensors", "trainer_state.json"
_SEAL = '"xxh3": "'
_count = 0


def _write(path, data):
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path):
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def state_text(fields, files):
    """trainer_state.json, sealed."""
    body = dict({"format": "mayfly-checkpoint/2"}, **fields)
    if not math.isfinite(body["loss"]):
        body["loss"] = None
    body["files"] = {name: {"bytes": len(data), "xxh3": "%016x" % xxh3(data)} for name, data in files.items()}
    text = json.dumps(body, indent=2, ensure_ascii=False)[:-2] + ",\n  "
    return text + '%s%016x"\n}\n' % (_SEAL, xxh3(text.encode()))


def _ours(place):
    return os.path.isdir(place) and not os.path.islink(place) and set(os.listdir(place)) <= {_MODEL, _OPTIMISER, _STATE}


def _remove(folder):
    for name in (_MODEL, _OPTIMISER, _STATE):
        try:
            os.remove(os.path.join(folder, name))
        except FileNotFoundError:
            pass
    os.rmdir(folder)


def _exchanged(one, other):
    """Two folders change places in one moment; False where the system cannot."""
    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return swap(-100, os.fsencode(one), -100, os.fsencode(other), 2) == 0


def _made_and_locked(work):
    """The folder's descriptor. Until it is locked the controller may take it for a leftover, and remove it."""
    for left in reversed(range(4)):
        os.mkdir(work)
        try:
            lock = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            if left:
                continue
            raise
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if left == 0 or os.path.isdir(work):
            return lock
        os.close(lock)


def write(directory, state, fields):
    """Whole or not at all: DIRECTORY/checkpoint-STEP. Returns its path."""
    global _count
    _count += 1
    os.makedirs(directory, exist_ok=True)
    place = os.path.join(directory, "checkpoint-%d" % fields["step"])
    work = os.path.join(directory, ".checkpoint-%d.%d-%d.partial" % (fields["step"], os.getpid(), _count))
    files = {_MODEL: safetensors.encoded(state["model"]),
             _OPTIMISER: safetensors.encoded(state["optimizer"], {"state_dict": state["tree"]})}
    lock = _made_and_locked(work)
    try:
        for name, data in files.items():
            _write(os.path.join(work, name), data)
        _write(os.path.join(work, _STATE), state_text(fields, files).encode())
        _sync_folder(work)
        if os.path.lexists(place):
            if not _ours(place):
                raise OSError("%s: holds files that are not mayfly's, will not replace it" % place)
            if not _exchanged(work, place):
                _remove(place)
                os.rename(work, place)
        else:
            os.rename(work, place)
        _sync_folder(directory)
        return place
    finally:
        if os.path.isdir(work):
            _remove(work)
        os.close(lock)


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def read_fields(place):
    """trainer_state.json of a checkpoint; a ValueError where it is damaged."""
    path = os.path.join(place, _STATE)
    text = _read(path).decode("utf-8", "replace")
    body, seal, rest = text.rpartition(_SEAL)
    if not seal or rest != '%016x"\n}\n' % xxh3(body.encode()):
        raise ValueError("%s: damaged: its checksum does not fit" % path)
    return json.loads(text)


def read(place):
    """(state, fields); a ValueError where anything is damaged."""
    fields = read_fields(place)
    tensors, notes = {}, {}
    for name, seal in fields["files"].items():
        data = _read(os.path.join(place, name))
        if len(data) != seal["bytes"] or "%016x" % xxh3(data) != seal["xxh3"]:
            raise ValueError("%s: damaged: its size or checksum does not fit" % os.path.join(place, name))
        tensors[name], notes[name] = safetensors.decoded_with_notes(data, os.path.join(place, name))
    if "state_dict" not in notes[_OPTIMISER]:
        raise ValueError("%s: not the optimiser of a Python worker" % os.path.join(place, _OPTIMISER))
    return {"model": tensors[_MODEL], "optimizer": tensors[_OPTIMISER], "tree": notes[_OPTIMISER]["state_dict"]}, fields


def newest_sample(directory):
    """Samples in the newest checkpoint that is whole as far as its state tells; 0: none."""
    newest = 0
    for name in os.listdir(directory) if os.path.isdir(directory) else ():
        if name.startswith("checkpoint-"):
            try:
                newest = max(newest, read_fields(os.path.join(directory, name))["sample"])
            except (OSError, ValueError, KeyError, TypeError):
                pass
    return newest
