"""What is known of a failed allocation of GPU memory: what the hook writes, and what a snapshot of torch is read to.

Sizes are bytes. What is not known is None, since versions of torch differ in what they tell.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

FORMAT = "tb_dlprof out of memory 1"
"""First field of the hook's file, and how it is recognised."""
SUMMARY_NAME, SNAPSHOT_NAME = "tb_dlprof_oom.{stem}.json", "tb_dlprof_oom.{stem}.pickle"
"""Names of the hook's two files; ``stem`` has rank, time and process."""
SUMMARY_PATTERN = SUMMARY_NAME.format(stem="*")

Size = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
"""Bytes, or a number of blocks or samples: a file may come from anyone."""
HeldBy = Literal["parameter", "gradient", "optimizer_state", "buffer", "graph_pool", "pending", "unnamed"]
"""Who holds a block: a named tensor; a private pool, as of CUDA graphs; a block that another stream still uses; or
no named one: activations, inputs, temporary tensors, workspaces."""
HELD_BY: dict[HeldBy, str] = {
    "parameter": "parameters",
    "gradient": "gradients",
    "optimizer_state": "optimizer states",
    "buffer": "buffers",
    "graph_pool": "pools of CUDA graphs",
    "pending": "freed, but still used by another stream",
    "unnamed": "activations and other",
}
Pass = Literal["forward", "backward", "optimizer", ""]
OomKind = Literal["too much held", "fragmented", "another process", "one request above everything"]


class HeldBytes(msgspec.Struct, frozen=True):
    """Blocks of one holder and module; ``module`` is "" where there is none. ``requested`` is what was asked for: a
    block has up to 1 MiB more."""

    kind: HeldBy
    module: str
    bytes: Size
    requested: Size
    blocks: Size


class StackBytes(msgspec.Struct, frozen=True):
    """Blocks of one Python stack, its innermost line first."""

    stack: list[str]
    bytes: int
    blocks: int


class SizeBytes(msgspec.Struct, frozen=True):
    """Blocks of one size without a name."""

    size: int
    blocks: int


class GpuProcess(msgspec.Struct, frozen=True):
    """A process with a context on the GPU; ``bytes`` is None where the driver does not say."""

    pid: int
    bytes: int | None
    own: bool


class MemoryHeld(msgspec.Struct, frozen=True, kw_only=True):
    """What the allocator holds of one GPU.

    Attributes:
        allocated: of blocks in use.
        reserved: of all segments.
        whole_free: of segments without a block in use, which can be given back.
        holes: free, in segments in use; ``largest_hole`` is the largest of them.
        expandable: whether a segment is expandable.
        rows: all blocks in use by holder and module, largest first; ``stacks`` by Python stack, where recorded;
            ``sizes`` those without a name, by size.
        left_out: bytes of rows beyond the most that are kept.
    """

    device: int
    allocated: Size
    reserved: Size
    whole_free: Size
    holes: Size
    largest_hole: Size
    expandable: bool
    rows: list[HeldBytes]
    stacks: list[StackBytes]
    sizes: list[SizeBytes]
    left_out: int = 0

    def of(self, kind: HeldBy) -> int:
        """Bytes of a holder."""
        return sum(row.bytes for row in self.rows if row.kind == kind)

    def requested_of(self, kind: HeldBy) -> int:
        """Bytes that a holder asked for."""
        return sum(row.requested for row in self.rows if row.kind == kind)


class OomSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A failed allocation, or a snapshot of torch without one (``requested`` is None then).

    Attributes:
        requested: what the allocator asked of the GPU: the request rounded up to a segment.
        limit: the GPU's memory, or what `set_per_process_memory_fraction` left of it.
        device_free: what the driver had left.
        module: in whose call it failed, in the pass ``during``.
        where: lines of the Python stack, the innermost first.
        caught: failures before it that were caught, such as of a cuDNN workspace.
        over_time: of a snapshot with history: microseconds and allocated bytes.
    """

    format: str = FORMAT
    made_s: float | None = None
    rank: int = 0
    torch: str = ""
    gpu: str = ""
    model: str = ""
    batch_size: Size | None = None
    allocator_settings: str = ""
    device_total: Size | None = None
    requested: Size | None = None
    limit: Size | None = None
    device_free: Size | None = None
    retries: Size | None = None
    error: str = ""
    module: str = ""
    during: Pass = ""
    where: list[str] = []
    caught: int = 0
    processes: list[GpuProcess] = []
    held: MemoryHeld
    over_time: list[tuple[int, int]] = []
    notes: list[str] = []

    @property
    def unnamed_share(self) -> float:
        """Of the bytes in use, those without a name or a stack."""
        unnamed = self.held.of("unnamed")
        if self.held.stacks:
            unnamed = max(self.held.allocated - sum(row.bytes for row in self.held.stacks), 0)
        return unnamed / max(self.held.allocated, 1)


_FRAGMENTED = 0.1
"""Share of the reserved bytes that is free. Ours: of eight trainings with batches two and four times too large,
none had as much (`lab.memory_plan.out_of_memory`)."""
_CONTEXT = 1200 << 20
"""Of a GPU, what a CUDA context and libraries take at the most."""


def kind_of(found: OomSummary) -> OomKind | None:
    """Why a request failed; None of a snapshot without a failed request."""
    held, requested = found.held, found.requested
    if requested is None:
        return None
    if found.limit is not None and requested > found.limit:
        return "one request above everything"
    # Enough is free, and no piece of it is as large. A few holes are in every full allocator.
    free = held.holes + held.whole_free
    if free >= max(requested, _FRAGMENTED * held.reserved) and requested > held.largest_hole:
        return "fragmented"
    within_limit = found.limit is None or held.reserved + requested <= found.limit
    if within_limit and found.device_free is not None and found.device_free < requested:
        others = sum(one.bytes or 0 for one in found.processes if not one.own)
        total = found.device_total or found.limit
        outside = max(total - found.device_free - held.reserved, 0) if total else 0
        missing = requested - found.device_free
        if max(others, outside - _CONTEXT) >= missing:
            return "another process"
    return "too much held"
