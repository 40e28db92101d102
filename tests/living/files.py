#!/usr/bin/python3
"""Data files that fail while a run trains on them, with real processes: the run ends with the file's name, and goes on
from what was committed once the file is back.
Usage: files.py path/to/mayfly [case]"""
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import expect, play, read  # noqa: E402
from living import Place  # noqa: E402

JOB = """name: dials
objective: {{epochs: 1000000}}
train:
  model: {{name: dials, parameters_mb: 0.01}}
  data: {{name: dials, samples: 1000, sample_kb: 1, files: data.bin, loader: {{prep_threads: 1}}}}
  batch: 50
  checkpoint: {{every: 1h}}
{servers}
"""


class Files(Place):
    def __init__(self, mayfly, folder, servers=""):
        super().__init__(mayfly, folder)
        self.data = os.path.join(folder, "data.bin")
        with open(self.job, "w", encoding="utf-8") as file:
            file.write(JOB.format(servers=servers))


def is_saved(place, samples):
    """By a checkpoint that holds this many samples."""
    folder = f"{place.out}/checkpoints"
    states = [read(f"{folder}/{name}/trainer_state.json") for name in os.listdir(folder)]
    return any(f'"sample": {samples},' in state for state in states)


def samples_at_the_failure(place):
    place.detached()
    place.committed(3000)
    os.truncate(place.data, 500_000)
    place.wait("the run's end", lambda: place.status()["state"] != "running")
    seen = place.status()
    expect(seen["state"] == "failed", f"{seen['state']}")
    words = place.call("status", place.out, code=None).stdout + read(f"{place.out}/run.log")
    expect("data.bin: nothing at byte" in words, f"the file is not named: {words[-500:]}")
    trained = seen["samples"]
    expect(trained >= 3000, f"{trained} samples are left")
    return trained


def data_that_shrinks_ends_the_run_and_loses_nothing(place):
    trained = samples_at_the_failure(place)
    expect(is_saved(place, trained), f"no checkpoint of sample {trained}: {os.listdir(f'{place.out}/checkpoints')}")
    os.remove(place.data)
    place.call("resume", "-d", place.out)
    place.committed(trained + 1000)
    place.call("stop", place.out)
    summary = read(f"{place.out}/summary.json")
    expect('"samples_repeated": 0' in summary and '"samples_skipped": 0' in summary, f"samples not exact: {summary}")


CASES = [data_that_shrinks_ends_the_run_and_loses_nothing]

if __name__ == "__main__":
    sys.exit(play(CASES, sys.argv[2] if len(sys.argv) > 2 else "",
                  lambda case, folder: Files(os.path.abspath(sys.argv[1]), folder), Place.kill_all))
