#!/usr/bin/env python3
"""Machines that are processes of this computer: a whole program for `mayfly run --engine exec:./processes.py`, to be read before writing one
for machines that are further away. docs/engines.md has the protocol.

Of each machine there is a folder RUN-LAUNCH in $MAYFLY_PROCESSES (~/.cache/mayfly-processes), and nothing else is remembered.

MAYFLY_PROCESSES_REFUSE  what every order is refused with
MAYFLY_PROCESSES_MOST    how many machines run at once, of all runs; the others wait. Files `refuse` and `most` in the folder say the same,
                         come first, and may change at any time."""
import contextlib
import fcntl
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

from lines import Trouble, serve

ROOT = os.path.abspath(os.environ.get("MAYFLY_PROCESSES") or os.path.expanduser("~/.cache/mayfly-processes"))
REMEMBERED_S = 3600  # how long machines that are gone are listed, if nobody ends them
TAIL_BYTES = 2000

# Leads the command's process group, and is deaf to notices. It waits for a word before it starts anything, so that nothing runs whose
# number is not stored. When the command is over, so is the machine.
SUPERVISOR = """read -r go || exit
trap : TERM
/bin/sh "$1/command" < /dev/null
echo $? > "$1/code.part" && mv "$1/code.part" "$1/code"
kill -KILL 0"""


def content(path):
    """Empty where it is not there."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def store(path, text):
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


def stat(pid):
    """(state, process group, start in ticks since boot) of a process; None if there is none."""
    words = content(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (words[0], int(words[2]), int(words[19])) if words else None


class Machine:
    """A folder with `order` (what was asked for), once it was started `pid` (number and start of its first process) and `log`, and in the
    end `code`: its command's, or `taken`."""

    def __init__(self, folder):
        self.folder = folder
        self.name = os.path.basename(folder)

    def exists(self):
        return os.path.isdir(self.folder)

    def make(self, order):
        """Whoever is first makes it, and the folder is whole from its first moment on."""
        root = os.path.dirname(self.folder)
        os.makedirs(root, exist_ok=True)
        draft = tempfile.mkdtemp(prefix=".draft-", dir=root)
        store(f"{draft}/order", json.dumps(order))
        store(f"{draft}/command", order["command"])  # never on a command line, which everyone can read: it holds the run's token
        try:
            os.rename(draft, self.folder)
        except OSError:
            shutil.rmtree(draft)
            if not self.exists():
                raise

    def order(self):
        return json.loads(content(f"{self.folder}/order"))

    def first(self):
        """(number, start) of its first process; None if it was not started."""
        words = content(f"{self.folder}/pid").split()
        return (int(words[0]), int(words[1])) if len(words) == 2 else None

    def begin(self):
        with open(f"{self.folder}/log", "ab") as log:
            process = subprocess.Popen(["/bin/sh", "-c", SUPERVISOR, "mayfly-machine", self.folder],
                                       stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)
        store(f"{self.folder}/pid", f"{process.pid} {stat(process.pid)[2]}")
        process.stdin.write(b"go\n")
        process.stdin.close()

    def runs(self):
        if not self.first():
            return False
        pid, start = self.first()
        now = stat(pid)
        return now is not None and now[2] == start and now[0] not in "ZX"

    def code(self):
        """What its command ended with, or `taken`; None while it runs or waits. That it was taken is known by its silence, and
        stays true: its number may be another's tomorrow."""
        if not self.first() or self.runs():
            return None
        if not content(f"{self.folder}/code"):
            store(f"{self.folder}/code", "taken")
        return content(f"{self.folder}/code").strip()

    def age_s(self):
        if not self.first():
            return 0.0
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - self.first()[1] / os.sysconf("SC_CLK_TCK")
        return max(0.0, round(age - (self.gone_s() if self.code() else 0.0), 3))

    def gone_s(self):
        return time.time() - os.path.getmtime(f"{self.folder}/code")

    def processes(self):
        """Its group: none where the number has become another's."""
        if not self.first():
            return []
        pid, start = self.first()
        if (now := stat(pid)) and now[2] != start:
            return []
        found = ((int(entry), stat(entry)) for entry in os.listdir("/proc") if entry.isdigit())
        return [number for number, now in found if now and now[1] == pid and now[0] not in "ZX"]

    def signal(self, number, pids):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def tell(self):
        self.signal(signal.SIGTERM, [pid for pid in self.processes() if pid != self.first()[0]])

    def end(self):
        """Nothing of it is left when this returns, and it is not listed any more."""
        limit = time.monotonic() + 10
        while pids := self.processes():  # those that were just being born, too
            if time.monotonic() > limit:
                raise Trouble(f"{self.name}: processes {pids} do not end")
            self.signal(signal.SIGKILL, pids)
            time.sleep(0.01)
        grave = f"{tempfile.mkdtemp(prefix='.ended-', dir=os.path.dirname(self.folder))}/machine"
        os.rename(self.folder, grave)
        shutil.rmtree(os.path.dirname(grave))

    def tail(self):
        with contextlib.suppress(OSError), open(f"{self.folder}/log", "rb") as log:
            log.seek(max(0, os.path.getsize(f"{self.folder}/log") - TAIL_BYTES))
            return log.read().decode(errors="replace")
        return ""


