"""What tests share that play cases with real processes."""
import subprocess
import tempfile


class Failure(Exception):
    pass


def expect(holds, what):
    if not holds:
        raise Failure(what)


def read(path):
    """Empty where there is no such file yet."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def play(cases, only, place_in, clear=lambda place: None, story=lambda place: ""):
    """Each case whose name holds `only`, in a folder of its own; the exit code."""
    failed = 0
    for case in cases:
        if only not in case.__name__:
            continue
        with tempfile.TemporaryDirectory(prefix="mayfly-case-") as folder:
            place = place_in(case, folder)
            try:
                case(place)
                print(f"ok      {case.__name__}", flush=True)
            except (Failure, subprocess.TimeoutExpired, ValueError, KeyError) as problem:
                failed += 1
                print(f"FAILED  {case.__name__}: {problem}{story(place)}", flush=True)
            finally:
                clear(place)
    return 1 if failed else 0
