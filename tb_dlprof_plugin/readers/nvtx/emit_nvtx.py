"""PyTorch's ranges: "aten::mm, seq = 5, op_id = 7, sizes = [[2, 3], [3, 4]], input_op_ids = [(1,0), (0,-1)]".

``torch.autograd.profiler.emit_nvtx`` writes them (``getNvtxStr`` of torch/csrc/profiler/util.cpp): op_id since torch
1.11, sizes and input_op_ids with ``record_shapes=True``. Forward op and backward node have the same seq; data types are
not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tb_dlprof_plugin.model.shapes import InputShapes
from tb_dlprof_plugin.model.timeline import HostKind, Ints
from tb_dlprof_plugin.names.ops import AUTOGRAD_NODE
from tb_dlprof_plugin.readers.input_text import parse_shapes
from tb_dlprof_plugin.readers.nvtx.number_columns import cut_numbers
from tb_dlprof_plugin.readers.nvtx.ranges import Meaning

_KEYS = re.compile(
    r"(?:seq ?= ?(-?\d{1,18}))?(?:(?:, )?op_id = (\d{1,18}))?(?:(?:, )?sizes = (\[.*?\])(?=, input_op_ids|\Z))?"
)
_LINE = re.compile(
    r"^([^,\n]+)(?:, ?seq ?= ?(-?\d{1,18}))?(?:, op_id = (\d{1,18}))?(?:, sizes = (\[[\d\[\], -]*\]))?"
    r"(?:, input_op_ids = [^\n]*)?$|^.*$",
    re.MULTILINE,
)
_SHORT = re.compile(r"([^,]+)(?:, sizes = (\[[\d\[\], -]*\]))?\Z")
_BACKWARD = re.compile(r"Backward\d*\Z|_backward\Z")
_BEFORE_NAMESPACES = re.compile(r"[a-z_][a-z0-9_]*\Z")
_USER_SCOPE = re.compile(r"FSDP::|[^:]*[.# ][^:]*\Z")
"""Ranges of `torch.profiler.record_function`, which Kineto tells from ops by their kind: "Optimizer.step#SGD.step",
"DistributedDataParallel.forward". Ops have a namespace or the name of a class or function alone."""
_MOST_SHAPES = 100_000


class Emitted(NamedTuple):
    """What is the same in the texts of all calls of an op with the same shapes: ``sizes`` is "" for none."""

    name: str
    sizes: str


def without_numbers(texts: Sequence[str]) -> tuple[list[str | tuple[str, str]], Ints, Ints]:
    """Each text, one of PyTorch's as the parts of `Emitted`; their sequence numbers and op_ids, -1 for none.

    All at once, and without a Python bytecode a character: nearly every text has another number.
    """
    joined = "\n".join(texts)
    if joined.count("\n") >= len(texts):
        texts = [text.replace("\n", " ") for text in texts]
        joined = "\n".join(texts)
    fast = cut_numbers(joined, len(texts)) if joined.isascii() else None
    if fast is None:
        return _by_expression(texts, joined)
    seq, op_id, name_stop, rest_start, rest_stop, cut, unusual = fast
    keys: list[str | tuple[str, str]] = list(texts)
    short = [
        texts[row][:stop] + texts[row][first:last]
        for row, stop, first, last in zip(
            cut.tolist(), name_stop.tolist(), rest_start.tolist(), rest_stop.tolist(), strict=True
        )
    ]
    matches = {text: _SHORT.match(text) for text in dict.fromkeys(short)}
    parts = {text: (found[1], found[2] or "") if found else None for text, found in matches.items()}
    for row, text in zip(cut.tolist(), short, strict=True):
        key = parts[text]
        if key is None:
            seq[row] = op_id[row] = -1
        else:
            keys[row] = key
    if len(unusual):
        some = [texts[row] for row in unusual.tolist()]
        others, seq[unusual], op_id[unusual] = _by_expression(some, "\n".join(some))
        for row, other in zip(unusual.tolist(), others, strict=True):
            keys[row] = other
    return keys, seq, op_id


def _by_expression(texts: Sequence[str], joined: str) -> tuple[list[str | tuple[str, str]], Ints, Ints]:
    """The same of texts that are no ASCII, or of another form."""
    nothing = np.full(len(texts), -1, dtype=np.int64)
    found = _LINE.findall(joined)
    if len(found) != len(texts) or not found:
        return list(texts), nothing, nothing.copy()
    names, seqs, op_ids, sizes = zip(*found, strict=True)
    keys: list[str | tuple[str, str]] = list(zip(names, sizes, strict=True))
    seq, op_id = _numbers(seqs), _numbers(op_ids)
    for row in np.flatnonzero((seq < 0) & (op_id < 0)).tolist():
        if not seqs[row] and not op_ids[row]:
            keys[row] = texts[row]
    return keys, seq, op_id


def _numbers(digits: Sequence[str]) -> Ints:
    return np.fromiter([int(digit) if digit else -1 for digit in digits], np.int64, len(digits))


class EmitNvtx:
    """Reads the texts of one recording.

    ``namespaces`` says whether its ops have them ("aten::mm"); those of torch 1.5 and before are plain.
    """

    def __init__(self, namespaces: bool) -> None:
        self._namespaces = namespaces
        self._shapes: dict[str, InputShapes | None] = {}

    def meaning_of(self, emitted: Emitted) -> Meaning:
        """What such texts say, besides their numbers."""
        return self._op(emitted.name, -1, -1, emitted.sizes)

    def meaning(self, text: str) -> Meaning | None:
        """What the text says, None where it is none of PyTorch's."""
        at = text.find(", ")
        if at < 0:
            return None
        keys = _KEYS.match(text, at + 2)
        if keys is None or keys.end() == at + 2:
            return None
        seq, op_id, sizes = keys.groups()
        return self._op(text[:at], -1 if seq is None else int(seq), -1 if op_id is None else int(op_id), sizes or "")

    def _op(self, name: str, seq: int, op_id: int, sizes: str) -> Meaning:
        backward = _BACKWARD.search(name) is not None and not name.startswith(AUTOGRAD_NODE) and "::" not in name
        if not self._namespaces and not backward and _BEFORE_NAMESPACES.match(name):
            name = f"aten::{name}"
        return Meaning(
            HostKind.ANNOTATION if seq < 0 and not sizes and _USER_SCOPE.match(name) else HostKind.OP,
            name,
            sequence_number=max(-1, seq),
            op_id=op_id,
            backward=backward,
            shapes=self._shapes_of(sizes) if sizes else None,
        )

    def _shapes_of(self, sizes: str) -> InputShapes | None:
        if sizes in self._shapes:
            return self._shapes[sizes]
        shapes = parse_shapes(sizes)
        if len(self._shapes) < _MOST_SHAPES:
            self._shapes[sizes] = shapes
        return shapes


def is_emitted(text: str) -> bool:
    """Whether the text has PyTorch's form."""
    return ", seq = " in text or ", op_id = " in text or ", seq=" in text
