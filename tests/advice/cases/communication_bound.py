"""Cases of `communication_bound`: collectives that nothing hides."""

from __future__ import annotations

from typing import Any

from advice.case import ANY, Case, between
from advice.recordings import nothing, rank, ranks

from tb_dlprof_plugin.model.run_facts import RunFacts

_TIMED = {"unprofiled_step_ns": 1_000_000}
_WAITS, _WORKS = {"work": 300, "own": 650}, {"work": 900, "own": 50}


def _ddp(step_ns: int) -> dict[str, Any]:
    return {
        "ddp": True,
        "parallel_wrapper": "DistributedDataParallel",
        "parameter_count": 1000,
        "parameter_dtypes": ["float32"],
        "unprofiled_step_ns": step_ns,
    }


CASES = (
    Case(
        "one rank alone",
        lambda trace: rank(trace, 1, **_WAITS, **_TIMED),
        "fired",
        readings={"Communication not hidden": 65.0},
        saving_ns=(0, ANY, ANY),
    ),
    Case(
        "a rank that waits for the other",
        lambda trace: ranks(_WORKS, _WAITS, **_TIMED)(trace)[::-1],
        "silent",
        "0.05 ms (5.0 %) of that move data",
    ),
    Case(
        "an exchange in every accumulated batch",
        ranks(*[{"work": 400, "own": 100, "exchanges": 4, "hidden": 40}] * 2, **_ddp(900_000)),
        "fired",
        readings={"Given into collectives per step": 16_000},
        # Three exchanges of 100 us, of which 40 us overlap with kernels: these count for 27 %.
        saving_ns=(ANY, 260_000 + 10_800, ANY),
        says=["Gradients are exchanged 4 times for each optimizer step", "no_sync"],
    ),
    Case(
        "the same without the hook",
        ranks(*[{"work": 400, "own": 100, "exchanges": 4, "hidden": 40}] * 2, ddp=True),
        "fired",
        readings={"Exchanges of all gradients per optimizer step": 4},
        says=["no_sync"],
    ),
    Case(
        "one exchange without the hook",
        ranks(*[{"work": 400, "own": 200}] * 2, ddp=True),
        "fired",
        readings={"Exchanges of all gradients per optimizer step": 1},
        says=["bf16_compress_hook"],
    ),
    Case(
        "one exchange",
        ranks(*[{"work": 400, "own": 200}] * 2, **_ddp(700_000)),
        "fired",
        # Of 200 us a fifth to a half; at best what the replay of both ranks saves without any exposed exchange.
        saving_ns=(40_000, 100_000, between(100_001, 200_000)),
        says=["bf16_compress_hook"],
    ),
    Case("through the CPU", nothing, "fired", says=['init_process_group("nccl")'],
         facts=RunFacts(distributed_backend="gloo", world_size=2), training={}),
    Case("no communication", nothing, "not_applicable", training={}),
)  # fmt: skip
