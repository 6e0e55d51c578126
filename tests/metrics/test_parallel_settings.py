"""The parallel wrapper and its settings from the ranges of a recording, next to what the hook read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from advice.recorded import opened, with_facts

from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.metrics.parallel_settings import ParallelSettings, parallel_settings
from tb_dlprof_plugin.model.run_facts import DdpFacts, FsdpFacts
from tb_dlprof_plugin.profile_view import ProfileView

JOBS = ("recorded/ddp_even", "recorded/experts_even", "settings_recorded/wide_copied", "settings_recorded/gloo_flat",
        "settings_recorded/gloo_one_unit", "settings_recorded/gloo_units", "settings_recorded/sharded_tiny_units",
        "recorded/pipeline_even", "held_out/images_even")  # fmt: skip
HOOK = {"parallel_wrapper": None, "ddp": None, "fsdp": None, "find_unused_parameters": None, "model": None}


def without_hook(view: ProfileView) -> ProfileView:
    return with_facts(view, **HOOK)


@pytest.mark.parametrize("job", JOBS)
def test_without_the_hook_the_ranges_say_the_same_or_nothing(job: str) -> None:
    view = opened(f"ranks/{job}")
    read, shown = view.profile.facts, parallel_settings(without_hook(view))
    assert shown.wrapper == read.parallel_wrapper
    for settings, found in ((read.ddp, shown.ddp), (read.fsdp, shown.fsdp)):
        assert (settings is None) == (found is None)
        if settings is not None and found is not None:
            known = {name: value for name, value in msgspec.structs.asdict(found).items() if value not in (None, [])}
            of_hook = msgspec.structs.asdict(settings)
            assert known == {name: value if of_hook[name] is None else of_hook[name] for name, value in known.items()}


def test_units_passes_and_groups_of_fsdp_show() -> None:
    shown = parallel_settings(without_hook(opened("ranks/settings_recorded/sharded_tiny_units"))).fsdp
    assert shown == FsdpFacts(2, 42, 42, True, False, shard_ranks=2, replicas=1)
    # Without a group of the calls, the buffers of a gather show its ranks; how many copies sum up does not show.
    shown = parallel_settings(without_hook(opened("ranks/settings_recorded/gloo_hybrid"))).fsdp
    assert shown == FsdpFacts(2, 2, 0, True, True, shard_ranks=2)


def test_what_an_older_hook_did_not_read_is_completed() -> None:
    view = with_facts(opened("ranks/settings_recorded/sharded_tiny_units"), fsdp=FsdpFacts(2, 42, 40, True, True))
    assert parallel_settings(view).fsdp == FsdpFacts(2, 42, 40, True, True, shard_ranks=2, replicas=1)
    inner = with_facts(opened("ranks/recorded/ddp_even"), parallel_wrapper=None, ddp=None)
    assert parallel_settings(inner).wrapper == "DistributedDataParallel"


def test_microbatches_and_chunks_are_those_of_the_pipeline_s_ranges() -> None:
    assert parallel_settings(opened("ranks/settings_recorded/gpipe")).microbatches == 8


def _ranges(names: list[str], ops: list[str]) -> Callable[[Any], None]:
    def add(trace: Any) -> None:
        trace.step(3, 0, 1000)
        for index, name in enumerate(names):
            trace.annotation(name, 10 + 20 * index, 10)
        for index, name in enumerate(["aten::add", *ops]):
            trace.op(name, 600 + 20 * index, 10)

    return add


@pytest.mark.parametrize(
    ("names", "ops", "expected"),
    [
        ([], [], ParallelSettings()),
        (["DataParallel.forward"], [], ParallelSettings("DataParallel")),
        (["DistributedDataParallel.forward"], [], ParallelSettings("DistributedDataParallel", DdpFacts())),
        (
            [],
            ["torch::distributed::reducer::mul_out"],
            ParallelSettings("DistributedDataParallel", DdpFacts(gradient_as_bucket_view=True)),
        ),
        (
            ["DistributedDataParallel.forward"],
            ["torch.distributed.ddp.reducer::search_unused_parameters", "torch::distributed::reducer::mul_out",
             "torch.distributed.ddp.reducer::copy_bucket_to_grad"],
            ParallelSettings(
                "DistributedDataParallel", DdpFacts(None, False, False), find_unused_parameters=True
            ),
        ),
        # Versions that name no unit: how many there are does not show.
        (["FSDP::root_pre_forward", *["FSDP::all_gather"] * 3], [], ParallelSettings("FSDPModule")),
        # Without a backward pass nothing is gathered a second time.
        (
            ["FSDP::root_pre_forward", "FSDP::all_gather (a)", "FSDP::all_gather"],
            [],
            ParallelSettings("FSDPModule", fsdp=FsdpFacts(2, 2, None, True, False)),
        ),
        (["Forward 0", "Forward 1", "Backward 0"], [], ParallelSettings(microbatches=2, chunks=1)),
        (["Forward 1", "Forward 2"], [], ParallelSettings()),
        (["PP:0F0", "PP:2F0", "PP:0F1", "PP:2F1", "PP:2B0"], [], ParallelSettings(microbatches=2, chunks=2)),
    ],
)  # fmt: skip
def test_what_ranges_show(
    names: list[str], ops: list[str], expected: ParallelSettings, new_trace: Callable[..., Any]
) -> None:
    trace = new_trace()
    _ranges(names, ops)(trace)
    assert parallel_settings(trace.view()) == expected


def test_fsdp1_is_counted_by_the_gathers_of_a_pass(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(3, 0, 1000)
    for begin, name, gathers in (
        (10, "FullyShardedDataParallel.forward", 3),
        (200, "FullyShardedDataParallel._pre_backward_prefetch", 2),
    ):
        trace.annotation(name, begin, 100)
        for index in range(gathers):
            trace.op("c10d::_allgather_base_", begin + 10 + 20 * index, 10)
    assert parallel_settings(trace.view()) == ParallelSettings(
        "FullyShardedDataParallel", fsdp=FsdpFacts(1, 3, 2, True, False)
    )


def test_sums_of_activations_are_tensor_parallel() -> None:
    view = without_hook(opened("ranks/recorded/tensor_even"))
    shown = parallel_settings(view)
    assert (shown.wrapper, shown.sums_activations) == (None, True)
    assert [group.dimension for group in facts_of_profile(view).groups] == ["tp"]
    assert not parallel_settings(opened("ranks/recorded/ddp_even")).sums_activations


def test_without_notes_of_calls_the_only_group_is_theirs() -> None:
    view = opened("ranks/settings_recorded/sharded_tiny_units")
    empty = replace(view.profile, communications=type(view.profile.communications).none())
    # One group leaves no choice.
    assert parallel_settings(without_hook(ProfileView(empty))).fsdp == FsdpFacts(
        2, 42, 42, True, False, shard_ranks=2, replicas=1
    )
