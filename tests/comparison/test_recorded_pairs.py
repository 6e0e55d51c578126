"""The demo's recordings on an H200: FP32 against every other precision."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.comparison.differences import Comparison, compare
from tb_dlprof_plugin.comparison.match import match_sites
from tb_dlprof_plugin.metrics.op_sites import Run, run_of
from tb_dlprof_plugin.metrics.step_buckets import bucket_times
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.estimate import step_estimate

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
MODELS = ("alexnet", "custom", "lenet", "mlp", "resnet50", "vgg16")
CANDIDATES = ("tf32", "amp-fp16", "amp-bf16")


def frame_of(name: str) -> ProfileView:
    return recorded_view(RECORDED / name)


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> dict[str, ProfileView]:
    return {name: frame_of(f"{request.param}/{name}") for name in ("fp32", *CANDIDATES)}


@pytest.fixture(scope="module")
def found(model: dict[str, ProfileView]) -> dict[str, Comparison]:
    return {name: compare(model["fp32"], model[name]) for name in CANDIDATES}


def test_all_gpu_time_but_the_precisions_own_is_matched(found: dict[str, Comparison]) -> None:
    for name, comparison in found.items():
        base, candidate = comparison.shares
        assert (base.matched_percent, candidate.matched_percent) == (100, 100)
        assert (base.casts_ns, base.scaler_ns) == (0, 0)
        assert (candidate.casts_ns > 0) == name.startswith("amp")
        assert (candidate.scaler_ns > 0) == (name == "amp-fp16")


def test_shares_sum_to_the_gpu_time_launched(model: dict[str, ProfileView], found: dict[str, Comparison]) -> None:
    for name, comparison in found.items():
        for side, view in zip(comparison.shares, (model["fp32"], model[name]), strict=True):
            launched = view.selected_launches(view.selection())
            whole = view.profile.launches.duration_ns[launched].sum() / len(view.profile.iterations)
            assert side.total_ns == pytest.approx(whole, abs=6)


def test_the_waterfall_adds_up_to_the_nanosecond(model: dict[str, ProfileView], found: dict[str, Comparison]) -> None:
    for name, comparison in found.items():
        steps = tuple(round(step_estimate(model[run], model[run].selection()).ns) for run in ("fp32", name))
        assert comparison.step_ns == steps
        assert sum(bucket.a_ns for bucket in comparison.buckets) == steps[0]
        assert sum(bucket.b_ns for bucket in comparison.buckets) == steps[1]


def test_buckets_sum_to_each_iteration_and_agree_with_the_categories(model: dict[str, ProfileView]) -> None:
    for view in model.values():
        run = run_of(view, view.selection())
        times = bucket_times(run, "gpu")
        iterations = view.profile.iterations
        assert (times.by_iteration.sum(axis=1) == iterations.duration_ns).all()
        columns = dict(zip(times.labels, times.by_iteration.T, strict=True))
        categories = iterations.category_ns[:, 0]
        assert (columns["tensor_core"] == categories[:, 0]).all()
        busy = sum(columns[name] for name in list(columns)[:6])
        assert (busy == categories[:, :3].sum(axis=1)).all()
        assert (times.by_site.sum(axis=0) <= times.by_iteration.sum(axis=0)).all()


def test_order_and_dims_alone_find_the_partners_that_module_paths_find(model: dict[str, ProfileView]) -> None:
    for name in CANDIDATES:
        known = tuple(run_of(view, view.selection()) for view in (model["fp32"], model[name]))
        blind = tuple(run_of(view, view.selection()) for view in (_without_modules(r.view) for r in known))
        expected, partner = _partners(*known), _partners(*blind)
        weight = {call: int(known[0].sites.gpu_ns[known[0].sites.of_call[call]]) for call in expected}
        same = sum(weight[call] for call, other in expected.items() if partner.get(call) == other)
        assert same >= 0.999 * sum(weight.values())


def test_one_run_with_modules_and_one_without_match_by_sequence(model: dict[str, ProfileView]) -> None:
    comparison = compare(model["fp32"], _without_modules(model["amp-fp16"]))
    assert {pair.how for pair in comparison.pairs if pair.module} == {"sequence"}
    assert comparison.shares[0].matched_percent > 99
    assert comparison.shares[1].matched_percent > 97


def test_ops_and_what_lies_in_none_make_up_each_bucket(found: dict[str, Comparison]) -> None:
    for comparison in found.values():
        for bucket in comparison.buckets:
            in_ops = [pair.buckets.get(bucket.key, (0, 0)) for pair in comparison.pairs]
            # Rounded op by op.
            assert sum(times[0] for times in in_ops) <= bucket.a_ns + len(in_ops)
            assert sum(times[1] for times in in_ops) <= bucket.b_ns + len(in_ops)


def _without_modules(view: ProfileView) -> ProfileView:
    ops = view.profile.ops
    return ProfileView(
        dataclasses.replace(view.profile, ops=dataclasses.replace(ops, module=np.zeros_like(ops.module)))
    )


def _partners(a: Run, b: Run) -> dict[int, int]:
    of_a = match_sites(a, b).of_a
    first_a, first_b = _first_calls(a), _first_calls(b)
    return {first_a[site]: first_b[int(of_a[site])] for site in np.flatnonzero(of_a >= 0).tolist()}


def _first_calls(run: Run) -> dict[int, int]:
    tops = np.flatnonzero(run.view.profile.ops.top[run.view.profile.calls.op] & (run.sites.of_call >= 0))
    sites, first = np.unique(run.sites.of_call[tops], return_index=True)
    return dict(zip(sites.tolist(), tops[first].tolist(), strict=True))
