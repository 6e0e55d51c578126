"""Threads of operators on the CPU."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from tb_dlprof_plugin.trial.facts import TrialFacts
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks


class _Threads(Remedy):
    changes = Changes.ROUNDING
    may_change = "Sums of large tensors on the CPU are split otherwise."
    group = "omp_threads"
    in_running_process = True

    def __init__(self) -> None:
        self._before: int | None = None

    @property
    def threads(self) -> int:
        """How many operators use."""
        raise NotImplementedError

    def environment(self) -> Mapping[str, str]:
        return {"OMP_NUM_THREADS": str(self.threads), "MKL_NUM_THREADS": str(self.threads)}

    def on_import(self, hooks: TrialHooks) -> None:
        import torch

        before = torch.get_num_threads()
        if before == self.threads and os.environ.get("OMP_NUM_THREADS") != str(self.threads):
            # In a running process, where `environment` has not set it.
            self._before = before
        if before != self.threads:
            torch.set_num_threads(self.threads)
            hooks.on_undo(lambda: torch.set_num_threads(before))

        def make(original: Any) -> Any:
            def set_num_threads(count: int) -> None:
                self._before = count

            return set_num_threads

        # What the script asks for is what the remedy replaces.
        hooks.replace(torch, "set_num_threads", make)

    def no_effect(self) -> str | None:
        return f"The script uses {self.threads} already." if self._before == self.threads else None

    def code(self) -> str:
        return f"export OMP_NUM_THREADS={self.threads}  # in the shell, before the script starts\n"


class OmpThreads1(_Threads):
    name = "omp_threads_1"
    title = "One thread for operators on the CPU"
    usual_percent = -5.0

    @property
    def threads(self) -> int:
        return 1

    def why_not(self, facts: TrialFacts) -> str | None:
        default = _default_threads(facts.cpu_count, facts.world_size)
        return "Operators use one thread." if default == 1 and not facts.cuda else None


class OmpThreadsAll(_Threads):
    name = "omp_threads_all"
    title = "All CPUs for operators on the CPU"
    usual_percent = -1.0

    @property
    def threads(self) -> int:
        return max(len(_cpus()) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")), 1)

    def why_not(self, facts: TrialFacts) -> str | None:
        return "There is one CPU for each rank." if facts.cpu_count // facts.world_size < 2 else None


def _default_threads(cpu_count: int, world_size: int) -> int:
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if given.isdigit():
        return int(given)
    # torchrun gives each of several ranks one thread where the variable is not set.
    return 1 if world_size > 1 else cpu_count


def _cpus() -> Any:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)


REMEDIES: tuple[type[Remedy], ...] = (OmpThreads1, OmpThreadsAll)
