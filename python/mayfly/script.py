"""What a script calls. One session a process: a worker of a run where MAYFLY_JOIN is set, else the script alone."""
import atexit
import os
import signal
import sys
import threading

from . import notices, secure
from .order import SampleOrder

_NOTICE_S = 30.0
_session = None


def batches(dataset, model=None, optimizer=None, batch=32, epochs=1, seed=1, collate=None):
    """Batches of samples of `dataset` (anything with len() and []), collated as torch's own loader does. In a run the job
    says how many samples a batch has, for how long and in which order; alone `batch`, `epochs` and `seed` do. Each batch
    wants one step(). The run must know the network before the first batch: give it here, or it is learnt from a first
    batch of two samples whose step counts for nothing."""
    global _session
    if _session is not None:
        _session.close()
    _session = _joined(dataset, model, optimizer, collate) or _Alone(dataset, batch, epochs, seed, collate)
    return _session.batches()


def step(model, optimizer, loss):
    """Backward pass and update, together with all other workers. True where the batch counts; False where its samples
    will come again, here or elsewhere, because a machine was lost."""
    if _session is None:
        raise RuntimeError("mayfly.step() before mayfly.batches()")
    return _session.step(model, optimizer, loss)


def notice():
    """Seconds until this machine will be taken away, or None. Nothing needs to be done about it."""
    return _session.notice() if _session is not None else None


def position():
    """(samples, steps) that the weights hold, counted over the whole run, not only this process."""
    return _session.position() if _session is not None else (0, 0)


def _batch_of(dataset, samples, collate):
    from torch.utils.data.dataloader import default_collate

    fetch = getattr(dataset, "__getitems__", None)
    return (collate or default_collate)(fetch(samples) if fetch else [dataset[sample] for sample in samples])


class _Alone:
    def __init__(self, dataset, batch, epochs, seed, collate):
        self._dataset, self._batch, self._epochs, self._collate = dataset, batch, epochs, collate
        self._order = SampleOrder(len(dataset), seed)
        self._samples, self._steps = 0, 0
        self._given = 0

    def batches(self):
        end = self._epochs * len(self._dataset)
        while self._samples < end:
            self._given = min(self._batch, end - self._samples)
            yield _batch_of(self._dataset, self._order.samples(self._samples, self._given), self._collate)
            if self._given:
                raise RuntimeError("a batch without its mayfly.step()")

    def step(self, model, optimizer, loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        self._samples += self._given
        self._steps += 1
        self._given = 0
        return True

    def notice(self):
        return None

    def position(self):
        return self._samples, self._steps

    def close(self):
        pass


class _Member:
    """A worker of a run."""

    def __init__(self, dataset, model, optimizer, collate):
        from .worker import Worker

        self._dataset, self._model, self._optimizer, self._collate = dataset, model, optimizer, collate
        self._watch = None
        self._rehearsal = None
        environment = os.environ
        host, port = secure.address_of(environment["MAYFLY_JOIN"])
        self._worker = Worker((host, port), _token(), int(environment.get("MAYFLY_SLOT", "-1")), _notice_s(),
                              environment.get("MAYFLY_HOST", "127.0.0.1"), self._watched)
        cloud = environment.get("MAYFLY_NOTICES", "")
        if cloud in notices.CLOUDS:
            self._ask(cloud, notices.endpoint_of(cloud))
        elif cloud not in ("", "none"):
            raise ValueError("MAYFLY_NOTICES '%s': want none or one of %s" % (cloud, ", ".join(notices.CLOUDS)))
        self._catch_signals()
        self._catch_errors()
        atexit.register(self.close)

    def _watched(self, message):
        """The controller's word, in the line's thread."""
        from .line import log

        cloud, endpoint = message["cloud"], message["endpoint"]
        if cloud not in notices.CLOUDS or not notices.on_loopback(endpoint):
            return log("watch: will not ask '%s' for notices of '%s'" % (endpoint, cloud))
        self._ask(cloud, endpoint)

    def _ask(self, cloud, endpoint):
        from .line import log

        if self._watch is not None:
            self._watch.end()
        self._watch = notices.Watch(cloud, endpoint, lambda left_s: self._worker.notice(left_s), log)

    def _catch_signals(self):
        if threading.current_thread() is not threading.main_thread():
            return
        owner, before = os.getpid(), signal.getsignal(signal.SIGTERM)
        told = []

        def terminate(number, frame):
            if os.getpid() != owner:  # a loader's process, which inherits this
                os._exit(128 + number)
            if told:  # by whoever tells a whole group, or without patience: the time that the first left stays
                return
            told.append(True)
            self._worker.notice()
            if callable(before):
                before(number, frame)

        signal.signal(signal.SIGTERM, terminate)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the controller, which decides what it means

    def _catch_errors(self):
        before = sys.excepthook

        def tell(kind, error, trace):
            before(kind, error, trace)
            if self._worker is not None:
                self._worker.fail("the script ended: %s: %s" % (kind.__name__, error))

        sys.excepthook = tell

    def batches(self):
        worker = self._worker
        worker.welcomed()
        if self._model is None or self._optimizer is None:
            from .trainer import Forwards

            self._rehearsal = Forwards()
            yield _batch_of(self._dataset, list(range(min(2, len(self._dataset)))), self._collate)
            if self._rehearsal is not None:
                raise RuntimeError("a batch without its mayfly.step()")
        worker.load(len(self._dataset), self._model, self._optimizer)
        while True:
            lease = worker.lease()
            if lease is None:
                break
            yield _batch_of(self._dataset, worker.samples(lease), self._collate)
            if worker.lease_in_hand(lease):
                raise RuntimeError("a batch without its mayfly.step()")
        self.close()

    def step(self, model, optimizer, loss):
        if self._rehearsal is not None:
            self._rehearsal.undo()
            self._rehearsal = None
            self._model, self._optimizer = model, optimizer
            return False
        if model is not self._model or optimizer is not self._optimizer:
            raise ValueError("mayfly.step(): another model or optimizer than before")
        return self._worker.step(loss)

    def notice(self):
        return self._worker.left_s()

    def position(self):
        return self._worker.position()

    def close(self):
        atexit.unregister(self.close)
        if self._watch is not None:
            self._watch.end()
        self._worker.close()


def _token():
    token = os.environ.get("MAYFLY_TOKEN", "")
    path = os.environ.get("MAYFLY_TOKEN_FILE", "")
    if not token and path:
        with open(path, encoding="utf-8") as file:
            token = file.read()
    if not token.strip():
        raise ValueError("no token: MAYFLY_TOKEN or MAYFLY_TOKEN_FILE wants it where MAYFLY_JOIN is set")
    return token.strip()


def _notice_s():
    text = os.environ.get("MAYFLY_NOTICE_S", "")
    try:
        left_s = float(text) if text else _NOTICE_S
    except ValueError:
        left_s = -1.0
    if not left_s >= 0:
        raise ValueError("MAYFLY_NOTICE_S '%s': want seconds" % text)
    return left_s


def _joined(dataset, model, optimizer, collate):
    return _Member(dataset, model, optimizer, collate) if os.environ.get("MAYFLY_JOIN") else None
