"""A worker's side of docs/protocol.md: does what the controller says, in the script's own thread. An update is applied
only on the controller's word that its samples are committed."""
import collections
import fcntl
import os
import time

from . import safetensors
from .allreduce import AllReduce
from .keeping import Keeping
from .leases import Unable
from .line import Line, log
from .order import SampleOrder, reading_of
from .served import Served
from .trainer import Trainer

REJECTED, UNABLE, ORPHANED = 1, 2, 3  # exit codes


class Worker(AllReduce, Served, Keeping):
    def __init__(self, address, token, slot, notice_s, host="127.0.0.1", watch=None):
        self._token, self._host = token, host
        self._ended_up_to = -1
        self._shards = None
        self._line = Line(address, token, slot, notice_s, self._ended, watch)
        self._held = collections.deque()  # mail that came while something else was waited for
        self._start = time.monotonic()
        self.terms = None
        self.order = None
        self.trainer = None
        self._samples = 0
        self._sample, self._step, self._loss = 0, 0, 0.0  # the weights hold these; -1: they are garbage
        self._pending = self._form = self._mesh = self._served = None
        self._stands = False
        self._addresses = []
        self._lease = None
        self._read, self._compared = 0, {}
        self._last_push = None
        self._writer = None
        self.left = False

    # For the script.

    def left_s(self):
        return self._line.left_s()

    def notice(self, left_s=None):
        self._line.notice(left_s)

    def position(self):
        return max(0, self._sample), self._step

    def welcomed(self):
        """Waits for the first word; the terms."""
        while self.terms is None:
            self._obey(*self._mail())
        return self.terms

    def load(self, samples, model, optimizer):
        """The script's data and network are known: the controller may give work."""
        self.order = SampleOrder(samples, self.terms["seed"])
        self._samples = samples
        self.trainer = Trainer(model, optimizer, self.terms.get("clip"))
        self._hold(0, 0)
        self._describe()
        self._ready()

    def lease(self):
        """Waits for samples to compute; None: the run needs this worker no more."""
        while self._lease is None and not self.left:
            self._obey(*self._mail())
        if self.left:
            return None
        self.trainer.begin()
        self._start_compute = time.monotonic()
        self._line.doing("compute")
        return self._lease

    def samples(self, lease):
        """Numbers of the leased samples: what the script is given, and what the controller is told of it."""
        samples = self.order.samples(lease.first, lease.count)
        self._read = reading_of(samples)
        return samples

    def lease_in_hand(self, lease):
        return self._lease is lease

    def step(self, loss):
        """The loss of the leased samples. True where their update counts, False where it was in vain."""
        lease, self._lease = self._lease, None
        if lease is None:
            raise RuntimeError("mayfly.step() wants a batch of mayfly.batches() first, and each batch one step")
        if lease.formation <= self._ended_up_to:
            return False  # nobody waits for it any more
        if self._served is not None:
            return self._push(lease, loss)
        self.trainer.compute(loss, lease.share)
        if not self._exchange(lease.message, time.monotonic() - self._start_compute):
            return False
        while self._pending is not None and not self.left:
            self._obey(*self._mail())
        return self._sample >= lease.message["committed"] + sum(lease.message["counts"])

    def fail(self, what):
        """The script ends with an error."""
        self._line.say("unable", what=what)
        self._line.close()

    def close(self):
        self._finish_writing()
        self._leave_formation()
        self._line.close()

    # Mail.

    def _ended(self, formation):
        # In the line's thread.
        self._ended_up_to = max(self._ended_up_to, formation)
        shards = self._shards
        if shards is not None and shards.formation <= formation:
            shards.abort()

    def _mail(self):
        return self._held.popleft() if self._held else self._line.mail.get()

    def _obey(self, kind, value):
        if kind == "message":
            try:
                self._do(value)
            except Unable as error:
                log(str(error))
                self._line.say("unable", what=str(error))
                self._line.close()
                raise SystemExit(UNABLE) from None
        elif kind == "mesh":
            self._meshed(*value)
        elif kind == "dropped":
            self._drop()
        elif kind == "orphaned":
            log("no word from the controller for too long")
            self._save_what_it_has()
            raise SystemExit(ORPHANED)
        elif kind == "rejected":
            log(value)
            raise SystemExit(REJECTED)

    def _do(self, message):
        kind = message["message"]
        current = self._form is not None and self._form["formation"] == message.get("formation")
        if kind == "welcome":
            self.terms = message
            log("worker %d of %s" % (message["worker"], message.get("job_file", "")))
            if self.trainer is not None:
                self._ready()
        elif kind == "leave":
            log("leaving: %s" % message["why"])
            self._leave_formation()
            self._detach()
            self._finish_writing()
            self.left = True
        elif self.trainer is None:
            pass
        elif kind == "form":
            self._stand(message)
        elif kind == "peers" and current:
            self._meet(message["addresses"])
        elif kind == "proceed" and current:
            self._proceed(message)
        elif kind == "attach":
            self._attach(message)
        elif kind == "lease" and self._served is not None and self._served.formation == message["formation"]:
            self._take(message)
        elif kind == "write-checkpoint" and current:
            self._write_checkpoint()
        elif kind == "halt":
            if self._form is not None and self._form["formation"] <= message["formation"]:
                self._leave_formation()
            if self._served is not None and self._served.formation <= message["formation"]:
                self._detach()

    def _ready(self):
        self._line.say("ready", samples=self._samples, data="", parameters=self.trainer.parameters,
                       state_mb=self.trainer.megabytes(), load_s=time.monotonic() - self._start, address="")

    def _describe(self):
        """Tells the servers what is trained: the first worker's word counts."""
        path = self.terms["network"]
        if not path:
            return
        if not self.trainer.pushable():
            raise self._unable("servers hold 32-bit floats, and the model has others")
        partial = "%s.%d.partial" % (path, os.getpid())
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            with open(partial, "xb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # it is left alone while somebody writes
                file.write(self.trainer.description())
                file.flush()
                os.fsync(file.fileno())
            os.link(partial, path)
        except FileExistsError:
            self._compare(path)
        finally:
            if os.path.exists(partial):
                os.remove(partial)

    def _compare(self, path):
        with open(path, "rb") as file:
            known, notes = safetensors.decoded_with_notes(file.read(), path)
        own, own_notes = safetensors.decoded_with_notes(self.trainer.description())
        shapes = [{name: tuple(tensor.shape) for name, tensor in tensors.items()} for tensors in (known, own)]
        if shapes[0] != shapes[1] or notes != own_notes:
            raise self._unable("the network is another than that of the run, which %s describes" % path)

    def _unable(self, what):
        log(what)
        self._line.say("unable", what=what)
        self._line.close()
        return SystemExit(UNABLE)

    def _hold(self, sample, step):
        self._sample, self._step = sample, step
        self._line.holds(sample if sample >= 0 else None)

    def _drop(self):
        self._leave_formation()
        self._detach()
        self._form = self._pending = None
        if self.trainer is not None:
            self.trainer.reset()
            self._hold(0, 0)
