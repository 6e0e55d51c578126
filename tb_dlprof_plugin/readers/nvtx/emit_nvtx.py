"""PyTorch's ranges: "aten::mm, seq = 5, op_id = 7, sizes = [[2, 3], [3, 4]], input_op_ids = [(1,0), (0,-1)]".

``torch.autograd.profiler.emit_nvtx`` writes them (``getNvtxStr`` of torch/csrc/profiler/util.cpp): op_id since torch
1.11, sizes and input_op_ids with ``record_shapes=True``. Forward op and backward node have the same seq; data types are
not recorded.
"""

from __future__ import annotations

import re

from tb_dlprof_plugin.model.shapes import InputShapes
from tb_dlprof_plugin.model.timeline import HostKind
from tb_dlprof_plugin.names.ops import AUTOGRAD_NODE
from tb_dlprof_plugin.readers.input_text import parse_shapes
from tb_dlprof_plugin.readers.nvtx.ranges import Meaning

_KEYS = re.compile(
    r"(?:seq ?= ?(-?\d{1,18}))?(?:(?:, )?op_id = (\d{1,18}))?(?:(?:, )?sizes = (\[.*?\])(?=, input_op_ids|\Z))?"
)
_BACKWARD = re.compile(r"Backward\d*\Z|_backward\Z")
_BEFORE_NAMESPACES = re.compile(r"[a-z_][a-z0-9_]*\Z")
_MOST_SHAPES = 100_000


class EmitNvtx:
    """Reads the texts of one recording.

    ``namespaces`` says whether its ops have them ("aten::mm"); those of torch 1.5 and before are plain.
    """

    def __init__(self, namespaces: bool) -> None:
        self._namespaces = namespaces
        self._shapes: dict[str, InputShapes | None] = {}

    def meaning(self, text: str) -> Meaning | None:
        """What the text says, None where it is none of PyTorch's."""
        at = text.find(", ")
        if at < 0:
            return None
        keys = _KEYS.match(text, at + 2)
        if keys is None or keys.end() == at + 2:
            return None
        seq, op_id, sizes = keys.groups()
        name = text[:at]
        backward = _BACKWARD.search(name) is not None and not name.startswith(AUTOGRAD_NODE) and "::" not in name
        if not self._namespaces and not backward and _BEFORE_NAMESPACES.match(name):
            name = f"aten::{name}"
        return Meaning(
            HostKind.OP,
            name,
            sequence_number=-1 if seq is None else max(-1, int(seq)),
            op_id=-1 if op_id is None else int(op_id),
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
