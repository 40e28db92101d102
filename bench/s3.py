#!/usr/bin/env python3
"""s3.py [BUILD] [--mb 100,1000] [--rounds N]: checkpoints of these sizes into a radosgw of its own, as a worker writes them
(checksums, parts, commit record), beside plain curl uploads of as many bytes. The two alternate in one run, so that a
busy machine slows both alike; what was written is deleted after each. Ratios are of rates: above 1 mayfly is faster."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "s3"))
import radosgw

BUCKET = "bench"
MEMORY = 6 << 30  # of the store


def write(program, megabytes, environment):
    """(seconds of writing, of reading back) of one checkpoint."""
    done = subprocess.run([program, f"s3://{BUCKET}/checkpoints", str(megabytes)], env=environment, capture_output=True,
                          text=True, check=True)
    round_ = json.loads(done.stdout)
    return round_["write_s"], round_["read_s"]


def curl(store, path, hashed):
    """Seconds of one PUT of the file; its hash is not part of them."""
    digest = subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout.split()[0]
    start = time.monotonic()
    subprocess.run(["curl", "--silent", "--show-error", "--fail", "--aws-sigv4", f"aws:amz:{radosgw.REGION}:s3", "--user",
                    f"{radosgw.KEY}:{radosgw.SECRET}", "-H", f"x-amz-content-sha256: {digest if hashed else 'UNSIGNED-PAYLOAD'}",
                    "-T", path, f"{store.endpoint}/{BUCKET}/plain"], check=True)
    return time.monotonic() - start


def clear(store):
    for key in store.listing(BUCKET):
        store.good("DELETE", f"/{BUCKET}/{key}")
    store.call("radosgw-admin", "gc", "process", "--include-all", check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--mb", default="100,1000", help="sizes, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if programs := radosgw.missing():
        sys.exit(f"not installed: {', '.join(programs)} (tools/install_packages test)")
    program = os.path.join(options.build, "bench", "store")
    with tempfile.TemporaryDirectory(prefix="mayfly-bench-s3-") as folder:
        os.makedirs(f"{folder}/store")
        store = radosgw.Radosgw(f"{folder}/store", MEMORY)
        environment = {**os.environ, "AWS_ENDPOINT_URL": store.endpoint, "AWS_ACCESS_KEY_ID": radosgw.KEY,
                       "AWS_SECRET_ACCESS_KEY": radosgw.SECRET, "AWS_EC2_METADATA_DISABLED": "true"}
        try:
            store.start()
            store.make_bucket(BUCKET)
            print("| MB | mayfly MB/s | curl MB/s | curl, hash checked MB/s | ratio | ratio, hash checked | read MB/s |")
            print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
            for megabytes in map(int, options.mb.split(",")):
                file = f"{folder}/plain"
                with open(file, "wb") as plain:
                    plain.write(os.urandom(1 << 20) * megabytes)
                    plain.truncate(megabytes * 1_000_000)
                rows = []
                for number in range(options.rounds + 1):
                    own, read = write(program, megabytes, environment)
                    clear(store)
                    row = [own, read]
                    for hashed in (False, True):
                        row.append(curl(store, file, hashed))
                        clear(store)
                    rows += [row] * (number > 0)  # the first round warms up
                own, read, plain_s, hashed_s = (statistics.median(column) for column in zip(*rows))
                ratio, ratio_hashed = (statistics.median(row[i] / row[0] for row in rows) for i in (2, 3))
                print(f"| {megabytes} | {megabytes / own:.0f} | {megabytes / plain_s:.0f} | {megabytes / hashed_s:.0f} "
                      f"| {ratio:.2f} | {ratio_hashed:.2f} | {megabytes / read:.0f} |", flush=True)
        finally:
            store.stop()


if __name__ == "__main__":
    main()
