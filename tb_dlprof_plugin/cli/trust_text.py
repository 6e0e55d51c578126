"""Whether a recording can be trusted, as lines on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.pages.trust import TrustVerdict


def trust_lines(trust: TrustVerdict) -> list[str]:
    """The verdict with its first reason, and a line for each other reason."""
    if not trust.reasons:
        return [f"Recording: {trust.verdict}."]
    first, *others = trust.reasons
    return [f"Recording: {trust.verdict}. {first.text}", *(f"  {reason.text}" for reason in others)]
