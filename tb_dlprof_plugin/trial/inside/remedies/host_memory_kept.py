"""glibc's malloc keeps large blocks: on the CPU each large tensor is otherwise mapped, cleared and unmapped again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from tb_dlprof_plugin.trial.facts import TrialFacts

_VARIABLES = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
"""Bytes: no block below 1 GiB is mapped on its own, and up to 4 GiB of free memory are kept (mallopt(3))."""


class HostMemoryKept(Remedy):
    name = "host_memory_kept"
    title = "Freed memory of the host is kept"
    usual_percent = 5.0
    changes = Changes.NOTHING
    may_change = "Nothing; the process keeps up to 4 GiB that it has freed."

    def why_not(self, facts: TrialFacts) -> str | None:
        if facts.cuda:
            return "Tensors are on the GPU, whose allocator keeps memory."
        if any(name in os.environ for name in _VARIABLES):
            return "malloc is set up in the environment."
        preloaded = os.environ.get("LD_PRELOAD", "")
        return f"Another malloc is loaded: {preloaded}." if "malloc" in preloaded else None

    def environment(self) -> Mapping[str, str]:
        return _VARIABLES

    def code(self) -> str:
        set_all = " ".join(f"{name}={value}" for name, value in _VARIABLES.items())
        return f"export {set_all}  # in the shell, before the script starts\n"


REMEDIES: tuple[type[Remedy], ...] = (HostMemoryKept,)
