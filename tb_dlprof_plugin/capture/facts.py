"""Puts together the RunFacts of one recorded cycle. Each fact is read on its own: one that fails stays None."""

from __future__ import annotations

from typing import Any

from tb_dlprof_plugin.capture.apex import fill_apex
from tb_dlprof_plugin.capture.model_facts import fill_model
from tb_dlprof_plugin.capture.observation import Observation
from tb_dlprof_plugin.capture.optimizer import OptimizerWatch
from tb_dlprof_plugin.capture.switches import fill_switches
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.storage.facts import DataLoaderFacts, RunFacts


def collect_facts(
    *,
    model: Any = None,
    dataloader: DataLoaderFacts | None = None,
    optimizer: Any = None,
    watch: OptimizerWatch | None = None,
    observation: Observation | None = None,
    batch_size: int | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    run_name: str | None = None,
    module_ranges: bool | None = None,
    record_shapes: bool | None = None,
) -> RunFacts:
    """The facts as they are now, in the training process. Takes well under a millisecond for a usual model.

    ``batch_size`` is the user's word if given, else what the model was called with, else the DataLoader's.
    """
    facts = RunFacts(
        rank=rank, world_size=world_size, run_name=run_name, module_ranges=module_ranges, record_shapes=record_shapes
    )
    probe(lambda: fill_switches(facts))
    probe(lambda: fill_model(facts, model))
    facts.dataloader = dataloader
    if observation is not None:
        observation.fill(facts)
    probe(lambda: (watch or OptimizerWatch()).fill(facts, optimizer))
    probe(lambda: fill_apex(facts))
    if batch_size is not None:
        facts.batch_size = probe(lambda: int(batch_size))
    elif facts.batch_size is None and facts.dataloader is not None:
        facts.batch_size = facts.dataloader.batch_size
    probe(lambda: _fill_peak_memory(facts))
    return facts


def _fill_peak_memory(facts: RunFacts) -> None:
    """The highest of all visible GPUs since the process began, or since the user last reset the peak."""
    import torch

    if not torch.cuda.is_initialized():
        return
    devices = range(torch.cuda.device_count())
    facts.peak_memory_allocated_bytes = max((torch.cuda.max_memory_allocated(i) for i in devices), default=None)
    facts.peak_memory_reserved_bytes = max((torch.cuda.max_memory_reserved(i) for i in devices), default=None)
