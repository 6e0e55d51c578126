"""A GradScaler beside BF16 (or FP32), whose gradients need no scaling."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.finding import EvidenceRow, Reading, Reference, Silent
from tb_dlprof_plugin.advice.looking import launched_in, ops_named
from tb_dlprof_plugin.advice.rule import Finding, Rule
from tb_dlprof_plugin.advice.savings import saved
from tb_dlprof_plugin.advice.scaling import UNSCALE, scaler_calls
from tb_dlprof_plugin.advice.words import milliseconds
from tb_dlprof_plugin.frame import Frame
from tb_dlprof_plugin.measures.iterations import percent
from tb_dlprof_plugin.measures.precision_mode import precision_mode, precision_name
from tb_dlprof_plugin.simulation.change import without_calls

RULE = Rule(
    id="scaler_with_bf16",
    title="A gradient scaler without FP16",
    looks_for="The calls of a GradScaler in a run whose matrix work is in BF16 or FP32.",
    why="FP16 numbers below 6e-8 become 0, so its gradients are scaled up. BF16 has FP32's range and needs nothing of "
    "that. The scaler still reads and writes all gradients once more to unscale and check them, and then makes the CPU "
    "wait for the result before the optimizer may begin: the GPU runs dry, and the next launches come late.",
    fix="Leave the scaler out, or construct it with `enabled=False`.",
    ignore_when="The run switches between FP16 and BF16 and the loss of time does not matter.",
    thresholds=("REPLAYED_WAITS",),
    references=(
        Reference("PyTorch: gradient scaling", "https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling"),
    ),
)

_CODE = """loss.backward()  # instead of scaler.scale(loss).backward()
optimizer.step()  # instead of scaler.step(optimizer); scaler.update()
"""


def check(case: Case) -> Finding | Silent:
    """Fires where a scaler worked though no matrix work was in FP16."""
    if not case.profile.has_gpu:
        return Silent("The run used no GPU.", applicable=False)
    mode = precision_mode(case.frame)
    calls = scaler_calls(case)
    if not case.facts.grad_scaler and not calls.any():
        return Silent("No GradScaler was seen.", applicable=False)
    if not calls.any():
        return Silent("The GradScaler did nothing in the selected iterations.")
    shares = {share.precision: share.percent for share in mode.shares}
    if shares.get("fp16"):
        return Silent(f"{shares['fp16']:.0f} % of the matrix work is in FP16, whose gradients need scaling.")
    if not mode.precision or mode.precision == "mixed":
        return Silent("In which precision the run computed is unknown.", applicable=False)
    launches = launched_in(case, calls) & case.frame.selected_launches(case.selection)
    time, count = case.per_step(launches), int(calls.sum()) / case.selection.count
    cpu = int(case.profile.calls.duration_ns[calls].sum()) // case.selection.count
    waits = _waits(case)
    estimate = saved(
        case,
        without_calls(case.frame, calls),
        f"The scaler's {count:.0f} calls a step go, with {milliseconds(time)} of kernels"
        + (" and the wait before the optimizer." if waits else "."),
    )
    name = precision_name(mode.precision)
    return RULE.finding(
        title=f"A GradScaler runs beside {name}: {milliseconds(time)} of kernels a step"
        + (", and the CPU waits before each optimizer step" if waits else ""),
        seen=f"Matrix work is in {name}, which needs no loss scaling. Yet a GradScaler makes {count:.0f} calls a step: "
        f"{milliseconds(time)} of kernels that unscale and check all gradients"
        + (", and a read of the result for which the CPU waits until the backward pass is done." if waits else "."),
        readings=[
            Reading("Calls of the scaler per step", count, "count"),
            Reading("Their kernels per step", time, "ns"),
            Reading("Their time on the CPU per step, waiting included", cpu, "ns"),
        ],
        evidence=_evidence(case, time),
        change="Leave the GradScaler out of the training loop.",
        code=_CODE,
        saving=estimate,
        confirm="Record again: aten::_amp_foreach_non_finite_check_and_unscale_ and the aten::item behind it are gone.",
        confidence="high",
    )


def made(base: Frame, candidate: Frame) -> str:
    """The scaler, by what the hook saw."""
    before, after = base.profile.facts.grad_scaler, candidate.profile.facts.grad_scaler
    return "no GradScaler" if before and after is False else ""


def _waits(case: Case) -> bool:
    """Whether the result is read on the CPU: fused optimizers read it on the GPU."""
    read = ops_named(case, lambda name: name == "aten::item")[case.profile.calls.op]
    return bool((scaler_calls(case) & read).any())


def _evidence(case: Case, time: int) -> list[EvidenceRow]:
    groups, strings = case.frame.groups, case.profile.strings
    wanted = UNSCALE.removeprefix("aten::")
    for group in np.flatnonzero(groups.op_type >= 0).tolist():
        if strings[groups.op_type[group]] == wanted:
            launched = case.frame.selected_launches(case.selection) & (case.frame.launch_group == group)
            value = case.per_step(launched)
            return [EvidenceRow(wanted, value, percent(value, time), "ops", groups.ids[group])]
    return []
