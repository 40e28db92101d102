"""A worker's part where workers add up gradients among themselves: forming, steps in two halves."""
import math
import time

from . import afar, secure
from .leases import Lease, Pending, Unable
from .line import log
from .mesh import Mesh
from .trainer import packed, unpacked


class AllReduce:
    """Of a Worker, whose fields it uses. All of it is done in the script's thread, but for what the mesh does in its own."""

    def _stand(self, form):
        self._detach()
        self._leave_formation()
        self._form = form
        if form["rank"] in form["receivers"]:
            self._pending = None  # the step that counted is another than the one in its hands
        self._settle(form["sample"])
        if form["rank"] == form["source"]:
            self._make_state(form)
        token = self._token
        if self.terms.get("private_network"):
            token = secure.split_token(token)[0].decode()
        self._mesh = Mesh(form, self._host, token, self._line.mail)
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
                state, fields = afar.read(form["checkpoint"])
                if fields["sample"] != form["sample"]:
                    raise ValueError("holds sample %d, want %d" % (fields["sample"], form["sample"]))
                self._check_origin(fields)
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
        self._addresses = addresses
        data = b""
        if form["rank"] == form["source"] and receivers:
            try:
                data = packed(self.trainer.state(), self._step, self._loss)
            except ValueError as error:
                raise Unable(str(error)) from None
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
            return self._break(error, where.unreached)
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
        self._lease, self._read, self._compared = None, 0, {}
        if not counts:
            return
        if message["compare"]:
            start = time.monotonic()
            self._compared = {"state": self.trainer.entries(), "compare_s": time.monotonic() - start}
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
        self._line.doing("exchange")
        start = time.monotonic()
        if form["size"] > 1:
            self._mesh.do("added", self._mesh.add_up, self.trainer.exchanged)
            if self._await("added") is not None:
                return False
        value = self.trainer.loss() / (total if self.terms["sum"] else 1)
        done = {"formation": form["formation"], "first_sample": message["committed"], "samples": total,
                "read": self._read, "loss": value, "compute_s": compute_s, "exchange_s": time.monotonic() - start,
                **self._compared}
        self._pending = Pending(message["committed"], total, message["step"], form["size"] == 1, done)
        self._line.say("step-done", **done)
        self._line.doing(None)
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
                # What is being ended may still write to the piece that is exchanged.
                self.trainer.new_exchange()
                self._leave_formation()
                return "the formation is over"

    def _break(self, what, unreached=None):
        formation, own = self._form["formation"], self._mesh
        self._leave_formation()
        if own is not None and not unreached and formation > self._ended_up_to:
            unreached = own.look(self._addresses)
        self._say_broken(formation, what, unreached)

    def _say_broken(self, formation, what, unreached):
        log("formation %d broken: %s" % (formation, what))
        for address in unreached or ():
            log("%s does not answer" % address)
        self._line.say("broken", formation=formation, what=what, **({"unreached": unreached} if unreached else {}))

    def _leave_formation(self):
        if self._mesh is not None:
            self._mesh.leave()
        self._mesh, self._stands, self._lease = None, False, None
        self._line.doing(None)
