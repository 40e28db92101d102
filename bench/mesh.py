#!/usr/bin/python3
"""mesh.py [BUILD] [--ranks 2,4,8] [--rate 125]: bench/mesh between machines of this host, network namespaces whose links are
shaped to so many MB/s each way (125 = 1 Gbit/s). Needs root; standard library only."""
import argparse
import os
import sys
import tempfile

import machines

HEAD = "| ranks | size | gloo ms | clear ms | TLS ms | gloo / clear | gloo / TLS | clear MB/s | TLS MB/s |"


def measured(build, ranks, rate):
    with tempfile.TemporaryDirectory() as folder, machines.Star() as star:
        stars = [star.machine(None, rate) for _ in range(ranks)]
        for machine in stars:
            machine.limit()
        logs = [f"{folder}.{rank}.log" for rank in range(ranks)]
        started = [machine.start([f"{build}/bench/mesh", str(rank), str(ranks), "eth0", folder], logs[rank])
                   for rank, machine in enumerate(stars)]
        codes = [process.wait() for process in started]
        texts = []
        for log in logs:
            with open(log, encoding="utf-8") as file:
                texts.append(file.read())
            os.unlink(log)
        if any(codes):
            raise SystemExit(f"mesh.py: codes {codes}\n" + "\n".join(texts))
        return texts[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--rate", type=float, default=125.0)
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    print(HEAD + "\n" + "| --- " * (HEAD.count("|") - 1) + "|", flush=True)
    try:
        for ranks in options.ranks.split(","):
            print(measured(build, int(ranks), options.rate), end="", flush=True)
    except machines.Skipped as why:
        print(f"mesh.py: skipped: {why}", file=sys.stderr)
        sys.exit(77)


if __name__ == "__main__":
    main()
