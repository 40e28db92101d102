#!/usr/bin/python3
"""mesh_scripts.py [BUILD] [--ranks 2]: adding up 16 MB among scripts over loopback, in the clear and encrypted, beside the same
among mayfly's own workers (bench/mesh) and over torch's gloo, taking turns three times. Milliseconds, median; wants torch."""
import argparse
import multiprocessing
import os
import queue
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
SIZE, ROUNDS, TIMES = 16 << 20, 5, 4
SECRET = "0123456789abcdef" * 4


def rank_main(rank, ranks, words, results, token, port):
    import torch
    import torch.distributed
    from mayfly import mesh
    torch.set_num_threads(1)
    values = torch.zeros(SIZE // 4)
    if token is None:
        torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
        add_up = torch.distributed.all_reduce
    else:
        own = mesh.Mesh({"formation": 1, "rank": rank, "size": ranks, "source": 0}, "127.0.0.1", token, queue.SimpleQueue())
        words[rank] = own.word()
        while len(words) < ranks:
            time.sleep(0.01)
        own.connect([words[r] for r in range(ranks)])
        add_up = own.add_up
    times = []
    for _ in range(ROUNDS):
        add_up(values)
        start = time.perf_counter()
        for _ in range(TIMES):
            add_up(values)
        times.append((time.perf_counter() - start) / TIMES)
    if rank == 0:
        results.put(statistics.median(times))


def scripts(ranks, token):
    with multiprocessing.Manager() as manager:
        words, results = manager.dict(), manager.Queue()
        port = 20000 + os.getpid() % 20000
        started = [multiprocessing.Process(target=rank_main, args=(rank, ranks, words, results, token, port))
                   for rank in range(ranks)]
        for process in started:
            process.start()
        for process in started:
            process.join()
        return results.get() * 1e3


def workers(build, ranks):
    """(gloo, clear, TLS)"""
    text = subprocess.run([f"{build}/bench/mesh", str(ranks)], capture_output=True, text=True, check=True).stdout
    row = next(line for line in text.splitlines() if f"| {SIZE >> 10} kB |" in line)
    return [float(cell) for cell in row.split("|")[3:6]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--ranks", type=int, default=2)
    options = parser.parse_args()
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from mayfly import certificate
    import hashlib
    sealed = SECRET + "-" + hashlib.sha256(certificate.certificate(SECRET.encode())).hexdigest()
    rounds = []
    for _ in range(3):
        rounds.append([scripts(options.ranks, SECRET), scripts(options.ranks, sealed), scripts(options.ranks, None),
                       *workers(options.build, options.ranks)])
    print("| ranks | scripts, clear | scripts, TLS | scripts, torch's gloo | workers, clear | workers, TLS | clear, scripts' rate | TLS, scripts' rate |")
    print("| --- " * 8 + "|")
    clear, tls, gloo, _, own_clear, own_tls = [statistics.median(column) for column in zip(*rounds)]
    print(f"| {options.ranks} | {clear:.1f} | {tls:.1f} | {gloo:.1f} | {own_clear:.1f} | {own_tls:.1f} | {own_clear / clear:.2f} | {own_tls / tls:.2f} |")


if __name__ == "__main__":
    main()
