"""The settings of PyTorch's caching allocator that decide where a block goes, read from `PYTORCH_ALLOC_CONF`."""

from __future__ import annotations

import re
from dataclasses import dataclass

MIB = 1 << 20


class UnknownAllocator(ValueError):
    """The run's allocator is not the caching one, or has settings that its replay does not know."""


@dataclass(frozen=True, slots=True)
class AllocatorSettings:
    """As in torch's documentation of CUDA memory management; sizes in bytes, None for "no limit".

    Attributes:
        expandable: one segment per pool that grows by pages, in the place of many of fixed size.
        max_split_size: larger blocks are not split.
        power2_divisions: sizes are rounded up to one of so many steps between powers of two; 0 rounds to 512 bytes.
    """

    expandable: bool = False
    max_split_size: int | None = None
    power2_divisions: int = 0


def settings_of(text: str | None) -> AllocatorSettings:
    """The settings of a text such as "expandable_segments:True,max_split_size_mb:128".

    Options that do not decide where a block goes are passed over: `garbage_collection_threshold` frees early, what
    `pinned_*` set is on the CPU.

    Raises:
        UnknownAllocator: another backend, or an option of a form that is not known.
    """
    options = dict(re.findall(r"([a-z0-9_]+)\s*:\s*(\[[^\]]*\]|[^,\s]+)", text or ""))
    backend = options.get("backend", "native")
    if backend != "native":
        raise UnknownAllocator(f"the allocator is {backend}, and only PyTorch's own (native) can be replayed.")
    if options.get("large_segment_size_mb", "20") != "20":
        raise UnknownAllocator("large_segment_size_mb is set, which the replay does not know.")
    divisions = options.get("roundup_power2_divisions", "0")
    if not divisions.isdigit():
        raise UnknownAllocator("roundup_power2_divisions differs by size, which the replay does not know.")
    split = options.get("max_split_size_mb")
    return AllocatorSettings(
        expandable=options.get("expandable_segments", "False").lower() in ("true", "1"),
        max_split_size=None if split is None else int(split) * MIB,
        power2_divisions=int(divisions),
    )
