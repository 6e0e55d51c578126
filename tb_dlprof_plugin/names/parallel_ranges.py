"""Ranges that PyTorch's parallel wrappers put around their work in every recording of its profiler."""

from __future__ import annotations

import re

DDP_FORWARD = "DistributedDataParallel.forward"
DATA_PARALLEL_FORWARD = "DataParallel.forward"
SEARCH_UNUSED = "search_unused_parameters"
"""In the name of the reducer's search, which ``find_unused_parameters`` asks for and a static graph makes needless."""
BUCKET_COPY = "copy_bucket_to_grad"
"""In the name of the reducer's copy from a bucket, which ``gradient_as_bucket_view`` makes needless."""
INTO_BUCKET = ("torch::distributed::reducer::mul_out", "torch::distributed::reducer::copy_")
"""The reducer's op that puts a gradient into its bucket, with the gradient's place there as input."""
FSDP1 = "FullyShardedDataParallel."
"""Before the name of a part of FSDP1's work."""
FSDP2 = "FSDP::"
"""Before the name of a part of FSDP2's work, and of its unit, such as "FSDP::all_gather (layers.3)"."""
GATHER = re.compile(r"FSDP::all_gather(?: \((?P<unit>[^)]*)\))?$")
"""FSDP2's range around a gather, which it makes where a unit is not whole already; the root's may have no name."""
MICROBATCH = re.compile(r"(?:PP:(?P<stage>\d{1,6})F|Forward )(?P<number>\d{1,6})$")
"""The forward pass of a microbatch in `torch.distributed.pipelining`: its number from 0, and the stage of the model
where a rank may have several, as in "PP:2F3"."""
DTENSOR_SUMS = ("_c10d_functional::all_reduce", "_c10d_functional::reduce_scatter")
"""Before the names of DTensor's ops that sum up over ranks."""
_UNIT = re.compile(r"FSDP::[\w ]+? (?:\((?P<module>[^)]*)\)|for (?P<prefetched>\S+))$")


def fsdp_unit(name: str) -> str:
    """The module in a range of FSDP2 such as "FSDP::all_gather (layers.3)" or "FSDP::backward_prefetch for layers.2";
    "" for another name."""
    match = _UNIT.match(name)
    return (match["module"] or match["prefetched"] or "").strip() if match else ""
