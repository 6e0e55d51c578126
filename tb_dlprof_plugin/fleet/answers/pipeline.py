"""The pipeline's bubble: measured, by its schedule's formula, and which stage has more work than the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.answers.account import Recorded
from tb_dlprof_plugin.fleet.answers.calls import Calls, stage_of, stages_exchange
from tb_dlprof_plugin.fleet.job import PipelineShape
from tb_dlprof_plugin.fleet.rank_facts import Operation, RankFacts

UNEVEN = 1.05
"""Work of a stage over the mean of the stages, from which it is uneven. Ours: with many layers stages come closer."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Of a job with several stages.

    Attributes:
        stages: of each rank.
        microbatches: receives of a stage and step from one side; None where no call shows them.
        bubble_percent: share of the recorded step in which ranks wait for other stages, mean over ranks.
        formula_percent: `bubble_share` of 1F1B and GPipe; None without microbatches.
        imbalance: work of the slowest stage over the mean of the stages.
        slowest_stage: None where the stages are even.
        excess_ns: work of the slowest stage beyond the mean, sum over the steps.
    """

    stages: list[int]
    microbatches: int | None
    bubble_percent: float
    formula_percent: float | None
    imbalance: float
    slowest_stage: int | None
    excess_ns: float

    @property
    def shape(self) -> PipelineShape:
        """What the job's answers say of it."""
        return PipelineShape(len(set(self.stages)), self.microbatches, self.bubble_percent, self.formula_percent)


def bubble_share(stages: int, microbatches: int, chunks: int = 1) -> float:
    """Share of the step that even stages wait: 1F1B and GPipe, or interleaved with ``chunks`` of the model per rank.

    Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM (SC'21).
    """
    idle = (stages - 1) / chunks
    return idle / (microbatches + idle)


def pipeline(facts: Sequence[RankFacts], calls: Calls, recorded: Recorded) -> Pipeline | None:
    """None for jobs without a pipeline."""
    stages = [stage_of(one) for one in facts]
    count = len(set(stages))
    if count < 2 or not recorded.step.sum() or not stages_exchange(calls.operation):
        return None
    microbatches = _microbatches(facts, calls)
    work = {stage: float(recorded.compute[np.array(stages) == stage].mean()) for stage in sorted(set(stages))}
    mean = float(np.mean(list(work.values())))
    slowest = max(work, key=lambda stage: work[stage])
    imbalance = work[slowest] / mean if mean else 1.0
    return Pipeline(
        stages,
        microbatches,
        100 * float(recorded.bubble.sum()) / float(recorded.step.sum()),
        None if microbatches is None else 100 * bubble_share(count, microbatches),
        imbalance,
        slowest if imbalance >= UNEVEN else None,
        work[slowest] - mean,
    )


def _microbatches(facts: Sequence[RankFacts], calls: Calls) -> int | None:
    """What the first stage sends to the next in a step, the same in all steps and on all its ranks."""
    found = set()
    for index, one in enumerate(facts):
        if stage_of(one) == 0:
            rows = calls.row[calls.of_rank(index)]
            sends = int((one.collectives.operation[rows] == Operation.SEND).sum())
            found.add(sends / max(calls.steps, 1))
    value = found.pop() if len(found) == 1 else 0
    return int(value) if value and value == int(value) else None
