#!/usr/bin/python3
"""What the tests give to torchrun: knows nothing of mayfly. Saves every step and on SIGTERM, and goes on from there.
Usage: train.py FOLDER STEPS STEP_S [crash-at STEP]"""
import os
import signal
import sys
import time

folder, steps, step_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
crash_at = int(sys.argv[5]) if len(sys.argv) > 5 else -1
rank = int(os.environ["RANK"])
saved = os.path.join(folder, f"saved-{rank}")
told = os.path.join(folder, f"told-{rank}")


def on_notice(number, frame):
    with open(told, "w", encoding="utf-8") as file:
        notice = os.environ.get("MAYFLY_NOTICE_FILE", "")
        file.write(open(notice, encoding="utf-8").read() if os.path.exists(notice) else "no file")
    sys.exit(0)


signal.signal(signal.SIGTERM, on_notice)
done = int(open(saved, encoding="utf-8").read()) if os.path.exists(saved) else 0
for step in range(done + 1, steps + 1):
    time.sleep(step_s)
    if step == crash_at and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os._exit(9)
    with open(saved + ".new", "w", encoding="utf-8") as file:
        file.write(str(step))
    os.replace(saved + ".new", saved)
    if rank == 0:
        print(f"step {step}/{steps} loss {2 / step:.4f}", flush=True)
print(f"rank {rank} of {os.environ['WORLD_SIZE']}: done, threads {os.environ.get('OMP_NUM_THREADS')}", flush=True)
