"""Tensors in files: https://github.com/huggingface/safetensors, as mayfly's own reader wants it."""
import json
import struct

import torch

_NAMES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
          torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}
_TYPES = {name: dtype for dtype, name in _NAMES.items()}
_LEAST = 256  # bytes of a file: its checksum is not defined for short ones


def raw_bytes(tensor):
    """Of a tensor, row by row."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def encoded(tensors, notes=None):
    """A whole file of {name: tensor}: widest type first, else in the order given."""
    ordered = sorted(tensors.items(), key=lambda item: -item[1].element_size())
    header, parts, at = {}, [], 0
    if notes:
        header["__metadata__"] = notes
    for name, tensor in ordered:
        if tensor.dtype not in _NAMES:
            raise ValueError("%s holds %s, which a checkpoint cannot hold" % (name, tensor.dtype))
        data = raw_bytes(tensor)
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text = text.ljust(max(len(text), _LEAST - 8 - at))
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


def decoded(data, what="file"):
    """{name: tensor}; what is no such file is a ValueError."""
    return decoded_with_notes(data, what)[0]


def decoded_with_notes(data, what="file"):
    try:
        length = struct.unpack_from("<Q", data)[0]
        header = json.loads(data[8:8 + length].decode())
        found = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = (8 + length + at for at in entry["data_offsets"])
            if not 8 + length <= begin <= end <= len(data):
                raise ValueError("%s lies outside" % name)
            tensor = torch.frombuffer(bytearray(data[begin:end]) or bytearray(8), dtype=_TYPES[entry["dtype"]])
            found[name] = tensor[:0].reshape(entry["shape"]) if begin == end else tensor.reshape(entry["shape"])
        return found, header.get("__metadata__", {})
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise ValueError("%s: no safetensors: %s" % (what, error)) from None
