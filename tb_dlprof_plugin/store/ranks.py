"""Chooses the ranks of a training that are read together."""

from __future__ import annotations

from collections.abc import Collection

MOST_RANKS = 8
"""Reading more would take too long for a page."""


def ranks_together(ranks: Collection[int], own: int) -> list[int]:
    """``own`` and others, `MOST_RANKS` at most, evenly spread; empty where there is no other."""
    others = sorted(set(ranks) - {own})
    if not others:
        return []
    places = min(len(others), MOST_RANKS - 1)
    chosen = {others[index * len(others) // places] for index in range(places)}
    return sorted({own, *chosen})
