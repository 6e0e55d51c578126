"""The moment of most memory, and a sentence that says what was allocated then, for the curve of the Memory page."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tb_dlprof_plugin.model.direction import Direction
from tb_dlprof_plugin.model.formatting import byte_size, duration, share
from tb_dlprof_plugin.pages.columns import Column
from tb_dlprof_plugin.pages.memory_tables import MemoryCategoryKey, MemoryGroup
from tb_dlprof_plugin.pages.sentences import TextPart, plain

_NAMED = 3
"""Categories in the sentence, of those that hold at least `_LEAST_PERCENT`."""
_LEAST_PERCENT = 1.0


class MemoryMoment(msgspec.Struct, frozen=True):
    """When most was allocated, and the op that led to it ("" for none).

    ``time_ns`` counts from where the first selected iteration began, ``step_time_ns`` from where its own did.
    """

    time_ns: int
    step_time_ns: int
    iteration_number: int
    op: str
    op_id: str | None
    direction: Direction
    allocated_bytes: int


class MemoryCategory(msgspec.Struct, frozen=True):
    """One category: bytes at the peak (they sum to it) and the most it held at any moment; None where unknown."""

    key: MemoryCategoryKey
    label: Annotated[str, Column("Category", "memoryCategory", width=150)]
    definition: str
    bytes: Annotated[int | None, Column("At the peak", "memoryAtPeak")]
    percent: Annotated[float | None, Column("%", "memoryPercent", missing="–")]
    own_peak_bytes: Annotated[int | None, Column("Own peak", "memoryOwnPeak")]


def peak_sentence(peak: MemoryMoment, categories: list[MemoryCategory], modules: list[MemoryGroup]) -> list[TextPart]:
    """Such as "Peak 3.21 GiB at 42.0 ms of step 3, in conv1/conv2d (forward): 62 % activations. Of the modules layer3
    holds most, 34 %."
    """
    size = byte_size(peak.allocated_bytes)
    if peak.op:
        at = f"Peak {size} at {duration(peak.step_time_ns)} of step {peak.iteration_number}, in "
        op = plain(peak.op) if peak.op_id is None else TextPart(peak.op, "op", peak.op_id)
        parts = [plain(at), op, plain(f" ({peak.direction})" if peak.direction else "")]
    else:
        when = f"at {duration(peak.step_time_ns)}" if peak.step_time_ns > 0 else "at the beginning"
        parts = [plain(f"Peak {size} {when} of step {peak.iteration_number}")]
    held = sorted(
        (one for one in categories if (one.percent or 0) >= _LEAST_PERCENT), key=lambda one: -(one.bytes or 0)
    )
    named = ", ".join(f"{share(one.percent)} {_words(one)}" for one in held[:_NAMED])
    parts.append(plain(f": {named}." if named else "."))
    module = next((row for row in modules if row.kind == "group" and row.name and row.bytes), None)
    if module is not None:
        name = TextPart(module.name, "module", module.name)
        parts += [plain(" Of the modules "), name, plain(f" holds most, {share(module.percent, 1)}.")]
    return [part for part in parts if part.text]


def _words(category: MemoryCategory) -> str:
    return f"{category.label[0].lower()}{category.label[1:]}"
