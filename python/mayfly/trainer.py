"""A step in two halves, so that an update waits until it is known to count: compute() leaves the weights as they are,
apply() moves them. What is exchanged lies in one piece: parameters, then running statistics, then counters, as in
src/nn/flat_tensors.h, so that workers of both kinds can push to the same servers."""
import json
import zlib

import torch

from . import safetensors


def _tree(value, tensors):
    """What JSON can hold of an optimiser's state; tensors go elsewhere, by name. Nothing is pickled: a state that comes
    from another worker must not run code."""
    if isinstance(value, torch.Tensor):
        name = "tensor.%d" % len(tensors)
        tensors[name] = value.detach().cpu().clone()
        return {"tensor": name}
    if isinstance(value, dict):
        return {"dict": [[_tree(key, tensors), _tree(item, tensors)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"tuple" if isinstance(value, tuple) else "list": [_tree(item, tensors) for item in value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError("the optimizer's state holds %s, which cannot be handed over" % type(value).__name__)


def _grown(tree, tensors):
    if not isinstance(tree, dict):
        return tree
    (kind, value), = tree.items()
    if kind == "tensor":
        return tensors[value]
    if kind == "dict":
        return {_grown(key, tensors): _grown(item, tensors) for key, item in value}
    items = [_grown(item, tensors) for item in value]
    return tuple(items) if kind == "tuple" else items


def _checksum(tensor):
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return zlib.crc32(flat.view(torch.uint8).numpy())


class Forwards:
    """Keeps what buffers were before the first pass through a network that is not known yet."""

    def __init__(self):
        self._before = {}
        self._hook = torch.nn.modules.module.register_module_forward_pre_hook(self._keep)

    def _keep(self, module, inputs):
        for buffer in module.buffers():
            if id(buffer) not in self._before:
                self._before[id(buffer)] = (buffer, buffer.detach().clone())

    def undo(self):
        self._hook.remove()
        with torch.no_grad():
            for buffer, before in self._before.values():
                buffer.copy_(before)


class Trainer:
    def __init__(self, model, optimizer, clip=None):
        self.model, self.optimizer, self._clip = model, optimizer, clip
        self.named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        if not self.named:
            raise ValueError("nothing in the model can be trained")
        self._trained = [p for _, p in self.named]
        buffers = [b for b in model.buffers()]
        self._statistics = [b for b in buffers if b.is_floating_point()]
        self._counters = [b for b in buffers if not b.is_floating_point()]
        wide = any(p.dtype == torch.float64 for p in self._trained)
        sizes = [t.numel() for t in self._trained + self._statistics + self._counters]
        self.parameters = sum(p.numel() for p in self._trained)
        self.size = sum(sizes)
        # One more at the end, for the loss.
        self._sizes, self._dtype = sizes, torch.float64 if wide else torch.float32
        self.new_exchange()
        self._before = []
        self._absent = []
        self._first = self.state()

    def new_exchange(self):
        """Another piece to exchange: somebody may still write to the old one."""
        self.exchanged = torch.zeros(self.size + 1, dtype=self._dtype)
        parts = [part.view(t.shape) for part, t in zip(self.exchanged[:self.size].split(self._sizes),
                                                       self._trained + self._statistics + self._counters)]
        count = len(self._trained)
        self._gradients = parts[:count]
        self._moved = list(zip(self._statistics + self._counters, parts[count:]))

    def begin(self):
        """Before the forward pass, which moves statistics of a step that may never count."""
        self._before = [buffer.detach().clone() for buffer, _ in self._moved]
        for p in self._trained:
            p.grad = None

    def compute(self, loss, share):
        """The backward pass over a share of the step's batch. Returns the loss of these samples."""
        value = float(loss.detach())
        loss.backward(torch.full_like(loss, share) if share != 1 else None)
        self._absent = [p.grad is None for p in self._trained]
        with torch.no_grad():
            for p, part in zip(self._trained, self._gradients):
                if p.grad is None:
                    part.zero_()
                else:
                    part.copy_(p.grad)
                    p.grad = None
            for (buffer, part), before in zip(self._moved, self._before):
                part.copy_(buffer if buffer.is_floating_point() else buffer - before)
                part.mul_(share)
                buffer.copy_(before)
        self.exchanged[self.size] = value * share
        return value

    def compute_nothing(self):
        """This worker has no samples of the step."""
        self._absent = []
        self.exchanged.zero_()

    def loss(self):
        """Of the step, after the exchange."""
        return float(self.exchanged[self.size])

    def _hold_to(self, norm):
        if norm is not None:
            torch.nn.utils.clip_grad_norm_(self._trained, norm)

    def _take_gradients(self, alone):
        for i, (p, part) in enumerate(zip(self._trained, self._gradients)):
            # What nobody used is left alone, as in a plain loop; others may have used it.
            unused = alone and self._absent and self._absent[i]
            p.grad = None if unused else part.to(device=p.device, dtype=p.dtype)

    def apply(self, alone):
        """Moves the weights by the sum in `exchanged`."""
        self._take_gradients(alone)
        self._hold_to(self._clip)
        self.optimizer.step()
        with torch.no_grad():
            for buffer, part in self._moved:
                if buffer.is_floating_point():
                    buffer.copy_(part)
                else:
                    buffer.add_(part.round().to(device=buffer.device, dtype=buffer.dtype))
        for p in self._trained:
            p.grad = None

    # With servers.

    def finish_push(self, share):
        """After compute(): what servers add up. Statistics become their change, and the gradient of these samples alone
        is held to the job's norm."""
        if self._clip is not None:
            self._take_gradients(False)
            self._hold_to(share * self._clip)
            for p, part in zip(self._trained, self._gradients):
                part.copy_(p.grad)
                p.grad = None
        with torch.no_grad():
            for (buffer, part), before in zip(self._moved, self._before):
                if buffer.is_floating_point():
                    part.sub_(before.to(part.device), alpha=share)

    def set_weights(self, flat):
        """Parameters, statistics and counters become what servers hold."""
        at = 0
        with torch.no_grad():
            for t in self._trained + self._statistics + self._counters:
                part = flat[at:at + t.numel()].view(t.shape)
                t.copy_(part if t.is_floating_point() else part.round())
                at += t.numel()

    def pushable(self):
        return self.exchanged.dtype == torch.float32 and all(t.dtype == torch.float32
                                                             for t in self._trained + self._statistics)

    def description(self):
        """A file that tells servers what is trained, with the first weights."""
        tensors = {name: p.detach() for name, p in self.model.named_parameters()}
        tensors.update((name, b.detach()) for name, b in self.model.named_buffers())
        kinds = {"trained": [name for name, _ in self.named], "buffers": [name for name, _ in self.model.named_buffers()]}
        return safetensors.encoded(tensors, {key: json.dumps(names) for key, names in kinds.items()})

    # The whole state.

    def tensors(self):
        """Copies, by name, of weights and running statistics."""
        found = {name: p.detach().cpu().clone() for name, p in self.model.named_parameters()}
        found.update((name, b.detach().cpu().clone()) for name, b in self.model.named_buffers())
        return found

    def state(self):
        """Copies: weights and statistics by name, and the optimiser's tensors and what else it knows."""
        moments = {}
        tree = json.dumps(_tree(self.optimizer.state_dict(), moments))
        return {"model": self.tensors(), "optimizer": moments, "tree": tree}

    def entries(self):
        """"NAME VALUE" for each tensor and setting, by which workers that should hold the same are compared."""
        names = {id(p): name for name, p in self.model.named_parameters()}
        tensors = list(self.model.named_parameters()) + list(self.model.named_buffers())
        found = ["%s %08x" % (name, _checksum(tensor)) for name, tensor in tensors]
        for number, group in enumerate(self.optimizer.param_groups):
            found += ["%s of group %d %s" % (key, number, str(value).replace(" ", ""))
                      for key, value in sorted(group.items()) if key != "params"]
            for p in group["params"]:
                for key, value in sorted(self.optimizer.state.get(p, {}).items()):
                    shown = "%08x" % _checksum(value) if isinstance(value, torch.Tensor) else str(value).replace(" ", "")
                    found.append("%s of %s %s" % (key, names.get(id(p), "group %d" % number), shown))
        return found

    def load(self, state):
        """A state of the same network; anything else is a ValueError."""
        own = dict(self.model.named_parameters())
        own.update(self.model.named_buffers())
        for name, tensor in own.items():
            other = state["model"].get(name)
            if other is None or other.shape != tensor.shape or other.dtype != tensor.dtype:
                raise ValueError("%s is %s, want %s %s" % (name, "absent" if other is None else "%s %s" % (
                    other.dtype, list(other.shape)), tensor.dtype, list(tensor.shape)))
        if len(state["model"]) != len(own):
            raise ValueError("%d tensors, want %d" % (len(state["model"]), len(own)))
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(state["model"][name])
        self.optimizer.load_state_dict(_grown(json.loads(state["tree"]), state["optimizer"]))

    def reset(self):
        """Back to the first weights."""
        self.load(self._first)

    def megabytes(self):
        return megabytes(self._first)


def megabytes(state):
    return sum(t.numel() * t.element_size() for part in ("model", "optimizer") for t in state[part].values()) / 1e6


def packed(state, step, loss):
    """A state on its way to another worker."""
    tensors = {"%s/%s" % (part, name): tensor for part in ("model", "optimizer") for name, tensor in state[part].items()}
    return safetensors.encoded(tensors, {"tree": state["tree"], "rest": json.dumps([step, loss])})


def unpacked(data):
    """(state, step, loss)."""
    tensors, notes = safetensors.decoded_with_notes(data, "state")
    state = {"model": {}, "optimizer": {}, "tree": notes["tree"]}
    for name, tensor in tensors.items():
        part, _, rest = name.partition("/")
        state[part][rest] = tensor
    step, loss = json.loads(notes["rest"])
    return state, step, loss
