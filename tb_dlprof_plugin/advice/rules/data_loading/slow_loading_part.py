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
from tb_dlprof_plugin.advice.savings import Saving, less_cpu, partly
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.loader.batches import LIMITS, loader_recording, waiting_share, why_unknown
from tb_dlprof_plugin.metrics.loader.forecast import loader_forecast, step_without_slow_part, why_no_forecast
from tb_dlprof_plugin.metrics.loader.parts import SlowPart, slow_part
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
    part, waits, recording = slow_part(view), waiting_share(view), loader_recording(view)
    if part is None or waits is None or recording is None:
        return Silent(why_unknown(view) or "The stages of the loader are not known.", applicable=False)
    if waits < LIMITS:
        return Silent(f"The step waits for its batch in {100 * waits:.1f} % of its time.")
    if part.kind == "items":
        return Silent("No part of loading stands out: reading items takes most of the time of a batch.")
    seen = f"{_title(part)}, and the step waits for its batch in {100 * waits:.0f} % of its time"
    saving = _saving(context)
    if saving is None:
        return Silent(f"{seen}; without that part the step would be as long.")
    return RULE.finding(
        title=_title(part),
        seen=f"{seen}.",
        readings=[
            Reading("Share of a batch", 100 * part.share, "percent"),
            Reading("Waiting for batches", 100 * waits, "percent", 100 * LIMITS),
            Reading("Worker processes", recording.workers, "count"),
        ],
        evidence=[EvidenceRow("Dataloader", round(context.step_ns * waits), 100 * waits, "overview", "dataloader")],
        change=part_text(view, part),
        code=_CODE[part.kind],
        saving=saving,
    ).but(confidence="medium")


def _saving(context: RuleContext) -> Saving | str | None:
    """None where the step would be as long without the part; why it is unknown where there is no forecast."""
    view = context.view
    forecast, without = loader_forecast(view), step_without_slow_part(view)
    if forecast is None or without is None:
        return why_no_forecast(view) or ""
    gone = max(0.0, 1 - without.ns / forecast.now.ns)
    if gone < LIMITS:
        return None
    text = (
        f"Simulated with {forecast.now.workers} workers, the step takes {ms(forecast.now.ns)}, and {ms(without.ns)} if "
        f"this part cost nothing. Expected: {100 * USUAL:.0f} % of that; between nothing and all of it."
    )
    high = context.step_ns * gone
    loading = loading_times(view, view.selection())
    return partly(context, less_cpu(loading), 0.0, USUAL * high, high, text)


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
