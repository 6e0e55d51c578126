"""One part of loading takes most of a batch's time.

A step that waits for its DataLoader. One transform or ``collate_fn`` takes half of the time of a batch or more. Or
handing over many tensors, or a few slow items, takes nearly a third.

Why it matters: More workers hide a slow part behind memory and cores. Made cheaper, it needs neither.

What to change: Make that part cheaper. `tb-dlprof loader` lists the stages and the transforms.

When to leave it: The step does not wait for batches any more once there are enough workers.

To confirm: Record again: the part's share of a batch should fall, and the step get shorter.

Read on:
- [PyTorch: DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice.loader_hints import part_text
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import less_cpu, partly
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.loader import (
    LIMITS,
    SlowPart,
    loader_forecast,
    slow_part,
    step_without_slow_part,
    waiting_share,
    why_unknown,
)
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.pauses import loading_times

RULE = Rule(__name__, __doc__)

USUAL = 0.5
"""Share of a slow part that is usually saved: half of it. Ours: an assumption; nothing and all of it are the bounds."""

_TITLES = {
    "transform": "The transform {name} takes {share:.0f} % of the time of a batch",
    "collate": "{name} takes {share:.0f} % of the time of a batch",
    "tensors": "Handing over many tensors takes {share:.0f} % of the time of a batch",
    "slow items": "Few slow items take {share:.0f} % of the time of a batch",
}


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the step waits for batches, and one part of loading takes most of their time."""
    view = context.view
    why = why_unknown(view)
    part, waits, forecast = slow_part(view), waiting_share(view), loader_forecast(view)
    if why is not None or part is None or waits is None or forecast is None:
        return Silent(why or "The stages of the loader are not known.", applicable=False)
    if waits < LIMITS:
        return Silent(f"The step waits for its batch in {100 * waits:.1f} % of its time.")
    without = step_without_slow_part(view)
    if without is None:
        return Silent("No part of loading stands out: reading items takes most of the time of a batch.")
    share = 100 * part.share
    now_ns = forecast.now.ns
    gone = max(0.0, 1 - without.ns / now_ns)
    seen = f"{_title(part)}, and the step waits for its batch in {100 * waits:.0f} % of its time"
    if gone < LIMITS:
        return Silent(f"{seen}; without that part the step would be as long.")
    text = (
        f"Simulated with {forecast.now.workers} workers, the step takes {ms(now_ns)}, and {ms(without.ns)} if this "
        f"part cost nothing. Expected: {100 * USUAL:.0f} % of that; between nothing and all of it."
    )
    high = context.step_ns * gone
    loading = loading_times(view, view.selection())
    return RULE.finding(
        title=_title(part),
        seen=f"{seen}.",
        readings=[
            Reading("Share of a batch", share, "percent"),
            Reading("Waiting for batches", 100 * waits, "percent", 100 * LIMITS),
            Reading("Worker processes", forecast.now.workers, "count"),
        ],
        evidence=[EvidenceRow("Dataloader", round(context.step_ns * waits), 100 * waits, "overview", "dataloader")],
        change=part_text(view, part),
        code=_CODE[part.kind],
        saving=partly(context, less_cpu(loading), 0.0, USUAL * high, high, text),
    ).but(confidence="medium")


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """The part that costs less."""
    before, after = slow_part(base), slow_part(candidate)
    if before is None or after is None or before.kind == "items":
        return ""
    changed = after.kind != before.kind or after.name != before.name
    return f"{_title(before).partition(' takes')[0]}: no longer most of the time of a batch" if changed else ""


def _title(part: SlowPart) -> str:
    return _TITLES[part.kind].format(name=part.name or "collate_fn", share=100 * part.share)


_CODE = {
    "transform": "# Once for all epochs, in place of in each __getitem__:\n"
    "torch.save([slow_transform(x) for x in raw], path)\n",
    "collate": "def collate(samples):\n    return torch.stack([sample for sample in samples])\n",
    "tensors": "def collate(samples):\n    # One tensor per data type, cut into its fields on the GPU.\n"
    "    return torch.stack([torch.cat([field.flatten() for field in sample]) for sample in samples])\n",
    "slow items": "loader = torch.utils.data.DataLoader(\n    dataset,\n    num_workers=...,\n    prefetch_factor=8,\n"
    "    in_order=False,  # batches come in another order\n)\n",
}
