"""The pipeline's bubble: measured, by its schedule's formula, and which stage has more work than the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.answers.account import Recorded
from tb_dlprof_plugin.fleet.answers.calls import JobCalls, stage_of, stages_exchange
from tb_dlprof_plugin.fleet.job import PipelineShape
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Operation, RankFacts

UNEVEN = 1.05
"""Work of a stage over the mean of the stages, from which it is uneven. Ours: with many layers stages come closer."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Of a job with several stages.

    Attributes:
        stages: of each rank.
        shape: what the job's answers say of it. Its formula is `bubble_share`: a schedule that fills bubbles with
            gradients of weights (zero bubble) has less, and calls do not tell it from 1F1B.
        imbalance: work of the slowest stage over the mean of the stages.
        slowest_stage: None where the stages are even.
        excess_ns: work of the slowest stage beyond the mean, sum over the steps.
    """

    stages: list[int]
    shape: PipelineShape
    imbalance: float
    slowest_stage: int | None
    excess_ns: float


def bubble_share(stages: int, microbatches: int, chunks: int = 1) -> float:
    """Share of the step that even stages wait: 1F1B and GPipe, or interleaved with ``chunks`` of the model per rank.

    Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM (SC'21).
    """
    idle = (stages - 1) / chunks
    return idle / (microbatches + idle)


def pipeline(facts: Sequence[RankFacts], calls: JobCalls, recorded: Recorded) -> Pipeline | None:
    """None for jobs without a pipeline."""
    stages = [stage_of(rank) for rank in facts]
    count = len(set(stages))
    if count < 2 or not recorded.step.sum() or not stages_exchange(calls.operation):
        return None
    microbatches, chunks = _microbatches(facts, calls, stages)
    work = {stage: float(recorded.compute[np.array(stages) == stage].mean()) for stage in sorted(set(stages))}
    mean = float(np.mean(list(work.values())))
    slowest = max(work, key=lambda stage: work[stage])
    imbalance = work[slowest] / mean if mean else 1.0
    bubble = 100 * float(recorded.bubble.sum()) / float(recorded.step.sum())
    formula = None if microbatches is None else 100 * bubble_share(count, microbatches, chunks)
    shape = PipelineShape(count, microbatches, bubble, formula, chunks)
    return Pipeline(stages, shape, imbalance, slowest if imbalance >= UNEVEN else None, work[slowest] - mean)


def _microbatches(facts: Sequence[RankFacts], calls: JobCalls, stages: Sequence[int]) -> tuple[int | None, int]:
    """Microbatches of a step and chunks, by the pipeline's ranges, the same on all ranks; else from what the first
    stage sends in a step, the same in all steps and ranks.

    With v chunks and m microbatches it sends v m activations to the next stage and (v - 1) m gradients to the last one:
    without interleaving none.
    """
    stated = {(rank.microbatches, rank.chunks) for rank in facts}
    if len(stated) == 1 and UNKNOWN not in (known := stated.pop()):
        return known
    last = max(stages)
    stage_of_rank = {rank.rank: stage for rank, stage in zip(facts, stages, strict=True)}
    counts = set()
    for index, rank in enumerate(facts):
        if stages[index] == 0:
            rows = calls.row[calls.of_rank(index)]
            sends = rows[rank.collectives.operation[rows] == Operation.SEND]
            to = [stage_of_rank.get(peer) for peer in rank.collectives.peer[sends].tolist()]
            # Of two stages the next one is the last.
            back = to.count(last) if last > 1 else 0
            counts.add(((len(sends) - back) / max(calls.steps, 1), back / max(calls.steps, 1)))
    ahead, returned = counts.pop() if len(counts) == 1 else (0.0, 0.0)
    count = ahead - returned
    if count <= 0 or count != int(count) or ahead % count:
        return None, 1
    return int(count), int(ahead / count)
