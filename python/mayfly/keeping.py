"""A worker's part in keeping the state: checkpoints, also that of an orphan."""
import threading
import time

from . import afar, checkpoint
from .line import log
from .trainer import megabytes


class Keeping:
    """Of a Worker, whose fields it uses."""

    def _write_checkpoint(self):
        if self._sample < 0:
            return self._line.say("checkpoint-failed", sample=0, what="holds no state")
        self._finish_writing()
        start = time.monotonic()
        try:
            state, sample = self.trainer.state(), self._sample
        except ValueError as error:
            return self._line.say("checkpoint-failed", sample=self._sample, what=str(error))
        fields = {"job": self._job_name(), "run": self.terms["run"], "seed": self.terms["seed"], "data": "",
                  "sample": sample, "step": self._step, "loss": self._loss,
                  "ledger": [{"first": 0, "count": sample}] if sample else []}
        stall_s = time.monotonic() - start
        self._writer = threading.Thread(target=self._written, args=(state, fields, stall_s), daemon=True)
        self._writer.start()

    def _check_origin(self, fields):
        """A checkpoint of another run, order or data set holds other samples than its count says."""
        own = {"run": self.terms["run"], "seed": self.terms["seed"]}
        for key, want in own.items():
            seen = fields.get(key, "")
            if seen != "" and want != "" and seen != want:
                raise ValueError("its %s is %s, want %s" % (key, seen, want))

    def _job_name(self):
        for line in self.terms.get("job", "").splitlines():
            if line.startswith("name:"):
                return line[5:].split(" #")[0].strip().strip("'\"")
        return "job"

    def _written(self, state, fields, stall_s):
        # In the writer's thread.
        start = time.monotonic()
        try:
            path = afar.write(self.terms["directory"], state, fields)
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
