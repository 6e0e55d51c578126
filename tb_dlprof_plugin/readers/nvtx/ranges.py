"""NVTX ranges as columns, and what one text means."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.model.shapes import InputShapes
from tb_dlprof_plugin.model.timeline import HostKind, Ints, StatedOp


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the text of a range says.

    Attributes:
        kind: OP, ANNOTATION or PYTHON_MODULE; None for a range that is left out.
        name: of the op or annotation, of a module its path.
        sequence_number: autograd's, -1 for none.
        op_id: the op's number, -1 for none.
        backward: whether the text says that it is a backward node.
        shapes: of the inputs, None where not recorded.
        dtypes: of the inputs, None where not recorded.
        module: path of the module that the op works for, "" for none.
        stated: type, module and part of the step where the text says more than a name; None where it does not.
        place: of the call in the user's files, such as "train.py:12".
    """

    kind: HostKind | None
    name: str
    sequence_number: int = -1
    op_id: int = -1
    backward: bool = False
    shapes: InputShapes | None = None
    dtypes: InputDtypes | None = None
    module: str = ""
    stated: StatedOp | None = None
    place: str = ""


@dataclass(slots=True)
class NvtxRanges:
    """Ranges in no order. ``process`` and ``thread`` are keys of the recording; ``end_thread`` is `thread` where the
    range ends on the same. ``text`` and ``domain`` index lists of texts. ``nested`` is False for start/end ranges.
    ``sequence_number`` and ``op_id`` are those of PyTorch's texts, ``input_bytes`` what a collective takes of its rank;
    -1 for none."""

    process: Ints
    thread: Ints
    end_thread: Ints
    start_ns: Ints
    stop_ns: Ints
    text: Ints
    domain: Ints
    nested: Bools
    sequence_number: Ints
    op_id: Ints
    input_bytes: Ints

    def __len__(self) -> int:
        return len(self.start_ns)

    def ended(self, stop_ns: int, missing: int) -> NvtxRanges:
        """With ``stop_ns`` as the end of ranges that were open when the recording ended."""
        stops = np.where(self.stop_ns == missing, np.maximum(stop_ns, self.start_ns), self.stop_ns)
        return replace(self, stop_ns=stops)

    @classmethod
    def none(cls) -> NvtxRanges:
        """No ranges were recorded."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(*(nothing,) * 7, np.zeros(0, dtype=np.bool_), *(nothing,) * 3)
