"""Bus bandwidth of collectives on the last arriver's time, and what the GPUs' link can carry.

Formulas: nccl-tests, doc/PERFORMANCE.md. Bus bandwidth is independent of the number of ranks and comparable with the
hardware's; with in-network reduction (NVLink SHARP) an all-reduce may exceed the link.
"""

from __future__ import annotations

from tb_dlprof_plugin.fleet.rank_facts import Operation

_TWICE = (Operation.ALL_REDUCE,)
_ONCE = (
    Operation.ALL_GATHER,
    Operation.REDUCE_SCATTER,
    Operation.ALL_TO_ALL,
    Operation.GATHER,
    Operation.SCATTER,
)
_WHOLE = (Operation.BROADCAST, Operation.REDUCE, Operation.SEND, Operation.RECEIVE)
"""Operations that move (n - 1) / n of the bytes twice, once, and all of them."""
LINKS = {"B200": 900.0, "GH200": 450.0, "H200": 450.0, "H100 80GB HBM3": 450.0, "A100-SXM": 300.0, "V100-SXM2": 150.0}
"""GB/s one way of all NVLinks of a GPU, by a part of the name that CUDA reports: half of the bidirectional rates in
NVIDIA's data sheets (1.8 TB/s, 900, 900, 900, 600 and 300 GB/s). PCIe cards are left out: their bridges vary."""


def bus_gb_s(operation: int, size: int, members: int, transfer_ns: float) -> float | None:
    """GB/s; None where operation, bytes or members are unknown."""
    passes = 2 if operation in _TWICE else 1 if operation in (*_ONCE, *_WHOLE) else 0
    if not passes or size <= 0 or members < 2 or transfer_ns <= 0:
        return None
    part = 1.0 if operation in _WHOLE else (members - 1) / members
    return size * passes * part / transfer_ns


def link_gb_s(gpu: str) -> float | None:
    """What a GPU's links carry one way; None where it is not known."""
    return next((rate for name, rate in LINKS.items() if name in gpu), None)
