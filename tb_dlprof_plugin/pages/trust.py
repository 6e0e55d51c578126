"""The verdict below the title of every page: whether the recording can be trusted, and why."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.metrics.trust import TrustLevel, trust
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef

__all__ = ["TrustLevel", "TrustPage", "TrustReasonText", "TrustVerdict", "trust_page", "trust_verdict"]


class TrustReasonText(msgspec.Struct, frozen=True):
    """One reason for the verdict; ``severity`` is the best verdict that it allows, "good" if it supports the
    recording."""

    code: str
    severity: TrustLevel
    text: str


class TrustVerdict(msgspec.Struct, frozen=True):
    """Whether the recording can be trusted; ``reasons`` come worst first.

    "good": its figures are reliable; "fair": some of them are not; "poor": most of them are not those of the
    program without the profiler.
    """

    verdict: TrustLevel
    reasons: list[TrustReasonText]


class TrustPage(msgspec.Struct, frozen=True):
    """The verdict on one recording, which any page about it shows."""

    ref: RunRef
    verdict: TrustLevel
    reasons: list[TrustReasonText]

    @property
    def headline(self) -> str:
        """How far the recording can be trusted, and the first reason."""
        return " ".join([f"Recording: {self.verdict}.", *(reason.text for reason in self.reasons[:1])])


def trust_verdict(view: ProfileView, selection: Selection) -> TrustVerdict:
    """Of the selected iterations."""
    judged = trust(view, selection)
    return TrustVerdict(judged.verdict, [TrustReasonText(r.code, r.severity, r.sentence) for r in judged.reasons])


def trust_page(view: ProfileView, ref: RunRef, selection: Selection) -> TrustPage:
    """Of the selected iterations."""
    judged = trust_verdict(view, selection)
    return TrustPage(ref, judged.verdict, judged.reasons)