@contextlib.contextmanager
def locked():
    """One call at a time, of all runs."""
    os.makedirs(ROOT, exist_ok=True)
    with open(f"{ROOT}/lock", "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def setting(name):
    return content(f"{ROOT}/{name}").strip() or os.environ.get(f"MAYFLY_PROCESSES_{name.upper()}", "")


def most():
    """None: as many as are asked for."""
    text = setting("most")
    if text and not text.isdigit():
        raise Trouble(f"MAYFLY_PROCESSES_MOST is '{text}', want a number")
    return int(text) if text else None


def machines():
    """Of all runs."""
    found = [Machine(os.path.dirname(path)) for path in glob.glob(f"{glob.escape(ROOT)}/*/order")]
    return sorted(found, key=lambda machine: (machine.order()["asked"], machine.order()["launch"]))


def begin_those_with_room():
    everyone = machines()
    room = sys.maxsize if most() is None else most() - sum(machine.runs() for machine in everyone)
    for machine in everyone:
        if room > 0 and not machine.first():
            machine.begin()
            room -= 1


def of(run, asked):
    """The machines that a call is about, which may not be there. Names that begin with a dot are not machines'."""
    name = re.sub(r"^\.", "%2E", urllib.parse.quote(run, safe=" "))
    return [Machine(f"{ROOT}/{name}-{one['launch']}") for one in asked]


def order(run, asked):
    with locked():
        for one, machine in zip(asked, of(run, asked)):
            if (refusal := setting("refuse")) and not machine.exists():
                yield {"launch": one["launch"], "refused": refusal}
                continue
            if not isinstance(one.get("command"), str):
                raise Trouble(f"launch {one['launch']} has no command")
            machine.make({"run": run, "launch": one["launch"], "command": one["command"], "asked": time.time()})
            yield {"launch": one["launch"], "id": machine.name}
        begin_those_with_room()


def list_machines(run, _):
    with locked():
        begin_those_with_room()
        for machine in machines():
            if machine.code() and machine.gone_s() > REMEMBERED_S:
                machine.end()  # of any run: nobody asks for those of runs that are over
            elif machine.order()["run"] == run:
                yield sight(machine)


def sight(machine):
    line = {"launch": machine.order()["launch"], "id": machine.name, "age_s": machine.age_s(), "where": "", "why": ""}
    if not machine.first():
        return line | {"stage": "ordered", "why": f"{most()} of {most()} machines are in use"}
    line["where"] = f"process {machine.first()[0]}"
    code = machine.code()
    if code is None:
        return line | {"stage": "running"}
    if code == "taken":
        return line | {"stage": "gone", "ending": "preempted", "why": "its processes were killed"}
    return line | {"stage": "gone", "ending": "failed" if int(code) else "finished", "why": f"its command ended with code {code}"}


def end(run, asked):
    with locked():
        for machine in of(run, asked):
            if machine.exists():
                machine.end()


def tell(run, asked):
    for machine in of(run, asked):
        machine.tell()


def tail(run, asked):
    for machine in of(run, asked):
        yield machine.tail()


if __name__ == "__main__":
    serve({"order": order, "list": list_machines, "end": end, "tell": tell, "tail": tail})
