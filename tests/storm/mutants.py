#!/usr/bin/env python3
"""Would the storm find mistakes? Puts each of the deliberate faults of faults.py into a copy of the tree, builds the storm
program there, and lets storms loose until a promise breaks.

  tests/storm/mutants.py                     all of them
  tests/storm/mutants.py --list              their numbers and names
  tests/storm/mutants.py --only 12 --only guest
  tests/storm/mutants.py --check             only whether each fault's text still stands in the source

Exits with 1 where a fault was not caught, and with 2 where one cannot be tried: its text is not in the source any more, it does
not compile, or the storm breaks without it."""
import argparse
import concurrent.futures
import pathlib
import queue
import re
import resource
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from faults import FAULTS  # noqa: E402

TREE = pathlib.Path(__file__).resolve().parents[2]
COPIED = ["CMakeLists.txt", "cmake", "src", "tests"]
CHUNK = 250  # storms of one process
CHUNK_CPU_S = 60  # a hundred times what they take
MEMORY = 4 << 30
# The folder with the faults and the storm are compiled file by file, quickly, and without warnings: faults leave names unused. The
# other folders as in `make build`, so that ccache has them.
APART = "".join(f"""
cmake_language(DEFER DIRECTORY ${{CMAKE_SOURCE_DIR}} CALL set_target_properties {target} PROPERTIES UNITY_BUILD OFF)
cmake_language(DEFER DIRECTORY ${{CMAKE_SOURCE_DIR}} CALL target_compile_options {target} PRIVATE -O1 -w)
""" for target in ("mayfly_run", "storm"))


class Untried(Exception):
    """Why a fault cannot be tried."""


def mirror(source, target):
    """Copies what differs, so that the rest is not built again, and removes what is not there any more."""
    if source.is_file():
        if not target.is_file() or source.read_bytes() != target.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            shutil.copymode(source, target)
        return
    target.mkdir(parents=True, exist_ok=True)
    names = {child.name for child in source.iterdir() if child.name != "__pycache__"}
    for child in target.iterdir():
        if child.name not in names:
            shutil.rmtree(child) if child.is_dir() else child.unlink()
    for name in sorted(names):
        mirror(source / name, target / name)


def faulty(source, fault):
    _, file, *texts = fault
    for text, replacement in zip(texts[::2], texts[1::2]):
        if source.count(text) != 1:
            raise Untried(f"{file} has {source.count(text)} times, want once: {text!r}")
        source = source.replace(text, replacement)
    return source


class Copy:
    """A tree of its own, with the storm program built file by file."""

    def __init__(self, folder):
        self.folder = folder
        self.build = folder / "build"
        for name in COPIED:
            mirror(TREE / name, folder / name)
        (folder / "apart.cmake").write_text(APART)
        self.call(["cmake", "-G", "Ninja", "-S", str(folder), "-B", str(self.build), "-D", "MAYFLY_TORCH=OFF",
                   "-D", "CMAKE_BUILD_TYPE=Release", "-D", f"CMAKE_PROJECT_INCLUDE={folder / 'apart.cmake'}"])

    def call(self, command):
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise Untried(f"{' '.join(command[:3])} ...: {(run.stdout + run.stderr)[-2000:]}")

    def compile(self):
        self.call(["ninja", "-C", str(self.build), "-j", "1", "storm"])

    def sail(self, seeds):
        """The first seed that breaks a promise and which, or None."""
        for first in range(1, seeds + 1, CHUNK):
            run = subprocess.run([str(self.build / "tests/storm"), "--first", str(first), "--seeds",
                                  str(min(CHUNK, seeds + 1 - first))], cwd=self.folder, capture_output=True, text=True,
                                 check=False, preexec_fn=limit)
            if run.returncode == 0:
                continue
            told = re.search(r"^seed +(\d+): (.*)$", run.stdout, re.MULTILINE)
            seed, what = (int(told[1]), told[2]) if told else (first, "ends without a word")
            check = re.search(r"mayfly bug: \S+: ([^(\n]*)|what\(\): +([^\n]*)", run.stderr)
            return seed, f"{what}: {(check[1] or check[2]).strip()}" if check else what
        return None

    def attempt(self, fault, seeds):
        path = self.folder / fault[1]
        source = path.read_text()
        try:
            path.write_text(faulty(source, fault))
            self.compile()
            return self.sail(seeds)
        finally:
            path.write_text(source)


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (CHUNK_CPU_S, CHUNK_CPU_S + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def chosen(only):
    numbered = list(enumerate(FAULTS, 1))
    if not only:
        return numbered
    picked = [(n, f) for n, f in numbered if any(o == str(n) or (not o.isdigit() and o in f[0]) for o in only)]
    if not picked:
        sys.exit(f"no fault is called {only}")
    return picked


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME|NUMBER", help="part of a name, or a number")
    parser.add_argument("--list", action="store_true", help="names the faults")
    parser.add_argument("--check", action="store_true", help="looks only for the texts of the faults in the sources")
    parser.add_argument("--seeds", type=int, default=5000, help="storms that each may survive, at the most")
    parser.add_argument("--work", type=pathlib.Path, default=TREE / "build-mutants", help="folder of the copies")
    parser.add_argument("--jobs", type=int, default=1, help="copies at work side by side")
    options = parser.parse_args()
    faults = chosen(options.only)
    if options.list:
        for number, fault in faults:
            print(f"{number:3} {fault[1]:32} {fault[0]}")
        return 0
    if options.check:
        for number, fault in faults:
            try:
                faulty((TREE / fault[1]).read_text(), fault)
            except Untried as why:
                print(f"{number:3} {fault[0]}: {why}")
                return 2
        print(f"{len(faults)} faults can be put into the sources")
        return 0

    copies = queue.SimpleQueue()
    for job in range(min(options.jobs, len(faults))):
        copies.put(Copy(options.work.resolve() / str(job)))

    def attempt(fault):
        copy = copies.get()
        try:
            return copy.attempt(fault, options.seeds)
        finally:
            copies.put(copy)

    nothing = attempt(("nothing", "CMakeLists.txt"))
    if nothing:
        print(f"without any fault seed {nothing[0]}: {nothing[1]}")
        return 2
    seeds, uncaught, untried = [], 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for (number, fault), answer in [(f, pool.submit(attempt, f[1])) for f in faults]:
            try:
                caught = answer.result()
            except Untried as why:
                untried += 1
                print(f"{number:3} {fault[0]}: cannot be tried: {why}", flush=True)
                continue
            if caught:
                seeds.append(caught[0])
                print(f"{number:3} {fault[0]} | seed {caught[0]} | {caught[1]}", flush=True)
            else:
                uncaught += 1
                print(f"{number:3} {fault[0]} | NOT CAUGHT in {options.seeds} storms", flush=True)
    print(f"{len(faults)} faults, {len(seeds)} caught", end="")
    print(f": by seed {statistics.median_low(seeds)} in the median, {max(seeds)} at the latest" if seeds else "")
    return 2 if untried else 1 if uncaught else 0


if __name__ == "__main__":
    sys.exit(main())
