"""A worker's side of docs/protocol.md: does what the controller says, in the script's own thread. An update is applied
only on the controller's word that its samples are committed."""
import collections
import math
import os
import threading
import time

from . import checkpoint, mesh, secure
from .line import Line, log
from .mesh import Mesh
from .order import SampleOrder
from .shards import Shards
from .trainer import Trainer, megabytes, packed, unpacked

REJECTED, UNABLE, ORPHANED = 1, 2, 3  # exit codes

# A step whose gradients are summed and whose word is awaited.
Pending = collections.namedtuple("Pending", "first samples step alone done")
# Samples to compute: the batch that the script is given next.
Lease = collections.namedtuple("Lease", "formation first count share message")


class Unable(Exception):
    """It cannot do what it was told, for good."""


class Worker:
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
        self._lease = None
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
        return self._lease

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
        start = time.monotonic()
        self.trainer.compute(loss, lease.share)
        if not self._exchange(lease.message, time.monotonic() - start):
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
        self._line.say("ready", samples=self._samples, parameters=self.trainer.parameters,
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
                file.write(self.trainer.description())
                file.flush()
                os.fsync(file.fileno())
            os.link(partial, path)
        except FileExistsError:
            pass
        finally:
            if os.path.exists(partial):
                os.remove(partial)

    def _unable(self, what):
        log(what)
        self._line.say("unable", what=what)
        self._line.close()
        return SystemExit(UNABLE)

    def _hold(self, sample, step):
        self._sample, self._step = sample, step
        self._line.holds(sample if sample >= 0 else None)

    # All-reduce.

    def _stand(self, form):
        self._detach()
        self._leave_formation()
        self._form = form
        self._settle(form["sample"])
        if form["rank"] == form["source"]:
            self._make_state(form)
        if not mesh.available():
            raise Unable("this torch has no gloo: workers cannot add up gradients among themselves; use 'servers'")
        self._mesh = Mesh(form, self._host, secure.split_token(self._token)[0], self._line.mail)
        self._line.say("reachable", formation=form["formation"], address=self._mesh.word())

    def _make_state(self, form):
        """As the source of a formation: the weights in hand, a checkpoint, or the first weights."""
        if self._sample == form["sample"]:
            return
        if not form["from_checkpoint"]:
            raise Unable("formation %d: asked for the state of sample %d, holds %d" % (form["formation"], form["sample"],
                                                                                      self._sample))
        self._hold(-1, 0)
        step, loss = 0, 0.0
        try:
            if form["checkpoint"]:
                state, fields = checkpoint.read(form["checkpoint"])
                if fields["sample"] != form["sample"]:
                    raise ValueError("holds sample %d, want %d" % (fields["sample"], form["sample"]))
                self.trainer.load(state)
                step, loss = fields["step"], fields["loss"]
                log("loaded %s" % form["checkpoint"])
            elif form["sample"] != 0:
                raise ValueError("no checkpoint for sample %d" % form["sample"])
            else:
                self.trainer.reset()
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise Unable("formation %d: %s: %s" % (form["formation"], form["checkpoint"], error)) from None
        self._hold(form["sample"], step)
        self._loss = math.nan if loss is None else loss

    def _receivers(self):
        # Scripts draw their first weights as they like: at the start everybody takes the source's.
        form = self._form
        if form["sample"] == 0:
            return [rank for rank in range(form["size"]) if rank != form["source"]]
        return [rank for rank in form["receivers"] if rank != form["source"]]

    def _meet(self, addresses):
        if self._mesh is None or self._stands:
            return
        stranger = self._mesh.stranger(addresses)
        if stranger:
            raise Unable(stranger)
        form, receivers = self._form, self._receivers()
        if form["rank"] not in receivers and self._sample != form["sample"]:
            return self._break("holds sample %d, want %d" % (self._sample, form["sample"]))
        data = packed(self.trainer.state(), self._step, self._loss) if form["rank"] == form["source"] and receivers else b""
        if form["rank"] in receivers:
            self._hold(-1, 0)

        def meet(own):
            own.connect(addresses)
            return own.hand_over(data, receivers)

        self._mesh.do("met", meet, self._mesh)

    def _meshed(self, where, name, result, error):
        if where is not self._mesh or name != "met" or self._stands:
            return
        if error is None and result is not None:
            try:
                state, step, self._loss = unpacked(result)
                self.trainer.load(state)
                self._hold(self._form["sample"], step)
            except Exception as failure:  # whatever torch makes of bytes that are none of its own
                error = "the state that came: %s" % failure
        if error is not None:
            return self._break(error)
        self._stands = True
        form = self._form
        log("formation %d: rank %d of %d at sample %d" % (form["formation"], form["rank"], form["size"], self._sample))
        self._line.say("formed", formation=form["formation"])

    def _settle(self, committed):
        """Applies the pending step if it ends here, and forgets it. Whether it was applied."""
        pending, self._pending = self._pending, None
        if pending is None or pending.samples == 0 or pending.first != self._sample:
            return False
        if pending.first + pending.samples != committed:
            return False
        self.trainer.apply(pending.alone)
        self._loss = pending.done["loss"]
        self._hold(committed, pending.step + 1)
        return True

    def _proceed(self, message):
        if not self._stands:
            return
        pending, counts = self._pending, message["counts"]
        # After a mended line the controller may repeat itself. The others will not exchange this step again.
        if pending and (pending.first, pending.step, pending.samples) == (message["committed"], message["step"],
                                                                         sum(counts)):
            return self._line.say("step-done", **pending.done)
        self._settle(message["committed"])
        if self._sample != message["committed"]:
            return self._break("told to go on from sample %d, holds %d" % (message["committed"], self._sample))
        form = self._form
        if counts and len(counts) != form["size"]:
            return self._break("a lease for %d workers, want %d" % (len(counts), form["size"]))
        self._lease = None
        if not counts:
            return
        own, total = counts[form["rank"]], sum(counts)
        share = 1.0 if self.terms["sum"] else own / total
        if own > 0:
            first = message["committed"] + sum(counts[:form["rank"]])
            self._lease = Lease(form["formation"], first, own, share, message)
        else:
            self.trainer.compute_nothing()
            self._exchange(message, 0.0)

    def _exchange(self, message, compute_s):
        """Adds up with the others and says so; the word is still to come. False where it could not."""
        form, total = self._form, sum(message["counts"])
        start = time.monotonic()
        if form["size"] > 1:
            self._mesh.do("added", self._mesh.add_up, self.trainer.exchanged)
            if self._await("added") is not None:
                return False
        value = self.trainer.loss() / (total if self.terms["sum"] else 1)
        done = {"formation": form["formation"], "first_sample": message["committed"], "samples": total, "loss": value,
                "compute_s": compute_s, "exchange_s": time.monotonic() - start}
        self._pending = Pending(message["committed"], total, message["step"], form["size"] == 1, done)
        self._line.say("step-done", **done)
        return True

    def _await(self, name):
        """What the mesh says of this work; None: well done. A word that ends the formation goes first."""
        own = self._mesh
        later = []
        while True:
            kind, value = self._mail()
            if kind == "mesh" and value[0] is own and value[1] == name:
                self._held.extendleft(reversed(later))
                if value[3] is not None:
                    self._break(value[3])
                return value[3]
            if kind == "mesh":
                continue
            later.append((kind, value))
            if kind != "message" or own.form["formation"] <= self._ended_up_to:
                self._held.extendleft(reversed(later))
                # What hangs may still write to the piece that is exchanged.
                self.trainer.new_exchange()
                self._leave_formation()
                return "the formation is over"

    def _break(self, what):
        log("formation %d broken: %s" % (self._form["formation"], what))
        self._leave_formation()
        self._line.say("broken", formation=self._form["formation"], what=what)

    def _leave_formation(self):
        if self._mesh is not None:
            self._mesh.leave()
        self._mesh, self._stands, self._lease = None, False, None

    # Servers.

    def _attach(self, message):
        self._leave_formation()
        self._form = self._pending = None
        self._hold(-1, 0)  # the state is the servers'
        self._detach()
        if not self.trainer.pushable():
            raise Unable("servers hold 32-bit floats, and the model has others")
        served = Shards(message, self._token, self.trainer.size, self.terms["worker"])
        self._shards = served
        try:
            if message["formation"] <= self._ended_up_to:
                raise ConnectionError("the formation is over")
            served.connect()
        except (OSError, ValueError) as error:
            self._detach()
            return self._broken(message["formation"], error)
        self._served = served
        log("formation %d: %d servers" % (message["formation"], len(message["addresses"])))
        self._line.say("formed", formation=message["formation"])

    def _detach(self):
        served, self._shards, self._served = self._shards, None, None
        self._last_push = None
        self._lease = None
        if served is not None:
            served.close()

    def _broken(self, formation, error):
        what = str(error) or type(error).__name__
        log("formation %d broken: %s" % (formation, what))
        self._detach()
        self._line.say("broken", formation=formation, what=what)

    def _take(self, message):
        # After a mended line the controller may repeat itself.
        if self._last_push and self._last_push["lease"] == message["lease"]:
            return self._line.say("pushed", **self._last_push)
        start = time.monotonic()
        try:
            state = self._served.pull(message["sample"])
        except OSError as error:
            return self._broken(message["formation"], error)
        self.trainer.set_weights(self._served.weights)
        pushed = {"formation": message["formation"], "lease": message["lease"], "sample": state, "loss": 0.0,
                  "compute_s": 0.0, "pull_s": time.monotonic() - start, "push_s": 0.0}
        if message["samples"] == 0:
            self._last_push = pushed
            return self._line.say("pushed", **pushed)
        share = 1.0 if self.terms["sum"] else message["share"]
        self._start_compute = time.monotonic()
        self._lease = Lease(message["formation"], message["first_sample"], message["samples"], share, pushed)

    def _push(self, lease, loss):
        value = self.trainer.compute(loss, lease.share)
        self.trainer.finish_push(lease.share)
        pushed = dict(lease.message, compute_s=time.monotonic() - self._start_compute,
                      loss=value / lease.count if self.terms["sum"] else value)
        start = time.monotonic()
        try:
            self._served.push(pushed["lease"], self.trainer.exchanged[:self.trainer.size])
        except OSError as error:
            self._broken(lease.formation, error)
            return False
        pushed["push_s"] = time.monotonic() - start
        self._last_push = pushed
        self._line.say("pushed", **pushed)
        return True

    # Losing the state, keeping it.

    def _drop(self):
        self._leave_formation()
        self._detach()
        self._form = self._pending = None
        if self.trainer is not None:
            self.trainer.reset()
            self._hold(0, 0)

    def _write_checkpoint(self):
        if self._sample < 0:
            return self._line.say("checkpoint-failed", sample=0, what="holds no state")
        self._finish_writing()
        start = time.monotonic()
        state, sample = self.trainer.state(), self._sample
        fields = {"job": self._job_name(), "sample": sample, "step": self._step, "loss": self._loss,
                  "seed": self.terms["seed"], "ledger": [{"first": 0, "count": sample}] if sample else []}
        stall_s = time.monotonic() - start
        self._writer = threading.Thread(target=self._written, args=(state, fields, stall_s), daemon=True)
        self._writer.start()

    def _job_name(self):
        for line in self.terms.get("job", "").splitlines():
            if line.startswith("name:"):
                return line[5:].split(" #")[0].strip().strip("'\"")
        return "job"

    def _written(self, state, fields, stall_s):
        # In the writer's thread.
        start = time.monotonic()
        try:
            path = checkpoint.write(self.terms["directory"], state, fields)
        except (OSError, ValueError) as error:
            log("no checkpoint: %s" % error)
            return self._line.say("checkpoint-failed", sample=fields["sample"], what=str(error))
        log("wrote %s" % path)
        self._line.say("checkpoint-written", sample=fields["sample"], path=path, size_mb=megabytes(state),
                       stall_s=stall_s, write_s=time.monotonic() - start)

    def _finish_writing(self):
        if self._writer is not None:
            self._writer.join()
            self._writer = None

    def _save_what_it_has(self):
        self._finish_writing()
        if self.trainer is None or self._sample <= 0 or self._form is None:
            return
        time.sleep(min(self._form["rank"], 10))  # all orphans hold the same; whoever comes first writes
        if checkpoint.newest_sample(self.terms["directory"]) < self._sample:
            self._write_checkpoint()
            self._finish_writing()
