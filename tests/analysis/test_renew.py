"""Old runs with today's rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.model.profile import Profile, Verdict
from tb_dlprof_plugin.model.run_facts import Gpu, System
from tb_dlprof_plugin.store.reclassify import reclassified

ROOT = Path(__file__).parents[2]
TRACES = sorted((ROOT / "tests" / "traces").glob("[!ct]*.pt.trace.json.gz"))


def _same(first: object, second: object) -> None:
    for name in type(first).__slots__:  # type: ignore[attr-defined]
        left, right = getattr(first, name), getattr(second, name)
        assert np.array_equal(left, right), f"{type(first).__name__}.{name}"


def _words(profile: Profile) -> list[tuple[str, int, str, str, str]]:
    kernels, strings = profile.kernels, profile.strings
    columns = (kernels.name, kernels.tensor_core, kernels.precision, kernels.family, kernels.rule)
    return [
        (strings[n], t, strings[p], strings[f], strings[r])
        for n, t, p, f, r in zip(*(column.tolist() for column in columns), strict=True)
    ]


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.name.split(".")[0])
def test_a_new_profile_stays_as_it_is(trace: Path) -> None:
    profile = analyze_trace(trace)
    again = reclassified(profile)
    assert _words(again) == _words(profile)
    for table in ("launches", "ops", "iterations", "calls"):
        _same(getattr(profile, table), getattr(again, table))


def test_old_verdicts_give_way_to_those_of_the_rules(training) -> None:
    # GIVEN a profile that a version stored which knew no Tensor Core kernel
    profile = training("fp16").profile()
    kernels, times = profile.kernels, profile.iterations.category_ns.copy()
    times[:, :, 1] += times[:, :, 0]
    times[:, :, 0] = 0
    old = replace(
        profile,
        kernels=replace(kernels, tensor_core=np.full(len(kernels), int(Verdict.NO))),
        ops=replace(profile.ops, tensor_core_eligible=np.full(len(profile.ops), int(Verdict.NO))),
        iterations=replace(profile.iterations, category_ns=times),
    )
    again = reclassified(old)
    assert _words(again) == _words(profile)
    _same(again.ops, profile.ops)
    assert np.array_equal(again.iterations.category_ns, profile.iterations.category_ns)
    assert old.strings == profile.strings


@pytest.mark.parametrize(
    "run", sorted((ROOT / "demo" / "recorded").glob("*/*/")), ids=lambda run: "-".join(run.parts[-2:])
)
def test_a_recorded_run_keeps_its_accounts(run: Path) -> None:
    profile = recorded_view(run).profile
    again = reclassified(profile)
    totals = again.iterations.category_ns.sum(axis=2)
    assert np.array_equal(totals, np.repeat(again.iterations.duration_ns[:, None], totals.shape[1], axis=1))
    assert np.array_equal(again.launches.duration_ns, profile.launches.duration_ns)
    moved = profile.iterations.category_ns[:, :, 2:] != again.iterations.category_ns[:, :, 2:]
    assert not moved.any(), "verdicts move time between the two kinds of kernels only"


def test_an_old_run_of_a_gpu_that_was_known_by_name_alone_has_its_verdicts(training) -> None:
    profile = training("fp16").profile()
    old = replace(profile, system=System(gpus=[Gpu(0, "NVIDIA H200")]))
    again = reclassified(old)
    assert again.system.gpus[0].compute_capability == (9, 0)
    assert _words(again) == _words(profile)
    without = reclassified(replace(profile, system=System(gpus=[Gpu(0, "NVIDIA GeForce GTX 1660", 7, 5)])))
    assert set(without.kernels.tensor_core.tolist()) == {Verdict.NO}
    assert Verdict.YES not in without.ops.tensor_core_eligible
