"""Cases of `optimizer_state`: the optimizer's states where memory is short."""

from __future__ import annotations

from advice.case import Case
from advice.recordings import nothing
from advice.training_step import GIB

from tb_dlprof_plugin.model.run_facts import RunFacts


def _facts(peak: int, state: int | None) -> RunFacts:
    return RunFacts(
        peak_memory_allocated_bytes=peak * GIB,
        available_memory_bytes=100 * GIB,
        optimizer_state_bytes=None if state is None else state * GIB,
        parameter_count=45 * GIB // 8,
        optimizer="AdamW",
    )


CASES = (
    Case("half of a full memory", nothing, "fired", "8.0 bytes a parameter", saving_ns=None, severity="low",
         facts=_facts(90, 45), training={}),
    Case("a tenth of a full memory", nothing, "silent", facts=_facts(90, 10), training={}),
    Case("half of an empty memory", nothing, "silent", facts=_facts(50, 25), training={}),
    Case("an unknown state", nothing, "not_applicable", facts=_facts(90, None), training={}),
)  # fmt: skip
