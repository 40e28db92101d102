#!/usr/bin/python3
"""What a run must not go on with: another run's folder, a job or data that has changed, a loss that is no number, a script
that hangs or fails at the same place again and again. Usage: guards.py path/to/mayfly [case]"""
import json
import os
import struct
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import expect, play, read  # noqa: E402
from living import Place  # noqa: E402

SCRIPT = """import os, sys, time
import torch, mayfly
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for batch in mayfly.batches([torch.tensor([float(i)]) for i in range(64)]):
    where = mayfly.position()[0]
    if where == 32:
{trouble}
    time.sleep(0.02)
    mayfly.step(model, optimizer, model(batch).square().mean())
"""
SCRIPT_JOB = """name: script
run: /usr/bin/python3 {script}
objective: {{epochs: 2}}
train: {{model: {{name: script}}, batch: 8, checkpoint: {{every: 1s}}}}
"""


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def edit(path, old, new):
    text = read(path)
    expect(old in text, f"{path}: no {old!r}")
    write(path, text.replace(old, new))


def counts(checkpoint):
    """The weights of the counting job: how often each sample was applied."""
    with open(f"{checkpoint}/model.safetensors", "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    first, end = next(v["data_offsets"] for k, v in header.items() if k != "__metadata__")
    return struct.unpack(f"<{(end - first) // 4}f", data[8 + size + first:8 + size + end])


def two_runs_do_not_share_a_folder_of_checkpoints(place):
    edit(place.job, "every: 1s", "every: 1s, directory: shared")
    place.detached()
    place.wait("a checkpoint", lambda: place.status()["checkpoint"])
    other = place.call("run", place.job, "--workers", "1", "--out", f"{place.folder}/two", "-y", code=2).stderr
    expect("holds the checkpoints of another run" in other, other)
    place.call("stop", place.out)
    place.call("resume", place.out, "-d")  # its own it finds again
    place.call("stop", place.out)


def a_resumed_job_trains_what_it_began(place):
    place.detached()
    place.committed(2000)
    place.call("stop", place.out)
    job = f"{place.out}/job.yaml"
    edit(job, "  batch: 100", "  batch: 100\n  seed: 7")
    refused = place.call("resume", place.out, code=2).stderr
    expect("train.seed: was not there, is 7" in refused and "What may change" in refused, refused)
    edit(job, "\n  seed: 7", "")
    samples = place.status()["samples"]
    epochs = samples // 20000 + 2
    edit(job, "epochs: 1000000", f"epochs: {epochs}")
    done = json.loads(place.call("resume", place.out, "--json").stdout)
    expect((done["samples"], done["samples_repeated"], done["samples_skipped"]) == (epochs * 20000, 0, 0), f"{done}")
    expect(set(counts(done["checkpoint"])) == {float(epochs)}, "the weights are not what they should be")


def a_worker_with_other_data_is_not_let_in(place):
    data = f"{place.folder}/data.txt"
    write(data, "0123456789abcdef" * 1000)
    write(place.job, "name: text\nobjective: {epochs: 100000}\ntrain:\n  model: {name: gpt, layers: 1, heads: 1, embedding: 8, "
          "context: 8}\n  data: {name: text, files: [data.txt]}\n  batch: 8\n")
    place.detached()
    place.committed(64)
    os.replace(data, data + ".old")  # those who have it open keep it
    write(data, "0123456789abcdef" * 500)
    os.kill(place.processes()["workers"][0]["pid"], 9)
    words = "its data set has 999 samples, that of the run 1999"  # a last window lacks the character after it
    place.wait("the refusal", lambda: words in read(f"{place.out}/journal.jsonl"))
    expect(place.status()["phase"] != "ended", "the others do not train on")
    os.replace(data + ".old", data)
    place.call("stop", place.out)


def a_loss_that_is_no_number_ends_the_run(place):
    write(place.job, "name: nan\nobjective: {epochs: 100}\ntrain:\n  model: {name: mlp, hidden: [8]}\n"
          "  data: {name: digits, samples: 640}\n  optimiser: {kind: sgd, rate: 1e10, weight_decay: 1e10}\n  batch: 32\n")
    failed = place.call("run", place.job, "--workers", "2", "--out", place.out, "-y", code=1).stderr
    expect("the loss is no number for 3 steps in a row" in failed and "the state before them, of sample 32, is saved" in failed, failed)
    edit(place.job, "  batch: 32", "  batch: 32\n  on_nan: go")
    edit(place.job, "epochs: 100", "epochs: 1")
    place.call("run", place.job, "--workers", "1", "--out", f"{place.folder}/two", "-y")


def script(place, trouble):
    write(f"{place.folder}/train.py", SCRIPT.format(trouble=trouble))
    write(place.job, SCRIPT_JOB.format(script=f"{place.folder}/train.py"))


def a_script_that_fails_at_one_place_ends_the_run(place):
    script(place, "        raise ValueError('bad sample')")
    failed = place.call("run", place.job, "--workers", "2", "--out", place.out, "-y", code=1).stderr
    expect("failed at sample 32, as others did before it" in failed and "bad sample" in failed, failed)


def a_script_that_hangs_is_replaced_and_says_where(place):
    mark = f"{place.folder}/hung"
    script(place, f"        if not os.path.exists('{mark}'):\n            open('{mark}', 'w').close()\n"
           "            while True:\n                time.sleep(1)")
    done = json.loads(place.call("run", place.job, "--workers", "2", "--out", place.out, "-y", "--step-limit", "2s",
                                 "--json").stdout)
    expect((done["samples"], done["samples_repeated"], done["samples_skipped"]) == (128, 0, 0), f"{done}")
    expect("does not get on" in read(f"{place.out}/journal.jsonl"), "nothing is said of it")
    logs = "".join(read(f"{place.out}/logs/{name}") for name in os.listdir(f"{place.out}/logs"))
    expect("train.py\", line 11" in logs, f"its log does not say where it was: {logs[-2000:]}")


def replicas_that_drift_end_the_run(place):
    # Of the second worker alone: something that the others know nothing of. Again and again, as it may join after sample 32.
    script(place, "        if os.environ['MAYFLY_SLOT'] == '1':\n            with torch.no_grad():\n                model.bias.add_(1)")
    edit(f"{place.folder}/train.py", "where == 32", "where % 32 == 0")
    edit(f"{place.folder}/train.py", "time.sleep(0.02)", "time.sleep(0.1)")
    edit(f"{place.folder}/train.py", "lr=0.001", "lr=1e-9")
    edit(place.job, "epochs: 2", "epochs: 1000")
    failed = place.call("run", place.job, "--workers", "2", "--out", place.out, "-y", code=1).stderr
    expect("the workers do not hold the same: at sample" in failed and " bias is " in failed, failed)
    edit(place.job, "batch: 8", "batch: 8, on_drift: go")
    place.out = f"{place.folder}/two"
    place.detached()
    place.wait("the word", lambda: "the workers do not hold the same" in read(f"{place.out}/journal.jsonl"))
    place.call("stop", place.out)


def a_slot_that_is_in_use_is_its_machines(place):
    place.detached()
    place.committed(500)
    before = place.processes()["workers"]
    address = read(f"{place.out}/address").strip()
    refused = place.call("worker", "--join", address, "--token-file", f"{place.out}/token", "--slot", "0", "--notices", "none",
                         code=1).stderr
    expect("slot 0 belongs to a machine that the run starts itself" in refused, refused)
    place.committed(place.status()["samples"] + 2000)
    expect(place.processes()["workers"] == before, "somebody of the run was lost to it")
    place.call("stop", place.out)


CASES = [two_runs_do_not_share_a_folder_of_checkpoints, a_resumed_job_trains_what_it_began,
         a_worker_with_other_data_is_not_let_in, a_loss_that_is_no_number_ends_the_run,
         a_script_that_fails_at_one_place_ends_the_run, a_script_that_hangs_is_replaced_and_says_where,
         replicas_that_drift_end_the_run, a_slot_that_is_in_use_is_its_machines]


def main():
    mayfly = os.path.abspath(sys.argv[1])
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    return play(CASES, only, lambda case, folder: Place(mayfly, folder), clear=lambda place: place.kill_all())


if __name__ == "__main__":
    sys.exit(main())
