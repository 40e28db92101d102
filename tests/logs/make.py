#!/usr/bin/python3
"""Makes the logs in this folder: no training stands behind them. All tell the same made-up training:
loss(j) = 0.2 + 2.1 K / (2.1 j + K) with K = 400, which is 2.3 at first and falls towards 0.2; 0.12 s a step, the first
hundred steps twice as long, a pause of a minute after step 1500, and a restart from step 1200 in lines.log."""
import json
import os

FOLDER = os.path.dirname(os.path.abspath(__file__))
BATCH = 64


def loss(step):
    return 0.2 + 2.1 * 400 / (2.1 * step + 400)


def clock(step):
    return 0.24 * min(step, 100) + 0.12 * max(0, step - 100) + (60 if step > 1500 else 0)


def write(name, lines):
    with open(os.path.join(FOLDER, name), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


STEPS = range(50, 3001, 50)
START = 1_790_000_000
write("tensorboard.csv", ["Wall time,Step,Value"] + [f"{START + clock(s):.3f},{s},{loss(s):.6f}" for s in STEPS])
write("metrics.csv", ["epoch,step,train_loss,val_loss,_runtime"] + [
    f"{s // 1000},{s},{loss(s):.6f},,{clock(s):.2f}" + (f"\n{s // 1000},{s},,{loss(s) + 0.1:.6f}," if s % 1000 == 0 else "")
    for s in STEPS])
write("wandb.csv", ['"Step","run-1 - loss","run-1 - loss__MIN","run-1 - _runtime"'] + [
    f'"{s}","{loss(s):.6f}","{loss(s):.6f}","{clock(s):.2f}"' for s in STEPS])
state = {"global_step": 3000, "epoch": 3.0, "train_batch_size": BATCH,
         "log_history": [{"loss": round(loss(s), 4), "learning_rate": 0.001, "epoch": s / 1000, "step": s}
                         for s in range(100, 3001, 100)] + [
                             {"eval_loss": 0.4, "eval_runtime": 3.0, "epoch": 3.0, "step": 3000},
                             {"train_runtime": 372.0, "train_samples_per_second": round(3000 * BATCH / 372, 3),
                              "train_steps_per_second": round(3000 / 372, 3), "train_loss": 0.5, "epoch": 3.0,
                              "step": 3000}]}
with open(os.path.join(FOLDER, "trainer_state.json"), "w", encoding="utf-8") as file:
    json.dump(state, file, indent=2)
    file.write("\n")
lines = ["loading data ...", "model has 25.6M parameters"]
lines += [f"step {s} loss {loss(s):.4f} {0.24 if s <= 100 else 0.12} s/it" for s in range(50, 1501, 50)]
lines += ["Traceback (most recent call last):", "resuming from step 1200"]
lines += [f"step {s} loss {loss(s):.4f} 0.12 s/it" for s in range(1250, 3001, 50)]
write("lines.log", lines)
mnist = []
for epoch in (1, 2, 3):
    for done in range(0, 64000, 6400):
        step = (epoch - 1) * 1000 + done / BATCH
        mnist.append(f"Train Epoch: {epoch} [{done}/64000 ({done // 640}%)]\tLoss: {loss(step):.6f}\t"
                     f"time {clock(step):.2f}")
    mnist.append("\nTest set: Average loss: 0.3000, Accuracy: 9000/10000 (90%)\n")
write("mnist.log", mnist)
write("bar.log", ["\r".join(
    f"{s // 30:3d}%|####      | {s}/3000 [{int(clock(s)) // 60:02d}:{int(clock(s)) % 60:02d}<05:00,  "
    f"{4.17 if s <= 100 else 8.33}it/s, loss={loss(s):.3f}]" for s in STEPS)])
write("metrics.jsonl", [json.dumps({"global_step": s, "train/loss": round(loss(s), 6), "timestamp": START + clock(s)})
                        for s in STEPS])
