#!/usr/bin/env python3
"""Where a build's time goes, by folder: bench/build_time.py BUILD_FOLDER [EARLIER_BUILD_FOLDER].

From Ninja's log: seconds from start to end of each command, added up. With as many jobs as free cores that is close to CPU time. Build
without ccache (CCACHE_DISABLE=1) in an empty folder.
"""
import collections
import pathlib
import re
import sys


def folder_of(output):
    """Of the source that a command's output is made of; None: no compilation."""
    target = re.search(r"CMakeFiles/([\w-]+)\.dir/.*\.o$", output)
    if not target:
        return None
    name = target.group(1).removeprefix("mayfly_")
    name = {"mayfly": "cli", "mayfly-train": "train"}.get(name, name)
    return "bench" if name.startswith("bench_") else "fuzz" if name.startswith("fuzz_") else name


def times(build):
    """Folder -> (commands, seconds); the folder's tests apart."""
    last = {}
    for line in (pathlib.Path(build) / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, command = line.split("\t")
        last[output] = (int(end) - int(start)) / 1000, command
    spent = collections.defaultdict(lambda: [0, 0.0])
    seen = set()
    for output, (seconds, command) in last.items():
        if command in seen:
            continue  # one command with several outputs
        seen.add(command)
        row = spent[folder_of(output) or "links and others"]
        row[0] += 1
        row[1] += seconds
    return spent


def main():
    columns = [times(build) for build in reversed(sys.argv[1:3])]
    names = sorted(set().union(*columns), key=lambda name: -columns[0].get(name, (0, 0))[1])
    print("| folder |" + " commands | seconds |" * len(columns))
    print("| --- |" + " --- | --- |" * len(columns))
    for name in names:
        print(f"| {name} |" + "".join(" {} | {:.0f} |".format(*column.get(name, (0, 0))) for column in columns))
    totals = [(sum(row[0] for row in column.values()), sum(row[1] for row in column.values())) for column in columns]
    print("| all |" + "".join(f" {count} | {seconds:.0f} |" for count, seconds in totals))


if __name__ == "__main__":
    main()
