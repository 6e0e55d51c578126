"""Cases of `data_parallel`: what DataParallel adds outside of the replicas."""

from __future__ import annotations

from typing import Any

from advice.case import Case
from advice.recordings import GEMM, nothing

from tb_dlprof_plugin.model.run_facts import RunFacts


def _two_gpus(trace: Any) -> None:
    trace.gpu(id=0)
    trace.gpu(id=1)
    for index in range(2):
        at = 1000 * index
        trace.step(4 + index, at, 1000)
        trace.annotation("DataParallel.forward", at, 600)
        trace.op("Broadcast", at + 10, 200)
        for gpu, thread in ((0, 31), (1, 32)):
            trace.launch(GEMM, at + 400 + 20 * gpu, at + 500, 100, tid=thread, device=gpu)
            trace.launch(GEMM, at + 470 + 20 * gpu, at + 600, 50, tid=thread, device=gpu)
        trace.backward("BroadcastBackward", at + 700, 100, 5)


CASES = (
    Case(
        "two GPUs",
        _two_gpus,
        "fired",
        # The replicas launch from 400 to 492 us: 92 of the forward pass's 600 us.
        readings={"DataParallel's own work per step": 508_000 + 100_000},
        says=["--nproc-per-node=2"],
    ),
    Case("one GPU", nothing, "silent", "only calls the model", facts=RunFacts(parallel_wrapper="DataParallel"),
         training={}),
)  # fmt: skip
