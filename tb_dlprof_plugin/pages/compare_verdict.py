"""Whether the candidate of a comparison is slower than its base by more than a limit."""

from __future__ import annotations

from typing import Literal

from tb_dlprof_plugin.model.regression import RegressionVerdict, judge
from tb_dlprof_plugin.pages.compare import ComparePage


class JudgedPage(ComparePage, frozen=True):
    """A comparison and the verdict on it."""

    regression: RegressionVerdict


def judged(page: ComparePage, limit_percent: float) -> JudgedPage:
    """The page with its verdict."""
    fields = {name: getattr(page, name) for name in page.__struct_fields__}
    return JudgedPage(**fields, regression=regression(page, limit_percent))


def regression(page: ComparePage, limit_percent: float) -> RegressionVerdict:
    """Whether the candidate is slower by more than ``limit_percent``."""
    per: Literal["step", "sample"] = "sample" if page.batches else "step"
    if page.different_models:
        return judge(limit_percent, per, None, None, None, "the runs train different models")
    speedup = page.batches.speedup_per_sample if page.batches else page.speedup
    if speedup is None:
        return judge(limit_percent, per, None, None, None, "a step time is unknown")
    low = high = None
    if page.speedup is not None and page.speedup_low is not None and page.speedup_high is not None:
        scale = speedup / page.speedup
        low, high = (100 / (scale * end) - 100 for end in (page.speedup_high, page.speedup_low))
    return judge(
        limit_percent, per, 100 / speedup - 100, low, high, "a recorded step of a single iteration has no interval"
    )
