"""Attention is not fused.

Attention as separate ops: a product of queries and keys, a softmax, a product with the values. It is written out, or
comes from the math backend of `scaled_dot_product_attention`.

Why it matters: The matrix of attention weights has the length of the sequence squared. Written out, each op reads and
writes it as a whole: scaling, mask, softmax, dropout, casts, and all of them again in the backward pass. Fused
kernels (FlashAttention, cuDNN's, the memory-efficient ones) compute it piece by piece and never store it.

What to change: Call `torch.nn.functional.scaled_dot_product_attention`, and give it inputs for which a fused backend
exists.

When to leave it: The weights themselves are needed, to look at them or for a loss. Or the sequences are so short that
the step gains nothing.

To confirm: Record again: the modules should run aten::_scaled_dot_product_flash_attention, _cudnn_attention or
_efficient_attention, and no softmax of their own.

Read on:
- [PyTorch: scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
- [Dao: FlashAttention-2](https://arxiv.org/abs/2307.08691)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rule_context import HALF_PRECISIONS
from tb_dlprof_plugin.advice.rules.layers.attention import Attention, attentions
from tb_dlprof_plugin.advice.savings import change, step_saving
from tb_dlprof_plugin.advice.text import listed, milliseconds
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.roofline import gpu_name
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.names.gpu_peaks import Ceilings, ceilings_of
from tb_dlprof_plugin.names.tensor_core_eligibility import is_attention
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.SHAPES, Need.GPU),
    thresholds=("WORTHWHILE_SAVING_PERCENT", "STEP_NOISE"),
)

FUSED_ATTENTION_BYTES = (0.35, 0.2)
FUSED_ATTENTION_FLOPS_HALF = (0.55, 0.42)
FUSED_ATTENTION_FLOPS_FP32 = (0.14, 0.14)
FUSED_ATTENTION_LEAST_NS = (6_000, 8_000)
"""Share of the memory bandwidth and of the Tensor Cores' peak rate that fused attention reaches, forward and
backward, and what it takes at least: the slower of the two comes on top of that. In FP32 the peak is that of three
TF32 products. They give the times of cuDNN's and of the efficient kernels on an H200 within a factor of 2
(tests/data/precision_pairs, 12 sizes; lab/planted's attention_not_fused: 69 and 215 us where 59 and
190 were recorded)."""

FUSED_ATTENTION = SpeedupRange(0.5, 1.0, 1.5)
"""How many times as fast as by the shares above: their error, and another backend for masks and dropout."""

_GRADIENT_FLOPS = 2.5
"""Of the backward pass over those of the forward pass: five products instead of two."""
_GRADIENT_BYTES = 2.0
_NS = 1e9
_ALIGNED = {"fp16": 8, "bf16": 8, "fp32": 4}
_LARGEST_HEAD = 256
_MULTIHEAD = "x, _ = self.attention(query, key, value, need_weights=False)\n"


def check(context: RuleContext) -> Finding | Silent:
    """Fires where fused kernels should shorten the step by a notable share."""
    found = attentions(context)
    if not found:
        strings = context.profile.strings
        fused = any(is_attention(strings[name]) for name in context.profile.ops.name.tolist())
        return Silent("Attention is fused." if fused else "The run has no attention.", applicable=fused)
    ceilings = ceilings_of(gpu_name(context.view))
    launches = np.any([one.launches for one in found], axis=0)
    time = context.per_step(launches)
    share = percent(time, context.step_ns) or 0.0
    if share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"Attention in separate kernels takes {milliseconds(time)} a step ({share:.1f} %).")
    if ceilings is None:
        return Silent(
            f"Attention in separate kernels takes {milliseconds(time)} a step; what fused kernels would take is "
            f"unknown, "
            "because this GPU's peak rates are.",
        )
    expected = [_fused_ns(one, ceilings) for one in found]
    after = sum(forward + backward for forward, backward in expected)
    gone = _gone(context, found)
    speed = FUSED_ATTENTION
    estimate = step_saving(
        context,
        _fused(context, found, expected, gone, speed.low),
        _fused(context, found, expected, gone, speed.expected),
        _fused(context, found, expected, gone, speed.high),
        f"The kernels of attention take {milliseconds(time)} a step. Fused ones should take "
        f"{milliseconds(round(after))} by the GPU's peak rates and the share of them that such kernels reach "
        f"({1 / speed.high:.2g} to {1 / speed.low:.2g} times that).",
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(
            f"Attention in separate kernels takes {milliseconds(time)} a step; fused it should shorten the step by "
            f"{estimate.percent:.1f} %."
        )
    largest = max(found, key=lambda one: context.per_step(one.launches))
    modules = [one.module for one in found]
    elements = largest.batch * largest.queries * largest.keys
    return RULE.finding(
        title=f"Attention in separate kernels takes {milliseconds(time)} of each step",
        seen=f"{len(found)} attentions ({listed(modules) or 'outside modules'}) are computed as product, softmax and "
        f"product: {milliseconds(time)} a step ({share:.0f} %), of which only "
        f"{milliseconds(context.per_step(np.any([one.forward | one.backward for one in found], axis=0)))} are "
        f"products. "
        f"The largest has {largest.batch} matrices of {largest.queries} x {largest.keys} weights "
        f"({elements / 1e6:.0f} million), heads of {largest.depth}, in "
        f"{largest.precision.upper() or 'unknown precision'}.",
        readings=[
            Reading("Kernels of attention, per step", time, "ns"),
            Reading("Share of the step", share, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
            Reading("Fused kernels should take, per step", round(after), "ns"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=op_rows(context, launches),
        change=_advice(largest),
        code=_code(largest),
        saving=estimate,
    )


def _fused_ns(one: Attention, ceilings: Ceilings) -> tuple[float, float]:
    """What fused kernels should take per step, forward and backward."""
    half = one.precision in HALF_PRECISIONS
    shares = FUSED_ATTENTION_FLOPS_HALF if half else FUSED_ATTENTION_FLOPS_FP32
    peak = ceilings.flops_per_second(one.precision if half else "3xtf32", tensor_cores=True)
    peak = peak or ceilings.flops_per_second("fp32", tensor_cores=False)
    passes = ((one.forward_calls, 1.0, 1.0), (one.backward_calls, _GRADIENT_FLOPS, _GRADIENT_BYTES))
    times = []
    for at, (calls, more_flops, more_bytes) in enumerate(passes):
        moved = one.values * (2 if half else 4) * more_bytes
        by_bytes = moved / (ceilings.bytes_per_second * FUSED_ATTENTION_BYTES[at])
        by_flops = one.flops * more_flops / (peak * shares[at]) if peak else 0.0
        times.append(calls * (FUSED_ATTENTION_LEAST_NS[at] + _NS * max(by_bytes, by_flops)))
    return times[0], times[1]


def _fused(
    context: RuleContext, found: list[Attention], expected: list[tuple[float, float]], gone: Bools, speed: float
) -> Change:
    parts: list[tuple[Bools, float]] = []
    for one, times in zip(found, expected, strict=True):
        parts += [(one.others, 0.0), (one.copies, 0.0)]
        for launches, fused in zip((one.forward, one.backward), times, strict=True):
            parts.append((launches, fused / speed / max(context.per_step(launches), 1)))
    return change(context, *parts, gone=gone)


def _gone(context: RuleContext, found: list[Attention]) -> Bools:
    """The outermost ops that work on the weights and multiply nothing: one fused op takes the place of all."""
    top = context.view.call_top
    call = context.profile.launches.call
    gone, kept = np.zeros(len(top), dtype=np.bool_), np.zeros(len(top), dtype=np.bool_)
    for one in found:
        for launches, marked in ((one.others, gone), (one.forward | one.backward, kept)):
            tops = top[call[launches & (call >= 0)]]
            marked[tops[tops >= 0]] = True
    result: Bools = gone & ~kept
    return result


def _advice(one: Attention) -> str:
    """Why it is not fused, and what to change."""
    aligned = _ALIGNED.get(one.precision, 1)
    needs = ""
    if one.depth % aligned:
        needs = (
            f" The fused backends want heads whose size is a multiple of {aligned} in {one.precision.upper()}; "
            f"{one.depth} is none."
        )
    elif one.depth > _LARGEST_HEAD:
        needs = f" Heads of {one.depth} are too large for the fused backends, which go up to {_LARGEST_HEAD}."
    elif one.precision == "fp32":
        needs = " In FP32 only the memory-efficient backend fits; under autocast the faster ones do."
    if one.by_math:
        why = needs or (
            " Backends are chosen by inputs and by torch.nn.attention.sdpa_kernel: look for a context that allows only "
            "the math backend, and for a mask that needs a gradient."
        )
        return f"scaled_dot_product_attention falls back to its math backend here.{why}"
    if one.averaged:
        return (
            "The weights are averaged over the heads, as nn.MultiheadAttention does with need_weights=True. Call it "
            f"with need_weights=False.{needs}"
        )
    parts = [what for what, there in (("the mask", one.masked), ("the dropout", one.dropout)) if there]
    inside = f", {' and '.join(parts)} included" if parts else ""
    return f"Replace the separate ops by one call of scaled_dot_product_attention{inside}.{needs}"


def _code(one: Attention) -> str:
    if one.averaged and not one.by_math:
        return _MULTIHEAD
    mask = "is_causal=True" if one.masked and one.queries == one.keys else "attn_mask=mask" if one.masked else ""
    dropout = "dropout_p=self.dropout if self.training else 0.0" if one.dropout else ""
    arguments = ", ".join(part for part in ("query, key, value", mask, dropout) if part)
    comment = "  # or attn_mask=mask, where it is not causal" if mask.startswith("is_causal") else ""
    return f"x = torch.nn.functional.scaled_dot_product_attention({arguments}){comment}\n"
