"""Whether a candidate is slower than its base by more than a limit: what a build decides on."""

from __future__ import annotations

from typing import Literal

import msgspec

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


def judge(
    limit_percent: float,
    per: Literal["step", "sample"],
    percent: float | None,
    low_percent: float | None,
    high_percent: float | None,
    why_unknown: str,
) -> RegressionVerdict:
    """The verdict on a difference with its 95 % interval; ``why_unknown`` is the reason where a part of it is None."""

    def verdict(kind: Regression, why: str = "") -> RegressionVerdict:
        return RegressionVerdict(kind, limit_percent, per, percent, low_percent, high_percent, why)

    if percent is None or low_percent is None or high_percent is None:
        return verdict("cannot_say", why_unknown)
    if percent > limit_percent and low_percent > 0:
        return verdict("slower")
    if high_percent <= limit_percent:
        return verdict("not_slower")
    if percent > limit_percent:
        return verdict("cannot_say", "its 95 % interval does not exclude that it is no slower")
    return verdict("cannot_say", "its 95 % interval reaches beyond the limit")
