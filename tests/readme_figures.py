#!/usr/bin/env python3
"""The figures under "How far to trust it" of README.md are those of the tables in docs/, rounded as README.md rounds them.

docs/models.md's tables are in turn compared with what the program prints (table.sh); those of docs/benchmarks.md are
measured by hand. A figure of that section that no claim below explains is an error too."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def section(file, heading):
    text = (ROOT / file).read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not found:
        sys.exit(f"{file}: no section '{heading}'")
    return found.group(1)


def tables(text):
    """Each table as its rows, each row as its cells."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines()]
        found.append([rows[0]] + rows[2:])  # the second row is the ruler
    return found


def figure(cell):
    return float(cell.replace(",", "").replace("%", ""))


def cells(table, row, columns):
    """Figures of the one row whose first cell begins so."""
    rows = [cells for cells in table[1:] if cells[0].startswith(row)]
    if len(rows) != 1:
        sys.exit(f"{len(rows)} rows '{row}' under {table[0]}, want one")
    return [figure(rows[0][table[0].index(column)]) for column in columns]


curves = tables(section("docs/models.md", "Accuracy"))[0]
others = ["spotdnn", "cynthia", "additive"]
mean, worst = cells(curves, "**mean**", others), cells(curves, "**worst curve**", others)
measured = tables(section("docs/benchmarks.md", "Predicted against measured"))[1]
by_others = [cells(measured, f"`{name}`", ["mean error"])[0] for name in others]
planner = tables(section("docs/benchmarks.md", "Planner"))[0]
refitted = next(table for table in tables(section("docs/models.md", "Scaled speeds")) if table[0][0] == "left out")
WORDS = {"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14}

# what README.md says, and the figures that its groups must be
CLAIMS = [
    (r"On (\w+) measured scaling curves", [sum("**" not in row[0] for row in curves[1:])]),
    (r"`queue` errs by (\S+) % on average and (\S+) % on the worst curve",
     cells(curves, "**mean**", ["queue"]) + cells(curves, "**worst curve**", ["queue"])),
    (r"worst curve, the others by (\S+) to (\S+) % and (\S+) to (\S+) %", [min(mean), max(mean), min(worst), max(worst)]),
    (r"On (\d+) clusters", cells(measured, "`queue`", ["clusters"])),
    (r"it errs by (\S+) % without servers, (\S+) % with servers and a barrier and (\S+) % with servers alone",
     [cells(measured, f"... `{way}`", ["mean error"])[0] for way in ("ring", "bsp", "asp")]),
    (r"servers alone, the others by (\S+) to (\S+) %", [min(by_others), max(by_others)]),
    (r"the GPU asked for left out, by (\S+) % in the middle, (\S+) % within (\S+) \(",
     cells(refitted, "the GPU asked for", ["median %"]) + [80] + cells(refitted, "the GPU asked for", ["80 %"])),
    (r"a median of (\S+) ms for 70 machines and (\S+) ms for a catalogue of 1,000 offers",
     cells(planner, "queue, 70 machines", ["exact ms"]) + cells(planner, "queue, 1,000 offers", ["exact ms"])),
]

said = " ".join(section("README.md", "How far to trust it").split())
failures = []
explained = []  # spans of figures
for pattern, wanted in CLAIMS:
    found = re.search(pattern, said)
    if not found:
        failures.append(f"README.md no longer says '{pattern}'")
        continue
    for group, value in enumerate(wanted, 1):
        word = found.group(group)
        explained.append(found.span(group))
        decimals = len(word.partition(".")[2])
        seen = WORDS[word] if word in WORDS else float(word)
        if abs(seen - value) > 0.5 * 10**-decimals + 1e-9:
            failures.append(f"README.md says {word} in '{found.group(0)}', docs/ {value}")
for found in re.finditer(r"(\d[\d.]*)(?= (?:%|ms|to \d|clusters))", said):
    if found.span(1) not in explained:
        failures.append(f"README.md: '{said[max(0, found.start() - 40):found.end() + 10]}': no claim of {pathlib.Path(__file__).name} explains it")
for failure in failures:
    print(failure)
print(f"{len(explained)} figures, {len(failures)} failed")
sys.exit(1 if failures else 0)
