"""The casts and the GradScaler that are added to a literal training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.planning.amp_overhead import (
    BACKWARD_CAST_OPS,
    FORWARD_CAST_OPS,
    SCALER_OPS,
    AddedWork,
    added_work,
)
from tb_dlprof_plugin.planning.calibration import CALIBRATION
from tb_dlprof_plugin.planning.dtype_flow import flow
from tb_dlprof_plugin.planning.kernel_times import Launched, launched
from tb_dlprof_plugin.planning.target import target_of
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import AddedRow

PER_OP = 3000.0
"""What an op takes the CPU (ns)."""
KNOWN = replace(CALIBRATION, cast_op_share=0.5, cast_bandwidth=0.5, forward_cast_ns=1000.0, backward_cast_ns=2000.0)
BYTES_PER_NS = 0.5 * 4800
"""Half of an H200's memory bandwidth."""
IMAGES, WEIGHT, MATRIX = 8 * 3 * 32 * 32, 16 * 3 * 3 * 3, 64 * 10
STEPS = 3


@pytest.fixture(scope="module")
def view(trained: Callable[..., ProfileView]) -> ProfileView:
    return trained(STEPS, facts=RunFacts(batch_size=8))


@pytest.fixture(scope="module")
def work(view: ProfileView) -> Launched:
    return launched(view)


def added(view: ProfileView, work: Launched, precision: str = "bf16", **asked: Any) -> AddedWork:
    return added_work(view, work, flow(view, 1), target_of(view, precision, **asked), PER_OP, KNOWN)


def by_row(work: Launched, found: AddedWork) -> dict[int, list[AddedRow]]:
    """What is added before each row of the launches."""
    place = {launch: row for row, launch in enumerate(work.launch.tolist())}
    return {place[launch]: added for launch, added in found.before.by_launch().items()}


def forward_ns(elements: float) -> float:
    return 1000 + 6 * elements / BYTES_PER_NS


def backward_ns(elements: float) -> float:
    return 2000 + 6 * elements / BYTES_PER_NS


def test_each_iteration_casts_before_the_first_kernel_of_the_op(view: ProfileView, work: Launched) -> None:
    found = added(view, work)
    before = by_row(work, found)
    # The training launches copy, conv, fc, loss, fc backward, conv backward, optimizer.
    first_step = {row: [one.gpu_ns for one in before[row]] for row in sorted(before) if row < 7}
    assert first_step == {
        1: pytest.approx([forward_ns(IMAGES), forward_ns(WEIGHT)]),
        # What the convolution gives is in half precision already.
        2: pytest.approx([forward_ns(MATRIX)]),
        4: pytest.approx([backward_ns(MATRIX)]),
        # The images have no gradient.
        5: pytest.approx([backward_ns(WEIGHT)]),
    }
    assert sorted(before) == [7 * step + row for step in range(STEPS) for row in (1, 2, 4, 5)]
    assert found.casts == 5
    assert found.cast_ns == pytest.approx(sum(map(sum, first_step.values())))
    assert found.scaler_ns == 0


def test_casts_take_cpu_time_by_the_number_of_their_ops(view: ProfileView, work: Launched) -> None:
    found = by_row(work, added(view, work))
    share = 0.5 * PER_OP
    assert [one.host_ns for one in found[1]] == pytest.approx([FORWARD_CAST_OPS * share] * 2)
    assert [one.host_ns for one in found[4]] == pytest.approx([BACKWARD_CAST_OPS * share])
    assert not any(one.wait for row in found.values() for one in row)


def test_casts_are_counted_for_their_op(view: ProfileView, work: Launched) -> None:
    found = added(view, work)
    groups, strings = view.groups, view.profile.strings
    by_op = {(strings[groups.module[group]], groups.ids[group]): ns for group, ns in found.group_ns.items()}
    assert {module for module, _ in by_op} == {"conv1", "fc"}
    assert len(by_op) == 4
    assert sum(by_op.values()) == pytest.approx(found.cast_ns)


def test_a_larger_batch_casts_larger_images_and_the_same_weights(view: ProfileView, work: Launched) -> None:
    found = added(view, work, batch_size=32)
    assert [one.gpu_ns for one in by_row(work, found)[1]] == pytest.approx([forward_ns(4 * IMAGES), forward_ns(WEIGHT)])
    assert found.casts == 5


def test_another_gpu_casts_at_its_own_bandwidth(view: ProfileView, work: Launched) -> None:
    found = added(view, work, gpu="NVIDIA A100-SXM4-80GB")
    assert by_row(work, found)[1][0].gpu_ns == pytest.approx(1000 + 6 * IMAGES / (0.5 * 2039))


def test_with_fp16_the_cpu_waits_for_the_gradients_before_the_optimizer(view: ProfileView, work: Launched) -> None:
    plain, scaled = added(view, work, "bf16"), added(view, work, "fp16")
    before = by_row(work, scaled)
    waits = {row: ones[-1] for row, ones in before.items() if ones[-1].wait}
    assert sorted(waits) == [6, 13, 20]
    unscaling_ns = 8 * (WEIGHT + MATRIX) / BYTES_PER_NS
    assert unscaling_ns < 1000
    for one in waits.values():
        # Few gradients: the shortest kernel.
        assert one.gpu_ns == scaled.scaler_ns == 1000
        assert one.host_ns == pytest.approx(0.5 * PER_OP * SCALER_OPS)
    assert {row: ones for row, ones in before.items() if row not in waits} == by_row(work, plain)
    assert (scaled.casts, scaled.cast_ns) == (plain.casts, plain.cast_ns)


def test_unscaling_goes_over_all_gradients(view: ProfileView, work: Launched) -> None:
    types = flow(view, 1)
    types.parameter_elements = 10**9
    found = added_work(view, work, types, target_of(view, "fp16"), PER_OP, KNOWN)
    assert found.scaler_ns == pytest.approx(8e9 / BYTES_PER_NS)


def test_an_op_that_launches_nothing_casts_nothing(view: ProfileView, work: Launched) -> None:
    nothing = Launched(work.iteration[:0], work.launch[:0], work.call[:0])
    found = added_work(view, nothing, flow(view, 1), target_of(view, "fp16"), PER_OP, KNOWN)
    assert (len(found.before), found.casts, found.cast_ns) == (0, 0, 0)
