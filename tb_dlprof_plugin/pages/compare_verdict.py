"""Whether a candidate is slower than its base by more than a limit: what a build decides on."""

from __future__ import annotations

from typing import Literal

import msgspec

from tb_dlprof_plugin.pages.compare import ComparePage

Regression = Literal["slower", "not_slower", "cannot_say"]


class RegressionVerdict(msgspec.Struct, frozen=True):
    """Of a step, or of a sample where the batch sizes differ; percentages say how much longer the candidate takes.

    ``low_percent`` to ``high_percent`` is the 95 % interval of ``percent``; None is unknown. It is "slower" where the
    difference is above the limit and the whole interval above 0, "not_slower" where the whole interval is at most the
    limit, else "cannot_say" with the reason in ``why``.
    """

    verdict: Regression
    limit_percent: float
    per: Literal["step", "sample"]
    percent: float | None
    low_percent: float | None
    high_percent: float | None
    why: str

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.percent is None:
            return f"Whether the candidate is slower cannot be said: {self.why}."
        said = f"The candidate takes {abs(self.percent):.1f} % {'longer' if self.percent > 0 else 'less'} a {self.per}"
        if self.low_percent is not None and self.high_percent is not None:
            said += f" ({self.low_percent:+.1f} to {self.high_percent:+.1f} %)"
        words = {"slower": "it is slower", "not_slower": "it is not slower"}.get(self.verdict, f"but {self.why}")
        return f"{said}, and the limit is {self.limit_percent:g} %: {words}."


class JudgedPage(ComparePage, frozen=True):
    """A comparison and the verdict on it."""

    regression: RegressionVerdict


def judged(page: ComparePage, limit_percent: float) -> JudgedPage:
    """The page with its verdict."""
    fields = {name: getattr(page, name) for name in page.__struct_fields__}
    return JudgedPage(**fields, regression=regression(page, limit_percent))


def regression(page: ComparePage, limit_percent: float) -> RegressionVerdict:
    """Whether the candidate is slower by more than ``limit_percent``."""
    per_sample = page.batches.speedup_per_sample if page.batches else None
    speedup = per_sample if page.batches else page.speedup
    per: Literal["step", "sample"] = "sample" if page.batches else "step"

    def verdict(kind: Regression, why: str = "") -> RegressionVerdict:
        return RegressionVerdict(kind, limit_percent, per, percent, low, high, why)

    percent = low = high = None
    if page.different_models:
        return verdict("cannot_say", "the runs train different models")
    if speedup is None:
        return verdict("cannot_say", "a step time is unknown")
    percent = 100 / speedup - 100
    if page.speedup is None or page.speedup_low is None or page.speedup_high is None:
        return verdict("cannot_say", "a recorded step of a single iteration has no interval")
    scale = speedup / page.speedup
    low, high = (100 / (scale * end) - 100 for end in (page.speedup_high, page.speedup_low))
    if percent > limit_percent and page.change == "slower":
        return verdict("slower")
    if high <= limit_percent:
        return verdict("not_slower")
    if percent > limit_percent:
        return verdict("cannot_say", "its 95 % interval does not exclude that it is no slower")
    return verdict("cannot_say", "its 95 % interval reaches beyond the limit")
