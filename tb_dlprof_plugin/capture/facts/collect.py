"""Collects the RunFacts of one recorded cycle. Each fact is read separately: one that fails stays None."""

from __future__ import annotations

from typing import Any

from tb_dlprof_plugin.capture.facts.data_parallel import fill_data_parallel, fill_sharding
from tb_dlprof_plugin.capture.facts.gpu_memory import PeakMemory, fill_allocator, fill_free_memory
from tb_dlprof_plugin.capture.facts.machine import fill_surroundings
from tb_dlprof_plugin.capture.facts.model import Observation, fill_model
from tb_dlprof_plugin.capture.facts.optimizer import OptimizerWatch
from tb_dlprof_plugin.capture.facts.storages import fill_storages
from tb_dlprof_plugin.capture.facts.switches import fill_apex, fill_switches, slow_switches
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import DataLoaderFacts, RunFacts


def collect_facts(
    *,
    model: Any = None,
    dataloader: DataLoaderFacts | None = None,
    optimizer: Any = None,
    watch: OptimizerWatch | None = None,
    observation: Observation | None = None,
    peaks: PeakMemory | None = None,
    batch_size: int | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    run_name: str | None = None,
    module_ranges: bool | None = None,
    record_shapes: bool | None = None,
    with_stack: bool | None = None,
    profile_memory: bool | None = None,
) -> RunFacts:
    """The facts as they are now, in the training process. Takes a few milliseconds on a GPU, which the
    driver needs to answer, else well under one.

    ``batch_size`` is what the user passed, else what the model was called with, else the DataLoader's.
    """
    facts = RunFacts(
        rank=rank,
        world_size=world_size,
        run_name=run_name,
        module_ranges=module_ranges,
        record_shapes=record_shapes,
        with_stack=with_stack,
        profile_memory=profile_memory,
    )
    probe(lambda: fill_switches(facts))
    probe(lambda: fill_model(facts, model))
    facts.dataloader = dataloader
    if observation is not None:
        observation.fill(facts)
    probe(lambda: (watch or OptimizerWatch()).fill(facts, optimizer, model))
    probe(lambda: fill_apex(facts))
    probe(lambda: fill_data_parallel(facts, model))
    probe(lambda: fill_sharding(facts, model))
    probe(lambda: fill_free_memory(facts))
    probe(lambda: fill_surroundings(facts))
    facts.slow_switches = probe(slow_switches) or []
    if batch_size is not None:
        facts.batch_size = probe(lambda: int(batch_size))
    elif facts.batch_size is None and facts.dataloader is not None:
        facts.batch_size = facts.dataloader.batch_size
    probe(lambda: (peaks or PeakMemory()).fill(facts))
    probe(lambda: fill_storages(facts, model, (watch or OptimizerWatch()).stepped(optimizer)))
    probe(lambda: fill_allocator(facts))
    return facts
