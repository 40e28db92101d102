"""Records of long tests that are run in parts: one line of JSON for each part, appended when it is over."""
import json
import os
import subprocess
import threading

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def commit(*folders):
    """The last one that changed any of these folders of the sources, marked where files in them differ from it."""
    def git(*words):
        done = subprocess.run(["git", "-C", ROOT, *words, "--", *folders], capture_output=True, text=True, check=False)
        return done.stdout.strip()
    changed = git("status", "--porcelain", "--untracked-files=no")
    return (git("log", "-1", "--format=%h", "--abbrev=10") or "unknown") + ("-dirty" if changed else "")


class Record:
    """Parts end in threads of their own. A line that was not finished counts for nothing."""

    def __init__(self, path):
        self.path, self.lock, self.lines = path, threading.Lock(), []
        try:
            with open(path, encoding="utf-8") as file:
                self.lines = [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            pass

    def add(self, line):
        with self.lock:
            self.lines.append(line)
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def print_table(rows, left=1):
    """The first row names the columns; the first `left` columns and the last are words, the others figures."""
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [str(cell).ljust(width) if column < left else str(cell).rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        print("  ".join([*cells, str(row[-1])]).rstrip())
