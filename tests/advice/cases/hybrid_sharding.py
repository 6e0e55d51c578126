"""Cases of `hybrid_sharding`: FSDP over several hosts, in simulated and recorded jobs."""

from __future__ import annotations

from typing import Any

import msgspec
from advice.case import Case
from advice.recorded import recorded
from advice.simulated import DIVIDED, on_hosts, posing

from tests.support.simulated_job import fsdp, simulate


def _job(per_host: int, settings: Any = DIVIDED, ranks: int = 4, gpu: str = "NVIDIA H200", **facts: Any) -> Any:
    """Of 50 MB over four ranks in 3 ms: 12.5 GB/s."""
    return posing(
        lambda: on_hosts(simulate(4, fsdp(4, transfer_ms=3.0), seed=4), per_host, gpu)[:ranks], fsdp=settings, **facts
    )


def _memory(steady: int) -> dict[str, int]:
    return {"steady_memory_bytes": steady, "available_memory_bytes": 2 * 10**10, "peak_memory_allocated_bytes": 10**10}


CASES = (
    Case("two hosts", _job(2), "fired"),
    Case("two hosts with memory", _job(2, **_memory(10**10)), "fired"),
    Case("an unknown GPU", _job(2, gpu="another GPU"), "fired", saving_ns=None),
    Case("too little memory", _job(2, **_memory(2 * 10**10)), "silent", "more on each GPU"),
    Case("one host", _job(4), "silent", "on one host"),
    Case("a host for each rank", _job(1), "silent", "one rank each"),
    Case("ranks are missing", _job(2, ranks=3), "not_applicable", "no profiles of some ranks"),
    Case("HSDP", _job(2, msgspec.structs.replace(DIVIDED, shard_ranks=2, replicas=2)), "silent", "HSDP is used"),
    Case(
        "a job of CPUs",
        recorded("ranks/settings_recorded/gloo_flat"),
        "fired",
        saving_ns=None,
        says=["FSDP gathers parameters over 2 hosts", 'init_device_mesh("cpu", (2, 2)'],
    ),
)
