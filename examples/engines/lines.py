"""The protocol between mayfly and a program that gets machines (docs/engines.md): JSON lines in, JSON lines out."""
import json
import sys

FORMAT = "mayfly-exec/1"


class Trouble(Exception):
    """Why there is no answer: mayfly tells people the last line of it."""


def serve(verbs):
    """Answers the call that this process is. Verbs take the run's name and the machines that are asked about, and give lines: what can be
    JSON, or text. What they have given when they fail holds."""
    verb = sys.argv[-1] if len(sys.argv) > 1 else ""
    if verb not in verbs:
        print(f"no verb '{verb}', want one of {', '.join(verbs)}", file=sys.stderr)
        sys.exit(64)
    try:
        run, machines = read(sys.stdin)
        for line in verbs[verb](run, machines) or ():
            print(line if isinstance(line, str) else json.dumps(line), flush=True)
    except (Trouble, OSError) as reason:
        print(reason, file=sys.stderr)
        sys.exit(1)


def read(file):
    """(run, machines) of a call. A run is called after its folder, and may have any name that a folder may have."""
    lines = [parsed(line) for line in file if line.strip()]
    run = lines[0].get("run") if lines else None
    if not lines or lines[0].get("format") != FORMAT or not isinstance(run, str) or not run:
        raise Trouble(f"the first line is {lines[:1]}, want one with the format {FORMAT} and a run")
    for one in lines[1:]:
        if type(one.get("launch")) is not int or one["launch"] < 0:
            raise Trouble(f"{one} has no launch, want a number")
    return run, lines[1:]


def parsed(line):
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Trouble(f"'{line.strip()}' is no JSON object")
    return value
