"""The communication calls of all ranks of a job, and what its step saves where some of their time goes.

The price of a change is a replay of the job over all ranks, with its hosts where their launches are recorded: what no
rank waits for saves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.savings import Saving, stated
from tb_dlprof_plugin.fleet.answers.job_of import ReplayedJob
from tb_dlprof_plugin.fleet.answers.scenarios import LEAST_ERROR
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Operation
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class ReplayedCalls:
    """One entry of each column per call of `Scenarios.calls`, in its order. Times in ns.

    Attributes:
        replayed: the job and its replays.
        modules: names; ``module`` is an index into them.
        dimension: of the call's group, with ``dimensions`` as names.
        bytes: as `CollectiveKernels.bytes`, UNKNOWN where not recorded.
        transfer: of the call. exposed: the part of it in which nothing else runs, without waiting for other ranks.
        work: own work of the rank between the call before and this one, without idle time.
    """

    replayed: ReplayedJob
    modules: list[str]
    module: Ints
    dimensions: list[str]
    dimension: Ints
    bytes: Ints
    transfer: Floats
    exposed: Floats
    work: Floats

    @property
    def operation(self) -> Ints:
        """`Operation` of each call."""
        return self.replayed.scenarios.calls.operation

    @property
    def turns(self) -> int:
        """Ranks times steps."""
        calls = self.replayed.scenarios.calls
        return max(calls.ranks * calls.steps, 1)

    @cached_property
    def at(self) -> Ints:
        """The step of a rank that each call belongs to, as one number."""
        calls = self.replayed.scenarios.calls
        return calls.rank * max(calls.steps, 1) + calls.step

    def place_in_step(self, chosen: Bools) -> Ints:
        """How many of the chosen calls come before each of them in its step; -1 for other calls."""
        place = np.full(len(self.at), -1, dtype=np.int64)
        rows = np.flatnonzero(chosen)
        heads = np.flatnonzero(np.diff(self.at[rows], prepend=-1))
        counted = np.arange(len(rows))
        place[rows] = counted - np.repeat(counted[heads], np.diff(np.r_[heads, len(rows)]))
        return place

    def named(self, *dimensions: str) -> Bools:
        """Which calls are of groups of these dimensions."""
        wanted = np.array([name in dimensions for name in self.dimensions], dtype=np.bool_)
        result: Bools = wanted[self.dimension]
        return result

    def per_step(self, column: Floats, chosen: Bools) -> float:
        """Mean of the sums over a step and rank."""
        return float(column[chosen].sum()) / self.turns

    def saved_ns(self, context: RuleContext, gone: Floats) -> float:
        """By how much the step without the profiler is shorter if this part of each transfer goes."""
        scenarios = self.replayed.scenarios
        kept = np.clip(1 - np.divide(gone, self.transfer, out=np.zeros(len(gone)), where=self.transfer > 0), 0.0, 1.0)
        after = scenarios.transfers_ms(kept)
        if after is None or scenarios.step is None or not scenarios.step.ms:
            return 0.0
        return max(1 - after / scenarios.step.ms, 0.0) * context.step_ns

    def saving(self, context: RuleContext, gone: Sequence[Floats], derivation: str) -> Saving:
        """The saving if the first, second and third of these parts of the transfers go: at least, expected and at best.

        The interval is wider by how far replays of jobs are off (`LEAST_ERROR`).
        """
        low, expected, high = (self.saved_ns(context, one) for one in gone)
        return stated(
            context,
            min(low, expected) * (1 - LEAST_ERROR),
            expected,
            max(high, expected) * (1 + LEAST_ERROR),
            f"{derivation} The recorded job, replayed over all ranks without that time, is so much shorter.",
        )


def replayed_calls(context: RuleContext) -> ReplayedCalls | None:
    """The calls of the context's job; None where there is none, or where its replay is no basis for a price."""
    replayed = context.replayed_job
    if replayed is None or not context.replay_holds:
        return None
    calls = replayed.scenarios.calls
    modules, dimensions = _Names(), _Names()
    module, dimension = (np.zeros(len(calls.rank), dtype=np.int64) for _ in range(2))
    for index, one in enumerate(replayed.facts):
        at = calls.of_rank(index)
        table, rows = one.collectives, calls.row[at]
        of_module = np.array([modules.add(name) for name in one.strings] + [modules.add("")])
        of_group = np.array([dimensions.add(group.dimension) for group in one.groups] + [dimensions.add("")])
        # UNKNOWN is the last one, which has no name.
        module[at], dimension[at] = of_module[table.module[rows]], of_group[table.group[rows]]
    assert UNKNOWN == -1
    transfer = calls.transfer.astype(np.float64)
    return ReplayedCalls(
        replayed=replayed,
        modules=modules.names,
        module=module,
        dimensions=dimensions.names,
        dimension=dimension,
        bytes=calls.bytes,
        transfer=transfer,
        exposed=np.clip(calls.exposed - calls.waiting, 0, transfer),
        work=np.maximum(calls.gap - calls.idle, 0).astype(np.float64),
    )


def worthwhile(context: RuleContext, saving: Saving) -> bool:
    """Whether the expected saving is `WORTHWHILE_SAVING_PERCENT` of the step or more."""
    return saving.percent >= thresholds.WORTHWHILE_SAVING_PERCENT


def fsdp_calls(calls: ReplayedCalls, operation: Operation) -> Bools:
    """Which calls gather parameters, or reduce gradients, over the ranks among which FSDP divides the model."""
    result: Bools = (calls.operation == operation) & calls.named("dp", "dp_shard", "")
    return result


def gathered_again(calls: ReplayedCalls, units: int) -> Bools | None:
    """Which gathers of FSDP fetch parameters a second time, for the backward pass.

    None where a step has other than one or two gathers for each unit: several forward passes, for example.
    """
    gathers = fsdp_calls(calls, Operation.ALL_GATHER)
    counts = np.bincount(calls.at[gathers], minlength=1)
    counts = counts[counts > 0]
    if not units or not len(counts) or counts.min() < units or counts.max() > 2 * units:
        return None
    return calls.place_in_step(gathers) >= units


class _Names:
    """Numbers for names, in the order in which they come."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._number: dict[str, int] = {}

    def add(self, name: str) -> int:
        if name not in self._number:
            self._number[name] = len(self.names)
            self.names.append(name)
        return self._number[name]
