"""A worker's part where servers hold the parameters: one lease at a time is pulled for, computed and pushed."""
import time

from . import reach
from .leases import Lease, Unable
from .line import log
from .shards import Shards


class Served:
    """Of a Worker, whose fields it uses."""

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
        addresses = self._shards.addresses if self._shards is not None else []
        self._detach()
        unreached = []
        if formation > self._ended_up_to:
            unreached = reach.missing({address: address for address in addresses if address})
        self._say_broken(formation, str(error) or type(error).__name__, unreached)

    def _take(self, message):
        # After a mended line the controller may repeat itself.
        if self._last_push and self._last_push["lease"] == message["lease"]:
            return self._line.say("pushed", **self._last_push)
        start = time.monotonic()
        self._line.doing("exchange")
        try:
            state = self._served.pull(message["sample"])
        except OSError as error:
            return self._broken(message["formation"], error)
        self.trainer.set_weights(self._served.weights)
        pushed = {"formation": message["formation"], "lease": message["lease"], "sample": state, "read": 0,
                  "loss": 0.0, "compute_s": 0.0, "pull_s": time.monotonic() - start, "push_s": 0.0}
        if message["samples"] == 0:
            self._last_push = pushed
            return self._line.say("pushed", **pushed)
        share = 1.0 if self.terms["sum"] else message["share"]
        self._lease = Lease(message["formation"], message["first_sample"], message["samples"], share, pushed)

    def _push(self, lease, loss):
        value = self.trainer.compute(loss, lease.share)
        self.trainer.finish_push(lease.share)
        pushed = dict(lease.message, read=self._read, compute_s=time.monotonic() - self._start_compute,
                      loss=value / lease.count if self.terms["sum"] else value)
        start = time.monotonic()
        self._line.doing("exchange")
        try:
            self._served.push(pushed["lease"], self.trainer.exchanged[:self.trainer.size])
        except OSError as error:
            self._broken(lease.formation, error)
            return False
        pushed["push_s"] = time.monotonic() - start
        self._last_push = pushed
        self._line.say("pushed", **pushed)
        self._line.doing(None)
        return True
