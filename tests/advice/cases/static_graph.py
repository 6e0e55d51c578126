"""Cases of `static_graph`: a search for unused parameters in each step."""

from __future__ import annotations

from typing import Any

from advice.case import Case
from advice.recorded import recorded
from advice.simulated import on_gpu

from tb_dlprof_plugin.model.run_facts import DdpFacts


def _ddp(**facts: Any) -> Any:
    given = {"parallel_wrapper": "DistributedDataParallel", "find_unused_parameters": True, **facts}
    return on_gpu(list, **given)


CASES = (
    Case(
        "a short search",
        recorded("planted/unused_parameters/fault"),
        "silent",
        "2 of 12 parameters got no gradient, and DDP searches for them in each step",
    ),
    Case("a static graph", _ddp(ddp=DdpFacts(static_graph=True)), "silent", training={}),
    Case("no search", _ddp(find_unused_parameters=False), "silent", training={}),
    Case("no DDP", recorded("ranks/recorded/fsdp_even"), "not_applicable"),
)
